// Command go makes every scenario with the official Go SDKs and tells, one
// JSON line each, what they saw.
//
// Environment: BASE_URL, ERROR_URL, SIDE. The lines are compared by ../check.py. SIDE=refusals makes the calls of
// refusals.go instead.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

const model = "model-a"

// seen is what the SDK handed over in one call.
type seen struct {
	SDK       string      `json:"sdk"`
	Scenario  string      `json:"scenario"`
	Run       string      `json:"run"`
	Text      string      `json:"text"`
	Reasoning string      `json:"reasoning"`
	Tools     [][2]string `json:"tools"` // name and arguments
	Input     *int64      `json:"input"`
	Output    *int64      `json:"output"`
	Finish    *string     `json:"finish"`
	TTFT      float64     `json:"ttft_ms,omitempty"`
	Error     []any       `json:"error,omitempty"`   // type, status, code
	Failure   string      `json:"failure,omitempty"` // what should not have happened

	start time.Time
}

func (s *seen) token() {
	if s.TTFT == 0 {
		s.TTFT = float64(time.Since(s.start)) / float64(time.Millisecond)
	}
}

func (s *seen) add(to *string, text string) {
	if text != "" {
		s.token()
		*to += text
	}
}

func (s *seen) tool(name, arguments string) {
	if name != "" {
		s.Tools = append(s.Tools, [2]string{name, ""})
	}
	if arguments != "" && len(s.Tools) > 0 {
		s.Tools[len(s.Tools)-1][1] += arguments
	}
	if name != "" || arguments != "" {
		s.token()
	}
}

func (s *seen) usage(input, output int64) { s.Input, s.Output = &input, &output }

func (s *seen) finish(reason string) {
	if reason != "" {
		s.Finish = &reason
	}
}

// scenario is one call of one SDK; url is without the API version.
type scenario struct {
	name string
	call func(url, run string, s *seen) error
}

func main() {
	base, errors, side := os.Getenv("BASE_URL"), os.Getenv("ERROR_URL"), os.Getenv("SIDE")
	if side == "refusals" {
		if err := refusals(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	out := json.NewEncoder(os.Stdout)
	for _, sdk := range []struct {
		name      string
		scenarios []scenario
	}{{"openai", openaiScenarios}, {"anthropic", anthropicScenarios}} {
		for _, sc := range sdk.scenarios {
			s := &seen{SDK: sdk.name, Scenario: sc.name, Tools: [][2]string{}, start: time.Now()}
			s.Run = fmt.Sprintf("go-%s-%s-%s", sdk.name, sc.name, side)
			url := base
			if strings.HasPrefix(sc.name, "error") {
				url = errors
			}
			if err := sc.call(url, s.Run, s); err != nil {
				s.Failure = err.Error()
			}
			if err := out.Encode(s); err != nil {
				fmt.Fprintln(os.Stderr, "write result:", err)
				os.Exit(1)
			}
		}
	}
}
