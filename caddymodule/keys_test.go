package caddymodule

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/gateway"
	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/quantity"
)

// keyOf is the key that these tests give an alias.
func keyOf(alias string) string { return "sk-test-" + alias + "-0123456789abcdef" }

// keyFile writes a file of keys, each entry with the key of its alias.
func keyFile(t *testing.T, entries ...keys.Entry) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "keys.json")
	editKeys(t, file, func(f *keys.File) (err error) {
		for _, e := range entries {
			err = errors.Join(err, f.Add(e, keyOf(e.Alias), time.Now()))
		}
		return err
	})
	return file
}

func editKeys(t *testing.T, file string, change func(*keys.File) error) {
	t.Helper()
	if err := keys.Edit(file, time.Now(), change); err != nil {
		t.Fatal(err)
	}
}

func counted(n int64) *quantity.Count {
	c := quantity.Count(n)
	return &c
}

func ago(d time.Duration) keys.Moment { return keys.Moment{Time: time.Now().Add(-d)} }

// keyPlaces are the places in which a key may come.
var keyPlaces = []struct {
	name, header, prefix, path string
}{
	{"bearer", "Authorization", "Bearer ", chatPath},
	{"x-api-key", "X-Api-Key", "", messagesPath},
	{"api-key", "Api-Key", "", "/openai/deployments/m/chat/completions"},
	{"x-goog-api-key", "X-Goog-Api-Key", "", "/v1beta/models/m:generateContent"},
	{"query", "", "", "/v1beta/models/m:generateContent?alt=json&key="},
}

// TestCallersAreKnown: a key counts in each of its places. One of the file's is
// known by its alias, another by its short id, in the record, the access log, the
// limits, the metrics, the ledger; the upstream gets it as the client sent it; and
// nowhere is the key itself.
func TestCallersAreKnown(t *testing.T) {
	var at, got string // where the upstream is to look, what it found
	up := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got = r.Header.Get(at); at == "" {
			got = r.URL.Query().Get("key")
		}
		brief(w, r)
	}))
	s, dir := newSite(t), t.TempDir()
	file, log := keyFile(t, keys.Entry{Alias: "team-a", Owner: "Ada", Bench: true}), filepath.Join(dir, "access.log")
	run := start(t, "weir {\nkeys "+file+"\nledger sqlite "+dir+"/usage.db\n}",
		s.http("log {\noutput file "+log+"\nformat json\n}\nweir {\nlimit key {\nrequests_per_minute 20\n}\n}\nreverse_proxy "+up))
	c := client(t, "http/1.1")
	stranger := keyOf("nobody")
	var id string
	for _, place := range keyPlaces {
		for who, key := range map[string]string{"known": keyOf("team-a"), "unknown": stranger, "none": ""} {
			name, target := who+" "+place.name, place.path
			if place.header == "" {
				target += key
			}
			r := with(t, s, target, "", name, bounded(9))
			if place.header != "" && key != "" {
				r.Header.Set(place.header, place.prefix+key)
			}
			at = place.header
			if a := fetch(t, c, r); a.status != 200 {
				t.Fatalf("%s: %d %s", name, a.status, a.body)
			}
			if want := map[bool]string{true: place.prefix + key}[key != ""]; got != want {
				t.Errorf("%s: the upstream got %q", name, got)
			}
			rec := run.record(name)
			logged, _ := entry(t, log, name)["weir"].(map[string]any)
			switch who {
			case "known":
				if rec.Key != "team-a" || !rec.Bench || logged["key"] != "team-a" {
					t.Errorf("%s: %+v, logged %v", name, rec, logged["key"])
				}
			case "unknown":
				if id == "" {
					id = rec.Key
				}
				if !regexp.MustCompile(`^[a-z2-7]{10}$`).MatchString(rec.Key) || rec.Key != id || rec.Bench || logged["key"] != id {
					t.Errorf("%s: %+v, logged %v", name, rec, logged["key"])
				}
			case "none":
				if rec.Key != "" || logged["key"] != nil {
					t.Errorf("%s: %+v, logged %v", name, rec, logged["key"])
				}
			}
		}
	}
	m := run.metrics()
	for _, subject := range []string{"team-a", id} {
		if n := m.sum("weir_limit_used", `subject="`+subject+`"`, `dimension="requests_per_minute"`); n < 1 || n > float64(len(keyPlaces)) {
			t.Errorf("%s has used %v requests", subject, n)
		}
	}
	until(t, "rows of both in the ledger", func() bool {
		_, body := run.get("/weir/usage?by=key")
		return strings.Contains(string(body), `"key":"team-a"`) && strings.Contains(string(body), `"key":"`+id+`"`)
	})

	// The keys' state shows everything of a key but the key and its hash.
	_, state := run.get("/weir/keys")
	var shown struct {
		Keys int
		All  []struct {
			Alias, Owner string
			Bench        bool
		}
	}
	if err := json.Unmarshal(state, &shown); err != nil || shown.Keys != 1 || len(shown.All) != 1 || shown.All[0].Alias != "team-a" || shown.All[0].Owner != "Ada" || !shown.All[0].Bench {
		t.Errorf("%v %s", err, state)
	}
	digest, err := keys.Digest(keyOf("team-a"))
	if err != nil {
		t.Fatal(err)
	}
	_, recorded := run.get("/weir/calls?limit=1000")
	_, usage := run.get("/weir/usage")
	_, limits := run.get("/weir/limits")
	_, metrics := run.get("/metrics")
	caddyLog, err := os.ReadFile(run.dir + "/caddy.log")
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string][]byte{"/weir/keys": state, "/weir/calls": recorded, "/weir/usage": usage, "/weir/limits": limits, "/metrics": metrics, "Caddy's log": caddyLog} {
		for _, secret := range []string{keyOf("team-a"), stranger, digest} {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s shows %s", what, secret)
			}
		}
	}
}

