package telemetry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// The bounds of what waits for a collector. A call with all its spans takes up to about
// 7 KiB beside its texts, as does one with a single span, so that all takes up to 14 MiB.
const (
	// queueSpans is how many spans may wait, and queueCalls of how many calls; the rest is
	// dropped, and counted.
	queueSpans = 8192
	queueCalls = queueSpans / 4
	// batchCalls and batchEvery are when a batch is sent. With 8 spans to a call one has
	// about a thousand and 300 kB, so that its request costs a call little, and is far below
	// the 4 MiB that collectors take.
	batchCalls = 128
	batchEvery = 2 * time.Second
	// exportTimeout is how long one batch may take, retries included.
	exportTimeout = 10 * time.Second
	// CloseTimeout is how long the end of the process may wait for the last spans.
	CloseTimeout = 5 * time.Second
)

// ExportOptions say where spans go and which. The zero value asks the standard
// environment variables for everything:
// https://opentelemetry.io/docs/specs/otel/protocol/exporter/
type ExportOptions struct {
	// Endpoint is the collector's base URL, such as http://127.0.0.1:4318; over
	// HTTP /v1/traces is added. "" is OTEL_EXPORTER_OTLP_ENDPOINT and its relatives.
	Endpoint string
	// Protocol is grpc or http/protobuf; "" is OTEL_EXPORTER_OTLP_PROTOCOL and
	// its relatives, else http/protobuf.
	Protocol string
	// Headers are sent with each export, for authentication.
	Headers map[string]string
	// Sample is the share of calls without a caller's decision that leave spans,
	// 0 to 1; nil is OTEL_TRACES_SAMPLER, else all.
	Sample *float64
	// Keep says which calls leave spans whatever the sampling says.
	Keep Keep
	// Version is the program's.
	Version string
	// Report is told when exports begin to fail, and with nil when they work
	// again; on the exporter's goroutine. It may be nil.
	Report func(error)
}

// Protocols are those that spans can be sent by.
const (
	ProtocolGRPC = "grpc"
	ProtocolHTTP = "http/protobuf"
)

// TracerState tells how the export of spans stands.
type TracerState struct {
	Endpoint string `json:"endpoint,omitempty"` // as configured; the environment's may hold secrets
	Protocol string `json:"protocol"`
	Exported int64  `json:"spans_exported"`
	Failed   int64  `json:"spans_failed"`  // given to the collector in vain
	Dropped  int64  `json:"spans_dropped"` // because too many waited
	Waiting  int64  `json:"spans_waiting"`
	Error    string `json:"error,omitempty"` // of the last export, when it failed
}

// Validate tells what NewTracer would find wrong with the options.
func (o ExportOptions) Validate() error {
	if _, err := o.protocol("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"); err != nil {
		return err
	}
	if err := checkEndpoint(o.Endpoint); err != nil {
		return err
	}
	_, err := samplerOf(o.Sample)
	return err
}

// protocol returns the protocol to export by. own is the environment variable of
// what is exported.
func (o ExportOptions) protocol(own string) (string, error) {
	p := o.Protocol
	if p == "" {
		p = firstEnv(ProtocolHTTP, own, "OTEL_EXPORTER_OTLP_PROTOCOL")
	}
	if p != ProtocolGRPC && p != ProtocolHTTP {
		return "", fmt.Errorf("unknown OTLP protocol %q: use %s or %s", p, ProtocolGRPC, ProtocolHTTP)
	}
	return p, nil
}

