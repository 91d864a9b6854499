package doctor

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/sim"
)

func TestAddress(t *testing.T) {
	for _, c := range []struct {
		base  string
		level Level
		parts []string
	}{
		{"http://127.0.0.1:8000/v1", Green, nil},
		{"https://taotoken.net/api", Green, []string{"https://taotoken.net/api"}},
		{"127.0.0.1:8000/v1", Yellow, []string{"http://127.0.0.1:8000/v1"}},
		{`"http://127.0.0.1:8000/v1"`, Yellow, []string{"quotes", "write http://127.0.0.1:8000/v1"}},
		{"http://127.0.0.1:8000/v1/v1", Red, []string{"twice", "write http://127.0.0.1:8000/v1"}},
		{"http://127.0.0.1:8000/v1/chat/completions", Red, []string{"URL of an API", "write http://127.0.0.1:8000/v1"}},
		{"http://127.0.0.1:8000/v1/messages/", Red, []string{"write http://127.0.0.1:8000/v1"}},
		{"http://0.0.0.0:8000/v1", Yellow, []string{"to listen on", "write 127.0.0.1"}},
		{"", Red, []string{"It is empty.", "https://"}},
		{"ftp://x/v1", Red, []string{"neither http nor https"}},
		{"http://127.0.0.1:99999", Red, []string{"port", "1 to 65535"}},
		{"http://user:hunter2hunter2@x/v1", Red, []string{"user name or password", "environment variable"}},
		{"http://x/v1?key=hunter2hunter2", Red, []string{"query"}},
	} {
		t.Run(c.base, func(t *testing.T) {
			v := newVisit(of(c.base))
			f := v.make(t.Context(), checks[0])
			want(t, []Finding{f}, "address", c.level, c.parts...)
			if strings.Contains(f.Title+f.Detail+f.Next, "hunter2") {
				t.Errorf("the finding shows a secret: %+v", f)
			}
		})
	}
}

func TestUnknownAPI(t *testing.T) {
	cfg := of("http://127.0.0.1:8000")
	cfg.API = "soap"
	want(t, run(t, cfg), "address", Red, "no API soap", "choose one of [chat completions responses messages]")
}

// TestBrokenAddress: without an address nothing else is checked, and nothing is sent.
func TestBrokenAddress(t *testing.T) {
	cfg := of("http://:8000")
	findings := run(t, cfg)
	if Worst(findings) != Red {
		t.Errorf("the worst is %s, want red", Worst(findings))
	}
	for _, f := range findings[1:] {
		if f.Level != Grey || !strings.Contains(f.Title, "not checked because the base URL cannot be read") {
			t.Errorf("a check was made without an address: %+v", f)
		}
	}
}

func TestPath(t *testing.T) {
	engine := engineAt(t, quick(sim.VLLM))
	host := strings.TrimSuffix(engine, "/v1")
	for _, c := range []struct {
		name, base string
		api        endpoint.API
		level      Level
		parts      []string
	}{
		{"right", engine, endpoint.Chat, Green, []string{"/v1/chat/completions"}},
		{"missing /v1", host, endpoint.Chat, Yellow, []string{"404 without /v1", "give clients " + engine}},
		{"another path", host + "/openai", endpoint.Chat, Red, []string{"wrong path", "write " + engine}},
		{"for Anthropic's clients", host, endpoint.Messages, Green, []string{"/v1/messages"}},
		{"for Anthropic's clients, with /v1", engine, endpoint.Messages, Yellow, []string{"twice", "give Anthropic's clients " + host}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := of(c.base)
			cfg.API = c.api
			findings := run(t, cfg)
			want(t, findings, "path", c.level, c.parts...)
			want(t, findings, "answer", Green) // it goes on with what is right
		})
	}
}

func TestPathTooMuch(t *testing.T) {
	mux := http.NewServeMux()
	engine := start(t, quick(sim.VLLM))
	mux.HandleFunc("/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = "/v1" + r.URL.Path
		engine.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /models", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"data":[{"id":"m"}]}`)
	})
	url := serve(t, mux)
	findings := run(t, of(url+"/v1"))
	want(t, findings, "path", Red, "a /v1 too many", "write "+url)
	want(t, findings, "answer", Green)
}

// TestPathBothWays: who answers with and without /v1 is not warned of.
func TestPathBothWays(t *testing.T) {
	engine := start(t, quick(sim.LlamaCPP))
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v1") {
			r.URL.Path = "/v1" + r.URL.Path
		}
		engine.ServeHTTP(w, r)
	}))
	want(t, run(t, of(url)), "path", Green, "and without /v1")
}

func TestNoPath(t *testing.T) {
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		level   Level
		parts   []string
	}{
		{"web pages", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "<!doctype html><title>Console</title>")
		}, Red, []string{"but web pages", "address of the API"}},
		{"404", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(404)
			_, _ = io.WriteString(w, `{"detail":"Not Found"}`)
		}, Red, []string{"there is no chat API below", "404 at", "--api"}},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://api.example.com"+r.URL.Path, http.StatusPermanentRedirect)
		}, Red, []string{"redirects", "use https://api.example.com/v1"}},
		{"server fails", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(503)
			_, _ = io.WriteString(w, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`)
		}, Grey, []string{"server fails", "503 at"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			findings := run(t, of(serve(t, c.handler)+"/v1"))
			want(t, findings, "path", c.level, c.parts...)
			if c.level == Red {
				want(t, findings, "stream", Grey, "not checked because")
			} else {
				want(t, findings, "answer", Red, "503", "the engine takes no calls", "loads its model", "unavailable_error")
				want(t, findings, "stream", Grey, "not checked because")
			}
		})
	}
}
