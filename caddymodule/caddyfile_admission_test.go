package caddymodule

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
)

// provisions checks a configuration as `caddy validate` does: everything is
// provisioned, and nothing is started. Storage and logs are the test's own.
func provisions(t *testing.T, config []byte) error {
	t.Helper()
	caddyLock.Lock()
	defer caddyLock.Unlock()
	dir := t.TempDir()
	t.Setenv("XDG_DATA_HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("HOME", dir)
	c := new(caddy.Config)
	if err := json.Unmarshal(config, c); err != nil {
		t.Fatalf("%v in %s", err, config)
	}
	return caddy.Validate(c)
}

// adapted turns a Caddyfile into JSON.
func adapted(text string) (string, error) {
	b, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	return string(b), err
}

// TestAdmissionDirective: golden JSON of every option of keys, limits and queue,
// of which each configuration can be provisioned, by way of the Caddyfile and
// from its JSON, which says the same again.
func TestAdmissionDirective(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"pool gpu":         `{"pool":"gpu"}`,
		"require_key":      `{"require_key":{}}`,
		"require_key {\n}": `{"require_key":{}}`,
		"require_key {\nallow_paths /v1/models /v1/files/*\nallow_paths /tokenize\n}": `{"require_key":{"allow_paths":["/v1/models","/v1/files/*","/tokenize"]}}`,

		"limit key {\ntokens_per_minute 200k\n}":                        `{"limits":{"mode":"enforce","rules":[{"scope":"key","limits":{"tokens_per_minute":200000}}]}}`,
		"limit key {\ntokens_per_minute 200k burst 0.4M\n}":             `{"limits":{"mode":"enforce","rules":[{"scope":"key","limits":{"tokens_per_minute":200000},"burst":{"tokens":400000}}]}}`,
		"limit key {\ninput_tokens_per_minute 1_000 burst 2k\n}":        `{"limits":{"mode":"enforce","rules":[{"scope":"key","limits":{"input_tokens_per_minute":1000},"burst":{"input_tokens":2000}}]}}`,
		"limit key {\noutput_tokens_per_minute 1k burst 3k\n}":          `{"limits":{"mode":"enforce","rules":[{"scope":"key","limits":{"output_tokens_per_minute":1000},"burst":{"output_tokens":3000}}]}}`,
		"limit key {\nrequests_per_minute 600 burst 20\n}":              `{"limits":{"mode":"enforce","rules":[{"scope":"key","limits":{"requests_per_minute":600},"burst":{"requests":20}}]}}`,
		"limit key {\nconcurrency 16\ntokens_in_flight 64k\n}":          `{"limits":{"mode":"enforce","rules":[{"scope":"key","limits":{"concurrency":16,"tokens_in_flight":64000}}]}}`,
		"limit key {\nrequests_per_minute 0\n}":                         `{"limits":{"mode":"enforce","rules":[{"scope":"key","limits":{"requests_per_minute":0}}]}}`,
		"limit key team-a {\nconcurrency 1\n}":                          `{"limits":{"mode":"enforce","rules":[{"scope":"key","key":"team-a","limits":{"concurrency":1}}]}}`,
		"limit model {\nconcurrency 1\n}":                               `{"limits":{"mode":"enforce","rules":[{"scope":"model","limits":{"concurrency":1}}]}}`,
		"limit model org/m {\nconcurrency 1\n}":                         `{"limits":{"mode":"enforce","rules":[{"scope":"model","model":"org/m","limits":{"concurrency":1}}]}}`,
		"limit key_model {\nconcurrency 1\n}":                           `{"limits":{"mode":"enforce","rules":[{"scope":"key_model","limits":{"concurrency":1}}]}}`,
		"limit key_model team-a org/m {\nconcurrency 1\n}":              `{"limits":{"mode":"enforce","rules":[{"scope":"key_model","key":"team-a","model":"org/m","limits":{"concurrency":1}}]}}`,
		"limit pool {\nconcurrency 1\n}\nlimit key {\nconcurrency 2\n}": `{"limits":{"mode":"enforce","rules":[{"scope":"pool","limits":{"concurrency":1}},{"scope":"key","limits":{"concurrency":2}}]}}`,
		"mode off":     `{"limits":{"mode":"off"}}`,
		"mode shadow":  `{"limits":{"mode":"shadow"}}`,
		"mode enforce": `{"limits":{"mode":"enforce"}}`,
		"mode shadow\nlimit pool {\nconcurrency 1\n}":             `{"limits":{"mode":"shadow","rules":[{"scope":"pool","limits":{"concurrency":1}}]}}`,
		"limit pool {\nconcurrency 1\n}\nmode shadow\nreplicas 3": `{"limits":{"mode":"shadow","rules":[{"scope":"pool","limits":{"concurrency":1}}],"replicas":3}}`,
		"replicas 2": `{"limits":{"mode":"enforce","replicas":2}}`,

		"queue {\ncalls 64\n}":            `{"queue":{"calls":64}}`,
		"queue {\ntokens_in_flight 1M\n}": `{"queue":{"tokens_in_flight":1000000}}`,
		"queue {\ncalls 64\nmax_waiting 100\nmax_per_class 50\nmax_per_key 25\nmax_bytes 16MiB\nmax_wait 1m30s\n}": `{"queue":{"calls":64,"max_waiting":100,"max_per_class":50,"max_per_key":25,"max_bytes":16777216,"max_wait":90000000000}}`,
		"queue {\ncalls 64\nmax_waiting 0\n}": `{"queue":{"calls":64,"max_waiting":-1}}`,
		"queue {\ncalls 64\nclass nightly {\nweight 2\n}\nclass interactive {\nttft 2s\n}\nclass batch {\nweight 3\nttft 1m\n}\nshed\n}": `{"queue":{"calls":64,"classes":{"batch":{"weight":3,"ttft":60000000000},"interactive":{"ttft":2000000000},"nightly":{"weight":2}},"shed":true}}`,
		"queue {\ncalls 64\nclass completion {\n}\n}": `{"queue":{"calls":64,"classes":{"completion":{}}}}`,

		"default_output_tokens 4k": `{"default_output_tokens":4000}`,
		"reader_timeout 90s":       `{"reader_timeout":90000000000}`,
		"reader_timeout off":       `{"reader_timeout":-1}`,
		"class batch\nprobes\npool gpu\nrequire_key\nlimit key {\nconcurrency 1\n}\nqueue {\ncalls 1\n}\ndefault_output_tokens 1\nreader_timeout 1s": `{"class":"batch","pool":"gpu","require_key":{},"limits":{"mode":"enforce","rules":[{"scope":"key","limits":{"concurrency":1}}]},"queue":{"calls":1},"default_output_tokens":1,"reader_timeout":1000000000,"probes":{"live":"/livez","ready":"/readyz"}}`,
	} {
		var h caddyfileHandler
		if err := h.parse("weir {\n" + text + "\n}"); err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		got, err := json.Marshal(h.Handler)
		if err != nil || string(got) != want {
			t.Errorf("%q: %v\n got %s\nwant %s", text, err, got, want)
		}
		config, err := adapted("{\nweir {\nkeys " + dir + "/keys.json\n}\n}\nhttp://:8080 {\nweir {\n" + text + "\n}\n}\n")
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		var routes struct {
			Apps struct {
				HTTP struct {
					Servers map[string]struct {
						Routes []struct{ Handle []json.RawMessage }
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(config), &routes); err != nil {
			t.Fatal(err)
		}
		again := new(Handler)
		if err := json.Unmarshal(routes.Apps.HTTP.Servers["srv0"].Routes[0].Handle[0], again); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if got, _ := json.Marshal(again); string(got) != want {
			t.Errorf("%q: adapted it says\n     %s\nwant %s", text, got, want)
		}
		if err := provisions(t, []byte(config)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("provisioning made %v, %v", entries, err)
	}
}

// TestAdmissionDirectiveErrors: each error of the parser says what would be right.
func TestAdmissionDirectiveErrors(t *testing.T) {
	for text, want := range map[string]string{
		"pool":                                         "wrong argument count",
		"pool a b":                                     "wrong argument count",
		"pool a\npool b":                               "pool is given twice",
		"require_key yes":                              "wrong argument count",
		"require_key {\nallow_paths\n}":                "wrong argument count",
		"require_key {\npaths /a\n}":                   `require_key has no option "paths"; it has allow_paths`,
		"require_key\nrequire_key":                     "require_key is given twice",
		"mode":                                         "wrong argument count",
		"mode on":                                      `mode is off, shadow or enforce, not "on"`,
		"mode off\nmode off":                           "mode is given twice",
		"replicas":                                     "wrong argument count",
		"replicas two":                                 "replicas: ",
		"replicas 0":                                   "at least 1, not 0",
		"replicas -1":                                  "at least 1, not -1",
		"default_output_tokens":                        "wrong argument count",
		"default_output_tokens many":                   `default_output_tokens: "many" is not a count`,
		"default_output_tokens -1":                     "default_output_tokens: ",
		"reader_timeout":                               "wrong argument count",
		"reader_timeout 5":                             "reader_timeout: ",
		"reader_timeout 0s":                            "above 0",
		"default_output_tokens 0":                      "above 0",
		"queue {\ncalls 1\nmax_wait 0s\n}":             "above 0",
		"queue {\ncalls 1\nmax_per_key 0\n}":           "above 0",
		"reader_timeout -5s":                           "reader_timeout: ",
		"reader_timeout 1s 2s":                         "wrong argument count",
		"limit":                                        "limit needs a scope: key, model, key_model or pool",
		"limit user {\nconcurrency 1\n}":               `limit has no scope "user"; it has key, model, key_model and pool`,
		"limit pool gpu {\nconcurrency 1\n}":           `limit pool takes no name, or: key <key>, model <model>, key_model <key> <model>; got ["gpu"]`,
		"limit key a b {\nconcurrency 1\n}":            "limit key takes no name, or: key <key>",
		"limit model a b {\nconcurrency 1\n}":          "limit model takes no name, or: key <key>",
		"limit key_model a {\nconcurrency 1\n}":        "limit key_model takes no name, or: key <key>",
		"limit key":                                    "limit key limits nothing; give it tokens_per_minute",
		"limit key {\n}":                               "limit key limits nothing; give it tokens_per_minute",
		"limit key {\ntokens 5\n}":                     `there is no limit "tokens"; there are tokens_per_minute`,
		"limit key {\nconcurrency 1\nconcurrency 2\n}": "concurrency is given twice",
		"limit key {\ntokens_per_minute\n}":            "tokens_per_minute takes a number such as 200k, and a rate also a burst",
		"limit key {\ntokens_per_minute 1 2\n}":        "tokens_per_minute takes a number such as 200k",
		"limit key {\ntokens_per_minute 1 burst\n}":    "tokens_per_minute takes a number such as 200k",
		"limit key {\ntokens_per_minute 1 bursts 2\n}": "tokens_per_minute takes a number such as 200k",
		"limit key {\nconcurrency 1 burst 2\n}":        "concurrency takes a number such as 200k",
		"limit key {\ntokens_in_flight 1 burst 2\n}":   "tokens_in_flight takes a number such as 200k",
		"limit key {\ntokens_per_minute lots\n}":       `tokens_per_minute: "lots" is not a count`,
		"limit key {\ntokens_per_minute 200kb\n}":      `tokens_per_minute: "200kb" is not a count`,
		"limit key {\ntokens_per_minute 1 burst x\n}":  `burst of tokens_per_minute: "x" is not a count`,
		"queue on":                                     "wrong argument count",
		"queue {\nsize 5\n}":                           `queue has no option "size"; it has calls, tokens_in_flight, max_waiting, max_per_class, max_per_key, max_bytes, max_wait, class and shed`,
		"queue {\ncalls\n}":                            "wrong argument count",
		"queue {\ncalls many\n}":                       `calls: "many" is not a count`,
		"queue {\ncalls 1\ntokens_in_flight x\n}":      "tokens_in_flight: ",
		"queue {\ncalls 1\nmax_waiting 1k\n}":          "max_waiting: ",
		"queue {\ncalls 1\nmax_per_class x\n}":         "max_per_class: ",
		"queue {\ncalls 1\nmax_per_key x\n}":           "max_per_key: ",
		"queue {\ncalls 1\nmax_bytes 64M\n}":           "max_bytes: ",
		"queue {\ncalls 1\nmax_wait soon\n}":           "max_wait: ",
		"queue {\ncalls 1\nmax_wait\n}":                "wrong argument count",
		"queue {\ncalls 1\nshed on\n}":                 "wrong argument count",
		"queue {\ncalls 1\nclass\n}":                   "wrong argument count",
		"queue {\ncalls 1\nclass a b\n}":               "wrong argument count",
		"queue {\ncalls 1\nclass a {\nweight 1\n}\nclass a {\nweight 1\n}\n}": "class a is given twice",
		"queue {\ncalls 1\nclass a {\nweight heavy\n}\n}":                     "weight: ",
		"queue {\ncalls 1\nclass a {\nttft fast\n}\n}":                        "ttft: ",
		"queue {\ncalls 1\nclass a {\nshare 3\n}\n}":                          `a class of the queue has no option "share"; it has weight and ttft`,
		"queue {\ncalls 1\n}\nqueue {\ncalls 1\n}":                            "queue is given twice",
		"limits 5": "it has dialect, class, usage_policy, stale_retry, propagate, probes, pool, require_key, limit, mode, replicas, queue, default_output_tokens and reader_timeout",
	} {
		var h caddyfileHandler
		if err := h.parse("weir {\n" + text + "\n}"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v does not say %q", text, err, want)
		}
		if _, err := adapted(":80 {\nweir {\n" + text + "\n}\n}\n"); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Caddyfile:") {
			t.Errorf("%q: the adapter's error %v does not say %q and where", text, err, want)
		}
	}
}

// TestAdmissionValidates: what the parser cannot know is told by validation,
// whichever way the configuration came, and `caddy validate` sees it all.
func TestAdmissionValidates(t *testing.T) {
	const keyed = `{"keys":{"file":"/none/keys.json"}}`
	const rule = `{"scope":"key","limits":{"concurrency":1}}`
	type config struct{ app, handler, want string }
	for _, c := range []config{
		{`{}`, `"require_key":{}`, "require_key needs to know the keys; add the global option: weir { keys keys.json }"},
		{keyed, `"require_key":{"allow_paths":["v1/models"]}`, "a path begins with a slash"},
		{keyed, `"require_key":{"allow_paths":["/v1/*/models"]}`, "a * stands only at its end, as in /v1/files/*"},
		{keyed, `"require_key":{"allow_paths":["/v1/**"]}`, "a * stands only at its end"},
		{keyed, `"require_key":{"paths":["/v1"]}`, "unknown field"},
		{`{}`, `"default_output_tokens":-1`, "cannot be negative"},
		{`{}`, `"reader_timeout":"soon"`, "invalid duration"},

		{`{}`, `"limits":{"mode":"maybe"}`, "maybe"},
		{`{}`, `"limits":{"mode":"enforce","replicas":-1}`, "replicas -1: want 1 or more"},
		{`{}`, `"limits":{"mode":"enforce","max_buckets":-1}`, "max_buckets -1"},
		{`{}`, `"limits":{"mode":"enforce","rules":[{"scope":"user","limits":{"concurrency":1}}]}`, "user"},
		{`{}`, `"limits":{"mode":"enforce","rules":[{"scope":"key"}]}`, "rule 1 (key): limits nothing"},
		{`{}`, `"limits":{"mode":"enforce","rules":[` + rule + `,` + rule + `]}`, "rule 2 (key): there is a rule for the same calls before it"},
		{`{}`, `"limits":{"mode":"enforce","rules":[{"scope":"pool","key":"a","limits":{"concurrency":1}}]}`, `key "a" has no meaning here`},
		{`{}`, `"limits":{"mode":"enforce","rules":[{"scope":"key","model":"m","limits":{"concurrency":1}}]}`, `model "m" has no meaning here`},
		{`{}`, `"limits":{"mode":"enforce","rules":[{"scope":"key","limits":{"concurrency":-1}}]}`, "concurrency -1: want 0 to"},
		{`{}`, `"limits":{"mode":"enforce","rules":[{"scope":"key","limits":{"tokens_per_minute":2000000000000}}]}`, "tokens_per_minute 2000000000000: want 0 to"},
		{`{}`, `"limits":{"mode":"enforce","rules":[{"scope":"key","limits":{"concurrency":1},"burst":{"tokens":5}}]}`, "burst of tokens_per_minute without a limit"},
		{`{}`, `"limits":{"mode":"enforce","rules":[{"scope":"key","limits":{"tokens_per_minute":1},"burst":{"tokens":0}}]}`, "burst 0 of tokens_per_minute"},
		{`{}`, `"limits":{"mode":"enforce","rules":[{"scope":"key","limits":{"tokens":1}}]}`, "unknown field"},

		{`{}`, `"queue":{}`, "never holds anybody back; set one of them, such as calls 64"},
		{`{}`, `"queue":{"max_waiting":5}`, "never holds anybody back"},
		{`{}`, `"queue":{"calls":-1}`, "calls in flight -1"},
		{`{}`, `"queue":{"calls":1,"tokens_in_flight":-1}`, "tokens in flight -1"},
		{`{}`, `"queue":{"calls":1,"max_waiting":-2}`, "waiting calls -2"},
		{`{}`, `"queue":{"calls":1,"max_waiting":2000000}`, "waiting calls 2000000: want 1 to"},
		{`{}`, `"queue":{"calls":1,"max_per_class":-1}`, "waiting calls per class -1"},
		{`{}`, `"queue":{"calls":1,"max_per_key":-1}`, "waiting calls per key -1"},
		{`{}`, `"queue":{"calls":1,"max_bytes":-1}`, "held bytes -1"},
		{`{}`, `"queue":{"calls":1,"max_wait":-1}`, "longest wait"},
		{`{}`, `"queue":{"calls":1,"max_wait":"25h"}`, "longest wait 25h0m0s: want up to 24h0m0s"},
		{`{}`, `"queue":{"calls":1,"classes":{"nightly":{}}}`, "class nightly needs a weight; interactive has 16, completion 4 and batch 1"},
		{`{}`, `"queue":{"calls":1,"classes":{"nightly":{"weight":-1}}}`, `class "nightly" has weight -1`},
		{`{}`, `"queue":{"calls":1,"classes":{"batch":{"weight":2000000}}}`, `class "batch" has weight 2000000`},
		{`{}`, `"queue":{"calls":1,"classes":{"":{"weight":1}}}`, "a class has no name"},
		{`{}`, `"queue":{"calls":1,"classes":{"batch":{"ttft":-1}}}`, "class batch has a negative ttft"},
		{`{}`, `"queue":{"calls":1,"shed":true}`, "no class has one; add class interactive { ttft 2s }"},
		{`{}`, `"queue":{"calls":1,"waiting":1}`, "unknown field"},

		{`{"keys":{}}`, ``, "keys needs a file, such as keys.json"},
		{`{"ledger":{}}`, ``, "ledger needs the path of a database, such as usage.db"},
		{`{"ledger":{"path":"usage.db","sync":true}}`, ``, "unknown field"},
		{`{"prices":"/none/prices.json"}`, ``, "read prices: "},
	} {
		handler := `{"handler":"weir"}`
		if c.handler != "" {
			handler = `{"handler":"weir",` + c.handler + `}`
		}
		text := `{"apps":{"weir":` + c.app + `,"http":{"servers":{"s":{"listen":["127.0.0.1:0"],"routes":[{"handle":[` + handler + `]}]}}}}}`
		if err := provisions(t, []byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v does not say %q", text, err, c.want)
		}
	}
	// Two directives that differ over one pool, and one that has a pool to itself.
	two := func(a, b string) []byte {
		return []byte(`{"apps":{"http":{"servers":{"s":{"listen":["127.0.0.1:0"],"routes":[{"handle":[{"handler":"weir"` + a + `}]},{"handle":[{"handler":"weir"` + b + `}]}]}}}}}`)
	}
	limited := func(n string) string {
		return `,"limits":{"mode":"enforce","rules":[{"scope":"key","limits":{"concurrency":` + n + `}}]}`
	}
	for _, c := range []struct{ a, b, want string }{
		{limited("1"), limited("1"), ""},
		{limited("1"), "", ""},
		{limited("1"), `,"pool":"default"`, ""},
		{`,"pool":"default"`, limited("1"), ""},
		{limited("1"), `,"pool":"other"` + limited("2"), ""},
		{limited("1"), limited("2"), `different things of the limits or the queue of pool "default"`},
		{limited("1"), `,"pool":"default"` + limited("2"), `pool "default"`},
		{`,"pool":"gpu","queue":{"calls":1}`, `,"pool":"gpu","queue":{"calls":2}`, `pool "gpu"; give one of them a pool of its own, as in: pool other`},
	} {
		err := provisions(t, two(c.a, c.b))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s beside %s: %v, want %q", c.a, c.b, err, c.want)
		}
	}
}

// TestLedgerOptionsValidate: `caddy validate` tells of a ledger that could not
// be opened, so that no reload finds it out.
func TestLedgerOptionsValidate(t *testing.T) {
	for app, want := range map[string]string{
		`{"ledger":{"path":"usage.db","max_spill":1}}`:  "spill",
		`{"ledger":{"path":"usage.db","max_spill":-1}}`: "spill",
	} {
		if err := provisions(t, []byte(`{"apps":{"weir":`+app+`}}`)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v does not say %q", app, err, want)
		}
	}
}

// TestGlobalOptions: golden JSON of every option of the global block; each can be
// provisioned, which makes no file.
func TestGlobalOptions(t *testing.T) {
	dir := t.TempDir()
	prices := filepath.Join(t.TempDir(), "prices.json")
	if err := os.WriteFile(prices, []byte(`{"version":1,"currency":"USD","prices":[{"model":"*","input":1,"output":2}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"keys DIR/keys.json":                                   `{"keys":{"file":"DIR/keys.json"}}`,
		"prices " + prices:                                     `{"prices":"` + prices + `"}`,
		"ledger sqlite DIR/u.db":                               `{"ledger":{"path":"DIR/u.db"}}`,
		"ledger sqlite DIR/u.db {\n}":                          `{"ledger":{"path":"DIR/u.db"}}`,
		"ledger sqlite DIR/u.db {\nspill DIR/spill\n}":         `{"ledger":{"path":"DIR/u.db","spill":"DIR/spill"}}`,
		"ledger sqlite DIR/u.db {\nmax_spill 64MiB\n}":         `{"ledger":{"path":"DIR/u.db","max_spill":67108864}}`,
		"ledger sqlite DIR/u.db {\nretention 365d\n}":          `{"ledger":{"path":"DIR/u.db","retention":31536000000000000}}`,
		"ledger sqlite DIR/u.db {\nretention forever\n}":       `{"ledger":{"path":"DIR/u.db","retention":-1}}`,
		"ledger sqlite DIR/u.db {\nfail_closed\n}":             `{"ledger":{"path":"DIR/u.db","fail_closed":true}}`,
		"keys DIR/k\nledger sqlite DIR/u.db\nprices " + prices: `{"keys":{"file":"DIR/k"},"ledger":{"path":"DIR/u.db"},"prices":"` + prices + `"}`,
	} {
		text, want = strings.ReplaceAll(text, "DIR", dir), strings.ReplaceAll(want, "DIR", dir)
		got, err := adapted("{\nweir {\n" + text + "\n}\n}\n")
		if err != nil || got != `{"apps":{"weir":`+want+`}}` {
			t.Errorf("%q: %v\n got %s\nwant %s", text, err, got, want)
			continue
		}
		if err := provisions(t, []byte(got)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("provisioning made %v, %v", entries, err)
	}
}

// TestGlobalOptionErrors: each error of the parser says what would be right.
func TestGlobalOptionErrors(t *testing.T) {
	for text, want := range map[string]string{
		"keys":                                     "wrong argument count",
		"prices":                                   "wrong argument count",
		"prices a b":                               "wrong argument count",
		"prices a\nprices b":                       "prices is given twice",
		"ledger":                                   "ledger takes a kind and a path, as in: ledger sqlite usage.db",
		"ledger sqlite":                            "ledger takes a kind and a path",
		"ledger sqlite a b":                        "ledger takes a kind and a path",
		"ledger postgres u.db":                     `ledger knows sqlite, not "postgres"`,
		"ledger sqlite u.db\nledger sqlite u.db":   "ledger is given twice",
		"ledger sqlite u.db {\nspill\n}":           "wrong argument count",
		"ledger sqlite u.db {\nmax_spill\n}":       "wrong argument count",
		"ledger sqlite u.db {\nmax_spill lots\n}":  "max_spill: ",
		"ledger sqlite u.db {\nretention\n}":       "wrong argument count",
		"ledger sqlite u.db {\nretention long\n}":  "or say forever",
		"ledger sqlite u.db {\nfail_closed now\n}": "wrong argument count",
		"ledger sqlite u.db {\nkeep 5\n}":          `ledger has no option "keep"; it has spill, max_spill, retention and fail_closed`,
		"key a":                                    `the global weir block has no option "key"; it has keys, ledger, prices, engine, gpu, otlp, otlp_receiver, class, slo, alert and probe`,
	} {
		if _, err := adapted("{\nweir {\n" + text + "\n}\n}\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := adapted("{\nweir now {\n}\n}\n"); err == nil || !strings.Contains(err.Error(), "wrong argument count") {
		t.Errorf("%v", err)
	}
	// Of two blocks Caddy would keep the second alone.
	if _, err := adapted("{\nweir {\nkeys k.json\n}\nweir {\nprices p.json\n}\n}\n"); err == nil || !strings.Contains(err.Error(), "write one block with all of it") {
		t.Errorf("%v", err)
	}
}