// TestKeysAreRequired: without a good key a call ends at the gateway, in the
// form of its API, and the upstream learns nothing of it.
func TestKeysAreRequired(t *testing.T) {
	up := newCounting(t, nil)
	s := newSite(t)
	file := keyFile(t, keys.Entry{Alias: "good"}, keys.Entry{Alias: "expired", Expires: ago(time.Hour)}, keys.Entry{Alias: "revoked", Revoked: ago(time.Hour)})
	run := start(t, "weir {\nkeys "+file+"\n}", s.http("weir {\nrequire_key\nprobes\n}\nreverse_proxy "+up.address))
	c := client(t, "http/1.1")
	messages := map[string]string{"": "needs an API key", keyOf("nobody"): "not known", "sk-short": "not known", keyOf("expired"): "expired", keyOf("revoked"): "revoked"}
	type object = map[string]any
	families := []struct {
		path string
		want func(message string) object
	}{
		{chatPath, func(m string) object {
			return object{"error": object{"message": m, "type": "authentication_error", "param": nil, "code": "invalid_api_key"}}
		}},
		{"/v1/responses", func(m string) object {
			return object{"error": object{"message": m, "type": "authentication_error", "param": nil, "code": "invalid_api_key"}}
		}},
		{messagesPath, func(m string) object {
			return object{"type": "error", "error": object{"type": "authentication_error", "message": m}}
		}},
		{"/api/chat", func(m string) object { return object{"error": m} }},
		{"/v1beta/models/m:streamGenerateContent?alt=sse", func(m string) object {
			return object{"error": object{"code": json.Number("401"), "message": m, "status": "UNAUTHENTICATED"}}
		}},
	}
	for _, f := range families {
		for key, part := range messages {
			got := fetch(t, c, with(t, s, f.path, key, "refused", bounded(9)))
			body := object{}
			d := json.NewDecoder(strings.NewReader(got.body))
			d.UseNumber()
			if err := d.Decode(&body); err != nil {
				t.Fatalf("%s %q: %v", f.path, got.body, err)
			}
			message := ""
			switch inner := body["error"].(type) {
			case string:
				message = inner
			case object:
				message, _ = inner["message"].(string)
			}
			wanted, _ := json.Marshal(f.want(message))
			have, _ := json.Marshal(body)
			if got.status != 401 || !bytes.Equal(have, wanted) || !strings.Contains(message, part) {
				t.Errorf("%s with key %q: %d %s, want %s with %q", f.path, key, got.status, got.body, wanted, part)
			}
			h := got.header
			if h.Get("Www-Authenticate") != "Bearer" || h.Get("X-Should-Retry") != "false" || h.Get("Retry-After") != "" || h.Get("Content-Type") != "application/json" {
				t.Errorf("%s: %v", f.path, h)
			}
			if key != "" && strings.Contains(got.body, key) {
				t.Errorf("%s: the answer shows the key: %s", f.path, got.body)
			}
		}
	}
	n := len(families) * len(messages)
	for _, rec := range run.recordsOf("refused", n) {
		if rec.Outcome != call.Refused || rec.Status != 401 || rec.RefusedBy != "key" || rec.Attempts != 0 || rec.Error != "invalid_api_key" || rec.Model != "" {
			t.Errorf("%+v", rec)
		}
	}
	if m := run.metrics(); m.sum("weir_refusals_total", `by="key"`) != float64(n) || m.sum("weir_calls_total", `outcome="refused"`, `status_class="4xx"`) != float64(n) {
		t.Error("the metrics tell otherwise")
	}
	// A refusal comes before the body is read, however long the client takes.
	early := exchangeRaw(t, s.plain, "POST "+chatPath+" HTTP/1.1\r\nHost: "+s.plain+"\r\nConnection: close\r\nContent-Length: 100\r\n\r\n{")
	if !strings.HasPrefix(early, "HTTP/1.1 401 ") {
		t.Errorf("%.100q", early)
	}
	if seen := up.take(); len(seen) > 0 {
		t.Errorf("the upstream saw %v", seen)
	}
	if got := fetch(t, c, with(t, s, chatPath, keyOf("good"), "good", bounded(9))); got.status != 200 || len(ours(got.header)) > 0 {
		t.Errorf("%d %v", got.status, got.header)
	}
	if rec := run.record("good"); rec.Key != "good" || rec.Outcome != call.Completed {
		t.Errorf("%+v", rec)
	}
	for _, probe := range []string{"/livez", "/readyz"} { // orchestrators have no key
		if got := status(c, "http://"+s.plain+probe); got != 200 {
			t.Errorf("%s: %d", probe, got)
		}
	}
}

