package caddymodule

import (
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
)

// adaptGlobal adapts a global block and returns the JSON of the weir app.
func adaptGlobal(t *testing.T, block string) (string, error) {
	t.Helper()
	b, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte("{\nweir {\n"+block+"\n}\n}\n:8080 {\nweir\n}\n"), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return "", err
	}
	_, rest, found := strings.Cut(string(b), `"weir":`)
	if !found {
		t.Fatalf("no weir app in %s", b)
	}
	return strings.TrimSuffix(rest, "}}"), nil
}

func TestBesideAdapts(t *testing.T) {
	for block, want := range map[string]string{
		"engine vllm http://127.0.0.1:8000": `{"engines":[{"kind":"vllm","url":"http://127.0.0.1:8000"}]}`,
		"engine auto http://a:1 {\nupstream a:2 b:2\nmax_num_seqs 256\nkv_tokens 1.5M\nevery 500ms\n}\nengine tgi http://b": `{"engines":[` +
			`{"kind":"auto","url":"http://a:1","upstreams":["a:2","b:2"],"max_num_seqs":256,"kv_tokens":1500000,"every":500000000},{"kind":"tgi","url":"http://b"}]}`,
		"gpu nvml":                               `{"gpu":{"source":"nvml"}}`,
		"gpu dcgm http://127.0.0.1:9400/metrics": `{"gpu":{"source":"dcgm","url":"http://127.0.0.1:9400/metrics"}}`,
		"otlp":                                   `{"otlp":{}}`,
		"otlp http://c:4318 {\nprotocol grpc\nheader Authorization \"Bearer {env.T}\"\nsample 0.1\nkeep_ttft 2s\nkeep_e2e 1m\nmetrics\n}": `{"otlp":{"endpoint":"http://c:4318",` +
			`"protocol":"grpc","headers":{"Authorization":"Bearer {env.T}"},"sample":0.1,"keep_ttft":2000000000,"keep_e2e":60000000000,"metrics":true}}`,
		"otlp_receiver 127.0.0.1:4318 {\ngrpc 127.0.0.1:4317\nforward http://c:4318\nheader X-Token t\nwindow 6s\n}": `{"otlp_receiver":{"http":"127.0.0.1:4318",` +
			`"grpc":"127.0.0.1:4317","forward":"http://c:4318","headers":{"X-Token":"t"},"window":6000000000}}`,
	} {
		got, err := adaptGlobal(t, block)
		if err != nil || got != want {
			t.Errorf("%s:\n got %s, %v\nwant %s", block, got, err, want)
		}
	}
	for block, says := range map[string]string{
		"engine vllm":                            "takes a kind and a URL",
		"engine vllm http://a b":                 "takes a kind and a URL",
		"engine vllm http://a {\nslots 3\n}":     "it has upstream, max_num_seqs, kv_tokens and every",
		"engine vllm http://a {\nupstream\n}":    "wrong argument",
		"engine vllm http://a {\nevery often\n}": "every",
		"gpu":                                    "wrong argument",
		"gpu dcgm a b":                           "wrong argument",
		"gpu nvml\ngpu nvml":                     "given twice",
		"otlp a b":                               "wrong argument",
		"otlp {\nsample much\n}":                 "sample",
		"otlp {\nheader X\n}":                    "a name and a value",
		"otlp {\ncompress\n}":                    "it has protocol, header, sample, keep_ttft, keep_e2e and metrics",
		"otlp_receiver a b":                      "wrong argument",
		"otlp_receiver {\nport 1\n}":             "it has grpc, forward, header and window",
		"tracing on":                             "it has keys, ledger, prices, engine, gpu, otlp, otlp_receiver, class, slo, alert and probe",
	} {
		if got, err := adaptGlobal(t, block); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %s, %v; want %q", block, got, err, says)
		}
	}
}

// TestBesideIsChecked: what can never work is refused when the configuration is
// loaded, with what would.
func TestBesideIsChecked(t *testing.T) {
	share := func(x float64) *float64 { return &x }
	for name, c := range map[string]struct {
		app  *App
		says string // "" is fine
	}{
		"unknown engine":      {&App{Engines: []*EngineConfig{{Kind: "triton", URL: "http://a"}}}, "use vllm, sglang, tgi, llamacpp or auto"},
		"auto":                {&App{Engines: []*EngineConfig{{Kind: "auto", URL: "http://a:8000/metrics"}}}, ""},
		"no engine URL":       {&App{Engines: []*EngineConfig{{Kind: "vllm"}}}, "engine vllm"},
		"too often":           {&App{Engines: []*EngineConfig{{Kind: "vllm", URL: "http://a", Every: 1}}}, "engine vllm"},
		"unknown GPU source":  {&App{GPU: &GPUConfig{Source: "rocm"}}, "gpu dcgm http"},
		"dcgm without URL":    {&App{GPU: &GPUConfig{Source: "dcgm"}}, "gpu dcgm"},
		"nvml":                {&App{GPU: &GPUConfig{Source: "nvml"}}, ""},
		"otlp by environment": {&App{OTLP: &OTLPConfig{}}, ""},
		"odd protocol":        {&App{OTLP: &OTLPConfig{Protocol: "thrift"}}, "use grpc or http/protobuf"},
		"no endpoint":         {&App{OTLP: &OTLPConfig{Endpoint: "collector:4318"}}, "write http://host:port"},
		"share above 1":       {&App{OTLP: &OTLPConfig{Sample: share(10)}}, "number from 0 to 1"},
		"receiver alone":      {&App{Receiver: &ReceiverConfig{HTTP: "127.0.0.1:4318"}}, "add otlp beside it"},
		"receiver nowhere":    {&App{OTLP: &OTLPConfig{}, Receiver: &ReceiverConfig{}}, "needs an address"},
		"receiver, no port":   {&App{OTLP: &OTLPConfig{}, Receiver: &ReceiverConfig{GRPC: "127.0.0.1"}}, "is not host:port"},
		"window too long":     {&App{OTLP: &OTLPConfig{}, Receiver: &ReceiverConfig{HTTP: "127.0.0.1:4318", Window: 1e12}}, "within 0 and 1m"},
		"receiver":            {&App{OTLP: &OTLPConfig{}, Receiver: &ReceiverConfig{HTTP: "127.0.0.1:4318"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.app.validateBeside()
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

// TestUpstreamsOfAnEngine: whose calls an engine serves, unless the configuration says.
func TestUpstreamsOfAnEngine(t *testing.T) {
	for address, want := range map[string]string{
		"http://127.0.0.1:8000": "127.0.0.1:8000", "http://vllm/metrics": "vllm:80", "https://vllm": "vllm:443", "http://[::1]:8000/metrics": "[::1]:8000",
	} {
		if got := (&EngineConfig{URL: address}).upstreams(); len(got) != 1 || got[0] != want {
			t.Errorf("%s serves %v, want %s", address, got, want)
		}
	}
}
