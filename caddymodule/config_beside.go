package caddymodule

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirgate/weir/internal/command"
	"github.com/weirgate/weir/internal/engine"
	"github.com/weirgate/weir/internal/gpu"
	"github.com/weirgate/weir/internal/telemetry"
)

// EngineConfig says where an engine's metrics are read.
type EngineConfig struct {
	// Kind is vllm, sglang, tgi, llamacpp, or auto, which tells it by the metrics.
	Kind string `json:"kind"`
	// URL is the engine's base URL or that of its metrics.
	URL string `json:"url"`
	// Upstreams are the addresses (host:port, as reverse_proxy dials them) whose
	// calls this engine serves. Default: the host and port of URL.
	Upstreams []string `json:"upstreams,omitempty"`
	// MaxSeqs is how many requests one rank of the engine runs at once, and
	// KVTokens how many tokens its KV cache holds, where its metrics do not say.
	MaxSeqs  int64 `json:"max_num_seqs,omitempty"`
	KVTokens int64 `json:"kv_tokens,omitempty"`
	// Every is the time between two readings. Default: 1s.
	Every caddy.Duration `json:"every,omitempty"`
}

func (c *EngineConfig) validate() error {
	if kind := engine.Kind(c.Kind); kind != engine.Auto && !slices.Contains(engine.Kinds, kind) {
		return fmt.Errorf("engine %q is not known; use vllm, sglang, tgi, llamacpp or auto", c.Kind)
	}
	if _, err := engine.NewSampler(engine.Options{Address: c.URL, Kind: engine.Kind(c.Kind), Every: time.Duration(c.Every), MaxSeqs: c.MaxSeqs, KVTokens: c.KVTokens}); err != nil {
		return fmt.Errorf("engine %s: %w", c.Kind, err)
	}
	return nil
}

// upstreams are the addresses whose calls the engine serves.
func (c *EngineConfig) upstreams() []string {
	if len(c.Upstreams) > 0 {
		return c.Upstreams
	}
	u, err := url.Parse(c.URL)
	if err != nil { // validate has told
		return nil
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443"}[u.Scheme]
		if port == "" {
			port = "80"
		}
	}
	return []string{net.JoinHostPort(u.Hostname(), port)}
}

// GPUConfig says how GPUs are watched.
type GPUConfig struct {
	// Source is nvml, for those of this machine, or dcgm.
	Source string `json:"source"`
	// URL is the dcgm-exporter's, for dcgm.
	URL string `json:"url,omitempty"`
}

// The sources of GPUConfig.
const (
	gpuNVML = "nvml"
	gpuDCGM = "dcgm"
)

func (c *GPUConfig) open() (gpu.Source, error) {
	if c.Source == gpuDCGM {
		return gpu.NewDCGM(c.URL, nil)
	}
	return gpu.OpenNVML()
}

func (c *GPUConfig) validate() error {
	switch {
	case c.Source == gpuNVML && c.URL == "":
		return nil
	case c.Source == gpuDCGM:
		source, err := c.open() // connects to nothing
		if err != nil {
			return fmt.Errorf("gpu dcgm: %w", err)
		}
		return source.Close()
	}
	return errors.New("gpu knows nvml, and dcgm with the URL of a dcgm-exporter, such as: gpu dcgm http://127.0.0.1:9400/metrics")
}

// OTLPConfig says where spans go, and which. What it leaves open the standard
// environment variables say (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_SAMPLER …).
type OTLPConfig struct {
	// Endpoint is the collector's base URL, such as http://127.0.0.1:4318.
	Endpoint string `json:"endpoint,omitempty"`
	// Protocol is grpc or http/protobuf. Default: http/protobuf.
	Protocol string `json:"protocol,omitempty"`
	// Headers are sent with each export. Placeholders such as {env.TOKEN} are replaced.
	Headers map[string]string `json:"headers,omitempty"`
	// Sample is the share of calls, 0 to 1, that leave spans when their client did
	// not decide. Default: all.
	Sample *float64 `json:"sample,omitempty"`
	// KeepTTFT and KeepE2E are a time to first token and of a whole call from
	// which on a call leaves spans whatever the sampling says; failed calls always
	// do. Defaults: 5s and never.
	KeepTTFT caddy.Duration `json:"keep_ttft,omitempty"`
	KeepE2E  caddy.Duration `json:"keep_e2e,omitempty"`
	// Metrics sends the metrics that Prometheus scrapes to the collector as well,
	// every minute unless OTEL_METRIC_EXPORT_INTERVAL says otherwise. Default: no.
	Metrics bool `json:"metrics,omitempty"`
}

// DefaultKeepTTFT is a time to first token that nobody waits for gladly.
const DefaultKeepTTFT = 5 * time.Second

func (c *OTLPConfig) options() telemetry.ExportOptions {
	repl := caddy.NewReplacer()
	o := telemetry.ExportOptions{
		Endpoint: repl.ReplaceAll(c.Endpoint, ""), Protocol: c.Protocol, Sample: c.Sample, Version: command.Version(),
		Keep: telemetry.Keep{TTFT: time.Duration(c.KeepTTFT), E2E: time.Duration(c.KeepE2E)},
	}
	if c.KeepTTFT == 0 {
		o.Keep.TTFT = DefaultKeepTTFT
	}
	for name, value := range c.Headers {
		if o.Headers == nil {
			o.Headers = make(map[string]string)
		}
		o.Headers[name] = repl.ReplaceAll(value, "")
	}
	return o
}

func (c *OTLPConfig) validate() error {
	if err := c.options().Validate(); err != nil {
		return fmt.Errorf("otlp: %w", err)
	}
	return nil
}

// ReceiverConfig says where engines send their own spans.
type ReceiverConfig struct {
	// HTTP and GRPC are the addresses to listen at, host:port; one of them at
	// least. The conventional ports are 4318 and 4317.
	HTTP string `json:"http,omitempty"`
	GRPC string `json:"grpc,omitempty"`
	// Forward is the collector to which everything goes on: http://host:4318, or
	// host:4317 for gRPC. Without it spans end here.
	Forward string `json:"forward,omitempty"`
	// Headers are sent with what goes on. Placeholders such as {env.TOKEN} are
	// replaced, here and in Forward.
	Headers map[string]string `json:"headers,omitempty"`
	// Window is how long after its end a call waits for its engine's span.
	// Default: 2s.
	Window caddy.Duration `json:"window,omitempty"`
}

// forward returns where everything goes on to, and with which headers.
func (c *ReceiverConfig) forward() (collector string, header http.Header) {
	repl := caddy.NewReplacer()
	header = make(http.Header)
	for name, value := range c.Headers {
		header.Set(name, repl.ReplaceAll(value, ""))
	}
	return repl.ReplaceAll(c.Forward, ""), header
}

func (c *ReceiverConfig) validate() error {
	if c.HTTP == "" && c.GRPC == "" {
		return errors.New("otlp_receiver needs an address to listen at, such as: otlp_receiver 127.0.0.1:4318")
	}
	for _, address := range []string{c.HTTP, c.GRPC} {
		if address == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("otlp_receiver: %q is not host:port, such as 127.0.0.1:4318", address)
		}
	}
	if c.Window < 0 || time.Duration(c.Window) > time.Minute {
		return fmt.Errorf("otlp_receiver: a window of %v is not within 0 and 1m", time.Duration(c.Window))
	}
	return nil
}
