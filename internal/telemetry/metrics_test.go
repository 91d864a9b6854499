package telemetry

import (
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirgate/weir/internal/call"
)

// Caddy makes a new registry with each configuration; counts go on.
func TestRegisterAgain(t *testing.T) {
	m := New()
	observe(m, streamed())
	for i := range 3 {
		all := gather(t, m)
		if got := total(all, "weir_calls_total"); got != float64(1+i) {
			t.Errorf("registry %d shows %v calls, want %d", i, got, 1+i)
		}
		observe(m, streamed())
	}
	reg := prometheus.NewRegistry()
	for range 2 {
		if err := m.Register(reg); err != nil {
			t.Errorf("register with the same registry: %v", err)
		}
	}
	if err := New().Register(reg); err == nil {
		t.Error("no error when another Metrics holds the names; its counts would stay 0")
	}
	if _, err := reg.Gather(); err != nil {
		t.Error(err)
	}
}

func TestLiveIsAskedAtEachScrape(t *testing.T) {
	m := New()
	if f := gather(t, m)["weir_calls_in_flight"]; f != nil {
		t.Errorf("gauge without a source: %v", f)
	}
	n := int64(0)
	m.Live(func() LiveState { n++; return LiveState{InFlight: n} })
	for want := 1.0; want < 4; want++ {
		if got := find(t, gather(t, m), "weir_calls_in_flight").GetGauge().GetValue(); got != want {
			t.Errorf("scrape shows %v, want %v", got, want)
		}
	}
	m.Live(nil)
	if f := gather(t, m)["weir_calls_in_flight"]; f != nil {
		t.Errorf("gauge after its source was taken away: %v", f)
	}
}

func TestNilIsSafe(t *testing.T) {
	var none *Metrics
	observe(none, streamed())
	none.Unmeasured(UnknownPath)
	none.AddedDelay(time.Second)
	none.Live(func() LiveState { return LiveState{} })
	none.SLO(objectives)
	none.ObserveProbe("canary", streamed())
	if err := none.Register(prometheus.NewRegistry()); err != nil {
		t.Error(err)
	}
	m := New()
	observe(m, nil)
	observe(m, &call.Record{})
	m.ObserveProbe("canary", nil)
	if err := m.Register(nil); err != nil {
		t.Error(err)
	}
	if got := total(gather(t, m), "weir_calls_total"); got != 1 {
		t.Errorf("%v calls, want 1: an empty record is a call, a nil one is not", got)
	}
}

func TestConcurrent(t *testing.T) {
	m := New()
	m.Live(func() LiveState { return LiveState{} })
	reg := prometheus.NewPedanticRegistry()
	if err := m.Register(reg); err != nil {
		t.Fatal(err)
	}
	const workers, each = 8, 200
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rec := streamed()
			rec.Model = string(rune('a' + w%3))
			for i := range each {
				rec.Outcome = call.Outcomes[i%3]
				observe(m, rec)
				m.AddedDelay(time.Duration(i))
				m.Unmeasured(UnknownPath)
				if i%50 == 0 {
					if _, err := reg.Gather(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	all := gather(t, m)
	for name, perCall := range map[string]int{"weir_calls_total": 1, "weir_ttft_seconds": 1, "weir_icl_seconds": 9,
		"weir_tokens_total": 177, "weir_added_delay_seconds": 1, "weir_unmeasured_requests_total": 1} {
		if got := total(all, name); got != workers*each*float64(perCall) {
			t.Errorf("%s adds up to %v, want %d", name, got, workers*each*perCall)
		}
	}
}

func TestObserveDoesNotAllocate(t *testing.T) {
	m := New()
	rec, other := streamed(), refused()
	if n := testing.AllocsPerRun(100, func() {
		observe(m, rec)
		observe(m, other)
	}); n != 0 {
		t.Errorf("%v allocations in two calls, want 0", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		m.AddedDelay(7 * time.Microsecond)
		m.Unmeasured(UnknownPath)
	}); n != 0 {
		t.Errorf("%v allocations in AddedDelay and Unmeasured, want 0", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	for _, sampled := range []bool{false, true} {
		b.Run(map[bool]string{false: "unsampled", true: "sampled"}[sampled], func(b *testing.B) {
			m, rec := New(), streamed()
			rec.Degraded, rec.ParseErrors = nil, 0
			rec.Time, rec.TraceID, rec.Sampled = time.Unix(1_790_000_000, 0), testTrace, sampled
			b.ReportAllocs()
			for b.Loop() {
				observe(m, rec)
			}
		})
	}
}

func BenchmarkObserveParallel(b *testing.B) {
	m := New()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		rec := streamed()
		for pb.Next() {
			observe(m, rec)
		}
	})
}

func BenchmarkAddedDelay(b *testing.B) {
	m := New()
	b.ReportAllocs()
	for b.Loop() {
		m.AddedDelay(3 * time.Microsecond)
	}
}
