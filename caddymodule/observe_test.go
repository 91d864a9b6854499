package caddymodule

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// telling answers with everything that a record can hold: usage with its parts,
// engine figures, reasoning and text, two choices when asked, an event that is
// no JSON.
func telling(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if bytes.Contains(body, []byte(`"refuse"`)) {
		http.Error(w, `{"error":{"message":"no","type":"invalid_request_error"}}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	event := func(data string) {
		_, _ = io.WriteString(w, "data: "+data+"\n\n")
		_ = control.Flush()
	}
	event(`{"id":"chatcmpl-1","model":"m-2026","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`)
	event(`{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}`)
	event(`{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"well"}}]}`)
	if bytes.Contains(body, []byte(`"n":2`)) {
		event(`{"id":"chatcmpl-1","choices":[{"index":1,"delta":{"content":"or"},"finish_reason":"length"}]}`)
		event(`{broken`)
	}
	event(`{"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
	event(`{"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}},` +
		`"metrics":{"queue_time_ms":0.001,"time_to_first_token_ms":0.002,"generation_time_ms":0.003}}`)
	_, _ = io.WriteString(w, done)
}

// entries reads the lines of a JSON log as they are; numbers keep their digits.
func entries(t *testing.T, file string) (all []map[string]any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		all = append(all, object(t, line))
	}
	return all
}

func object(t *testing.T, b []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var o map[string]any
	if err := d.Decode(&o); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return o
}

// entry waits for the line that the access log has of a run.
func entry(t *testing.T, file, runID string) map[string]any {
	t.Helper()
	var found map[string]any
	until(t, "access log line of "+runID, func() bool {
		b, err := os.ReadFile(file)
		if err != nil || !bytes.HasSuffix(b, []byte("\n")) {
			return false
		}
		for _, e := range entries(t, file) {
			request, _ := e["request"].(map[string]any)
			headers, _ := request["headers"].(map[string]any)
			if runs, _ := headers["X-Weir-Run"].([]any); len(runs) == 1 && runs[0] == runID {
				found = e
			}
		}
		return found != nil
	})
	return found
}

// asks are calls that fill records in different ways.
var asks = map[string]string{
	"whole":   streaming,
	"choices": `{"model":"m","stream":true,"n":2,"messages":[]}`,
	"refused": `{"model":"refuse","stream":true,"messages":[]}`,
	"broken":  `{"model":`,
}

// TestAccessLog: the object `weir` in the access log is the record that the
// calls API shows, field by field.
func TestAccessLog(t *testing.T) {
	up := serve(t, http.HandlerFunc(telling))
	s := newSite(t)
	file := t.TempDir() + "/access.log"
	run := start(t, "", s.http("log {\noutput file "+file+"\nformat json\n}\nweir\nreverse_proxy "+up))
	c := client(t, "http/1.1")
	seen := make(map[string]bool)
	for name, body := range asks {
		r := post(context.Background(), t, s.url("http/1.1", "/v1/chat/completions"), name, body)
		r.Header.Set("X-Request-Id", "req-"+name)
		r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		fetch(t, c, r)
		logged, _ := entry(t, file, name)["weir"].(map[string]any)
		rec := run.record(name)
		_, answer := run.get("/weir/calls?" + query("id", rec.ID))
		shown := object(t, answer)["calls"].([]any)[0].(map[string]any)
		same(t, name, "", logged, shown)
		for field := range shown {
			seen[field] = true
		}
	}
	for _, field := range []string{"request_id", "response_id", "trace_id", "run", "key", "model", "response_model", "class", "finish_reason", "degraded",
		"input_tokens", "cached_tokens", "reasoning_tokens", "parse_errors", "ttft_ms", "ttft_visible_ms", "tpot_ms", "icl_p50_ms", "phases", "phase_sources", "engine", "upstream", "error"} {
		if !seen[field] {
			t.Errorf("no record of this test has %s", field)
		}
	}
	if e := entries(t, file); len(e) != len(asks) {
		t.Errorf("%d lines for %d calls", len(e), len(asks))
	}
}

// same compares two objects; numbers must be equal as numbers.
func same(t *testing.T, what, at string, got, want any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			t.Errorf("%s: %s is %v, want an object", what, at, got)
			return
		}
		for name := range got {
			if _, ok := want[name]; !ok {
				t.Errorf("%s: %s.%s only in the log", what, at, name)
			}
		}
		for name, w := range want {
			g, ok := got[name]
			if !ok {
				t.Errorf("%s: %s.%s is not in the log", what, at, name)
				continue
			}
			same(t, what, at+"."+name, g, w)
		}
	case json.Number:
		n, ok := got.(json.Number)
		g, err := n.Float64()
		if w, _ := want.Float64(); !ok || err != nil || g != w {
			t.Errorf("%s: %s is %v, want %v", what, at, got, want)
		}
	default:
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s is %v, want %v", what, at, got, want)
		}
	}
}

