package doctor

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/weirgate/weir/internal/sim"
)

func TestUsage(t *testing.T) {
	plain := quick(sim.VLLM)
	forced := plain
	forced.ForceUsage = true
	never := plain
	never.FaultScript = first(1, "no_usage")
	nowhere := plain
	nowhere.Fault = "no_usage"
	refusing := streaming(t, plain, func(w http.ResponseWriter, r *http.Request, engine http.Handler) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if bytes.Contains(body, []byte("stream_options")) {
			says(400, `{"error":{"message":"unknown field"}}`)(w, r)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		engine.ServeHTTP(w, r)
	})
	for _, c := range []struct {
		name, base string
		level      Level
		parts      []string
	}{
		{"always", engineAt(t, forced), Green, []string{"every stream"}},
		{"timings", engineAt(t, quick(sim.LlamaCPP)), Green, []string{"timings"}},
		{"asked", engineAt(t, plain), Yellow, []string{"only to those who ask", "--enable-force-include-usage", "usage_policy inject"}},
		{"asked, of another engine", engineAt(t, quick(sim.SGLang)), Yellow, []string{"usage_policy inject"}},
		{"never in streams", engineAt(t, never), Yellow, []string{"streams do not tell", "not streamed do", "estimates"}},
		{"never", engineAt(t, nowhere), Yellow, []string{"no answer tells", "estimates"}},
		{"refused", refusing, Yellow, []string{"refuses stream_options"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			findings := run(t, of(c.base))
			want(t, findings, "usage", c.level, c.parts...)
			want(t, findings, "compression", Green) // usage is no reason not to look further
		})
	}
}
