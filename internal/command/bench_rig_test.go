package command

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/sim"
)

// fastEngine is an engine that hardly takes any time.
func fastEngine(t *testing.T, cfg sim.Config) *sim.Engine {
	t.Helper()
	cfg.PrefillBase, cfg.PrefillPerToken, cfg.DecodeBase, cfg.DecodePerSequence = sim.None, sim.None, 100*time.Microsecond, sim.None
	e, err := sim.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// serving is a server in front of which calls are counted.
type serving struct {
	url   string
	calls atomic.Int64 // POSTs
}

// serve starts a server. before may answer a request itself, and then returns true.
func serve(t *testing.T, h http.Handler, before func(w http.ResponseWriter, r *http.Request, call int64) bool) *serving {
	t.Helper()
	s := new(serving)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int64(0)
		if r.Method == http.MethodPost {
			n = s.calls.Add(1)
		}
		if before == nil || !before(w, r, n) {
			h.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// ran is what a run of the command left behind.
type ran struct {
	out, errs string
	err       error
}

// status is what the process would end with.
func (r ran) status() int {
	switch end := new(ending); {
	case r.err == nil:
		return 0
	case !errors.As(r.err, &end):
		return 1
	case end.status.Error() == "exiting with status 3":
		return statusRegression
	case end.status.Error() == "exiting with status 130":
		return statusInterrupted
	}
	return -1
}

// runBench runs the command with tiny loads unless the flags say otherwise.
func runBench(t *testing.T, ctx context.Context, url string, args ...string) ran {
	t.Helper()
	cmd := build(t, "bench")
	var out, errs bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true // as Caddy has it
	cmd.SetArgs(append([]string{"--url", url, "--pause", "0", "--input", "20", "--output", "4", "--ignore-eos"}, args...))
	err := cmd.ExecuteContext(ctx)
	return ran{out.String(), errs.String(), err}
}

// files are all files in a directory, by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(text)
	}
	return all
}

// all is everything that was shown or written.
func (r ran) all(t *testing.T, dir string) string {
	text := r.out + "\n" + r.errs + "\n"
	if r.err != nil {
		text += r.err.Error()
	}
	for name, content := range files(t, dir) {
		text += name + "\n" + content
	}
	return text
}

// without is a text without the white space at which tables are broken.
func without(text string) string { return strings.Join(strings.Fields(text), "") }
