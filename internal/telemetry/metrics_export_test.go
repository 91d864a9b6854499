package telemetry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weirgate/weir/internal/call"
)

// metricsCollector keeps the readings it is given.
type metricsCollector struct {
	*metricsOutlet // for what does not matter

	mu       sync.Mutex
	readings []metricdata.ResourceMetrics
	fails    error
	hangs    bool
	ended    bool
}

func (c *metricsCollector) Export(ctx context.Context, reading *metricdata.ResourceMetrics) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hangs {
		c.mu.Unlock()
		<-ctx.Done()
		c.mu.Lock()
		return ctx.Err()
	}
	if c.fails == nil {
		c.readings = append(c.readings, *reading)
	}
	return c.fails
}

// becomes changes how it answers.
func (c *metricsCollector) becomes(fails error, hangs bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fails, c.hangs = fails, hangs
}

// taken returns the readings so far.
func (c *metricsCollector) taken() []metricdata.ResourceMetrics {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.readings)
}

func (c *metricsCollector) ForceFlush(context.Context) error { return nil }

func (c *metricsCollector) Shutdown(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	return ctx.Err()
}

func exportTo(t testing.TB, m *Metrics, c *metricsCollector, report func(error)) *MetricsExport {
	t.Helper()
	out := &metricsOutlet{report: report, interval: 10 * time.Second}
	e, err := newMetricsExport(m, out, "v1", func() (sdkmetric.Exporter, error) { return c, nil })
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestMetricsExport: a reading each interval, and a last one at the end.
func TestMetricsExport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := full()
		c := new(metricsCollector)
		e := exportTo(t, m, c, func(err error) { t.Errorf("told of %v", err) })
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if s := e.State(); len(c.taken()) != 6 || s.Exported != 6 || s.Failed != 0 || s.Error != "" || time.Since(s.LastSuccess) != time.Second {
			t.Errorf("after a minute %d readings, %+v", len(c.taken()), s)
		}
		observe(m, streamed())
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
		last := c.readings[len(c.readings)-1]
		if len(c.readings) != 7 || !c.ended {
			t.Errorf("%d readings in all, ended %v", len(c.readings), c.ended)
		}
		for _, metric := range last.ScopeMetrics[0].Metrics {
			if sum, is := metric.Data.(metricdata.Sum[float64]); is && metric.Name == "weir_calls_total" {
				total := 0.0
				for _, p := range sum.DataPoints {
					total += p.Value
				}
				if total != 4 {
					t.Errorf("the last reading has %v calls, want 4", total)
				}
			}
		}
		if err := e.Close(t.Context()); err != nil {
			t.Errorf("closed again: %v", err)
		}
		time.Sleep(time.Hour)
		if len(c.readings) != 7 {
			t.Error("readings after the end")
		}
	})
	var none *MetricsExport
	if err := none.Close(t.Context()); err != nil || none.State() != (MetricsExportState{}) {
		t.Error("none is not nothing")
	}
}

// TestMetricsCollectorFaults: a dead or hanging collector costs no call anything,
// is told of once, and what comes after it is whole.
func TestMetricsCollectorFaults(t *testing.T) {
	for name, c := range map[string]*metricsCollector{"dead": {fails: errors.New("connection refused")}, "black hole": {hangs: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []error
				hangs := name == "black hole"
				m := full()
				e := exportTo(t, m, c, func(err error) { told = append(told, err) })
				const calls = 1000
				for range calls {
					began := time.Now()
					observe(m, sampled())
					gather(t, m)
					if waited := time.Since(began); waited != 0 {
						t.Fatalf("a call or a scrape waited %v", waited)
					}
					time.Sleep(time.Second)
				}
				synctest.Wait()
				state := e.State()
				// A reading each ten seconds; of a black hole one each thirty, the time
				// that an export may take, and what the clock had to say meanwhile.
				if least := int64(calls / 41); state.Failed < least || state.Exported != 0 || state.Error == "" || !state.LastSuccess.IsZero() {
					t.Errorf("after %d s: %+v", calls, state)
				}
				if len(told) != 1 || told[0] == nil {
					t.Errorf("told %d times: %v", len(told), told)
				}
				c.becomes(nil, false)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if s := e.State(); s.Exported == 0 || s.Error != "" || len(told) != 2 || told[1] != nil {
					t.Errorf("after it came back: %+v, told %v", s, told)
				}
				c.becomes(errors.New("gone again"), hangs)
				time.Sleep(35 * time.Second)
				synctest.Wait()
				began := time.Now()
				err := e.Close(t.Context())
				if passed := time.Since(began); passed > CloseTimeout || hangs && err == nil {
					t.Errorf("the end took %v: %v", passed, err)
				}
				if len(told) != 3 {
					t.Errorf("told %d times: %v", len(told), told)
				}
			})
		})
	}
}

