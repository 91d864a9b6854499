package command_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/spf13/cobra"

	"github.com/weirgate/weir/internal/bench"
	"github.com/weirgate/weir/internal/command"
	"github.com/weirgate/weir/internal/sim"
)

// benched runs `weir bench` with small loads, and returns its result.
func benched(t *testing.T, args ...string) (r bench.Result, err error) {
	t.Helper()
	cmd := &cobra.Command{Use: "bench", SilenceErrors: true}
	for _, c := range command.All() {
		if c.Name == "bench" {
			c.Configure(cmd)
		}
	}
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(append([]string{"--json", "--pause", "0", "--input", "uniform 10-40", "--output", "uniform 2-9", "--ignore-eos"}, args...))
	if err = cmd.ExecuteContext(t.Context()); err != nil {
		return r, err
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v in %s", err, &out)
	}
	return r, nil
}

// TestBenchCompare: through a real gateway every call is found, and the tokens of
// both sides are equal; an address that does not belong to it is noticed before
// the load.
func TestBenchCompare(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_DATA_HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", dir)
	engine, err := sim.Start(sim.Config{PrefillBase: sim.None, PrefillPerToken: sim.None, DecodeBase: 100 * time.Microsecond, DecodePerSequence: sim.None})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	var calls atomic.Int64
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			calls.Add(1)
		}
		engine.ServeHTTP(w, r)
	}))
	defer up.Close()
	admin, gateway := freeAddress(t), freeAddress(t)
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt(fmt.Appendf(nil,
		"{\n\tadmin %s\n\tauto_https off\n\tpersist_config off\n\tlog {\n\t\tlevel ERROR\n\t}\n}\nhttp://%s {\n\tweir\n\treverse_proxy %s\n}\n",
		admin, gateway, strings.TrimPrefix(up.URL, "http://")), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	}()

	// Each step of a ladder is compared with its own calls.
	r, err := benched(t, "--url", "http://"+gateway, "--admin", admin, "--compare", "--ladder", "1,4", "--calls", "15", "--repeat", "2")
	if err != nil || len(r.Runs) != 2 || r.Environment.Gateway != "weir" {
		t.Fatalf("%v: %+v", err, r.Environment)
	}
	for _, run := range r.Runs {
		if c := run.Compared; c == nil || c.Calls != 30 || c.Found != 30 || c.TokensEqual != 30 || c.TokensDiffer != 0 || c.TTFT == nil || c.TTFT.N != 30 || c.TPOT == nil {
			t.Errorf("%s: %+v", run.Load, c)
		}
	}
	if n := calls.Load(); n != 2*(30+2*5)+1 {
		t.Errorf("%d calls", n)
	}

	// Calls that do not go through the gateway of that address.
	calls.Store(0)
	if _, err = benched(t, "--url", up.URL, "--admin", admin, "--compare", "--concurrency", "1"); err == nil || !strings.Contains(err.Error(), "--url must be an address of the gateway") || calls.Load() != 1 {
		t.Errorf("%d calls: %v", calls.Load(), err)
	}
	// An admin address alone is only asked who is there.
	r, err = benched(t, "--url", up.URL, "--admin", up.URL, "--concurrency", "1", "--calls", "2", "--repeat", "1")
	if err != nil || r.Runs[0].Compared != nil || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "--admin") {
		t.Errorf("%v: %v", err, r.Notes)
	}
}
