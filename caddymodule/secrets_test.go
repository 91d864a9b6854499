package caddymodule

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/keys"
)

const (
	promptMark = "prompt-mark-f3a1"
	answerMark = "answer-mark-9c2e"
)

// keyed are calls that carry a key, each in a place of its own.
var keyed = []struct {
	name, header, prefix, path, key string
}{
	{"bearer", "Authorization", "Bearer ", "/v1/chat/completions", "sk-raw-bearer-1111"},
	{"x-api-key", "X-Api-Key", "", "/v1/messages", "sk-raw-anthropic-2222"},
	{"api-key", "Api-Key", "", "/v1/chat/completions", "sk-raw-azure-3333"},
	{"x-goog-api-key", "X-Goog-Api-Key", "", "/v1beta/models/m:generateContent", "sk-raw-goog-4444"},
	{"query", "", "", "/v1beta/models/m:streamGenerateContent?alt=sse&key=", "sk-raw-query-5555"},
}

// exampleConfig writes Caddyfile.example with changes into a file.
func exampleConfig(t *testing.T, changes ...string) string {
	t.Helper()
	b, err := os.ReadFile("../Caddyfile.example")
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(changes); i += 2 {
		if !bytes.Contains(b, []byte(changes[i])) {
			t.Fatalf("Caddyfile.example has no %q", changes[i])
		}
	}
	file := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(file, []byte(strings.NewReplacer(changes...).Replace(string(b))), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestNoSecretGetsOut (cases row 43): of keys only a short id, and of prompts
// and answers nothing, is in whatever is written: logs down to DEBUG, the access
// log, the calls API, the metrics, the storage. Calls go well and fail in each
// way in which something is logged. The id of a key survives a restart, and is
// another where the storage is another.
func TestNoSecretGetsOut(t *testing.T) {
	up := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !bytes.Contains(body, []byte(promptMark)) {
			t.Errorf("%s: the prompt did not arrive", r.URL)
		}
		switch r.Header.Get("X-Way") {
		case "401", "429", "500":
			status := map[string]int{"401": 401, "429": 429, "500": 500}[r.Header.Get("X-Way")]
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			// The careless kind, which shows the caller what it was sent.
			fmt.Fprintf(w, `{"error":%q}`, answerMark+" wrong key "+r.Header.Get("Authorization")+r.Header.Get("X-Api-Key")+r.URL.RawQuery)
		case "hang up":
			panic(http.ErrAbortHandler)
		case "break off":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, chunk(0))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, strings.Replace(chunk(0), `"0"`, `"`+answerMark+`"`, 1)+done)
		}
	}))
	s, admin := newSite(t), freeAddress(t)
	config := exampleConfig(t, "\tmetrics\n", "\tmetrics\n\tdebug\n\tpersist_config off\n\tstorage file_system {$WEIR_TEST_STORAGE}\n\tshutdown_delay 0s\n")
	c := client(t, "http/1.1")
	var written strings.Builder
	storages := []string{t.TempDir(), "", t.TempDir()}
	storages[1] = storages[0]
	ids := make([]map[string]string, len(storages))
	for round, storage := range storages {
		p := startProcess(t, config, admin, "WEIR_TEST_STORAGE="+storage, "WEIR_ADMIN="+admin, "WEIR_PORT="+port(s.plain), "WEIR_UPSTREAM="+up)
		weir := p.run(admin)
		ids[round] = make(map[string]string)
		for _, k := range keyed {
			for i, way := range []string{"well", "401", "429", "500", "hang up", "break off"} {
				if round > 0 && i > 0 {
					break // the first round has seen all the ways; these are about ids
				}
				path := k.path
				if k.header == "" {
					path += k.key
				}
				name := k.name + " " + way
				r := post(context.Background(), t, s.url("http/1.1", path), name, `{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"`+promptMark+`"}]}`)
				r.Header.Del("Authorization")
				r.Header.Set("X-Way", way)
				if k.header != "" {
					r.Header.Set(k.header, k.prefix+k.key)
				}
				res, err := c.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(res.Body) // some break off
				res.Body.Close()
				if way == "hang up" && (res.StatusCode != 502 || len(body) > 0) {
					t.Errorf("%s: %d %q", name, res.StatusCode, body)
				}
				rec := weir.record(name)
				if id := ids[round][k.name]; len(rec.Key) != 10 || id != "" && id != rec.Key {
					t.Errorf("%s: key id %q, before %q", name, rec.Key, id)
				}
				ids[round][k.name] = rec.Key
			}
		}
		_, calls := weir.get("/weir/calls?limit=1000")
		_, metrics := weir.get("/metrics")
		p.terminate()
		if err := await(t, p.exited, "end of the process"); err != nil {
			t.Errorf("exit: %v", err)
		}
		seen := []string{`"logger":"http.log.access`, `"level":"debug"`, "upstream roundtrip", "REDACTED", `"weir":{"id"`}
		if round == 0 {
			seen = append(seen, `"logger":"http.log.error`)
		}
		for _, part := range seen {
			if !strings.Contains(p.output.String(), part) {
				t.Errorf("the logs have no %s: this test does not see what it should", part)
			}
		}
		written.WriteString(p.output.String())
		written.Write(calls)
		written.Write(metrics)
		for _, dir := range []string{p.dir, storage} {
			written.WriteString(contents(t, dir))
		}
	}
	secrets := []string{promptMark, answerMark, "sk-raw"}
	for _, secret := range secrets {
		for line := range strings.Lines(written.String()) {
			if strings.Contains(line, secret) {
				t.Errorf("%s got out: %.2000s", secret, line)
				break
			}
		}
	}
	for _, k := range keyed {
		if ids[0][k.name] != ids[1][k.name] {
			t.Errorf("%s: id %s is %s after a restart", k.name, ids[0][k.name], ids[1][k.name])
		}
		if ids[0][k.name] == ids[2][k.name] {
			t.Errorf("%s: id %s also where the storage is another", k.name, ids[0][k.name])
		}
	}
}

