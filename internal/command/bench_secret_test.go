package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/bench"
)

// TestBenchHidesKey: an endpoint that says the key in all that it says does not get
// it into any output, whatever else goes wrong.
func TestBenchHidesKey(t *testing.T) {
	keys := []string{"sk-Echo.ed_0123456789", `sk-"quo<ted>&`}
	for _, mode := range []string{
		"one model", "models", "no list", "stream", "answer", "error in stream", "cut off", "not JSON", "302", "400", "401", "403", "404", "429", "500",
	} {
		for _, key := range keys {
			t.Setenv("BENCH_KEY", key)
			s := serve(t, http.NotFoundHandler(), func(w http.ResponseWriter, r *http.Request, n int64) bool {
				return sayKey(w, r, mode, key)
			})
			dir := t.TempDir()
			in := func(name string) string { return filepath.Join(dir, name) }
			args := []string{"--key-env", "BENCH_KEY", "--concurrency", "2", "--calls", "3", "--repeat", "1", "--env", writeText(t, "env.json", string(said(key, `{"build": {"flags": [%s, 1]}}`))),
				"--save", in("s"), "--csv=" + in("c"), "--markdown=" + in("m"), "--html", in("h"), "--raw", in("r")}
			if mode != "one model" && mode != "models" {
				args = append(args, "--model", "m")
			}
			if mode == "answer" {
				args = append(args, "--stream=false")
			}
			r := runBench(t, t.Context(), s.url, args...)
			if all := without(r.all(t, dir)); strings.Contains(all, key) || strings.Contains(all, strings.Trim(string(mustJSON(key)), `"`)) {
				at := strings.Index(all, key)
				t.Errorf("%s: the key is shown: …%s…", mode, all[max(0, at-100):at+len(key)+10])
			}
			if measured := r.err == nil; measured != (mode == "one model" || mode == "stream" || mode == "answer" || mode == "no list") {
				t.Errorf("%s: %v", mode, r.err)
			} else if measured && !strings.Contains(r.out, "[key]") {
				t.Errorf("%s: nothing of what the endpoint said is there\n%s", mode, r.out)
			}
		}
	}
}

func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// said is a text in JSON with the key at each %s.
func said(key, text string) []byte {
	return []byte(strings.ReplaceAll(text, "%s", string(mustJSON(key))))
}

// sayKey answers with the key wherever it can stand.
func sayKey(w http.ResponseWriter, r *http.Request, mode, key string) bool {
	h := w.Header()
	h.Set("Server", key)
	h.Set("X-Request-Id", key)
	say := func(status int, text string) bool {
		w.WriteHeader(status)
		_, _ = w.Write(said(key, text)) // the client may have gone
		return true
	}
	const wrong = `{"error": {"message": %s, "code": %s, "type": %s}}`
	if r.Method == http.MethodGet {
		switch {
		case strings.HasSuffix(r.URL.Path, "/models"):
			switch mode {
			case "one model":
				return say(200, `{"data": [{"id": %s, "owned_by": %s}]}`)
			case "models":
				return say(200, `{"data": [{"id": %s}, {"id": "x"}]}`)
			case "no list":
				return say(404, wrong)
			case "401":
				return say(401, wrong)
			}
			return say(200, `{"data": [{"id": "m", "owned_by": %s}, {"id": "n"}]}`)
		case strings.HasSuffix(r.URL.Path, "/version"), strings.HasSuffix(r.URL.Path, "/server_info"):
			return say(200, `{"version": %s, "tokenizer_path": %s, "model_path": %s}`)
		}
		return say(404, wrong)
	}
	const event = "data: {\"id\": %s, \"model\": %s, \"choices\": [{\"index\": 0, \"delta\": {\"content\": %s}, \"finish_reason\": null}]}\n\n"
	const last = "data: {\"id\": %s, \"choices\": [{\"index\": 0, \"delta\": {}, \"finish_reason\": %s}], \"usage\": {\"prompt_tokens\": 20, \"completion_tokens\": 4}}\n\ndata: [DONE]\n\n"
	if r.ContentLength < 10 {
		return say(400, wrong)
	}
	h.Set("Content-Type", "text/event-stream")
	switch mode {
	case "answer":
		h.Set("Content-Type", "application/json")
		return say(200, `{"id": %s, "model": %s, "choices": [{"index": 0, "message": {"role": "assistant", "content": %s}, "finish_reason": %s}], "usage": {"prompt_tokens": 20, "completion_tokens": 4}}`)
	case "error in stream":
		return say(200, event+"data: "+wrong+"\n\n")
	case "cut off":
		return say(200, event)
	case "not JSON":
		return say(200, "data: %s\n\n")
	case "302":
		h.Set("Location", "/"+key)
		return say(302, wrong)
	}
	var status int
	if n, _ := fmt.Sscan(mode, &status); n == 1 {
		h.Set("Content-Type", "application/json")
		return say(status, wrong)
	}
	return say(200, event+event+last)
}

// TestSecret: what is hidden, and what is too short to be looked for.
func TestSecret(t *testing.T) {
	for key, want := range map[secret]string{"": "a key x", "x": "a key x", "key ": "a [key]x"} {
		if got := key.hide("a key x"); got != want {
			t.Errorf("%q: %q", key, got)
		}
	}
	e := bench.Environment{Model: "a-key", Engine: map[string]string{"v": "key1"}, GPU: []map[string]string{{"n": "key2"}}, Given: map[string]any{"a": []any{"key3", map[string]any{"b": "key4", "c": 1}}}}
	secret("key").hideIn(&e)
	if text := string(mustJSON(e)); !strings.Contains(text, "key4") {
		t.Errorf("three letters are hidden: %s", text)
	}
	for _, s := range []secret{"-key", "key1", "key2", "key3", "key4"} {
		if s.hideIn(&e); strings.Contains(string(mustJSON(e)), string(s)) {
			t.Errorf("%s is shown: %s", s, mustJSON(e))
		}
	}
	secret("long enough").hideIn(new(bench.Environment))
	for name, want := range map[string]string{"m": "m", "": `""`, "a\u202eb": `"a\u202eb"`, "a\x1b[1mb": "a[1mb", "名前": "名前"} {
		if got := shown(name); got != want {
			t.Errorf("%q is shown as %s", name, got)
		}
	}
}
