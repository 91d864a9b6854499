package caddymodule

import (
	"encoding/json"
	"strings"
	"testing"
)

// plain undoes what JSON does to signs that HTML minds.
func plain(text string) string {
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(text)
}

// TestSLOAdapts: golden JSON of the global options about objectives.
func TestSLOAdapts(t *testing.T) {
	for block, want := range map[string]string{
		// A preset with another value, one more objective, and one less.
		"class interactive {\nttft p95 <= 1.5s\ne2e p95 ≤ 20s\nno network queue\nno tpot\n}": `{"classes":[{"name":"interactive",` +
			`"objectives":["ttft p95 <= 1.5s","e2e p95 ≤ 20s"],"without":["network","queue","tpot"]}]}`,
		"class completion":   `{"classes":[{"name":"completion"}]}`,
		"class agents batch": `{"classes":[{"name":"agents","from":"batch"}]}`,
		"class chat interactive {\nttft p99 <= 5s when input_tokens <= 32k, output_tokens <= 500\nprefill p99 <= 10s else ttft_upstream\nweight 8\n}\n" +
			"class own {\nsuccess 99.5%\ngoodput 90%\nicl_max p99.9 <= 1s\n}": `{"classes":[{"name":"chat","from":"interactive",` +
			`"objectives":["ttft p99 <= 5s when input_tokens <= 32k, output_tokens <= 500","prefill p99 <= 10s else ttft_upstream"],"weight":8},` +
			`{"name":"own","objectives":["success 99.5%","goodput 90%","icl_max p99.9 <= 1s"]}]}`,
		"class batch {\nvalid while input_tokens p95 <= 8000, output_tokens p95 <= 500, rate <= 2/s\n}": `{"classes":[{"name":"batch",` +
			`"valid_while":"input_tokens p95 <= 8000, output_tokens p95 <= 500, rate <= 2/s"}]}`,
		"slo off":                         `{"slo":{"off":true}}`,
		"slo {\n}":                        `{"slo":{}}`,
		"slo {\nperiod rolling 7d\n}":     `{"slo":{"period":"rolling 7d"}}`,
		"slo {\nperiod calendar_month\n}": `{"slo":{"period":"calendar_month"}}`,
		"slo {\nperiod calendar_month Europe/Berlin\nburn page 30m 2m 10\nburn ticket 1d 2h 1.5\nmin_bad 3\nmin_calls 1k\nwarn 40%\nfreeze 75.5%\nstate /var/lib/weir\n}": `{"slo":{` +
			`"period":"calendar_month Europe/Berlin","burn":[{"long":1800000000000,"short":120000000000,"factor":10,"page":true},` +
			`{"long":86400000000000,"short":7200000000000,"factor":1.5}],"min_bad":3,"min_calls":1000,"warn":0.4,"freeze":0.755,"state":"/var/lib/weir"}}`,
		"slo {\nstate off\n}":                      `{"slo":{"state":"off"}}`,
		"alert alertmanager http://127.0.0.1:9093": `{"alerts":[{"kind":"alertmanager","url":"http://127.0.0.1:9093"}]}`,
		"alert webhook https://{env.HOST}/x {\nheader Authorization \"Bearer {env.TOKEN}\"\nlabel team chat\nlabel region eu\n}\nalert webhook http://b": `{"alerts":[{"kind":"webhook",` +
			`"url":"https://{env.HOST}/x","headers":{"Authorization":"Bearer {env.TOKEN}"},"labels":{"region":"eu","team":"chat"}},{"kind":"webhook","url":"http://b"}]}`,
		"probe chat http://127.0.0.1:8080 {\nmodel llama-3\n}": `{"probes":[{"name":"chat","url":"http://127.0.0.1:8080","model":"llama-3"}]}`,
		"probe a http://a {\nmodel m\noutput_tokens 16\nevery 30s\ntimeout 10s\nkey {env.KEY}\n}\nprobe b http://b {\nmodel m\n}": `{"probes":[{"name":"a","url":"http://a",` +
			`"model":"m","output_tokens":16,"every":30000000000,"timeout":10000000000,"key":"{env.KEY}"},{"name":"b","url":"http://b","model":"m"}]}`,
	} {
		got, err := adaptGlobal(t, block)
		if err != nil || plain(got) != want {
			t.Errorf("%s:\n got %s, %v\nwant %s", block, plain(got), err, want)
		}
	}
}

