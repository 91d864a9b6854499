package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/spf13/cobra"

	_ "github.com/weirgate/weir/caddymodule"
	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/command"
	"github.com/weirgate/weir/internal/sim"
)

// demo runs `weir demo` with free addresses and returns what it printed.
func demo(t *testing.T, args ...string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_DATA_HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("HOME", dir)
	cmd := &cobra.Command{Use: "demo"}
	for _, c := range command.All() {
		if c.Name == "demo" {
			c.Configure(cmd)
		}
	}
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append([]string{"--listen", freeAddress(t), "--admin", freeAddress(t)}, args...))
	err := cmd.ExecuteContext(context.Background())
	return out.String(), err
}

// freeAddress returns a loopback address on which nobody listens. Its port is none
// of those that the system gives to whoever asks for any, as other tests do
// meanwhile: between here and its use it would be theirs.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000)))
		if err != nil {
			continue
		}
		defer l.Close()
		return l.Addr().String()
	}
	t.Fatal("every port that was tried is taken")
	return ""
}

// shown reads the record that the demo printed.
func shown(t *testing.T, out string) *call.Record {
	t.Helper()
	rec := new(call.Record)
	if err := json.Unmarshal([]byte(out[max(0, strings.Index(out, "\n{")):]), rec); err != nil {
		t.Fatalf("%v in:\n%s", err, out)
	}
	return rec
}

// TestDemo: the main job runs on one command, and shows a measured call.
func TestDemo(t *testing.T) {
	out, err := demo(t, "--once")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rec := shown(t, out)
	if rec.Outcome != call.Completed || !rec.TTFT.IsKnown() || !rec.TPOT.IsKnown() || rec.Output.Or(0) < 2 || !strings.Contains(out, "simulated engine") {
		t.Errorf("got:\n%s", out)
	}
}

// TestDemoUpstream: an endpoint with a path, with and without /v1, and with its
// own key.
func TestDemoUpstream(t *testing.T) {
	engine, err := sim.Start(sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, prefixed := strings.CutPrefix(r.URL.Path, "/api")
		if !prefixed || r.Header.Get("Authorization") != "Bearer sk-upstream" {
			http.Error(w, "wrong path or key: "+r.URL.Path, http.StatusUnauthorized)
			return
		}
		r.URL.Path = path
		engine.ServeHTTP(w, r)
	}))
	defer up.Close()
	t.Setenv("DEMO_UPSTREAM_KEY", "sk-upstream")
	for _, path := range []string{"/api", "/api/", "/api/v1"} {
		out, err := demo(t, "--once", "--upstream", up.URL+path, "--upstream-key-env", "DEMO_UPSTREAM_KEY", "--model", "m")
		if err != nil {
			t.Fatalf("%s: %v\n%s", path, err, out)
		}
		if rec := shown(t, out); rec.Outcome != call.Completed || rec.Model != "m" || strings.Contains(out, "sk-upstream") {
			t.Errorf("%s:\n%s", path, out)
		}
	}
}

// TestDemoErrors: each says what to do next.
func TestDemoErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"address taken":  {[]string{"--listen", l.Addr().String()}, "--listen"},
		"bad upstream":   {[]string{"--upstream", "localhost:8000"}, "write it like http://127.0.0.1:8000"},
		"no upstream":    {[]string{"--upstream", "ftp://x"}, "not a base URL"},
		"key is missing": {[]string{"--upstream", "http://127.0.0.1:1", "--upstream-key-env", "NO_SUCH_VARIABLE_HERE"}, "NO_SUCH_VARIABLE_HERE"},
	} {
		if out, err := demo(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v does not say %q\n%s", name, err, c.want, out)
		}
	}
}
