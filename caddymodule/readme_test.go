package caddymodule

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/spf13/cobra"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/command"
	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/sim"
)

func readme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestReadmeCaddyfiles runs every Caddyfile of the README, with the addresses
// and the hosted upstream replaced by ones of this test, and sends a call.
func TestReadmeCaddyfiles(t *testing.T) {
	engine, err := sim.Start(sim.Config{PrefillBase: sim.None, DecodeBase: sim.None})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	up := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = strings.TrimPrefix(r.URL.Path, "/api")
		engine.ServeHTTP(w, r)
	}))
	blocks := regexp.MustCompile("(?s)```caddyfile\n(.*?)```").FindAllStringSubmatch(readme(t), -1)
	if len(blocks) < 4 {
		t.Fatalf("only %d Caddyfiles", len(blocks))
	}
	t.Setenv("UPSTREAM_KEY", "sk-upstream")
	dir, key := t.TempDir(), keys.New()
	if err := keys.Edit(filepath.Join(dir, "keys.json"), time.Now(), func(f *keys.File) error {
		return f.Add(keys.Entry{Alias: "team-a"}, key, time.Now())
	}); err != nil {
		t.Fatal(err)
	}
	collector := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, b := range blocks {
		listen := freeAddress(t)
		text := strings.NewReplacer("127.0.0.1:8080 {", listen+" {", ":8080 {", "http://:"+port(listen)+" {\n\tbind 127.0.0.1", "https://taotoken.net", up,
			"127.0.0.1:4318", collector, "127.0.0.1:9093", collector, "127.0.0.1:4319", freeAddress(t), "127.0.0.1:8000", up, "127.0.0.1:8001", up, "127.0.0.1:8081", up,
			"keys.json", filepath.Join(dir, "keys.json"), "usage.db", filepath.Join(dir, "usage.db")).Replace(b[1])
		globals := ""
		if inner, ok := strings.CutPrefix(text, "{\n"); ok {
			globals, text, _ = strings.Cut(inner, "\n}\n")
		}
		t.Run("", func(t *testing.T) {
			run := start(t, globals, text)
			c := client(t, "http/1.1")
			ask := post(context.Background(), t, "http://"+listen+"/v1/chat/completions", "readme",
				`{"model":"m","stream":true,"max_tokens":3,"messages":[{"role":"user","content":"hello"}]}`)
			ask.Header.Set("Authorization", "Bearer "+key)
			res, err := c.Do(ask)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if _, err := io.Copy(io.Discard, res.Body); err != nil {
				t.Fatal(err)
			}
			if rec := run.record("readme"); rec.Outcome != call.Completed || !rec.TTFT.IsKnown() {
				t.Errorf("%s (%s) of\n%s", rec.Outcome, rec.Error, b[1])
			}
			if lines := run.logged(`"level":"warn"`, "weir"); len(lines) > 0 {
				t.Errorf("it is warned of\n%s%v", b[1], lines)
			}
		})
	}
}

// TestReadmeDirective: the options that the README lists are the directive's.
func TestReadmeDirective(t *testing.T) {
	text := readme(t)
	for _, option := range []string{"dialect", "class", "usage_policy", "stale_retry", "propagate", "probes",
		"pool", "require_key", "limit", "mode", "replicas", "queue", "default_output_tokens", "reader_timeout"} {
		if !regexp.MustCompile(`(?m)^\t` + option + ` +`).MatchString(text) {
			t.Errorf("the README does not show %s", option)
		}
	}
	if _, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(":80 {\nweir {\nnothing\n}\n}"), nil); err == nil || !strings.Contains(err.Error(), "it has dialect, class, usage_policy, stale_retry, propagate, probes, pool, require_key, limit, mode, replicas, queue, default_output_tokens and reader_timeout") {
		t.Errorf("the directive says of its options: %v", err)
	}
}

// TestReadmeCommands: every subcommand of ours is in the README, and every flag
// that it names exists.
func TestReadmeCommands(t *testing.T) {
	text := readme(t)
	for _, c := range command.All() {
		if !strings.Contains(text, "`weir "+c.Name+"`") {
			t.Errorf("the README does not list weir %s", c.Name)
		}
		cmd := &cobra.Command{Use: c.Name}
		c.Configure(cmd)
		cmd.InitDefaultHelpFlag()
		for _, line := range regexp.MustCompile("weir "+c.Name+"( [^`\n]*)").FindAllStringSubmatch(text, -1) {
			named := cmd
			if sub, _, err := cmd.Find(strings.Fields(line[1])); err == nil {
				named = sub
			}
			for _, flag := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(line[1], -1) {
				if named.Flags().Lookup(flag[1]) == nil {
					t.Errorf("weir %s has no flag --%s", c.Name, flag[1])
				}
			}
		}
	}
}

// TestReadmeFields: every field of the record's tables in the README exists.
func TestReadmeFields(t *testing.T) {
	names := map[string]bool{"phases": true, "phase_sources": true, "engine": true, "engine_at_dispatch": true, "engine_at_first_token": true, "gpu": true}
	for _, n := range call.FieldNames() {
		names[n] = true
		if phase, is := strings.CutPrefix(n, "phases."); is {
			names[strings.TrimSuffix(phase, "_ms")] = true
		}
	}
	text := readme(t)
	section := text[strings.Index(text, "## What is measured"):strings.Index(text, "## Where it goes")]
	for _, row := range regexp.MustCompile("(?m)^\\| (`[a-z_0-9`, ]+`) \\|").FindAllStringSubmatch(section, -1) {
		for _, name := range regexp.MustCompile("`([a-z_0-9]+)`").FindAllStringSubmatch(row[1], -1) {
			if !names[name[1]] {
				t.Errorf("the record has no field %s", name[1])
			}
		}
	}
}