// TestAccessLogFilter: the object, or a part of it, can be taken out.
func TestAccessLogFilter(t *testing.T) {
	up := serve(t, http.HandlerFunc(telling))
	s, part := newSite(t), newSite(t)
	dir := t.TempDir()
	log := func(file, fields string) string {
		return "log {\noutput file " + dir + "/" + file + "\nformat filter {\nwrap json\nfields {\n" + fields + "\n}\n}\n}\nweir\nreverse_proxy " + up
	}
	start(t, "", s.http(log("none.log", "weir delete"))+part.http(log("part.log", "weir>path delete\nweir>phases delete\nweir>phase_sources>prefill delete")))
	c := client(t, "http/1.1")
	fetch(t, c, post(context.Background(), t, s.url("http/1.1", "/v1/chat/completions"), "none", streaming))
	fetch(t, c, post(context.Background(), t, part.url("http/1.1", "/v1/chat/completions"), "part", streaming))
	if e := entry(t, dir+"/none.log", "none"); e["weir"] != nil || e["status"] == nil {
		t.Errorf("not taken out: %v", e)
	}
	weir, _ := entry(t, dir+"/part.log", "part")["weir"].(map[string]any)
	sources, _ := weir["phase_sources"].(map[string]any)
	if weir["path"] != nil || weir["phases"] != nil || weir["ttft_ms"] == nil || sources["prefill"] != nil || sources["decode"] != "measured" {
		t.Errorf("taken out: %v", weir)
	}
}

// TestPlaceholders: what runs after the call (log_append, error routes) reads
// the record by its field names; what is unknown is empty, and what does not
// exist is left as it stands.
func TestPlaceholders(t *testing.T) {
	up := serve(t, http.HandlerFunc(telling))
	s, broken := newSite(t), newSite(t)
	file := t.TempDir() + "/access.log"
	fields := call.FieldNames()
	var appends strings.Builder
	for _, f := range fields {
		appends.WriteString("log_append " + f + " {http.weir." + f + "}\n")
	}
	appends.WriteString("log_append short_ttft {http.weir.ttft}\nlog_append short_prefill {http.weir.phases.prefill}\nlog_append none {http.weir.nothing}\n")
	run := start(t, "", s.http("log {\noutput file "+file+"\nformat json\n}\n"+appends.String()+"header X-Early \"<{http.weir.id}|{http.weir.ttft}>\"\nheader >X-Late \"<{http.weir.id}|{http.weir.ttft}>\"\nweir\nreverse_proxy "+up)+
		broken.http("weir\nreverse_proxy "+freeAddress(t)+"\nhandle_errors {\nrespond \"{http.weir.outcome} {http.weir.error} {http.weir.status} {http.weir.ttft}|{http.weir.nothing}|\"\n}"))
	c := client(t, "http/1.1")
	for name, body := range asks {
		got := fetch(t, c, post(context.Background(), t, s.url("http/1.1", "/v1/chat/completions"), name, body))
		logged := entry(t, file, name)
		rec := run.record(name)
		for f := range rec.Fields {
			name := strings.TrimPrefix(f.Group+"."+f.Name, ".")
			if want := text(f.Value); text(logged[name]) != want {
				t.Errorf("{http.weir.%s} is %v, want %s", name, logged[name], want)
			}
		}
		known := make(map[string]bool)
		for f := range rec.Fields {
			known[strings.TrimPrefix(f.Group+"."+f.Name, ".")] = true
		}
		for _, f := range fields {
			if v, ok := logged[f]; !known[f] && (!ok || v != "") {
				t.Errorf("%s: {http.weir.%s} is %v, but unknown", name, f, v)
			}
		}
		if text(logged["short_ttft"]) != text(logged["ttft_ms"]) || text(logged["short_prefill"]) != text(logged["phases.prefill_ms"]) {
			t.Errorf("%s: the short names say %v and %v", name, logged["short_ttft"], logged["short_prefill"])
		}
		if logged["none"] != nil {
			t.Errorf("a placeholder that does not exist is %v", logged["none"])
		}
		if late := got.header.Get("X-Late"); late != "<"+rec.ID+"|>" {
			t.Errorf("as the header goes out: %q, want the id alone", late)
		}
	}
	got := fetch(t, c, post(context.Background(), t, broken.url("http/1.1", "/v1/chat/completions"), "routes", streaming))
	if got.body != "upstream_error connection_refused 502 |{http.weir.nothing}|" && got.body != "upstream_error connection_refused 502 ||" {
		t.Errorf("an error route reads %q", got.body)
	}
}

// text is a value as text, alike for those from a log and from a record.
func text(v any) string {
	switch v := v.(type) {
	case json.Number:
		f, _ := v.Float64()
		return strconv.FormatFloat(f, 'f', -1, 64)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case int64:
		return strconv.FormatInt(v, 10)
	case bool:
		return strconv.FormatBool(v)
	case []string:
		return strings.Join(v, ",")
	case map[string]string:
		b, _ := json.Marshal(v)
		return string(b)
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case string:
		return v
	}
	b, _ := json.Marshal(v)
	return string(b)
}
