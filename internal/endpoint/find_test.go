package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// page is what a fake server answers at a method and path.
type page struct {
	status int
	kind   string
	body   string
}

const (
	jsonKind = "application/json"
	htmlKind = "text/html"
	listBody = `{"object":"list","data":[{"id":"m1","object":"model","owned_by":"vllm","max_model_len":4096},{"id":"m2"}]}`
	missing  = `{"error":{"message":"model is required","type":"invalid_request_error"}}`
	homePage = "<!doctype html><title>Welcome</title>"
)

// serveNothing is what a server answers where it has nothing.
type serveNothing func(w http.ResponseWriter, r *http.Request)

// fake is a server of these pages.
func fake(t *testing.T, pages map[string]page, other serveNothing) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, has := pages[r.Method+" "+r.URL.Path]
		if !has {
			other(w, r)
			return
		}
		w.Header().Set("Content-Type", p.kind)
		w.Header().Set("Server", "fake")
		if p.status/100 == 3 {
			w.Header().Set("Location", p.body)
		}
		w.WriteHeader(p.status)
		_, _ = io.WriteString(w, p.body)
	}))
	t.Cleanup(s.Close)
	return s
}

// tlsServer is a server whose certificate nobody knows.
func tlsServer(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that fail
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", jsonKind)
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"detail":"Not Found"}`)
}

// home answers everything with a page of HTML, as single-page sites do.
func home(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", htmlKind)
	_, _ = io.WriteString(w, homePage)
}

func TestFind(t *testing.T) {
	list := page{200, jsonKind, listBody}
	cases := []struct {
		name   string
		base   string // below the server
		api    API
		pages  map[string]page
		other  serveNothing
		root   string // below the server; "" when none is found
		models string
		kind   Kind
		says   string // part of the error
		tried  int
	}{
		{name: "as written", base: "/v1", pages: map[string]page{"GET /v1/models": list}, root: "/v1", models: "m1 m2", tried: 1},
		{name: "without v1", base: "", pages: map[string]page{"GET /v1/models": list}, root: "/v1", models: "m1 m2", tried: 1},
		{name: "twice v1", base: "/v1/v1", pages: map[string]page{"GET /v1/models": list}, root: "/v1", models: "m1 m2", tried: 1},
		{name: "the API's URL", base: "/v1/chat/completions", pages: map[string]page{"GET /v1/models": list}, root: "/v1", models: "m1 m2", tried: 1},
		{name: "path", base: "/api", pages: map[string]page{"GET /api/v1/models": list}, root: "/api/v1", models: "m1 m2", tried: 1},
		{name: "another version", base: "/v1beta/openai", pages: map[string]page{"GET /v1beta/openai/models": list}, root: "/v1beta/openai", models: "m1 m2", tried: 1},
		{name: "no version at all", base: "/inference", pages: map[string]page{"GET /inference/models": list}, root: "/inference", models: "m1 m2", tried: 2},
		{name: "superfluous v1", base: "/inference/v1", pages: map[string]page{"GET /inference/models": list}, root: "/inference", models: "m1 m2", tried: 2},
		{name: "wrong path", base: "/chat", pages: map[string]page{"GET /v1/models": list}, root: "/v1", models: "m1 m2", tried: 3},
		{name: "site round it", base: "/app", pages: map[string]page{"GET /v1/models": list}, other: home, root: "/v1", models: "m1 m2", tried: 3},
		{name: "list alone", base: "", pages: map[string]page{"GET /v1/models": {200, jsonKind, `[{"id":"a"},{"id":"b"}]`}}, root: "/v1", models: "a b", tried: 1},
		{name: "named models", base: "", pages: map[string]page{"GET /v1/models": {200, jsonKind, `{"models":[{"name":"a"}],"object":"list"}`}}, root: "/v1", models: "a", tried: 1},
		{name: "empty list", base: "", pages: map[string]page{"GET /v1/models": {200, jsonKind, `{"data":[]}`}}, root: "/v1", models: "", tried: 1},
		{name: "list of something else", base: "", pages: map[string]page{"GET /v1/models": {200, jsonKind, `{"data":[{"x":1}]}`}, "POST /v1/chat/completions": {400, jsonKind, missing}}, root: "/v1", tried: 3},
		{name: "unauthorized", base: "", pages: map[string]page{"GET /v1/models": {401, jsonKind, missing}}, root: "/v1", kind: FailedAuth, says: "check that the key", tried: 1},
		{name: "forbidden", base: "/api", pages: map[string]page{"GET /api/models": {403, jsonKind, missing}}, root: "/api", kind: FailedAuth, says: "403", tried: 2},
		{name: "no list, 400", base: "", pages: map[string]page{"POST /v1/chat/completions": {400, jsonKind, missing}}, root: "/v1", tried: 3},
		{name: "no list, 422", base: "", pages: map[string]page{"POST /chat/completions": {422, jsonKind, `{"detail":[{"loc":["body","model"]}]}`}}, root: "", tried: 4},
		{name: "no list, 401", base: "", pages: map[string]page{"POST /v1/chat/completions": {401, jsonKind, missing}}, root: "/v1", kind: FailedAuth, tried: 3},
		{name: "no list, 429", base: "", pages: map[string]page{"POST /v1/chat/completions": {429, jsonKind, missing}}, root: "/v1", tried: 3},
		{name: "no list, site round it", base: "", other: home, pages: map[string]page{"POST /v1/chat/completions": {400, jsonKind, missing}}, root: "/v1", tried: 3},
		{name: "messages", base: "", api: Messages, pages: map[string]page{"POST /v1/messages": {400, jsonKind, missing}}, root: "/v1", tried: 3},
		{name: "nothing", base: "", kind: FailedNotFound, says: "SERVER/v1 is most likely right, since it answers in JSON", tried: 4},
		{name: "a site", base: "", other: home, kind: FailedShape, says: "does not look like an inference server; SERVER/v1", tried: 4},
		{name: "400 in HTML", base: "", pages: map[string]page{"POST /v1/chat/completions": {400, htmlKind, homePage}}, kind: FailedNotFound, says: "400, a page of HTML", tried: 4},
		{name: "method", base: "", other: home, pages: map[string]page{"GET /v1/models": {405, jsonKind, missing}}, kind: FailedNotFound, says: "SERVER/v1 is most likely right", tried: 4},
		{name: "broken server", base: "/api", pages: map[string]page{"GET /api/v1/models": {502, jsonKind, missing}}, kind: FailedServer, says: "SERVER/api/v1 is most likely right, but the server fails there", tried: 6},
		{name: "redirect", base: "", pages: map[string]page{"GET /v1/models": {301, htmlKind, "https://new.test/llm/v1/models"}}, kind: FailedShape, says: "https://new.test/llm/v1 is most likely right", tried: 4},
		{name: "redirect of all", base: "", other: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, kind: FailedShape, says: "it redirects to SERVER/login", tried: 4},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.other == nil {
				c.other = notFound
			}
			if c.api == "" {
				c.api = Chat
			}
			s := fake(t, c.pages, c.other)
			b, err := ParseBase(s.URL + c.base)
			if err != nil {
				t.Fatal(err)
			}
			f, err := Find(t.Context(), s.Client(), b, c.api, testKey)
			if c.name == "no list, 422" { // the root itself is the server
				c.root = "/"
			}
			want := ""
			if c.root != "" {
				want = s.URL + strings.TrimSuffix(c.root, "/")
			}
			if f.Root != want || KindOf(err) != c.kind || len(f.Tried) != c.tried {
				t.Fatalf("root %q after %d tries, %v (%q), want %q after %d, %q:\n%v", f.Root, len(f.Tried), err, KindOf(err), want, c.tried, c.kind, f.Tried)
			}
			if got := strings.Join(f.Models, " "); got != c.models {
				t.Errorf("models %q, want %q", got, c.models)
			}
			if err == nil && f.Header == nil {
				t.Error("no header of the answer that decided")
			}
			if err != nil {
				shows(t, "the error", err.Error())
				if says := strings.ReplaceAll(c.says, "SERVER", s.URL); !strings.Contains(err.Error(), says) {
					t.Errorf("the error is\n%v, want something of\n%s", err, says)
				}
				if f.Root == "" && strings.Count(err.Error(), s.URL) < c.tried {
					t.Errorf("the error does not say what was tried: %v", err)
				}
			}
		})
	}
}

// TestFindDetails: what a list tells beside the names is kept.
func TestFindDetails(t *testing.T) {
	s := fake(t, map[string]page{"GET /v1/models": {200, jsonKind, listBody}}, notFound)
	b, _ := ParseBase(s.URL)
	f, err := Find(t.Context(), nil, b, Chat, "")
	if err != nil || len(f.Details) != 2 || f.Details[0] != (Model{ID: "m1", MaxLen: 4096, Owner: "vllm"}) || f.Details[1] != (Model{ID: "m2"}) {
		t.Errorf("%+v, %v", f.Details, err)
	}
	models, err := Models(t.Context(), nil, f.Root, Chat, "")
	if err != nil || len(models) != 2 {
		t.Errorf("%+v, %v", models, err)
	}
	if _, err := Models(t.Context(), nil, s.URL, Chat, testKey); KindOf(err) != FailedNotFound {
		t.Errorf("where there is no list: %v", err)
	}
}

// TestFindAuthorizes: the key goes where the API wants it, and to no redirect.
func TestFindAuthorizes(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer elsewhere.Close()
	for _, api := range APIs {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			bearer, key, version := r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), r.Header.Get("Anthropic-Version")
			want := [3]string{"Bearer " + testKey, "", ""}
			if api == Messages {
				want = [3]string{"", testKey, "2023-06-01"}
			}
			if got := [3]string{bearer, key, version}; got != want || r.Header.Get("Accept-Encoding") != "identity" {
				t.Errorf("%s: header %v, want %q", api, r.Header, want)
			}
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}))
		b, _ := ParseBase(s.URL)
		if _, err := Find(t.Context(), nil, b, api, testKey); err == nil {
			t.Errorf("%s: no error", api)
		}
		s.Close()
	}
}

// TestFindConnection: what keeps the server from answering ends the search at once.
func TestFindConnection(t *testing.T) {
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer slow.Close()
	tls := tlsServer(t, http.NotFound)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	gone, leave := context.WithCancel(t.Context())
	leave()
	cases := []struct {
		ctx  context.Context
		base string
		kind Kind
	}{
		{t.Context(), "http://" + nobody, FailedConnect},
		{ctx, slow.URL, FailedTimeout},
		{gone, slow.URL, FailedCancelled},
		{t.Context(), tls.URL, FailedTLS},
		{t.Context(), strings.Replace(slow.URL, "http:", "https:", 1), FailedTLS},
	}
	for _, c := range cases {
		b, _ := ParseBase(c.base)
		f, err := Find(c.ctx, nil, b, Chat, testKey)
		if KindOf(err) != c.kind || len(f.Tried) != 1 || f.Tried[0].Kind != c.kind || f.Tried[0].Err == nil {
			t.Errorf("%s: %v (%q) after %d tries, want %q after 1", c.base, err, KindOf(err), len(f.Tried), c.kind)
		}
	}
}

func TestFindRefuses(t *testing.T) {
	b, _ := ParseBase("http://127.0.0.1:1")
	for _, c := range []struct {
		base Base
		api  API
		key  string
		hint string
	}{
		{Base{}, Chat, "", "no base URL"},
		{b, "x", "", "choose from"},
		{b, Chat, "sk-secret\n", "line break"},
		{b, Chat, "sk-\nsecret", "line break"},
	} {
		f, err := Find(t.Context(), nil, c.base, c.api, c.key)
		if err == nil || !strings.Contains(err.Error(), c.hint) || strings.Contains(err.Error(), "secret") || len(f.Tried) != 0 {
			t.Errorf("%v, want something of %q", err, c.hint)
		}
	}
}

func TestReadModels(t *testing.T) {
	var long strings.Builder
	long.WriteString(`{"object":"list","data":[`)
	for i := range maxModels + 10 {
		fmt.Fprintf(&long, `{"id":"m%d"},`, i)
	}
	cases := []struct {
		body string
		n    int // -1 is no list
	}{
		{listBody, 2},
		{`{"data":[],"has_more":false}`, 0},
		{`{"has_more":{"data":[1]},"data":[{"id":"a","max_model_len":"8k","context_length":null}]}`, 1},
		{`{"data":[{"id":"a"},{"id":"b"},{"id":"c`, 2}, // cut off
		{long.String(), maxModels},
		{`{"data":[`, -1},
		{`{"data":[{"id":"a`, -1},
		{`{"data":{"id":"a"}}`, -1},
		{`{"data":["a"]}`, -1},
		{`{"data":[{"id":"a"},7]}`, -1},
		{`{"data":[{"id":"a"},{"object":"x"}]}`, -1},
		{`{"error":{"message":"no"}}`, -1},
		{`"data"`, -1},
		{``, -1},
		{homePage, -1},
	}
	for _, c := range cases {
		got, err := readModels([]byte(c.body))
		if (err != nil) != (c.n < 0) || err == nil && len(got) != c.n {
			t.Errorf("%.60s: %d models, %v, want %d", c.body, len(got), err, c.n)
		}
		if err != nil && !errors.Is(err, errNoList) {
			t.Errorf("%.60s: %v", c.body, err)
		}
	}
}