// TestSLOErrors: each error of the global options says what would be right.
func TestSLOErrors(t *testing.T) {
	for block, says := range map[string]string{
		"class":                                        "class takes a name, and what it is for in a block",
		"class a batch interactive":                    "wrong argument count",
		"class a fast {\nttft p99 <= 2s\n}":            `class a: there is no preset "fast"; there are interactive, completion and batch`,
		"class a {\nno\n}":                             "wrong argument count",
		"class a {\nno speed\n}":                       "class a: no speed: ",
		"class a {\nvalid\n}":                          "valid says for which traffic the objectives hold",
		"class a {\nvalid input_tokens p95 <= 8000\n}": "as in: valid while input_tokens p95 <= 8000, rate <= 2/s",
		"class a {\nvalid while rate <= 2/s\nvalid while rate <= 3/s\n}":         "valid is given twice; put all terms into one line, with commas",
		"class a {\nvalid while speed p95 <= 2\n}":                               `class a: valid while: envelope: unknown quantity "speed"; use input_tokens or output_tokens, or rate`,
		"class a {\nvalid while rate <= 2/d\n}":                                  "write it like 2/s, 120/min or 600/h",
		"class a {\nweight 0\n}":                                                 "weight",
		"class a {\nweight heavy\n}":                                             "weight",
		"class a {\nprefil p99 <= 10s\n}":                                        "write it like: ttft p99 <= 2s",
		"class a {\nttft\n}":                                                     "it has no target; write it like: ttft p99 <= 2s",
		"class a {\nttft 99% <= 2s\n}":                                           "use a percentile such as p99",
		"class a {\nttft p100 <= 2s\n}":                                          "p100",
		"class a {\nttft p99 2s\n}":                                              "<= is missing after p99",
		"class a {\nttft p99 <= 2\n}":                                            `threshold: "2" is not a time; write it like 2s`,
		"class a {\nttft p99 <= 25h\n}":                                          "longer than any call; use at most 24h",
		"class a {\nsuccess p99\n}":                                              "use a percentage such as 99.9%",
		"class a {\nsuccess 99.9% <= 2s\n}":                                      "success is no time and has no threshold",
		"class a {\nsuccess 99.9% else ttft\n}":                                  "success is always known and takes no else",
		"class a {\nttft p99 <= 2s when speed <= 3\n}":                           `when: unknown quantity "speed"`,
		"class a {\nttft p99 <= 2s when input_tokens <= many\n}":                 "is not a number of tokens such as 8000 or 8k",
		"class a {\nprefill p99 <= 10s else ttft\n}":                             "ttft cannot stand in for prefill",
		"class a {\ntpot p99 <= 40ms else queue\n}":                              "queue cannot stand in for tpot",
		"class a {\nttft p99 <= 2s when input_tokens <= 1, input_tokens <= 2\n}": "when: input_tokens is there twice",
		"class a {\nttft p99 <= 2s at night\n}":                                  "does not belong there",
		"slo on":                                                                 "slo takes off, or a block",
		"slo off now":                                                            "slo takes off, or a block",
		"slo off\nslo off":                                                       "slo is given twice",
		"slo {\nwindows 3\n}":                                                    `slo has no option "windows"; it has period, burn, min_bad, min_calls, warn, freeze and state`,
		"slo {\nperiod\n}":                                                       "wrong argument count",
		"slo {\nburn 1h 5m 14.4\n}":                                              "burn takes page or ticket, a long and a short window and a factor, as in: burn page 1h 5m 14.4",
		"slo {\nburn page x 5m 14\n}":                                            "burn: ",
		"slo {\nburn page 1h y 14\n}":                                            "burn: ",
		"slo {\nburn page 1h 5m fast\n}":                                         `burn: "fast" is no factor; it is a number such as 14.4`,
		"slo {\nmin_bad 0\n}":                                                    "min_bad",
		"slo {\nmin_calls many\n}":                                               "min_calls",
		"slo {\nwarn 50\n}":                                                      "warn: give a percentage such as 80%",
		"slo {\nwarn 0%\n}":                                                      "give a percentage such as 80%",
		"slo {\nfreeze 101%\n}":                                                  "freeze: give a percentage such as 80%",
		"slo {\nfreeze NaN%\n}":                                                  "freeze: give a percentage such as 80%",
		"slo {\nstate\n}":                                                        "wrong argument count",
		"alert":                                                                  "alert takes a kind and a URL, as in: alert alertmanager http://127.0.0.1:9093",
		"alert webhook":                                                          "alert takes a kind and a URL",
		"alert webhook http://a b":                                               "alert takes a kind and a URL",
		"alert webhook http://a {\nretry 3\n}":                                   `alert has no option "retry"; it has header and label`,
		"alert webhook http://a {\nheader X\n}":                                  "a name and a value",
		"alert webhook http://a {\nlabel X\n}":                                   "a name and a value",
		"probe":                                                                  "probe takes a name and the URL of a site, as in: probe chat http://127.0.0.1:8080 { model llama-3 }",
		"probe chat http://a b":                                                  "probe takes a name and the URL of a site",
		"probe chat http://a {\nmodel\n}":                                        "wrong argument count",
		"probe chat http://a {\noutput_tokens 0\n}":                              "output_tokens",
		"probe chat http://a {\nevery often\n}":                                  "every",
		"probe chat http://a {\ntimeout -1s\n}":                                  "timeout",
		"probe chat http://a {\nkey\n}":                                          "wrong argument count",
		"probe chat http://a {\nprompt hi\n}":                                    `probe has no option "prompt"; it has model, output_tokens, every, timeout and key`,
		"objectives on":                                                          "otlp_receiver, class, slo, alert and probe",
	} {
		if got, err := adaptGlobal(t, block); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %s, %v; want %q", block, got, err, says)
		}
	}
}

