package telemetry

import (
	"sync"
	"sync/atomic"

	"github.com/weirgate/weir/internal/call"
)

// probes are the figures of synthetic calls. They are few and seldom, so one lock
// serves them all.
type probes struct {
	names *learnt

	mu     *sync.Mutex // guards series
	series map[string]*probeSeries
}

type probeSeries struct {
	calls           map[string]*atomic.Pointer[counter] // by outcome
	ttft, tpot, e2e atomic.Pointer[histogram]
}

func newProbes() probes {
	return probes{names: newLearnt(ProbeCap), mu: new(sync.Mutex), series: make(map[string]*probeSeries)}
}

// ObserveProbe counts one synthetic call, once, after its end, in the series of its
// probe alone. It keeps nothing of rec. Unknown figures are left out.
func (m *Metrics) ObserveProbe(probe string, rec *call.Record) {
	if m == nil || rec == nil {
		return
	}
	probe = m.probes.names.label(probe, true)
	m.probes.mu.Lock()
	defer m.probes.mu.Unlock()
	s := m.probes.series[probe]
	if s == nil {
		s = &probeSeries{calls: make(map[string]*atomic.Pointer[counter])}
		m.probes.series[probe] = s
	}
	outcome := outcomeLabel(rec.Outcome)
	slot := s.calls[outcome]
	if slot == nil {
		slot = new(atomic.Pointer[counter])
		s.calls[outcome] = slot
	}
	m.families[probeCalls].counter(slot, probe, outcome).add(1)
	observe := func(row int, slot *atomic.Pointer[histogram], d call.Duration) {
		if span, known := d.Get(); known {
			m.families[row].histogram(slot, probe).observe(span)
		}
	}
	observe(probeTTFT, &s.ttft, rec.TTFT)
	observe(probeE2E, &s.e2e, rec.E2E)
	if !rec.Outcome.Failed() {
		observe(probeTPOT, &s.tpot, rec.TPOT)
	}
}
