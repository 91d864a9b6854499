package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// firstBody is the body of the call that the demo proposes, and sends by itself
// with --once.
func (d *demo) firstBody() string {
	model, _ := json.Marshal(d.model) // a string always can be
	return fmt.Sprintf(`{"model":%s,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Why is a weir low?"}]}`, model)
}

func (d *demo) curl() string {
	return "  curl -N http://" + d.reach() + "/v1/chat/completions -H 'Content-Type: application/json' \\\n    -d '" + d.firstBody() + "'"
}

// reach is the gateway's address as a client on this machine writes it.
func (d *demo) reach() string {
	host, port, err := net.SplitHostPort(d.listen)
	if err == nil && (host == "" || host == "0.0.0.0" || host == "::") {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return d.listen
}

// first sends one call and shows its record. Its key is the upstream's own, or
// none: enough for an endpoint that asks for none.
func (d *demo) first(ctx context.Context, admin string) error {
	run := fmt.Sprintf("demo-%d", time.Now().UnixNano())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.reach()+"/v1/chat/completions", strings.NewReader(d.firstBody()))
	if err != nil {
		return fmt.Errorf("make the first call: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Weir-Run", run)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("send the first call: %w", err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return fmt.Errorf("read the answer to the first call: %w", err)
	}
	for {
		calls, err := fetch(ctx, admin, "run="+run)
		if err != nil {
			return err
		}
		if len(calls) > 0 {
			fmt.Fprintf(d.out, "%s\n%s\n\n", demoHead, line(calls[0]))
			enc := json.NewEncoder(d.out)
			enc.SetIndent("", "  ")
			return enc.Encode(calls[0])
		}
		if !wait(ctx) {
			return nil
		}
	}
}

// follow prints each new record, oldest first, until ctx is done.
func (d *demo) follow(ctx context.Context, admin string) error {
	last := ""
	for wait(ctx) {
		calls, err := fetch(ctx, admin, "limit=200")
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		fresh := 0
		for fresh < len(calls) && calls[fresh].ID != last {
			fresh++
		}
		for i := fresh - 1; i >= 0; i-- {
			fmt.Fprintln(d.out, line(calls[i]))
		}
		if len(calls) > 0 {
			last = calls[0].ID
		}
	}
	return nil
}

// wait pauses between two looks at the records; false ends the demo.
func wait(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(200 * time.Millisecond):
		return true
	}
}

func fetch(ctx context.Context, admin, query string) ([]*call.Record, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/weir/calls?"+query, nil)
	if err != nil {
		return nil, fmt.Errorf("ask for records: %w", err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask for records: %w", err)
	}
	defer res.Body.Close()
	var answer struct{ Calls []*call.Record }
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	return answer.Calls, nil
}

const demoHead = "TIME      DIALECT             OUTCOME         TTFT       TPOT       E2E        IN     OUT    PHASES"

// line shows one call. A dash stands for what is unknown or undefined.
func line(r *call.Record) string {
	count := func(c call.Count) string {
		if n, known := c.Get(); known {
			return fmt.Sprint(n)
		}
		return "-"
	}
	var phases []string
	for f := range r.Fields {
		if ms, ok := f.Value.(float64); ok && f.Group == "phases" && ms >= 0.05 {
			phases = append(phases, fmt.Sprintf("%s %.1f", strings.TrimSuffix(f.Name, "_ms"), ms))
		}
	}
	outcome := string(r.Outcome)
	if r.Error != "" {
		outcome += " (" + r.Error + ")"
	}
	return fmt.Sprintf("%-9s %-19s %-15s %-10s %-10s %-10s %-6s %-6s %s", r.Time.Local().Format(time.TimeOnly), r.Dialect, outcome,
		milliseconds(r.TTFT), milliseconds(r.TPOT), milliseconds(r.E2E), count(r.Input), count(r.Output), strings.Join(phases, ", "))
}

func milliseconds(d call.Duration) string {
	if !d.IsKnown() {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", d.MillisecondsFloat())
}
