package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// inquiry is `weir diagnose`: what the running gateway finds in its latest calls.
type inquiry struct {
	admin, since, model, key, run, id string
	json                              bool

	client *http.Client
	out    io.Writer
}

const diagnoseShort = "Names the layer at fault in the latest calls, with evidence"

func configureDiagnose(cmd *cobra.Command) {
	q := new(inquiry)
	cmd.Long = `Asks a running gateway what stands out in its latest calls (at most 1,000), or in one
of them: which layer took how much of which time (network, the gateway's queue, the
engine's queue, prefill, decode, GPU, client), how that is known, what speaks for it
and what against, and what to do next. What cannot be told from what was measured
is called undetermined.`
	cmd.Example = `  weir diagnose
  weir diagnose --since 15m --model llama-3
  weir diagnose --id 8k1m2…`
	cmd.Args = cobra.NoArgs
	f := cmd.Flags()
	f.StringVar(&q.admin, "admin", "http://127.0.0.1:2019", "admin `URL` of the gateway")
	f.StringVar(&q.since, "since", "", "only calls received since then: a span like 15m, or a time")
	f.StringVar(&q.model, "model", "", "only calls to this `model`")
	f.StringVar(&q.key, "key", "", "only calls of this `key`: its alias or short id")
	f.StringVar(&q.run, "run", "", "only calls of this X-Weir-Run")
	f.StringVar(&q.id, "id", "", "only this call: its id, the client's X-Request-Id or the upstream's response id")
	f.BoolVar(&q.json, "json", false, "write one JSON object")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = true // what follows is not about flags
		q.out = cmd.OutOrStdout()
		ctx, stop := interruptible(cmd)
		defer stop()
		return q.ask(ctx)
	}
}

// maxAnswer bounds what is read of the gateway's answer.
const maxAnswer = 16 << 20

func (q *inquiry) ask(ctx context.Context) error {
	u, err := url.Parse(strings.TrimSuffix(q.admin, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("--admin is no URL: write it like http://127.0.0.1:2019")
	}
	query := make(url.Values)
	for name, value := range map[string]string{"since": q.since, "model": q.model, "key": q.key, "run": q.run, "id": q.id} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if !q.json {
		query.Set("format", "text")
	}
	u.Path += "/weir/diagnose"
	u.RawQuery = query.Encode()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return fmt.Errorf("ask the gateway: %w", err)
	}
	client := q.client
	if client == nil {
		client = http.DefaultClient
	}
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("ask the gateway: %w; name its admin endpoint with --admin", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the gateway's answer: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the gateway answers %d: %s", answer.StatusCode, messageOf(body))
	}
	_, err = q.out.Write(body)
	return err
}

// messageOf is what an error answer of the gateway says to people: its field error
// where it is JSON, else its beginning. What a terminal would obey is taken out.
func messageOf(body []byte) string {
	text := string(body)
	var told struct {
		Error string `json:"error"`
	}
	switch {
	case json.Unmarshal(body, &told) == nil && told.Error != "":
		text = told.Error
	case strings.HasPrefix(strings.TrimSpace(text), "<"):
		return "a web page; name the gateway's admin endpoint with --admin"
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text[:min(len(text), 500)])
	if text = strings.TrimSpace(text); text == "" {
		return "no reason is given; name the gateway's admin endpoint with --admin"
	}
	return text
}