// vllmRoutes are the routes of vLLM's server, those that it opens only with
// --api-server flags or development mode among them, and paths of other engines.
var vllmRoutes = []string{
	"/", "/health", "/load", "/ping", "/version", "/metrics", "/server_info", "/docs", "/docs/oauth2-redirect", "/redoc", "/openapi.json",
	"/tokenize", "/detokenize", "/tokenizer_info", "/v1/models", "/v1/models/m",
	"/v1/chat/completions", "/v1/chat/completions/render", "/v1/completions", "/v1/completions/render",
	"/v1/responses", "/v1/responses/resp_1", "/v1/responses/resp_1/cancel", "/v1/messages", "/v1/messages/count_tokens",
	"/v1/embeddings", "/pooling", "/classify", "/score", "/v1/score", "/rerank", "/v1/rerank", "/v2/rerank",
	"/v1/audio/transcriptions", "/v1/audio/translations", "/v1/audio/speech", "/v1/realtime", "/invocations", "/inference/v1/generate",
	"/scale_elastic_ep", "/is_scaling_elastic_ep", "/reset_prefix_cache", "/reset_mm_cache", "/reset_encoder_cache",
	"/sleep", "/wake_up", "/is_sleeping", "/collective_rpc", "/start_profile", "/stop_profile",
	"/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/pause", "/resume", "/is_paused",
	"/init_weight_transfer_engine", "/update_weights", "/get_world_size", "/abort_requests",
	"/get_model_info", "/flush_cache", "/update_weights_from_disk", "/release_memory_occupation", "/api/pull", "/api/delete", "/api/tags", "/slots", "/props",
	"/models/../pause", "/favicon.ico", "/.env", "/nothing",
}