// TestCloseBreaksOff: what Close breaks off it sends once more, and it is no failure.
func TestCloseBreaksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &metricsCollector{hangs: true}
		e := exportTo(t, full(), c, func(err error) { t.Errorf("told of %v", err) })
		time.Sleep(15 * time.Second) // five seconds into the first export
		synctest.Wait()
		c.becomes(nil, false)
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if s := e.State(); s.Exported != 1 || s.Failed != 0 || len(c.readings) != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestReadingsInPart: what cannot be read is told of, and the rest is sent.
func TestReadingsInPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := full()
		m.Walls(func() WallState { return WallState{Budgets: []BudgetState{{"a", 1}, {"a", 1}}} })
		c := new(metricsCollector)
		e := exportTo(t, m, c, nil)
		time.Sleep(15 * time.Second)
		synctest.Wait()
		s := e.State()
		if s.Failed != 1 || !strings.Contains(s.Error, "weir_budget_used_ratio") {
			t.Errorf("%+v", s)
		}
		if all := c.taken(); len(all) != 1 || len(all[0].ScopeMetrics) != 1 || len(all[0].ScopeMetrics[0].Metrics) < numMetrics/2 {
			t.Error("the rest was not sent")
		}
		m.Walls(walls)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s := e.State(); s.Exported != 1 || s.Error != "" {
			t.Errorf("%+v", s)
		}
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestLongErrors: what a collector answers is not kept whole.
func TestLongErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told error
		c := &metricsCollector{fails: fmt.Errorf("body: %s", strings.Repeat("ü", 1<<20))}
		e := exportTo(t, New(), c, func(err error) { told = err })
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if s := e.State(); len(s.Error) > 2*maxError || !strings.HasPrefix(s.Error, "body: ü") || len(told.Error()) > 2*maxError {
			t.Errorf("an error of %d bytes", len(s.Error))
		}
	})
}

func TestExportOptionsThatCannotWork(t *testing.T) {
	for name, c := range map[string]struct {
		o        ExportOptions
		interval time.Duration
		env      [2]string
		says     string
	}{
		"protocol":      {o: ExportOptions{Protocol: "http/json"}, says: "http/protobuf"},
		"their own":     {env: [2]string{"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "carrier pigeon"}, says: "carrier pigeon"},
		"no URL":        {o: ExportOptions{Endpoint: "collector:4318"}, says: "http://host:port"},
		"no host":       {o: ExportOptions{Endpoint: "http:///v1"}, says: "http://host:port"},
		"no URL, grpc":  {o: ExportOptions{Endpoint: "127.0.0.1:4317", Protocol: ProtocolGRPC}, says: "http://host:port"},
		"too often":     {interval: time.Millisecond, says: "1s or more"},
		"negative":      {interval: -time.Minute, says: "1s or more"},
		"env too often": {env: [2]string{"OTEL_METRIC_EXPORT_INTERVAL", "10"}, says: "1s or more"},
		"env no number": {env: [2]string{"OTEL_METRIC_EXPORT_INTERVAL", "10s"}, says: "milliseconds"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.env[0] != "" {
				t.Setenv(c.env[0], c.env[1])
			}
			e, err := NewMetricsExport(New(), c.o, c.interval)
			if err == nil {
				e.Close(t.Context())
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q does not say %q", err, c.says)
			}
		})
	}
}

func TestExportInterval(t *testing.T) {
	for _, c := range []struct {
		asked time.Duration
		env   string
		want  time.Duration
	}{{0, "", time.Minute}, {0, "15000", 15 * time.Second}, {time.Second, "15000", time.Second}} {
		t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", c.env)
		if got, err := exportInterval(c.asked); err != nil || got != c.want {
			t.Errorf("%v with %q: %v, %v; want %v", c.asked, c.env, got, err, c.want)
		}
	}
}

// TestExportDoesNotAllocate: counting allocates nothing beside an export either.
func TestExportDoesNotAllocate(t *testing.T) {
	m := New()
	e, err := newMetricsExport(m, &metricsOutlet{interval: time.Hour}, "", func() (sdkmetric.Exporter, error) { return new(metricsCollector), nil })
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(t.Context())
	rec := streamed()
	rec.GPU.Joules = call.Figure(1)
	if n := testing.AllocsPerRun(100, func() { observe(m, rec) }); n != 0 {
		t.Errorf("%v allocations a call, want 0", n)
	}
}
