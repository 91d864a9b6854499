package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// mostCalls is how many calls are made until one is refused.
const mostCalls = 60

// attempt is what an SDK met with one request.
type attempt struct {
	Status       int     `json:"status"`
	RetryAfter   *string `json:"retry_after"`
	RetryAfterMS *string `json:"retry_after_ms"`
	ShouldRetry  *string `json:"should_retry"`
	Limit        *string `json:"limit"`     // of requests, as the SDK's API names it
	Remaining    *string `json:"remaining"` // of requests
}

// refusedCall is one scenario and what was seen of its last call.
type refusedCall struct {
	SDK      string    `json:"sdk"`
	Scenario string    `json:"scenario"`
	Key      string    `json:"key"` // its alias
	Run      string    `json:"run"`
	Attempts []attempt `json:"attempts"`
	Text     string    `json:"text"`
	Input    *int64    `json:"input"`
	Output   *int64    `json:"output"`
	Error    []any     `json:"error"`             // type, status, code, message
	Failure  string    `json:"failure,omitempty"` // what should not have happened

	secret    string
	url       string // without the API version
	retries   bool   // the SDK's own; else none
	number    int
	onRefusal func()
}

// ask is what a call asks for.
type ask struct {
	model     string
	maxTokens int64
	stream    bool
}

var ordinary = ask{model: model, maxTokens: 24}

// sdk makes calls with one SDK.
type sdk interface {
	call(c *refusedCall, a ask) error
	models(c *refusedCall) error
	// hold begins a stream, and returns what ends it.
	hold(c *refusedCall) (func() error, error)
}

// watch is a middleware of the SDKs, which they run once for each attempt.
func (c *refusedCall) watch(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	response, err := next(r)
	if err != nil {
		return response, err
	}
	get := func(name string) *string {
		if v := response.Header.Get(name); v != "" {
			return &v
		}
		return nil
	}
	limit := "X-Ratelimit-%s-Requests"
	if c.SDK == "anthropic" {
		limit = "Anthropic-Ratelimit-Requests-%s"
	}
	c.Attempts = append(c.Attempts, attempt{response.StatusCode, get("Retry-After"), get("Retry-After-Ms"), get("X-Should-Retry"),
		get(fmt.Sprintf(limit, "Limit")), get(fmt.Sprintf(limit, "Remaining"))})
	if response.StatusCode >= 400 && c.onRefusal != nil {
		c.onRefusal()
	}
	return response, nil
}

// begin forgets what was seen of the call before.
func (c *refusedCall) begin() {
	c.Run = fmt.Sprintf("go-%s-%s-%d", c.SDK, c.Scenario, c.number)
	c.number++
	c.Attempts, c.Text, c.Input, c.Output, c.Error = []attempt{}, "", nil, nil, nil
}

// usage keeps the tokens of an answer.
func (c *refusedCall) usage(input, output int64) { c.Input, c.Output = &input, &output }

func (c *refusedCall) untilRefused(s sdk, a ask) error {
	for range mostCalls {
		c.begin()
		if err := s.call(c, a); err != nil {
			return err
		}
		if len(c.Attempts) == 0 || c.Attempts[0].Status != http.StatusOK {
			return nil
		}
	}
	return errors.New("no call was refused")
}

func (c *refusedCall) once(s sdk, a ask) error {
	c.begin()
	return s.call(c, a)
}

// held calls while the only place is taken, which comes free when the call is refused.
func (c *refusedCall) held(s sdk, a ask, secret string) error {
	holder := &refusedCall{SDK: c.SDK, Scenario: "holder", secret: secret, url: c.url, retries: true}
	free, err := s.hold(holder)
	if err != nil {
		return err
	}
	freed := false
	c.onRefusal = func() {
		if !freed {
			freed, err = true, free()
		}
	}
	return errors.Join(c.once(s, a), err)
}

// refusals makes every scenario with both SDKs. Environment: BASE_URL (keys are limited), QUEUE_URL (one call at a
// time), KEYS (by alias). The lines are judged by ../refusals.py, which explains the fields.
func refusals() error {
	secrets := make(map[string]string)
	if err := json.Unmarshal([]byte(os.Getenv("KEYS")), &secrets); err != nil {
		return fmt.Errorf("read KEYS: %w", err)
	}
	streamed, one, large, other := ordinary, ordinary, ordinary, ordinary
	streamed.stream, one.maxTokens, large.maxTokens, other.model = true, 1, 5000, "model-b"
	out := json.NewEncoder(os.Stdout)
	for _, under := range []struct {
		name string
		sdk
	}{{"openai", openaiSDK{}}, {"anthropic", anthropicSDK{}}} {
		name, s := under.name, under.sdk
		holder := secrets[name+"-holder"]
		// All have a key of their own name, but for those of the queue.
		for _, scenario := range []struct {
			name string
			run  func(*refusedCall) error
		}{
			{"rate_json", func(c *refusedCall) error { return c.untilRefused(s, ordinary) }},
			{"rate_stream", func(c *refusedCall) error { return c.untilRefused(s, streamed) }},
			{"rate_raised", func(c *refusedCall) error { return c.untilRefused(s, ordinary) }},
			{"own_json", func(c *refusedCall) error { return c.untilRefused(s, one) }},
			{"tokens_stream", func(c *refusedCall) error { return c.untilRefused(s, streamed) }},
			{"too_large", func(c *refusedCall) error { return c.once(s, large) }},
			{"quota", func(c *refusedCall) error { return c.untilRefused(s, ordinary) }},
			{"unknown_key", func(c *refusedCall) error { return c.once(s, streamed) }},
			{"model", func(c *refusedCall) error { return c.once(s, other) }},
			{"path", func(c *refusedCall) error { c.begin(); return s.models(c) }},
			{"queue_json", func(c *refusedCall) error { return c.held(s, ordinary, holder) }},
			{"queue_stream", func(c *refusedCall) error { return c.held(s, streamed, holder) }},
			{"queue_raised", func(c *refusedCall) error { return c.held(s, ordinary, holder) }},
		} {
			c := &refusedCall{SDK: name, Scenario: scenario.name, Key: name + "-" + scenario.name, url: os.Getenv("BASE_URL"),
				retries: !strings.HasSuffix(scenario.name, "_raised")}
			queued := strings.HasPrefix(scenario.name, "queue")
			if queued {
				c.url = os.Getenv("QUEUE_URL")
			}
			if queued || scenario.name == "path" {
				c.Key = name + "-queue"
			}
			var known bool
			if c.secret, known = secrets[c.Key]; !known {
				c.secret = "sk-nobody-has-this-key-0123456789"
			}
			if err := scenario.run(c); err != nil {
				c.Failure = err.Error()
			}
			if err := out.Encode(c); err != nil {
				return fmt.Errorf("write result: %w", err)
			}
		}
	}
	return nil
}
