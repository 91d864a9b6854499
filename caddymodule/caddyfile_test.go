package caddymodule

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

type caddyfileHandler struct{ Handler }

func (h *caddyfileHandler) parse(text string) error {
	return h.UnmarshalCaddyfile(caddyfile.NewTestDispenser(text))
}

// TestDirective: golden JSON of the directive in each form.
func TestDirective(t *testing.T) {
	for text, want := range map[string]string{
		"weir":                   `{}`,
		"weir {\n}":              `{}`,
		"weir {\nclass batch\n}": `{"class":"batch"}`,
		"weir {\ndialect openai.chat\nusage_policy inject\nstale_retry off\n}": `{"dialect":"openai.chat","usage_policy":"inject","no_stale_retry":true}`,
		"weir {\npropagate off\n}":                                 `{"no_propagate":true}`,
		"weir {\npropagate on\n}":                                  `{}`,
		"weir {\nusage_policy inject_and_strip\nstale_retry on\n}": `{"usage_policy":"inject_and_strip"}`,
		"weir {\nprobes\n}":                                        `{"probes":{"live":"/livez","ready":"/readyz"}}`,
		"weir {\nprobes /a /b\n}":                                  `{"probes":{"live":"/a","ready":"/b"}}`,
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
}

// TestDirectiveErrors: each error says what would be right.
func TestDirectiveErrors(t *testing.T) {
	for text, want := range map[string]string{
		"weir on":                      "wrong argument",
		"weir {\nclas interactive\n}":  "it has dialect, class, usage_policy, stale_retry, propagate, probes, pool",
		"weir {\nclass\n}":             "wrong argument",
		"weir {\nclass a b\n}":         "behind the name come matchers",
		"weir {\nclass a\nclass b\n}":  "given twice",
		"weir {\nstale_retry maybe\n}": "on or off",
		"weir {\npropagate some\n}":    "on or off",
		"weir {\nprobes /a\n}":         "<live path> <ready path>",
		"weir {\ndialect\n}":           "wrong argument",
		"weir {\nusage_policy\n}":      "wrong argument",
		"weir {\nstale_retry\n}":       "wrong argument",
	} {
		var h caddyfileHandler
		if err := h.parse(text); err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) {
			t.Errorf("%q: error %v does not say %q", text, err, want)
		}
	}
}

// TestValidate: what only the whole configuration can tell.
func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		h    Handler
		want string
	}{
		"dialect": {Handler{Dialect: "openai.chit"}, "openai.chat"},
		"policy":  {Handler{UsagePolicy: "force"}, "passthrough, inject or inject_and_strip"},
		"probes":  {Handler{Probes: &Probes{Live: "livez", Ready: "/readyz"}}, "begin with a slash"},
	} {
		if err := c.h.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v does not say %q", name, err, c.want)
		}
	}
	if err := new(Handler).Validate(); err != nil {
		t.Errorf("bare: %v", err)
	}
}

// TestOrder: weir comes inside encode and intercept, and around handle.
func TestOrder(t *testing.T) {
	const site = ":80 {\n\thandle /v1/* {\n\t\treverse_proxy a:1\n\t}\n\tweir\n\tencode gzip\n\tbasic_auth {\n\t\tu $2a$14$x\n\t}\n\tintercept {\n\t\t@e status 500\n\t\thandle_response @e {\n\t\t\trespond ok\n\t\t}\n\t}\n}\n"
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(site), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, handler := range []string{`"authentication"`, `"encode"`, `"intercept"`, `"weir"`, `"reverse_proxy"`} {
		at := strings.Index(string(config), `"handler":`+handler)
		if at < last || at < 0 {
			t.Errorf("%s is not in its place in %s", handler, config)
		}
		last = at
	}
}

// TestGlobalBlock: the block may be empty, and says what it can have.
func TestGlobalBlock(t *testing.T) {
	adapt := func(text string) (string, error) {
		b, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
		return string(b), err
	}
	if got, err := adapt("{\n\tweir {\n\t}\n}\n"); err != nil || got != `{"apps":{"weir":{}}}` {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := adapt("{\n\tweir {\n\t\tkeys keys.json\n\t\tprices prices.json\n\t\tledger sqlite usage.db {\n\t\t\tspill /var/spool/weir\n" +
		"\t\t\tmax_spill 1GiB\n\t\t\tretention 30d\n\t\t\tfail_closed\n\t\t}\n\t}\n}\n"); err != nil || got != `{"apps":{"weir":{"keys":{"file":"keys.json"},`+
		`"ledger":{"path":"usage.db","spill":"/var/spool/weir","max_spill":1073741824,"retention":2592000000000000,"fail_closed":true},"prices":"prices.json"}}}` {
		t.Errorf("got %s, %v", got, err)
	}
	for block, want := range map[string]string{
		"nothing":               `no option "nothing"; it has keys, ledger, prices, engine, gpu, otlp, otlp_receiver, class, slo, alert and probe`,
		"keys":                  "wrong argument count",
		"keys a b":              "wrong argument count",
		"keys a\nkeys b":        "given twice",
		"ledger usage.db":       "ledger sqlite usage.db",
		"ledger mysql usage.db": "knows sqlite",
		"ledger sqlite u.db {\nretention soon\n}": "or say forever",
		"ledger sqlite u.db {\nmax_spill 64M\n}":  "max_spill",
		"ledger sqlite u.db {\nsync off\n}":       `no option "sync"`,
	} {
		if _, err := adapt("{\nweir {\n" + block + "\n}\n}\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", block, err, want)
		}
	}
}
