package telemetry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weirgate/weir/internal/call"
)

// metricsOutlet is the exporter behind the periodic reader. It counts, and tells of
// failures when they begin and end, where the SDK would print each.
type metricsOutlet struct {
	exporter           sdkmetric.Exporter
	endpoint, protocol string
	interval           time.Duration
	report             func(error)

	closing atomic.Bool // so that what Close breaks off is no failure: it sends once more

	mu       sync.Mutex // guards what follows
	gathered error      // what was missing from the reading that is being exported
	exported int64
	failed   int64
	last     time.Time
	err      error // of the last export
}

// incomplete notes what is missing from the reading that will be exported next;
// nil is nothing.
func (o *metricsOutlet) incomplete(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gathered = err
}

// Export implements sdkmetric.Exporter.
func (o *metricsOutlet) Export(ctx context.Context, reading *metricdata.ResourceMetrics) error {
	err := o.exporter.Export(ctx, reading)
	if err != nil && o.closing.Load() && errors.Is(err, context.Canceled) {
		return nil
	}
	o.mu.Lock()
	if o.gathered != nil {
		err = errors.Join(err, fmt.Errorf("read the metrics: %w", o.gathered))
	}
	err = brief(err)
	was := o.err
	o.err = err
	if err != nil {
		o.failed++
	} else {
		o.exported++
		o.last = time.Now()
	}
	o.mu.Unlock()
	if o.report != nil && (err == nil) != (was == nil) {
		o.report(err)
	}
	return nil // the SDK would only print it
}

// maxError bounds the text that is kept and told of an error: exporters put in the
// whole answer of a collector, up to 4 MiB.
const maxError = 1024

// brief returns an error with a text of at most about maxError bytes.
func brief(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if len(text) <= maxError {
		return err
	}
	return errors.New(strings.ToValidUTF8(text[:maxError], "") + " …")
}

// Temporality implements sdkmetric.Exporter. It matters to the SDK's own
// instruments alone, of which there are none.
func (o *metricsOutlet) Temporality(kind sdkmetric.InstrumentKind) metricdata.Temporality {
	return sdkmetric.DefaultTemporalitySelector(kind)
}

// Aggregation implements sdkmetric.Exporter, likewise.
func (o *metricsOutlet) Aggregation(kind sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(kind)
}

// ForceFlush implements sdkmetric.Exporter.
func (o *metricsOutlet) ForceFlush(ctx context.Context) error { return o.exporter.ForceFlush(ctx) }

// Shutdown implements sdkmetric.Exporter.
func (o *metricsOutlet) Shutdown(ctx context.Context) error { return o.exporter.Shutdown(ctx) }

func (o *metricsOutlet) state() MetricsExportState {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := MetricsExportState{
		Endpoint: o.endpoint, Protocol: o.protocol, Interval: call.Lasting(o.interval),
		Exported: o.exported, Failed: o.failed, LastSuccess: o.last,
	}
	if o.err != nil {
		s.Error = o.err.Error()
	}
	return s
}
