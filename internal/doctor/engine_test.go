package doctor

import (
	"errors"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/engine"
	"github.com/weirgate/weir/internal/sim"
)

// measured is an engine whose /metrics a function answers.
func measured(t *testing.T, cfg sim.Config, metrics http.HandlerFunc) string {
	t.Helper()
	e := start(t, cfg)
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/metrics") {
			metrics(w, r)
			return
		}
		e.ServeHTTP(w, r)
	})) + "/v1"
}

func TestMetrics(t *testing.T) {
	llama := start(t, quick(sim.LlamaCPP))
	guarded := measured(t, quick(sim.LlamaCPP), func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+goodKey {
			w.WriteHeader(401)
			return
		}
		llama.ServeHTTP(w, r)
	})
	hosted := answering(t, says(200, `{"object":"chat.completion","choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}`))
	elsewhere := strings.TrimSuffix(engineAt(t, quick(sim.VLLM)), "/v1")
	for _, c := range []struct {
		name, base, metrics, key string
		level                    Level
		parts                    []string
	}{
		{"vLLM", engineAt(t, quick(sim.VLLM)), "", "", Green, []string{"those of vllm"}},
		{"named apart", hosted, elsewhere, "", Green, []string{"those of vllm"}},
		{"named apart, without a scheme", hosted, strings.TrimPrefix(elsewhere, "http://") + "/metrics", "", Green, []string{"those of vllm"}},
		{"llama.cpp without --metrics", measured(t, quick(sim.LlamaCPP), says(501, `{"error":{"code":501}}`)), "", "", Yellow, []string{"501 at http://", "start llama.cpp's server with --metrics"}},
		{"SGLang without", measured(t, quick(sim.SGLang), says(404, ``)), "", "", Yellow, []string{"404", "--enable-metrics"}},
		{"vLLM without", measured(t, quick(sim.VLLM), says(404, ``)), "", "", Yellow, []string{"without --disable-log-stats"}},
		{"with the key", guarded, "", goodKey, Green, []string{"llamacpp"}},
		{"with another key", guarded, "", "", Grey, []string{"another key (401)"}},
		{"TGI", measured(t, quick(sim.VLLM), says(200, "# TYPE tgi_queue_size gauge\ntgi_queue_size 0\n")), "", "", Green, []string{"TGI"}},
		{"hosted", hosted, "", "", Grey, []string{"not the metrics of an engine", "--metrics"}},
		{"of something else", hosted, hosted, "", Yellow, []string{"not the metrics of an engine", "own address"}},
		{"nothing there", hosted, "http://127.0.0.1:1", "", Yellow, []string{"cannot be reached: connection refused", "check the address"}},
		{"no address", hosted, "http://[", "", Yellow, []string{"cannot be read", "write it like"}},
		{"not found, named", hosted, measured(t, quick(sim.VLLM), says(404, ``)), "", Yellow, []string{"404", "check the address"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := of(c.base)
			cfg.Metrics, cfg.Key = c.metrics, c.key
			want(t, run(t, cfg), "metrics", c.level, c.parts...)
		})
	}
}

func TestFlags(t *testing.T) {
	all := seen{queue: true, prefill: true, usage: true, always: true, cached: true, metrics: true}
	with := func(kind engine.Kind, change func(*seen)) seen {
		s := all
		s.kind = kind
		if change != nil {
			change(&s)
		}
		return s
	}
	for _, c := range []struct {
		name  string
		seen  seen
		level Level
		parts []string
	}{
		{"vLLM, all", with(engine.VLLM, nil), Green, []string{"all that it can"}},
		{"vLLM, no phases", with(engine.VLLM, func(s *seen) { s.queue, s.prefill = false, false }), Yellow, []string{"start it with --enable-per-request-metrics", "--otlp-traces-endpoint"}},
		{"vLLM, usage on request", with(engine.VLLM, func(s *seen) { s.always = false }), Yellow, []string{"start it with --enable-force-include-usage"}},
		{"vLLM, no cached tokens", with(engine.VLLM, func(s *seen) { s.cached = false }), Yellow, []string{"start it with --enable-prompt-tokens-details"}},
		{"SGLang, all", with(engine.SGLang, nil), Green, nil},
		{"SGLang, no metrics", with(engine.SGLang, func(s *seen) { s.metrics, s.cached = false, false }), Yellow, []string{"--enable-metrics --enable-cache-report"}},
		{"SGLang, no phases", with(engine.SGLang, func(s *seen) { s.queue = false }), Grey, []string{"/generate"}},
		{"llama.cpp", with(engine.LlamaCPP, func(s *seen) { s.queue = false }), Green, []string{"prefill and decode"}},
		{"llama.cpp, no metrics", with(engine.LlamaCPP, func(s *seen) { s.metrics = false }), Yellow, []string{"start it with --metrics"}},
		{"llama.cpp, no timings", with(engine.LlamaCPP, func(s *seen) { s.prefill = false }), Green, nil},
		{"unknown, with phases", with("", nil), Green, []string{"queue and prefill"}},
		{"unknown, with prefill", with("", func(s *seen) { s.queue = false }), Green, []string{"prefill"}},
		{"Ollama", with("", func(s *seen) { s.queue, s.prefill, s.owner = false, false, "library" }), Grey, []string{"/api/chat"}},
		{"unknown", seen{}, Grey, []string{"which engine"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := judgeFlags(c.seen)
			f.Check = "flags"
			want(t, []Finding{f}, "flags", c.level, c.parts...)
		})
	}
}

