package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/sim"
)

const secret = "sk-very-secret"

// answers is a server with one answer for each path.
func answers(t *testing.T, all map[string]string, header string) *http.Client {
	return &http.Client{Transport: inMemory{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := all[r.URL.Path]
		if header != "" {
			w.Header().Set("Server", header)
		}
		if !ok {
			http.NotFound(w, r)
			return
		}
		if r.URL.Path != "/metrics" && r.Host != "admin.test" && r.Header.Get("Authorization") != "Bearer "+secret {
			t.Errorf("%s was asked without the key", r.URL)
		}
		fmt.Fprint(w, body)
	})}}
}

func TestSnapshotEngines(t *testing.T) {
	models := `{"data":[{"id":"other","owned_by":"x"},{"id":"m","owned_by":"OWNER","max_model_len":4096}]}`
	for name, c := range map[string]struct {
		root   string
		server string
		paths  map[string]string
		want   map[string]string
	}{
		"vllm": {"http://a.test/v1", "uvicorn", map[string]string{
			"/version": `{"version":"0.11.0"}`, "/v1/models": strings.ReplaceAll(models, "OWNER", "vllm"), "/metrics": "# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total 1\n# TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total 1\n"},
			map[string]string{"name": "vllm", "version": "0.11.0", "max_model_len": "4096", "owned_by": "vllm", "server": "uvicorn"}},
		"sglang": {"http://a.test/v1", "", map[string]string{
			"/get_server_info": `{"version":"0.5","tokenizer_path":"/x","model_path":"/data/models/llama","api_key":"sk-very-secret","max_running_requests":256,"tp_size":2,"quantization":null,"mem_fraction_static":0.88}`},
			map[string]string{"name": "sglang", "version": "0.5", "model_path": "llama", "max_running_requests": "256", "tp_size": "2", "mem_fraction_static": "0.88"}},
		"llama.cpp below a path": {"http://a.test/llm/v1/", "llama.cpp", map[string]string{
			"/llm/props":     `{"default_generation_settings":{"n_ctx":8192,"params":{"seed":1}},"total_slots":4,"build_info":"b6000-abc","model_path":"C:\\models\\tiny.gguf","chat_template":"x"}`,
			"/llm/v1/models": strings.ReplaceAll(models, "OWNER", "llamacpp")},
			map[string]string{"name": "llama.cpp", "version": "b6000-abc", "n_ctx": "8192", "total_slots": "4", "model_file": "tiny.gguf", "max_model_len": "4096", "owned_by": "llamacpp", "server": "llama.cpp"}},
		"tgi": {"http://a.test/v1", "", map[string]string{
			"/info": `{"model_id":"org/m","version":"3.0.0","max_input_tokens":4095,"max_total_tokens":4096,"max_concurrent_requests":128}`},
			map[string]string{"name": "tgi", "version": "3.0.0", "model": "m", "max_input_tokens": "4095", "max_total_tokens": "4096", "max_concurrent_requests": "128"}},
		"nothing":        {"http://a.test/v1", "", nil, nil},
		"something":      {"http://a.test/v1", "", map[string]string{"/props": "<html>", "/info": "[]", "/version": `{"build":1}`, "/server_info": `{"ok":true}`}, nil},
		"no root at all": {"", "", nil, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := Snapshot(t.Context(), Channel{Client: answers(t, c.paths, c.server), Root: c.root, Key: secret, API: endpoint.Chat, Model: "m", Weir: "v1",
				run: func(context.Context, string, ...string) ([]byte, error) {
					t.Error("GPUs of a remote endpoint")
					return nil, nil
				}})
			if !maps.Equal(e.Engine, c.want) {
				t.Errorf("%s: %v, want %v", name, e.Engine, c.want)
			}
			if b, err := json.Marshal(e); err != nil || strings.Contains(string(b), secret) || e.Model != "m" || e.Weir != "v1" || e.Profile != Weir || e.GPU != nil || e.Gateway != "" || e.Time.IsZero() {
				t.Errorf("%s: %v %s", name, err, b)
			}
		})
	}
}

// TestSnapshotOfSim reads the simulated engine, and the channel without secrets.
func TestSnapshotOfSim(t *testing.T) {
	onEngine(t, cost, func(t *testing.T, e *sim.Engine, _ Config) {
		env := Snapshot(t.Context(), Channel{Client: &http.Client{Transport: inMemory{e}}, Root: "https://user:" + secret + "@engine.test/v1?key=" + secret,
			API: endpoint.Chat, Model: e.Config().Model, Profile: AIPerf, Now: time.Unix(1, 0)})
		if env.Channel != "https://engine.test/v1" || env.Engine["name"] != "vllm" || env.Engine["version"] == "" || env.Profile != AIPerf || !env.Time.Equal(time.Unix(1, 0)) {
			t.Errorf("%+v", env)
		}
	})
}

