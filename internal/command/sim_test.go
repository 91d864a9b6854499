package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/sim"
)

// announced hands over what the command says.
type announced struct{ said chan string }

func (a announced) Write(b []byte) (int, error) {
	a.said <- string(b)
	return len(b), nil
}

// startSim runs the subcommand with these flags on a free port; stop ends it
// and returns its error.
func startSim(t *testing.T, flags ...string) (base string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out := announced{make(chan string, 1)}
	cmd := build(t, "sim")
	cmd.SetArgs(append([]string{"--listen", "127.0.0.1:0"}, flags...))
	cmd.SetOut(out)
	cmd.SetErr(io.Discard)
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	select {
	case said := <-out.said:
		base = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(said)
		if base == "" || !strings.Contains(said, "curl -N "+base+"/v1/chat/completions") {
			t.Errorf("said %q", said)
		}
	case err := <-done:
		cancel()
		t.Fatalf("ended at once: %v", err)
	}
	stopped := false
	var result error
	stop = func() error {
		if !stopped {
			stopped = true
			cancel()
			result = <-done
		}
		return result
	}
	t.Cleanup(func() { stop() })
	return base, stop
}

const question = `{"stream":true,"max_tokens":5,"messages":[{"role":"user","content":"How wide is the river?"}]}`

func TestSimServesUntilItIsStopped(t *testing.T) {
	base, stop := startSim(t, "--quirks", "llamacpp", "--prefill", "0", "--prefill-token", "0s", "--decode", "1us", "--decode-sequence", "0")
	r, err := http.Post(base+"/v1/chat/completions", "application/json", strings.NewReader(question))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || !strings.Contains(string(body), `"timings"`) || !strings.HasSuffix(string(body), "[DONE]\n\n") {
		t.Errorf("%v in\n%s", err, body)
	}
	if err := stop(); err != nil {
		t.Errorf("stopped with %v", err)
	}
	if _, err := http.Get(base + "/health"); err == nil {
		t.Error("it still answers")
	}
}

func TestSimCutsStreamsAfterItsGrace(t *testing.T) {
	base, stop := startSim(t, "--fault", "hang:1", "--grace", "0s", "--prefill", "1us", "--decode", "1us")
	r, err := http.Post(base+"/v1/chat/completions", "application/json", strings.NewReader(question))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if err := stop(); err != nil {
		t.Errorf("stopped with %v", err)
	}
	if _, err := io.ReadAll(r.Body); err == nil {
		t.Error("the stream that hung ended cleanly")
	}
}

func TestSimSaysWhatToDoAboutErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tc := range []struct {
		flags []string
		hint  string
	}{
		{[]string{"--listen", taken.Addr().String()}, "choose another port with --listen"},
		{[]string{"--listen", "nonsense"}, "for example --listen 127.0.0.1:8000"},
		{[]string{"--listen", "192.0.2.1:0"}, "no such address"},
		{[]string{"--quirks", "tgi"}, "choose vllm, sglang or llamacpp"},
		{[]string{"--fault", "boom"}, "choose from"},
		{[]string{"--slots", "-1"}, "slots is -1"},
		{[]string{"--decode", "-5ms"}, "--decode is -5ms"},
		{[]string{"surplus"}, "unknown command"},
	} {
		cmd := build(t, "sim")
		cmd.SetArgs(append([]string{}, tc.flags...))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.hint) {
			t.Errorf("%v: %v, want a hint of %q", tc.flags, err, tc.hint)
		}
	}
}

func TestSimHelpShowsExamplesAndFaults(t *testing.T) {
	var out bytes.Buffer
	cmd := build(t, "sim")
	cmd.SetArgs([]string{"--help"})
	cmd.SetOut(&out)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	wants := []string{"weir sim --quirks llamacpp", "X-Sim-Fault"}
	for _, k := range sim.FaultKinds {
		wants = append(wants, k.Kind, k.Meaning)
	}
	for _, want := range wants {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

func TestSimFlagsDefaultToTheEnginesDefaults(t *testing.T) {
	e, err := sim.Start(sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	cfg := e.Config()
	flags := build(t, "sim").Flags()
	for name, want := range map[string]time.Duration{
		"prefill": cfg.PrefillBase, "prefill-token": cfg.PrefillPerToken, "decode": cfg.DecodeBase,
		"decode-sequence": cfg.DecodePerSequence, "frontend": cfg.FrontendTime, "ping": cfg.PingInterval,
	} {
		if got, err := flags.GetDuration(name); err != nil || got != want {
			t.Errorf("--%s is %v (%v), want %v", name, got, err, want)
		}
	}
	for name, want := range map[string]int{
		"slots": cfg.Slots, "queue": cfg.QueueLimit, "batch-tokens": cfg.BatchTokens,
		"context": cfg.ModelLen, "stream-interval": cfg.StreamInterval,
	} {
		if got, err := flags.GetInt(name); err != nil || got != want {
			t.Errorf("--%s is %v (%v), want %v", name, got, err, want)
		}
	}
}

// deaf is a writer that has gone away.
type deaf struct{}

func (deaf) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestSimEndsWhenItCannotSpeak(t *testing.T) {
	err := Sim(t.Context(), SimArgs{Listen: "127.0.0.1:0"}, deaf{})
	if err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("ended with %v", err)
	}
}
