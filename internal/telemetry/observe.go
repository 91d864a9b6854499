package telemetry

import (
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// modelKey holds the labels of figures that are kept by model.
type modelKey struct{ model, class string }

// callKey holds the labels of weir_calls_total.
type callKey struct {
	modelKey
	dialect, outcome, status string
	stream                   bool
}

// modelSeries are the series of one model and class, each made when its first
// figure comes: a series that was never observed is not exposed.
type modelSeries struct {
	modelKey
	ttft, ttftUpstream, ttftVisible, ttfb, tpot, icl, e2e atomic.Pointer[histogram]

	durations [numErrors]atomic.Pointer[histogram]
	usage     [numTokenTypes]atomic.Pointer[histogram]
	tokens    [numKinds][len(usageSources) + 1]atomic.Pointer[counter]
	joules    atomic.Pointer[counter]
}

// Observe counts one call, once, after its end. It keeps nothing of rec.
// Unknown figures are left out. After the first call with a set of labels it
// does not allocate.
func (m *Metrics) Observe(rec *call.Record) {
	if m == nil || rec == nil {
		return
	}
	s, ended := m.resolve(rec)
	ended.add(1)
	m.observeTimes(s, rec)
	m.countTokens(s, rec)
	m.countEnergy(s, rec)

	for _, reason := range rec.Degraded {
		m.degraded.add(string(reason), 1)
	}
	if rec.ParseErrors > 0 {
		m.parseErrors.add(rec.Dialect, rec.ParseErrors)
	}
	if rec.Replayed {
		m.replays.add(1)
	}
	m.countAdmission(rec)
	m.attempts.add(int64(rec.Attempts))
	m.bytesIn.add(rec.BytesIn.Or(0))
	m.bytesOut.add(rec.BytesOut)
}

// resolve finds the series of a call by its labels, or makes them.
func (m *Metrics) resolve(rec *call.Record) (*modelSeries, *counter) {
	key := callKey{
		modelKey: modelKey{m.models.label(rec.Model, proven(rec)), m.classes.label(rec.Class, true)},
		dialect:  m.dialects.label(rec.Dialect, true),
		outcome:  outcomeLabel(rec.Outcome),
		status:   statusClass(rec.Status),
		stream:   rec.Stream,
	}
	m.mu.RLock()
	s, slot := m.series[key.modelKey], m.calls[key]
	m.mu.RUnlock()
	if s == nil || slot == nil {
		s, slot = m.make(&key)
	}
	if c := slot.Load(); c != nil {
		return s, c
	}
	stream := "false"
	if key.stream {
		stream = "true"
	}
	return s, m.families[calls].counter(slot, key.dialect, key.model, key.class, key.outcome, key.status, stream)
}

// make adds what is missing for key to the maps. Models and classes bound the
// first map; the second has a bound of its own, past which key's wide labels
// become Other.
func (m *Metrics) make(key *callKey) (*modelSeries, *atomic.Pointer[counter]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.series[key.modelKey]
	if s == nil {
		s = &modelSeries{modelKey: key.modelKey}
		m.series[key.modelKey] = s
	}
	slot := m.calls[*key]
	if slot == nil && len(m.calls) >= CallSeriesCap {
		key.model, key.class, key.dialect = Other, Other, Other
		slot = m.calls[*key]
	}
	if slot == nil {
		slot = new(atomic.Pointer[counter])
		m.calls[*key] = slot
	}
	return s, slot
}

func (m *Metrics) observeTimes(s *modelSeries, rec *call.Record) {
	to, sampled := leadsOf(rec)
	into := func(h *histogram, span time.Duration) {
		h.observe(span)
		if sampled {
			h.show(int64(span), to)
		}
	}
	observe := func(row int, slot *atomic.Pointer[histogram], d call.Duration) {
		if span, known := d.Get(); known {
			into(m.families[row].histogram(slot, s.model, s.class), span)
		}
	}
	observe(ttft, &s.ttft, rec.TTFT)
	observe(ttftVisible, &s.ttftVisible, rec.TTFTVisible)
	observe(ttfb, &s.ttfb, rec.TTFB)
	observe(e2e, &s.e2e, rec.E2E)
	if !rec.Outcome.Failed() {
		// The conventions define these two for successful responses. A client
		// that left does not make the response a failure, and to leave slow
		// ones out would flatter the percentiles.
		observe(ttftUpstream, &s.ttftUpstream, rec.TTFTUpstream)
		observe(tpot, &s.tpot, rec.TPOT)
	}
	if span, known := rec.Instants.Ended.Minus(rec.Instants.Sent).Get(); known && rec.Outcome != call.ClientGone {
		into(m.serverDuration(s, errorIndex(rec.Outcome)), span)
	}
	if rtt, known := rec.ClientRTT.Get(); known {
		m.clientRTT.observe(rtt)
	}
	if rtt, known := rec.UpstreamRTT.Get(); known {
		m.upstreamRTT.observe(rtt)
	}
	if rec.Gaps != nil && rec.Gaps.Count() > 0 {
		// The gaps lie end to end from the first token to the last.
		sum := rec.Instants.LastToken.Minus(rec.Instants.FirstToken)
		m.families[icl].histogram(&s.icl, s.model, s.class).merge(rec.Gaps, sum)
	}
}

// serverDuration returns the histogram of upstream times of calls that failed in
// one way, or did not; past ErrorSeriesCap that of all models and classes.
func (m *Metrics) serverDuration(s *modelSeries, failure int) *histogram {
	if h := s.durations[failure].Load(); h != nil {
		return h
	}
	if failure > 0 && s != m.others && m.failing.Add(1) > ErrorSeriesCap {
		m.failing.Add(-1)
		s = m.others
	}
	return m.families[serverDuration].histogram(&s.durations[failure], s.model, s.class, errorLabel(failure))
}

// Phases counts the phases of one call, once, when they are final: an engine may
// tell of its part some time after the call's end.
func (m *Metrics) Phases(rec *call.Record) {
	if m == nil || rec == nil {
		return
	}
	spans, sources := phaseSpans(&rec.Phases), phaseSourcesOf(&rec.PhaseSources)
	for i, d := range spans {
		span, known := d.Get()
		if !known {
			continue
		}
		source := phaseSourceIndex(sources[i])
		slot := &m.phases[i][source]
		h := slot.Load()
		if h == nil {
			h = m.families[phase].histogram(slot, phases[i], labelAt(phaseSources[:], source))
		}
		h.observe(span)
	}
}

func (m *Metrics) countTokens(s *modelSeries, rec *call.Record) {
	source := usageIndex(rec.UsageSource)
	for i, count := range tokenCounts(&rec.Usage) {
		n, known := count.Get()
		if !known {
			continue
		}
		slot := &s.tokens[i][source]
		c := slot.Load()
		if c == nil {
			c = m.families[tokens].counter(slot, s.model, s.class, kinds[i], labelAt(usageSources[:], source))
		}
		c.add(n)
		if i < numTokenTypes && n >= 0 && n <= maxFigure {
			h := s.usage[i].Load()
			if h == nil {
				h = m.families[tokenUsage].histogram(&s.usage[i], s.model, s.class, kinds[i])
			}
			h.count(n)
		}
	}
}
