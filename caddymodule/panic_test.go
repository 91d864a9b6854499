package caddymodule

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weirgate/weir/internal/call"
)

// panics is a handler that panics: at once, or after it has begun to answer.
type panics struct {
	Late bool `json:"late,omitempty"`
}

func init() {
	caddy.RegisterModule(panics{})
	httpcaddyfile.RegisterHandlerDirective("weirtest_panic", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		h.Next()
		return &panics{Late: h.NextArg()}, nil
	})
	httpcaddyfile.RegisterDirectiveOrder("weirtest_panic", httpcaddyfile.Before, "respond")
}

func (panics) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.weirtest_panic", New: func() caddy.Module { return new(panics) }}
}

const panicMark = "a fault of the test's own"

func (p panics) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	_, _ = io.Copy(io.Discard, r.Body)
	if p.Late {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, chunk(0))
		_ = http.NewResponseController(w).Flush()
	}
	panic(panicMark)
}

// TestPanic: a panic behind weir leaves its record and goes on to the server,
// which treats it as it does without weir.
func TestPanic(t *testing.T) {
	for _, when := range []string{"", "late"} {
		t.Run("panic "+when, func(t *testing.T) {
			metered, bare := newSite(t), newSite(t)
			run := start(t, "", metered.http("weir\nweirtest_panic "+when)+bare.http("weirtest_panic "+when))
			c := client(t, "http/1.1")
			var got [2]string
			for i, s := range []site{bare, metered} {
				res, err := c.Do(post(context.Background(), t, s.url("http/1.1", "/v1/chat/completions"), "panic", streaming))
				if err != nil {
					got[i] = strings.ReplaceAll(err.Error(), s.plain, "")
					continue
				}
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err == nil {
					t.Error("the answer ends as if it were whole")
				}
				got[i] = fmt.Sprintf("%d %q %v", res.StatusCode, body, err)
			}
			if got[0] != got[1] {
				t.Errorf("without weir %s, with weir %s", got[0], got[1])
			}
			rec := run.kept("panic")
			if rec.Outcome != call.InternalError || rec.Error != "panic" || rec.TTFT.IsKnown() != (when == "late") {
				t.Errorf("%+v", rec)
			}
			checkSum(t, rec)
			until(t, "both panics in the server's log", func() bool {
				log, err := os.ReadFile(run.dir + "/caddy.log")
				return err == nil && strings.Count(string(log), "panic serving") == 2 && strings.Count(string(log), panicMark) >= 2
			})
		})
	}
}