// TestClassDirective: classes by matcher, in a line and in blocks.
func TestClassDirective(t *testing.T) {
	for text, want := range map[string]string{
		"weir {\nclass batch header X-Job *\n}": `{"classes":[{"class":"batch","match":[{"header":{"X-Job":["*"]}}]}]}`,
		"weir {\nclass completion\nclass batch {\npath /v1/batch/*\nheader X-Job *\n}\nclass agents header X-Agent *\n}": `{"class":"completion","classes":[` +
			`{"class":"batch","match":[{"header":{"X-Job":["*"]},"path":["/v1/batch/*"]}]},{"class":"agents","match":[{"header":{"X-Agent":["*"]}}]}]}`,
		"weir {\nclass batch {\nnot path /v1/chat/*\n}\n}": `{"classes":[{"class":"batch","match":[{"not":[{"path":["/v1/chat/*"]}]}]}]}`,
	} {
		var h caddyfileHandler
		if err := h.parse(text); err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got, _ := json.Marshal(h.Handler); string(got) != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
	for text, says := range map[string]string{
		"weir {\nclass\n}":                         "wrong argument",
		"weir {\nclass a\nclass b\n}":              "class is given twice without matchers; put matchers behind one of them, as in: class batch header X-Job *",
		"weir {\nclass a nonsense x\n}":            "behind the name come matchers, as in: class batch header X-Job *",
		"weir {\nclass a {\nnonsense x\n}\n}":      "nonsense",
		"weir {\nclass a header X *\nclasses b\n}": `weir has no option "classes"`,
	} {
		var h caddyfileHandler
		if err := h.parse(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v does not say %q", text, err, says)
		}
	}
}