// TestFlagsSeen: what is missing is seen in the answers themselves.
func TestFlagsSeen(t *testing.T) {
	cfg := quick(sim.VLLM)
	want(t, run(t, of(engineAt(t, cfg))), "flags", Yellow, "start it with --enable-per-request-metrics --enable-force-include-usage")
	cfg.PerRequestMetrics, cfg.ForceUsage = true, true
	want(t, run(t, of(engineAt(t, cfg))), "flags", Green)
}

func TestGPU(t *testing.T) {
	has := func(devices ...string) machine {
		m := nothing
		m.glob = func(pattern string) ([]string, error) {
			var found []string
			for _, d := range devices {
				if strings.HasPrefix(d, strings.TrimSuffix(pattern, "[0-9]*")) {
					found = append(found, d)
				}
			}
			return found, nil
		}
		m.open = func(string) error { return nil }
		return m
	}
	denied := has("/dev/nvidia0")
	denied.open = func(string) error { return &fs.PathError{Op: "open", Err: fs.ErrPermission} }
	driverless := nothing
	driverless.lookPath = func(string) (string, error) { return "/usr/bin/nvidia-smi", nil }
	odd := nothing
	odd.glob = func(string) ([]string, error) { return nil, errors.New("bad pattern") }
	for _, c := range []struct {
		name, base, metrics, admin string
		machine                    machine
		level                      Level
		parts                      []string
	}{
		{"one", "http://127.0.0.1:8000", "", "", has("/dev/nvidia0"), Green, []string{"one NVIDIA GPU"}},
		{"two", "http://localhost:8000", "", "", has("/dev/nvidia0", "/dev/nvidia1"), Green, []string{"2 NVIDIA GPUs"}},
		{"AMD", "http://127.0.0.1:8000", "", "", has("/dev/kfd"), Green, []string{"AMD"}},
		{"denied", "http://127.0.0.1:8000", "", "", denied, Yellow, []string{"/dev/nvidia0 may not be opened", "group"}},
		{"no driver", "http://127.0.0.1:8000", "", "", driverless, Yellow, []string{"nvidia-smi is here", "--gpus all"}},
		{"none", "http://127.0.0.1:8000", "", "", nothing, Grey, []string{"no GPU"}},
		{"cannot look", "http://127.0.0.1:8000", "", "", odd, Grey, []string{"no GPU"}},
		{"elsewhere", "http://10.0.0.1:8000", "", "", has("/dev/nvidia0"), Grey, []string{"another machine"}},
		{"behind a gateway", "http://127.0.0.1:8080", "", "http://127.0.0.1:2019", has("/dev/nvidia0"), Grey, []string{"--metrics"}},
		{"behind a gateway, named", "http://127.0.0.1:8080", "127.0.0.1:8000", "http://127.0.0.1:2019", has("/dev/nvidia0"), Green, nil},
		{"named wrongly", "http://127.0.0.1:8080", "http://[", "", nothing, Grey, []string{"cannot be read"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := of(c.base)
			cfg.Metrics, cfg.Admin, cfg.machine = c.metrics, c.admin, c.machine
			v := newVisit(cfg)
			v.make(t.Context(), checks[0])
			at := slices.IndexFunc(checks, func(k check) bool { return k.name == "gpu" })
			want(t, []Finding{v.make(t.Context(), checks[at])}, "gpu", c.level, c.parts...)
		})
	}
}