// NewTracer makes a Tracer that exports over OTLP. A collector that is not there
// is no error: it may come later. Close it.
func NewTracer(o ExportOptions) (*Tracer, error) {
	protocol, err := o.protocol("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
	if err != nil {
		return nil, err
	}
	var client otlptrace.Client
	switch protocol {
	case ProtocolHTTP:
		// The environment may ask for JSON where the configuration does not, and JSON has no
		// place for what is encoded already.
		options := []otlptracehttp.Option{otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf)}
		if len(o.Headers) > 0 { // else those of the environment
			options = append(options, otlptracehttp.WithHeaders(o.Headers))
		}
		if o.Endpoint != "" {
			options = append(options, otlptracehttp.WithEndpointURL(strings.TrimSuffix(o.Endpoint, "/")+"/v1/traces"))
		}
		client = otlptracehttp.NewClient(options...)
	case ProtocolGRPC:
		options := []otlptracegrpc.Option{otlptracegrpc.WithHeaders(o.Headers)}
		if len(o.Headers) == 0 {
			options = nil
		}
		if o.Endpoint != "" {
			options = append(options, otlptracegrpc.WithEndpointURL(o.Endpoint))
		}
		client = otlptracegrpc.NewClient(options...)
	}
	sampler, err := samplerOf(o.Sample)
	if err != nil {
		return nil, err
	}
	out := &outlet{client: client, exporter: otlptrace.NewUnstarted(client), report: o.Report, endpoint: o.Endpoint, protocol: protocol}
	return newTracer(out, sampler, o)
}

func newTracer(out *outlet, sampler sdktrace.Sampler, o ExportOptions) (*Tracer, error) {
	described, err := describe(o.Version)
	if err != nil {
		return nil, err
	}
	return &Tracer{
		sampler: sampler, keep: o.Keep, out: out, resource: described,
		scope: scopeOf(o.Version),
		processor: sdktrace.NewBatchSpanProcessor(out, sdktrace.WithMaxQueueSize(queueCalls), sdktrace.WithMaxExportBatchSize(batchCalls),
			sdktrace.WithBatchTimeout(batchEvery), sdktrace.WithExportTimeout(exportTimeout)),
	}, nil
}

// Close sends what waits, for at most CloseTimeout, and ends the exporter. Calls that
// end later leave no spans by it.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, CloseTimeout)
	defer cancel()
	t.closed.Store(true)
	if err := t.processor.Shutdown(ctx); err != nil {
		t.out.abandon()
		return fmt.Errorf("end the export of spans: %w; what waited is lost", err)
	}
	return nil
}

// State tells how the export stands; the zero value of a nil Tracer.
func (t *Tracer) State() TracerState {
	if t == nil {
		return TracerState{}
	}
	return t.out.state()
}

// samplerOf returns the sampler of a share, else of the environment.
func samplerOf(share *float64) (sdktrace.Sampler, error) {
	if share != nil {
		if !(*share >= 0 && *share <= 1) {
			return nil, fmt.Errorf("a sample of %v is no share: give a number from 0 to 1", *share)
		}
		if *share == 1 {
			return parentDecides, nil
		}
		return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(*share)), nil
	}
	name, ratio := os.Getenv("OTEL_TRACES_SAMPLER"), 1.0
	if text := os.Getenv("OTEL_TRACES_SAMPLER_ARG"); text != "" && strings.HasSuffix(name, "traceidratio") {
		var err error
		if ratio, err = strconv.ParseFloat(text, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
			return nil, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG %q is no number from 0 to 1", text)
		}
	}
	switch name {
	case "", "parentbased_always_on":
		return parentDecides, nil
	case "always_on":
		return sdktrace.AlwaysSample(), nil
	case "always_off":
		return sdktrace.NeverSample(), nil
	case "traceidratio":
		return sdktrace.TraceIDRatioBased(ratio), nil
	case "parentbased_always_off":
		return sdktrace.ParentBased(sdktrace.NeverSample()), nil
	case "parentbased_traceidratio":
		return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(ratio)), nil
	}
	return nil, fmt.Errorf("OTEL_TRACES_SAMPLER %q is not known: use always_on, always_off, traceidratio or one of them with parentbased_ before it", name)
}

func firstEnv(def string, names ...string) string {
	for _, name := range names {
		if v := os.Getenv(name); v != "" {
			return v
		}
	}
	return def
}

