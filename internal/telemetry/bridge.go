package telemetry

import (
	"context"
	"encoding/hex"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	promotel "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// bridge reads Metrics as OpenTelemetry has them: what the conventions name has
// their names, units and attributes; all else the names that Prometheus sees.
type bridge struct {
	sdkmetric.Producer
	scope instrumentation.Scope
}

// newBridge makes a bridge over a registry that holds m alone. out is told what a
// reading lacks.
func newBridge(m *Metrics, scope instrumentation.Scope, out *metricsOutlet) (*bridge, error) {
	reg := prometheus.NewRegistry()
	if err := m.Register(reg); err != nil {
		return nil, err
	}
	gather := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		all, err := reg.Gather()
		classic(all)
		out.incomplete(err) // what could be read is sent nevertheless
		return all, nil
	})
	return &bridge{Producer: promotel.NewMetricProducer(promotel.WithGatherer(gather)), scope: scope}, nil
}

// classic takes the native form away from histograms. The bridge would else choose
// it, which has neither the edges that answer objectives exactly nor, after the
// bridge, exemplars.
func classic(all []*dto.MetricFamily) {
	for _, f := range all {
		for _, series := range f.GetMetric() {
			if h := series.GetHistogram(); h != nil {
				h.Schema, h.ZeroThreshold, h.ZeroCount = nil, nil, nil
				h.PositiveSpan, h.PositiveDelta, h.Exemplars = nil, nil, nil
			}
		}
	}
}

// Produce implements sdkmetric.Producer.
func (b *bridge) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	scopes, err := b.Producer.Produce(ctx)
	for i := range scopes {
		scopes[i].Scope = b.scope
		for j := range scopes[i].Metrics {
			convert(&scopes[i].Metrics[j])
		}
	}
	return scopes, err
}

// rows finds a metric's row by its name.
var rows = func() map[string]*Metric {
	byName := make(map[string]*Metric, len(table))
	for i := range table {
		byName[table[i].Name] = &table[i]
	}
	return byName
}()

func convert(m *metricdata.Metrics) {
	row := rows[m.Name]
	if row == nil {
		return // the registry holds what the table has
	}
	m.Unit = row.Unit()
	if row.OTel != "" {
		m.Name = row.OTel
	}
	h, is := m.Data.(metricdata.Histogram[float64])
	if !is {
		return // the conventions' metrics are all histograms
	}
	for i := range h.DataPoints {
		p := &h.DataPoints[i]
		if row.OTel != "" {
			p.Attributes = conventionally(p.Attributes)
		}
		for j := range p.Exemplars {
			// The bridge hands on the digits, and OTLP wants what they say.
			if id, err := hex.DecodeString(string(p.Exemplars[j].TraceID)); err == nil {
				p.Exemplars[j].TraceID = id
			}
		}
	}
}

// conventionally returns attributes under the conventions' names. What is empty is
// left out, such as the error of what did not fail.
func conventionally(labels attribute.Set) attribute.Set {
	attrs := make([]attribute.KeyValue, 0, labels.Len())
	for it := labels.Iter(); it.Next(); {
		a := it.Attribute()
		if a.Value.AsString() == "" {
			continue
		}
		if key, has := conventional[string(a.Key)]; has {
			a.Key = key
		}
		attrs = append(attrs, a)
	}
	return attribute.NewSet(attrs...)
}