// TestSnapshotIsBounded: an endpoint that does not answer costs seconds.
func TestSnapshotIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		hang := inMemory{http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })}
		e := Snapshot(t.Context(), Channel{Client: &http.Client{Transport: hang}, Root: "http://a.test/v1", Admin: "http://admin.test"})
		if took := time.Since(begin); took != snapshotWithin || e.Engine != nil || e.Gateway != "" {
			t.Errorf("%v: %+v", took, e)
		}
	})
}

func TestSnapshotGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for body, want := range map[string]string{"ok\n": "weir", "<html>": "", "": ""} {
			e := Snapshot(t.Context(), Channel{Client: answers(t, map[string]string{"/weir/ready": body}, ""), Root: "http://a.test/v1", Key: secret, Admin: "admin.test"})
			if e.Gateway != want {
				t.Errorf("%q: %q", body, e.Gateway)
			}
		}
	})
}

func TestSnapshotGPUs(t *testing.T) {
	const good = "NVIDIA H200, 570.1, 143771, 345, 1980, 3201, 700.00, 700.00, Enabled\nNVIDIA H200, 570.1, 143771, [N/A], 1980, 3201, [Not Supported], 700.00, Enabled\n"
	for _, c := range []struct {
		root, out string
		err       error
		want      int
	}{
		{"http://127.0.0.1:1/v1", good, nil, 2}, {"http://localhost:1/v1", good, nil, 2}, {"http://[::1]:1/v1", good, nil, 2},
		{"http://10.0.0.1/v1", good, nil, 0}, {"http://localhost.example.com/v1", good, nil, 0},
		{"http://127.0.0.1:1/v1", "", errors.New("not there"), 0}, {"http://127.0.0.1:1/v1", "No devices were found\n", nil, 0}, {"http://127.0.0.1:1/v1", "", nil, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := Snapshot(t.Context(), Channel{Client: answers(t, nil, ""), Root: c.root, run: func(_ context.Context, name string, args ...string) ([]byte, error) {
				if name != "nvidia-smi" || len(args) != 2 {
					t.Errorf("%s %v", name, args)
				}
				return []byte(c.out), c.err
			}})
			if len(e.GPU) != c.want {
				t.Fatalf("%s: %v", c.root, e.GPU)
			}
			if c.want == 2 && (e.GPU[0]["name"] != "NVIDIA H200" || e.GPU[0]["power_cap_w"] != "700.00" || e.GPU[0]["clock_sm_mhz"] != "345" || len(e.GPU[1]) != len(gpuFields)-2) {
				t.Errorf("%v", e.GPU)
			}
		})
	}
	if _, err := runProgram(t.Context(), "a-program-that-is-not-there"); err == nil {
		t.Error("no error from a program that is not there")
	}
}

func TestMergeGiven(t *testing.T) {
	dir := t.TempDir()
	file := func(body string) string {
		name := filepath.Join(dir, "env.json")
		if err := os.WriteFile(name, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	var e Environment
	for _, body := range []string{`{"cuda":"12.8","cpu":{"cores":64}}`, `{"cuda":"13.0","max_tokens":5,"tokenizer":"x"}`} {
		if err := e.MergeGiven(file(body)); err != nil {
			t.Fatal(err)
		}
	}
	if len(e.Given) != 4 || e.Given["cuda"] != "13.0" {
		t.Errorf("%v", e.Given)
	}
	for body, hint := range map[string]string{
		`[]`: "JSON object", `null`: "JSON object", `{`: "JSON object", `{"a":{"API_KEY":"sk-1"}}`: "API_KEY", `{"a":[{"hf-token":"sk-1"}]}`: "hf-token",
		`{"a":"` + strings.Repeat("x", maxGiven) + `"}`: "1 MiB",
	} {
		if err := e.MergeGiven(file(body)); err == nil || !strings.Contains(err.Error(), hint) || strings.Contains(err.Error(), "sk-1") {
			t.Errorf("%.20s: %v does not say %q", body, err, hint)
		}
	}
	if err := e.MergeGiven(filepath.Join(dir, "none")); err == nil || len(e.Given) != 4 {
		t.Errorf("%v, %v", err, e.Given)
	}
}