// outlet is the exporter behind the batcher, which hands over callSpans. It counts, since
// the batcher drops in silence what its queue does not hold: room is asked for before spans
// are made, and given back when they have left, so that the batcher's queue is never full.
type outlet struct {
	client             otlptrace.Client
	exporter           *otlptrace.Exporter // begins and ends the client
	endpoint, protocol string
	report             func(error)
	export             func(context.Context, []sdktrace.ReadOnlySpan) error // a test's, which may keep what it gets

	calls                              atomic.Int64 // that wait, and those that ask for room
	waiting, exported, failed, dropped atomic.Int64 // spans
	abandoned                          atomic.Bool  // nothing is sent any more

	// Of ExportSpans alone, which the batcher calls once at a time.
	spans []sdktrace.ReadOnlySpan
	wire  spansWire

	mu      sync.Mutex
	started bool
	err     error // of the last export
}

// room takes room for a call with n spans; false when there is none, and they are counted
// as dropped.
func (o *outlet) room(n int) bool {
	if o.calls.Add(1) > queueCalls || o.waiting.Load()+int64(n) > queueSpans {
		o.calls.Add(-1)
		o.dropped.Add(int64(n))
		return false
	}
	return true
}

// ExportSpans implements sdktrace.SpanExporter.
func (o *outlet) ExportSpans(ctx context.Context, batch []sdktrace.ReadOnlySpan) error {
	spans := o.spans[:0]
	for _, s := range batch {
		c := s.(*callSpans) // Tracer.End hands over nothing else
		for i := range c.spans {
			spans = append(spans, &c.spans[i])
		}
	}
	defer func() {
		o.waiting.Add(-int64(len(spans)))
		o.calls.Add(-int64(len(batch)))
		if o.export != nil {
			return
		}
		clear(spans)
		o.spans = spans
		for _, s := range batch {
			s.(*callSpans).release()
		}
	}()
	err := brief(o.send(ctx, spans))
	if err != nil {
		o.failed.Add(int64(len(spans)))
	} else {
		o.exported.Add(int64(len(spans)))
	}
	o.mu.Lock()
	was := o.err
	o.err = err
	o.mu.Unlock()
	if o.report != nil && (err == nil) != (was == nil) {
		o.report(err)
	}
	return nil // the SDK would only print it
}

// errAbandoned is what becomes of spans that the collector did not take in time.
var errAbandoned = errors.New("the export ended before the collector took them")

// abandon gives up what waits. The batcher would try to send all of it, each batch
// for its whole time-out, and keep it in memory for minutes.
func (o *outlet) abandon() {
	o.abandoned.Store(true)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_ = o.Shutdown(over) // breaks off what is being sent; that this is hasty is known
}

func (o *outlet) send(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if o.abandoned.Load() {
		return errAbandoned
	}
	if o.export != nil {
		return o.export(ctx, spans)
	}
	o.mu.Lock()
	started := o.started
	o.mu.Unlock()
	if !started {
		if err := o.exporter.Start(ctx); err != nil {
			return fmt.Errorf("start the exporter: %w", err)
		}
		o.mu.Lock()
		o.started = true
		o.mu.Unlock()
	}
	return o.wire.send(ctx, o.client, spans)
}

// Shutdown implements sdktrace.SpanExporter.
func (o *outlet) Shutdown(ctx context.Context) error {
	if o.exporter == nil {
		return nil
	}
	return o.exporter.Shutdown(ctx)
}

func (o *outlet) state() TracerState {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := TracerState{
		Endpoint: o.endpoint, Protocol: o.protocol, Exported: o.exported.Load(), Failed: o.failed.Load(),
		Dropped: o.dropped.Load(), Waiting: o.waiting.Load(),
	}
	if o.err != nil {
		s.Error = o.err.Error()
	}
	return s
}
