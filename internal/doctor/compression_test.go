package doctor

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/sim"
)

func TestCompression(t *testing.T) {
	cfg := sim.Config{Quirks: sim.VLLM, PrefillBase: 20 * time.Millisecond, DecodeBase: 12 * time.Millisecond, ForceUsage: true}
	accepts := func(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") }
	withFault := func(fault string, held int) string {
		return streaming(t, cfg, func(w http.ResponseWriter, r *http.Request, engine http.Handler) {
			if !accepts(r) {
				engine.ServeHTTP(w, r)
				return
			}
			r.Header.Set("X-Sim-Fault", fault)
			if held > 0 {
				buffered(held)(w, r, engine)
				return
			}
			engine.ServeHTTP(w, r)
		})
	}
	garbled := streaming(t, cfg, func(w http.ResponseWriter, r *http.Request, engine http.Handler) {
		if accepts(r) {
			w.Header().Set("Content-Encoding", "gzip")
		}
		engine.ServeHTTP(w, r)
	})
	for _, c := range []struct {
		name, base string
		level      Level
		parts      []string
	}{
		{"none", engineAt(t, cfg), Green, []string{"not compressed"}},
		{"token by token", withFault("gzip", 0), Green, []string{"gzip", "token by token"}},
		{"held back", withFault("gzip", 1<<20), Yellow, []string{"held back", "text/event-stream", "flush"}},
		{"garbled", garbled, Red, []string{"cannot unpack", "gzip"}},
		{"refused", withFault("status:406", 0), Red, []string{"406", "exclude"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			findings := run(t, of(c.base))
			want(t, findings, "compression", c.level, c.parts...)
			want(t, findings, "buffering", Green)
		})
	}
}