// contents is all files below a directory, with their names.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		fmt.Fprintf(&all, "%s\n%s\n", path, b)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// TestExample runs Caddyfile.example as it is, with nothing but the environment
// variables that it offers, and holds what its comments say.
func TestExample(t *testing.T) {
	up := serve(t, http.HandlerFunc(telling))
	s, admin := newSite(t), freeAddress(t)
	p := startProcess(t, exampleConfig(t), admin, "WEIR_ADMIN="+admin, "WEIR_PORT="+port(s.plain), "WEIR_UPSTREAM="+up)
	weir := p.run(admin)
	c := client(t, "http/1.1")
	for _, probe := range []string{"/livez", "/readyz"} {
		if got := status(c, "http://"+s.plain+probe); got != 200 {
			t.Errorf("%s: %d", probe, got)
		}
	}
	const usage = `data: {"id":"chatcmpl-1","choices":[],"usage"`
	got := fetch(t, c, post(context.Background(), t, s.url("http/1.1", "/v1/chat/completions"), "example", streaming))
	if got.status != 200 || !strings.Contains(got.body, usage) || !strings.HasSuffix(got.body, done) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if rec := weir.record("example"); rec.Outcome != call.Completed || rec.Class != "interactive" || rec.Input.Or(-1) != 9 || rec.Upstream != up {
		t.Errorf("%+v", rec)
	}
	if m := weir.metrics(); m.sum("weir_calls_total") != 1 || m.sum("caddy_http_requests_total") == 0 {
		t.Error("the metrics of Weir and of Caddy are not both there")
	}
	until(t, "the access log has the record", func() bool { return strings.Contains(p.output.String(), `"weir":{"id"`) })
	p.terminate()
	if err := await(t, p.exited, "end of the process"); err != nil {
		t.Errorf("exit: %v\n%s", err, &p.output)
	}

	// What is commented out must hold, too.
	t.Setenv("WEIR_ADMIN", admin)
	for _, uncommented := range []string{
		exampleConfig(t, "#\tusage_policy inject  ", "usage_policy inject  ", "\tusage_policy passthrough\n", ""),
		exampleConfig(t, "#\tusage_policy inject_and_strip", "usage_policy inject_and_strip", "\tusage_policy passthrough\n", ""),
		exampleConfig(t, "#\theader_up Authorization", "header_up Authorization"),
	} {
		text, err := os.ReadFile(uncommented)
		if err != nil {
			t.Fatal(err)
		}
		adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt(text, map[string]any{"filename": "Caddyfile"})
		if err != nil {
			t.Fatal(err)
		}
		var config caddy.Config
		if err := json.Unmarshal(adapted, &config); err != nil {
			t.Fatal(err)
		}
		if err := caddy.Validate(&config); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	}
}

// TestExampleGlobals: the one global block that Caddyfile.example has commented out holds
// as a whole, and gives no cause for a warning.
func TestExampleGlobals(t *testing.T) {
	text, err := os.ReadFile("../Caddyfile.example")
	if err != nil {
		t.Fatal(err)
	}
	globals, _, _ := strings.Cut(string(text), "\n:{$WEIR_PORT")
	block := ""
	for line := range strings.Lines(globals) {
		if code, commented := strings.CutPrefix(line, "\t#\t"); commented {
			block += code
		}
	}
	dir, up, s := t.TempDir(), serve(t, http.HandlerFunc(telling)), newSite(t)
	prices := filepath.Join(dir, "prices.json")
	if err := os.WriteFile(prices, []byte(`{"version":1,"currency":"USD","prices":[{"model":"m","input":1,"output":2}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, names := range [][2]string{{"keys.json", keyFile(t, keys.Entry{Alias: "team-a"})}, {"usage.db", filepath.Join(dir, "usage.db")},
		{"prices.json", prices}, {"127.0.0.1:9093", up}, {"127.0.0.1:8080", s.plain}} {
		if strings.Count(block, names[0]) != 1 {
			t.Fatalf("Caddyfile.example names %s %d times in\n%s", names[0], strings.Count(block, names[0]), block)
		}
		block = strings.Replace(block, names[0], names[1], 1)
	}
	r := start(t, block, s.http("weir\nreverse_proxy "+up))
	if lines := r.logged(`"level":"warn"`, "weir"); len(lines) > 0 {
		t.Errorf("it is warned of: %v", lines)
	}
	for _, path := range []string{"/weir/keys", "/weir/ledger", "/weir/slo", "/weir/probes"} {
		if status, body := r.get(path); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}
