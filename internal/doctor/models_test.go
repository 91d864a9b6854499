package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/sim"
)

// serving is an engine that lists some models and serves others; the error for
// a model that it does not serve is given, with %s for its name.
func serving(t *testing.T, listed, served []string, status int, failure string) string {
	t.Helper()
	engine := start(t, quick(sim.VLLM))
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			if listed == nil {
				w.WriteHeader(404)
				return
			}
			entries := []map[string]string{}
			for _, m := range listed {
				entries = append(entries, map[string]string{"id": m})
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": entries})
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var ask struct{ Model string }
		_ = json.Unmarshal(body, &ask)
		for _, m := range served {
			if m == ask.Model || m == "*" {
				r.Body = io.NopCloser(bytes.NewReader(body))
				engine.ServeHTTP(w, r)
				return
			}
		}
		w.Header().Set("Content-Type", "application/json")
		if ask.Model == "" {
			w.WriteHeader(400)
			_, _ = io.WriteString(w, `{"error":{"message":"model is required","code":"model_required"}}`)
			return
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, failure, ask.Model)
	})) + "/v1"
}

func TestModels(t *testing.T) {
	vllm := `{"error":{"message":"The model %s does not exist.","type":"NotFoundError","param":"model","code":404}}`
	openai := `{"error":{"message":"%s?","type":"invalid_request_error","code":"model_not_found"}}`
	ollama := `{"error":{"message":"model '%s' not found, try pulling it first"}}`
	many := []string{"qwen3-8b", "qwen3-32b", "llama-3.3-70b", "gpt-oss-120b", "bge-m3", "mistral-small"}
	for _, c := range []struct {
		name           string
		listed, served []string
		status         int
		failure, model string
		level          Level
		parts          []string
		models         Level
	}{
		{"listed", many, many, 404, vllm, "qwen3-8b", Green, []string{"qwen3-8b answers"}, Green},
		{"the first", many, many, 404, vllm, "", Green, []string{"the first that is listed was called: qwen3-8b", "--model"}, Green},
		{"the only one", many[:1], many, 404, vllm, "", Green, []string{"the only model listed is qwen3-8b"}, Green},
		{"an alias", many, []string{"*"}, 404, vllm, "gpt-4o", Yellow, []string{"gpt-4o is not listed, but answers", "a model that is listed"}, Green},
		{"misspelt", many, many, 404, vllm, "qwen-8b", Red, []string{"there is no model qwen-8b", "Closest are: qwen3-8b", "use --model qwen3-8b"}, Green},
		{"the only one served", many[:1], many, 404, openai, "something", Red, []string{"The only one served is qwen3-8b", "use --model qwen3-8b"}, Green},
		{"nothing like it", many, many, 400, openai, "zzzzzzzzzzzzzzzzzzzz", Red, []string{"None of the 6", "GET http://127"}, Green},
		{"no list", nil, many, 404, ollama, "llama9", Red, []string{"there is no model llama9", "list of models"}, Grey},
		{"listed, not served", many, many[:1], 404, vllm, "bge-m3", Red, []string{"lists bge-m3, but does not serve it with the chat API", "--api"}, Green},
		{"none named, none listed", []string{}, many, 400, openai, "", Red, []string{"wants to be told a model", "--model NAME"}, Yellow},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := of(serving(t, c.listed, c.served, c.status, c.failure))
			cfg.Model = c.model
			findings := run(t, cfg)
			want(t, findings, "models", c.models)
			want(t, findings, "model", c.level, c.parts...)
			if c.level == Red {
				want(t, findings, "stream", Grey, "not checked because")
			}
		})
	}
}

// TestNewerModel: a model that takes neither max_tokens nor a temperature is
// asked as it wants to be asked.
func TestNewerModel(t *testing.T) {
	engine := start(t, quick(sim.VLLM))
	base := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if bytes.Contains(body, []byte(`"max_tokens"`)) || bytes.Contains(body, []byte(`"temperature"`)) {
			w.WriteHeader(400)
			_, _ = io.WriteString(w, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","code":"unsupported_parameter"}}`)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		engine.ServeHTTP(w, r)
	})) + "/v1"
	findings := run(t, of(base))
	want(t, findings, "answer", Green)
	want(t, findings, "stream", Green)
}

// TestErrorsOtherThanTheModel are not taken for one of it.
func TestErrorsOtherThanTheModel(t *testing.T) {
	for body, want := range map[string]bool{
		`{"error":{"message":"The model x does not exist.","type":"NotFoundError","code":404}}`: true,
		`{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}`:       true,
		`{"error":"model \"x\" not found, try pulling it first"}`:                               true,
		`{"detail":"Not Found"}`: false,
		`{"error":{"message":"Invalid URL (POST /v1/v1/chat/completions)","type":"invalid_request_error"}}`: false,
		`{"error":{"message":"messages is required"}}`:                                                      false,
		`not JSON about a model that does not exist`:                                                        false,
		``: false,
	} {
		if got := unknownModel(&endpoint.Reply{Status: 404, Body: []byte(body)}); got != want {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
	if unknownModel(&endpoint.Reply{Status: 200, Body: []byte(`{"error":{"code":"model_not_found"}}`)}) {
		t.Error("an answer of 200 is no refusal")
	}
}