// inference are those that a caller with a key may POST to without further ado.
var inference = []string{
	"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/embeddings", "/rerank", "/v1/rerank", "/v2/rerank",
	"/v1/audio/transcriptions", "/v1/audio/translations", "/v1/audio/speech", "/invocations", "/inference/v1/generate",
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PURGE", "PROPFIND"}

// TestEveryPathNeedsAKey walks the routes of an engine with every method. Without
// a good key each is refused; with one the inference paths pass, and what
// allow_paths lists, and nothing else. What is refused the upstream does not see.
func TestEveryPathNeedsAKey(t *testing.T) {
	up := newCounting(t, nil)
	s := newSite(t)
	file := keyFile(t, keys.Entry{Alias: "good"}, keys.Entry{Alias: "revoked", Revoked: ago(time.Hour)})
	run := start(t, "weir {\nkeys "+file+"\n}", s.http("weir {\nrequire_key {\nallow_paths /v1/models /tokenize\nallow_paths /v1/responses/*\n}\n}\nreverse_proxy "+up.address))
	c := client(t, "http/1.1")
	send := func(method, target, key string) answered {
		r := with(t, s, target, key, "", `{"model":"m","prompt":"hello"}`)
		r.Method = method
		return fetch(t, c, r)
	}
	barred := 0.0
	for _, key := range []string{"", keyOf("nobody"), keyOf("revoked")} {
		for _, route := range vllmRoutes {
			for _, method := range methods {
				got := send(method, route, key)
				if got.status != 401 || got.header.Get("Www-Authenticate") != "Bearer" || method != "HEAD" && !strings.Contains(got.body, "key") {
					t.Errorf("%s %s with key %q: %d %q", method, route, key, got.status, got.body)
				}
				barred++
			}
		}
		if seen := up.take(); len(seen) > 0 {
			t.Fatalf("with key %q the upstream saw %v", key, seen)
		}
	}
	allowed := []string{"/v1/models", "/tokenize", "/v1/responses/resp_1", "/v1/responses/resp_1/cancel"}
	for _, route := range vllmRoutes {
		for _, method := range methods {
			passes := slices.Contains(allowed, route) || method == "POST" && slices.Contains(inference, route)
			got := send(method, route, keyOf("good"))
			seen := up.take()
			switch {
			case passes:
				if got.status != 200 || !slices.Equal(seen, []string{method + " " + route}) {
					t.Errorf("%s %s: %d %q, the upstream saw %v", method, route, got.status, got.body, seen)
				}
			case got.status != 403 || len(seen) > 0 || method != "HEAD" && faultOf(t, got).Error.Code != "path_not_allowed":
				t.Errorf("%s %s: %d %q, the upstream saw %v", method, route, got.status, got.body, seen)
			}
		}
	}
	m := run.metrics()
	if n := m.sum("weir_refusals_total", `by="key"`); n != barred {
		t.Errorf("%v refused for want of a key, want %v", n, barred)
	}
	if n := m.sum("weir_refusals_total", `by="path"`); n != float64(len(methods)*(len(vllmRoutes)-len(allowed))-len(inference)) {
		t.Errorf("%v refused for their path", n)
	}
}

// TestADirectiveDialectOpensNoPath: a directive that says which API its calls
// speak says nothing of paths: those that no API has stay shut.
func TestADirectiveDialectOpensNoPath(t *testing.T) {
	up := newCounting(t, nil)
	s := newSite(t)
	start(t, "weir {\nkeys "+keyFile(t, keys.Entry{Alias: "good"})+"\n}", s.http("weir {\ndialect openai.chat\nrequire_key {\nallow_paths /my/chat\n}\n}\nreverse_proxy "+up.address))
	c := client(t, "http/1.1")
	for _, target := range []string{"/pause", "/sleep?level=2", "/v1/load_lora_adapter", "/collective_rpc", "/my/chat/../../pause"} {
		if got := fetch(t, c, with(t, s, target, keyOf("good"), "", bounded(9))); got.status != 403 {
			t.Errorf("POST %s: %d %q", target, got.status, got.body)
		}
	}
	if seen := up.take(); len(seen) > 0 {
		t.Errorf("the upstream saw %v", seen)
	}
	for _, target := range []string{chatPath, "/my/chat"} {
		if got := fetch(t, c, with(t, s, target, keyOf("good"), "", bounded(9))); got.status != 200 {
			t.Errorf("POST %s: %d %q", target, got.status, got.body)
		}
	}
}

// TestPathTricks: no spelling gets a path that is not allowed past the gateway,
// whichever way the upstream reads it.
func TestPathTricks(t *testing.T) {
	up := newCounting(t, nil)
	s := newSite(t)
	start(t, "weir {\nkeys "+keyFile(t, keys.Entry{Alias: "good"})+"\n}", s.http("weir {\nrequire_key {\nallow_paths /v1/models /v1/files/*\n}\n}\nreverse_proxy "+up.address))
	for _, route := range []string{"/pause", "/sleep", "/v1/load_lora_adapter"} {
		tail := route[1:]
		for _, target := range []string{
			"/" + route, "///" + tail, "/./" + tail, "/" + tail + "/", "/" + tail + "/.", "/" + tail + "//", "/x/../" + tail, "/%2e/" + tail, "/%2e%2e/" + tail, "/%2E%2E/" + tail,
			"/%2f" + tail, "/%70" + tail, "/%2570" + tail, strings.ToUpper(route), route + ";", route + ";a=b", route + "%3b", route + "%00", route + "%20", route + "?key=x", route + "?/v1/models", route + "%3f",
			"/v1/models/../.." + route, "/v1/models;/../.." + route, "/v1/models/..;/.." + route, "/v1/models/%2e%2e/%2e%2e" + route, "/v1/models%2f..%2f.." + route, "/v1/models/..%2f..%2f" + tail,
			"/v1/models//" + tail, "/v1/models//../../.." + route, "/v1/models%00" + route, "/v1/models?" + route, "/v1/models#" + route,
			"/v1/files/../.." + route, "/v1/files/./../.." + route, "/v1/files//../.." + route, "/v1/files/x/../../.." + route, "/v1/files/%2e%2e/%2e%2e" + route, "/v1/files/%2e./.%2e" + route,
			"/v1/files/..%2f..%2f" + tail, "/v1/files/%2e%2e%2f%2e%2e%2f" + tail, "/v1/files%2f..%2f..%2f" + tail, `/v1/files/..\..\` + tail, "/v1/files/..%5c..%5c" + tail, "/v1/files/..;/..;" + route,
			"/v1/files/..;a=b/..%3b" + route, "/v1/files/../../" + tail + "/", "/v1/files/..", "/v1/files/../..", "/v1/files/..%00/.." + route,
			chatPath + "/../../.." + route, chatPath + "/%2e%2e/%2e%2e/%2e%2e" + route, chatPath + "%2f..%2f..%2f.." + route, chatPath + "/..;/..;/..;" + route, chatPath + `\..\..\..\` + tail,
			route + "/../" + tail, route + "/./", route + "/x/..", route + "#" + chatPath, route + "?" + chatPath, "http://" + s.plain + route, "http://" + s.plain + "//" + tail,
		} {
			for _, method := range []string{"GET", "POST"} {
				const body = `{"model":"m"}`
				got := exchangeRaw(t, s.plain, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", method, target, s.plain, keyOf("good"), len(body), body))
				seen := up.take()
				for _, line := range seen {
					_, uri, _ := strings.Cut(line, " ")
					if read, bad := reads(uri, vllmRoutes); bad {
						t.Errorf("%s %s reached the upstream as %s, which can be read as %s", method, target, uri, read)
					}
				}
				if len(seen) == 0 && !strings.HasPrefix(got, "HTTP/1.1 403 ") && !strings.HasPrefix(got, "HTTP/1.1 400 ") {
					t.Errorf("%s %s: %.60q", method, target, got)
				}
			}
		}
	}
}

// reads tells whether a request target can be read as one of the routes that are
// neither inference nor allowed, by whatever a server may do to a path.
func reads(target string, routes []string) (route string, bad bool) {
	target, _, _ = strings.Cut(target, "?")
	decoded, err := url.PathUnescape(target)
	if err != nil {
		decoded = target
	}
	twice, err := url.PathUnescape(decoded)
	if err != nil {
		twice = decoded
	}
	var all []string
	for _, p := range []string{target, decoded, twice} {
		bare := regexp.MustCompile(`;[^/]*`).ReplaceAllString(p, "")
		for _, p := range []string{p, bare} {
			slashed := strings.ReplaceAll(p, `\`, "/")
			all = append(all, p, path.Clean(p), path.Clean(slashed), strings.TrimRight(p, " "))
		}
	}
	for _, p := range all {
		for _, r := range routes {
			if strings.EqualFold(p, r) && r != "/v1/models" && r != "/" && !slices.Contains(inference, r) {
				return r, true
			}
		}
	}
	return "", false
}

// TestModelsOfAKey: a key for certain models gets no other, however the request
// names it: what decides is every name that an upstream might go by.
func TestModelsOfAKey(t *testing.T) {
	up := newCounting(t, nil)
	s := newSite(t)
	file := keyFile(t, keys.Entry{Alias: "narrow", Models: []string{"small", "tiny-*"}}, keys.Entry{Alias: "wide"}, keys.Entry{Alias: "any", Models: []string{"*"}})
	run := start(t, "weir {\nkeys "+file+"\n}", s.http("weir {\nrequire_key\n}\nreverse_proxy "+up.address))
	c := client(t, "http/1.1")
	const json = "application/json"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(`{"model":"large"}`))
	_ = z.Close()
	wide := make([]byte, 0, 64)
	for _, u := range utf16.Encode([]rune(`{"model":"large"}`)) {
		wide = append(wide, byte(u), byte(u>>8))
	}
	form := func(models ...string) string {
		var b strings.Builder
		for _, m := range models {
			b.WriteString("--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n" + m + "\r\n")
		}
		return b.String() + "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nx\r\n--b--\r\n"
	}
	const isForm = "multipart/form-data; boundary=b"
	padding := `"pad":"` + strings.Repeat("x", gateway.MaxLook) + `"`
	for _, tc := range []struct {
		name, path, body, kind string
		header                 []string
		want                   int
	}{
		{"small", chatPath, `{"model":"small"}`, json, nil, 200},
		{"pattern", chatPath, `{"model":"tiny-1"}`, json, nil, 200},
		{"path", "/v1beta/models/small:generateContent", `{}`, json, nil, 200},
		{"form", "/v1/audio/transcriptions", form("small"), isForm, nil, 200},
		{"large", chatPath, `{"model":"large"}`, json, nil, 403},
		{"case", chatPath, `{"model":"Small"}`, json, nil, 403},
		{"longer", chatPath, `{"model":"small/../large"}`, json, nil, 403},
		{"anthropic", messagesPath, `{"model":"large"}`, json, nil, 403},
		{"escaped name", chatPath, `{"mod\u0065l":"large"}`, json, nil, 403},
		{"twice, last", chatPath, `{"model":"small","messages":[],"model":"large"}`, json, nil, 403},
		{"twice, first", chatPath, `{"model":"large","messages":[],"model":"small"}`, json, nil, 403},
		{"twice, escaped", chatPath, `{"model":"large","mod\u0065l":"small"}`, json, nil, 403},
		// Servers in Go, Ollama among them, take a name whatever its case.
		{"twice, case", "/api/chat", `{"model":"small","Model":"large"}`, json, nil, 403},
		{"case of the name", "/api/chat", `{"MODEL":"large"}`, json, nil, 403},
		{"unnamed", chatPath, `{"messages":[]}`, json, nil, 403},
		{"null", chatPath, `{"model":null}`, json, nil, 403},
		{"list", chatPath, `{"model":["small"]}`, json, nil, 403},
		{"empty", chatPath, ``, json, nil, 403},
		{"no JSON", chatPath, `model=large`, "application/x-www-form-urlencoded", nil, 403},
		{"a list", chatPath, `[{"model":"small"}]`, json, nil, 403},
		{"compressed", chatPath, packed.String(), json, []string{"Content-Encoding", "gzip"}, 403},
		{"UTF-16", chatPath, string(wide), json, nil, 403},
		{"nested", chatPath, `{"x":{"model":"small"},"model":"large"}`, json, nil, 403},
		{"path", "/v1beta/models/large:generateContent", `{}`, json, nil, 403},
		{"path and body", "/v1beta/models/large:generateContent", `{"model":"small"}`, json, nil, 403},
		{"deployment and body", "/openai/deployments/large/chat/completions?api-version=1", `{"model":"small"}`, json, nil, 403},
		{"form", "/v1/audio/transcriptions", form("large"), isForm, nil, 403},
		{"form, twice, last", "/v1/audio/transcriptions", form("small", "large"), isForm, nil, 403},
		{"form, twice, first", "/v1/audio/transcriptions", form("large", "small"), isForm, nil, 403},
		{"beyond the look", chatPath, `{` + padding + `,"model":"large"}`, json, nil, 403},
		{"beyond the look, twice", chatPath, `{"model":"small",` + padding + `,"model":"large"}`, json, nil, 403},
	} {
		name := fmt.Sprintf("%s %s %d", tc.name, tc.path, tc.want)
		t.Run(name, func(t *testing.T) {
			r := with(t, s, tc.path, keyOf("narrow"), name, tc.body, append(tc.header, "Content-Type", tc.kind)...)
			got := fetch(t, c, r)
			seen := len(up.take())
			if got.status != tc.want || seen != map[int]int{200: 1}[tc.want] {
				t.Fatalf("%d %.200s, the upstream saw %d calls", got.status, got.body, seen)
			}
			if tc.want == 403 {
				if !strings.Contains(got.body, "narrow") || got.header.Get("X-Should-Retry") != "false" {
					t.Errorf("%v %s", got.header, got.body)
				}
				if rec := run.record(name); rec.RefusedBy != "model" || rec.Outcome != call.Refused || rec.Key != "narrow" {
					t.Errorf("%+v", rec)
				}
			}
		})
	}
	for _, alias := range []string{"wide", "any"} {
		for _, body := range []string{`{"model":"large"}`, `{"model":"small","model":"large"}`, `no JSON`} {
			if got := fetch(t, c, with(t, s, chatPath, keyOf(alias), alias, body)); got.status != 200 {
				t.Errorf("%s %s: %d %s", alias, body, got.status, got.body)
			}
		}
	}
}

// TestClasses: the class is the key's, else the directive's; a header may lower
// it, and never raise it.
func TestClasses(t *testing.T) {
	up := newCounting(t, nil)
	s := newSite(t)
	file := keyFile(t, keys.Entry{Alias: "plain"}, keys.Entry{Alias: "lowly", Class: "batch"}, keys.Entry{Alias: "own", Class: "nightly"}, keys.Entry{Alias: "odd", Class: "unheard-of"})
	run := start(t, "weir {\nkeys "+file+"\n}", s.http("weir {\nclass completion\nqueue {\ncalls 100\nclass nightly {\nweight 2\n}\n}\n}\nreverse_proxy "+up.address))
	c := client(t, "http/1.1")
	for i, tc := range []struct{ key, header, want string }{
		{"plain", "", "completion"}, {"", "", "completion"}, {"lowly", "", "batch"}, {"own", "", "nightly"},
		{"plain", "batch", "batch"}, {"plain", "nightly", "nightly"}, {"plain", "interactive", "completion"}, {"plain", "completion", "completion"},
		{"plain", "unknown", "completion"}, {"plain", "BATCH", "completion"}, {"", "batch", "batch"}, {"", "interactive", "completion"},
		{"lowly", "interactive", "batch"}, {"lowly", "completion", "batch"}, {"lowly", "nightly", "batch"},
		{"own", "interactive", "nightly"}, {"own", "batch", "batch"}, {"odd", "", "unheard-of"},
	} {
		name, key := fmt.Sprint("class-", i), ""
		if tc.key != "" {
			key = keyOf(tc.key)
		}
		r := with(t, s, chatPath, key, name, bounded(9))
		if tc.header != "" {
			r.Header.Set("X-Weir-Class", tc.header)
		}
		if got := fetch(t, c, r); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		if rec := run.record(name); rec.Class != tc.want {
			t.Errorf("key %q asks for %q: class %s, want %s", tc.key, tc.header, rec.Class, tc.want)
		}
	}
}

// TestKeysFileIsFollowed: a changed file of keys comes into use by itself. One
// that is broken or gone leaves the keys that were read last in use, and the
// admin endpoint, a metric and the log say so until it is right again.
func TestKeysFileIsFollowed(t *testing.T) {
	up := newCounting(t, nil)
	s := newSite(t)
	file := keyFile(t, keys.Entry{Alias: "first"}, keys.Entry{Alias: "second"})
	run := start(t, "weir {\nkeys "+file+"\n}", s.http("weir {\nrequire_key\n}\nreverse_proxy "+up.address))
	ask := func(alias string) int { return s.status(t, keyOf(alias), "") }
	state := func() (st keys.State) {
		_, body := run.get("/weir/keys")
		if err := json.Unmarshal(body, &st); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		return st
	}
	if ask("first") != 200 || ask("second") != 200 || ask("third") != 401 || state().Keys != 2 || state().Error != "" {
		t.Fatalf("at the start: %+v", state())
	}
	editKeys(t, file, func(f *keys.File) error {
		return errors.Join(f.Revoke("second", time.Now()), f.Add(keys.Entry{Alias: "third"}, keyOf("third"), time.Now()))
	})
	until(t, "the third key is good", func() bool { return ask("third") == 200 })
	if ask("first") != 200 || ask("second") != 401 || state().Keys != 3 {
		t.Errorf("after the change: %+v", state())
	}
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// As an editor that was saved too early leaves it, and with a key in it that
	// must not get into a log.
	if err := os.WriteFile(file, append([]byte(`{"version":1,"keys":[{"alias":"fourth","key":"`+keyOf("fourth")+`"},`), good[:20]...), 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "the broken file is told of", func() bool { return state().Error != "" })
	st := state()
	if st.Keys != 3 || st.LoadedAt.IsZero() || st.ErrorSince.IsZero() || strings.Contains(st.Error, keyOf("fourth")) {
		t.Errorf("%+v", st)
	}
	if ask("first") != 200 || ask("second") != 401 || ask("third") != 200 || ask("fourth") != 401 {
		t.Error("a broken file changed who may call")
	}
	if n := run.metrics().sum("weir_file_error", `file="keys"`); n != 1 {
		t.Errorf("weir_file_error is %v", n)
	}
	// A reload does not forget the keys.
	run.load("weir {\nkeys "+file+"\n}", s.http("weir {\nrequire_key\nclass batch\n}\nreverse_proxy "+up.address))
	if ask("first") != 200 || ask("second") != 401 || state().Error == "" {
		t.Error("a reload with a broken file changed who may call")
	}
	if err := os.WriteFile(file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "the file is right again", func() bool { return state().Error == "" })
	if n := run.metrics().sum("weir_file_error", `file="keys"`); n != 0 || state().Keys != 3 || ask("first") != 200 {
		t.Errorf("weir_file_error is %v, %+v", n, state())
	}
	log, err := os.ReadFile(run.dir + "/caddy.log")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"the file of keys cannot be used; the keys that were read last stay in use", "keys were read anew"} {
		if !bytes.Contains(log, []byte(line)) {
			t.Errorf("the log does not say %q", line)
		}
	}
	if bytes.Contains(log, []byte(keyOf("fourth"))) {
		t.Error("the log has a key")
	}
}

// TestNoKeysFile: where keys are required and the file is missing, nobody may
// call, the gateway runs, and the first key opens it.
func TestNoKeysFile(t *testing.T) {
	up := newCounting(t, nil)
	s := newSite(t)
	file := filepath.Join(t.TempDir(), "keys.json")
	run := start(t, "weir {\nkeys "+file+"\n}", s.http("weir {\nrequire_key\n}\nreverse_proxy "+up.address))
	c := client(t, "http/1.1")
	ask := func() int { return fetch(t, c, with(t, s, chatPath, keyOf("first"), "", bounded(9))).status }
	if got := ask(); got != 401 {
		t.Errorf("without a file: %d", got)
	}
	if _, body := run.get("/weir/keys"); !strings.Contains(string(body), "weir keys add") {
		t.Errorf("/weir/keys does not say what to do: %s", body)
	}
	if n := run.metrics().sum("weir_file_error", `file="keys"`); n != 1 {
		t.Errorf("weir_file_error is %v", n)
	}
	if len(up.take()) > 0 {
		t.Error("the upstream saw the call")
	}
	editKeys(t, file, func(f *keys.File) error { return f.Add(keys.Entry{Alias: "first"}, keyOf("first"), time.Now()) })
	until(t, "the first key is good", func() bool { return ask() == 200 })
}

// TestKeyLimits: limits of a key's own hold wherever the key is known: in a pool
// with limits, in one without, in the default pool and in one that is named; and
// they replace the directive's.
func TestKeyLimits(t *testing.T) {
	up := newCounting(t, nil)
	file := keyFile(t, keys.Entry{Alias: "one", Limits: keys.EntryLimits{RequestsPerMinute: counted(1)}},
		keys.Entry{Alias: "many", Limits: keys.EntryLimits{RequestsPerMinute: counted(1000)}}, keys.Entry{Alias: "none"})
	bare, ruled, named, shadow := newSite(t), newSite(t), newSite(t), newSite(t)
	start(t, "weir {\nkeys "+file+"\n}", bare.http("weir\nreverse_proxy "+up.address)+
		ruled.http("weir {\npool ruled\nlimit key {\nrequests_per_minute 2\n}\n}\nreverse_proxy "+up.address)+
		named.http("weir {\npool named\n}\nreverse_proxy "+up.address)+
		shadow.http("weir {\npool shadow\nmode shadow\n}\nreverse_proxy "+up.address))
	c := client(t, "http/1.1")
	for name, tc := range map[string]struct {
		s    site
		want map[string]int // calls that pass, of four
	}{
		"bare":   {bare, map[string]int{"one": 1, "many": 4, "none": 4}},
		"ruled":  {ruled, map[string]int{"one": 1, "many": 4, "none": 2}},
		"named":  {named, map[string]int{"one": 1, "many": 4, "none": 4}},
		"shadow": {shadow, map[string]int{"one": 4, "many": 4, "none": 4}},
	} {
		for alias, want := range tc.want {
			passed := 0
			for range 4 {
				if fetch(t, c, with(t, tc.s, chatPath, keyOf(alias), "", bounded(9))).status == 200 {
					passed++
				}
			}
			if passed != want {
				t.Errorf("%s, key %s: %d of 4 calls passed, want %d", name, alias, passed, want)
			}
		}
	}
}
