package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/weirgate/weir/internal/call"
)

// The bounds of how often metrics are exported.
const (
	// DefaultExportInterval is the specification's.
	// https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/#periodic-exporting-metricreader
	DefaultExportInterval = time.Minute
	// LeastExportInterval keeps a slip of the pen from loading the machine.
	LeastExportInterval = time.Second
)

// MetricsExport sends all metrics to a collector over OTLP, again and again, beside
// Prometheus' scrapes. Make it with NewMetricsExport; a nil MetricsExport does nothing.
//
// It reads the counts as a scrape does, on a goroutine of its own: no call waits for
// a collector, and what waits for one is a single reading. Figures are cumulative,
// and histograms have the classic buckets of the table, whatever the environment
// prefers: a collector that missed some readings has lost no count.
type MetricsExport struct {
	provider *sdkmetric.MeterProvider // holds the reader
	out      *metricsOutlet
}

// MetricsExportState tells how the export of metrics stands.
type MetricsExportState struct {
	Endpoint    string        `json:"endpoint,omitempty"` // as configured; the environment's may hold secrets
	Protocol    string        `json:"protocol"`
	Interval    call.Duration `json:"interval_ms,omitzero"`
	Exported    int64         `json:"exports"`        // readings that the collector took
	Failed      int64         `json:"exports_failed"` // those that it did not take, or not whole
	LastSuccess time.Time     `json:"last_success,omitzero"`
	Error       string        `json:"error,omitempty"` // of the last export, when it failed
}

// NewMetricsExport makes a MetricsExport of m. A collector that is not there is no
// error: it may come later. Of the options Sample and Keep mean nothing here; over
// HTTP /v1/metrics is added to the endpoint. An interval of 0 is
// OTEL_METRIC_EXPORT_INTERVAL, else DefaultExportInterval. How long one export may
// take OTEL_METRIC_EXPORT_TIMEOUT says, else it is 30 s. Close it.
func NewMetricsExport(m *Metrics, o ExportOptions, interval time.Duration) (*MetricsExport, error) {
	interval, err := exportInterval(interval)
	if err != nil {
		return nil, err
	}
	protocol, err := o.protocol("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL")
	if err != nil {
		return nil, err
	}
	if err := checkEndpoint(o.Endpoint); err != nil {
		return nil, err
	}
	out := &metricsOutlet{report: o.Report, endpoint: o.Endpoint, protocol: protocol, interval: interval}
	return newMetricsExport(m, out, o.Version, func() (sdkmetric.Exporter, error) { return metricsExporter(protocol, o) })
}

func metricsExporter(protocol string, o ExportOptions) (sdkmetric.Exporter, error) {
	ctx := context.Background() // nothing is connected to yet
	if protocol == ProtocolGRPC {
		var options []otlpmetricgrpc.Option
		if len(o.Headers) > 0 { // else those of the environment
			options = append(options, otlpmetricgrpc.WithHeaders(o.Headers))
		}
		if o.Endpoint != "" {
			options = append(options, otlpmetricgrpc.WithEndpointURL(o.Endpoint))
		}
		return otlpmetricgrpc.New(ctx, options...)
	}
	var options []otlpmetrichttp.Option
	if len(o.Headers) > 0 {
		options = append(options, otlpmetrichttp.WithHeaders(o.Headers))
	}
	if o.Endpoint != "" {
		options = append(options, otlpmetrichttp.WithEndpointURL(strings.TrimSuffix(o.Endpoint, "/")+"/v1/metrics"))
	}
	return otlpmetrichttp.New(ctx, options...)
}

// newMetricsExport makes the exporter last, since there is then nothing left to fail.
func newMetricsExport(m *Metrics, out *metricsOutlet, version string, exporter func() (sdkmetric.Exporter, error)) (*MetricsExport, error) {
	described, err := describe(version)
	if err != nil {
		return nil, err
	}
	producer, err := newBridge(m, scopeOf(version), out)
	if err != nil {
		return nil, err
	}
	if out.exporter, err = exporter(); err != nil {
		return nil, fmt.Errorf("make the exporter of metrics: %w; look at the OTEL_EXPORTER_OTLP variables", err)
	}
	reader := sdkmetric.NewPeriodicReader(out, sdkmetric.WithInterval(out.interval), sdkmetric.WithProducer(producer))
	// The provider gives the reader its resource.
	return &MetricsExport{out: out, provider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(described))}, nil
}

// Close sends the last figures, waiting for at most CloseTimeout, and ends the export.
func (e *MetricsExport) Close(ctx context.Context) error {
	if e == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, CloseTimeout)
	defer cancel()
	e.out.closing.Store(true)
	if err := e.provider.Shutdown(ctx); err != nil && !errors.Is(err, sdkmetric.ErrReaderShutdown) {
		return fmt.Errorf("end the export of metrics: %w; the last figures are lost", err)
	}
	return nil
}

// State tells how the export stands; the zero value of a nil MetricsExport.
func (e *MetricsExport) State() MetricsExportState {
	if e == nil {
		return MetricsExportState{}
	}
	return e.out.state()
}

// exportInterval returns the interval that is asked for, here or in the environment.
func exportInterval(d time.Duration) (time.Duration, error) {
	const variable = "OTEL_METRIC_EXPORT_INTERVAL"
	if text := os.Getenv(variable); d == 0 && text != "" {
		ms, err := strconv.ParseInt(text, 10, 32)
		if err != nil || ms <= 0 {
			return 0, fmt.Errorf("%s %q is no number of milliseconds above 0", variable, text)
		}
		d = time.Duration(ms) * time.Millisecond
	}
	switch {
	case d == 0:
		return DefaultExportInterval, nil
	case d < LeastExportInterval:
		return 0, fmt.Errorf("an export of metrics every %v is too often: give %v or more", d, LeastExportInterval)
	}
	return d, nil
}

// checkEndpoint finds what the exporters would silently put aside, some of it for
// their default. Its errors do not repeat the endpoint: it may hold a password.
func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("the OTLP endpoint is no URL: write http://host:port or https://host:port")
	case u.User != nil:
		return errors.New("the OTLP endpoint names a user, which is not sent: write a header instead, such as: header Authorization \"Basic {env.TOKEN}\"")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("the OTLP endpoint has something behind its path, which is not sent: write what the collector wants to know as a header")
	}
	return nil
}
