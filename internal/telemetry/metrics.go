package telemetry

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirgate/weir/internal/call"
)

// Metrics counts calls for Prometheus. Make it with New, once per process; all
// methods may be called at the same time, and do nothing on a nil Metrics.
type Metrics struct {
	families [numMetrics]*family

	live    source[LiveState]
	walls   source[WallState]
	engines source[[]EngineState]
	gpus    source[[]GPUState]
	spans   source[TracerState]
	joins   source[JoinState]
	slo     source[SLOState]

	models, classes, dialects *learnt

	mu     sync.RWMutex // guards the two maps, not what they point to
	series map[modelKey]*modelSeries
	calls  map[callKey]*atomic.Pointer[counter]

	others  *modelSeries // of what is beyond the caps
	failing atomic.Int64 // series of failed calls in gen_ai_server_request_duration_seconds

	phases                               [numPhases][len(phaseSources) + 1]atomic.Pointer[histogram]
	unmeasured, degraded, parseErrors    *counters
	refusals, wouldRefuse                *counters
	estimated                            *counters
	limited, retries                     *counter
	attempts, replays, bytesIn, bytesOut *counter
	addedDelay, clientRTT, upstreamRTT   *histogram

	objectives objectiveLabels
	probes     probes
}

// LiveState is what holds at this moment. The zero value is an idle gateway.
type LiveState struct {
	InFlight           int64 // calls received and not ended
	AwaitingFirstToken int64 // those of them that are streamed and have brought no output
	// OldestAwaiting is the age of the oldest of those; unknown when there is none.
	OldestAwaiting call.Duration
}

// New returns Metrics that have counted nothing and are not registered.
func New() *Metrics {
	m := &Metrics{
		models:   newLearnt(ModelCap),
		classes:  newLearnt(ClassCap),
		dialects: newLearnt(DialectCap),
		series:   make(map[modelKey]*modelSeries),
		calls:    make(map[callKey]*atomic.Pointer[counter]),
	}
	for i := range table {
		m.families[i] = newFamily(&table[i])
	}
	m.families[callJoules].one = jouleParts
	m.others = &modelSeries{modelKey: modelKey{Other, Other}}
	m.series[m.others.modelKey] = m.others
	m.unmeasured = newCounters(m.families[unmeasured], newLearnt(ReasonCap))
	m.degraded = newCounters(m.families[degraded], newLearnt(ReasonCap))
	m.parseErrors = newCounters(m.families[parseErrors], m.dialects)
	m.refusals = newCounters(m.families[refusals], newLearnt(WallCap))
	m.wouldRefuse = newCounters(m.families[wouldRefuse], newLearnt(WallCap))
	m.estimated = newCounters(m.families[estimatedTokens], newLearnt(numKinds))
	single := func(row int) *counter { return m.families[row].counter(new(atomic.Pointer[counter])) }
	m.attempts, m.replays = single(attempts), single(replays)
	m.limited, m.retries = single(upstreamLimited), single(clientRetries)
	m.bytesIn, m.bytesOut = single(bytesIn), single(bytesOut)
	alone := func(row int) *histogram { return m.families[row].histogram(new(atomic.Pointer[histogram])) }
	m.objectives, m.probes = newObjectiveLabels(), newProbes()
	m.addedDelay, m.clientRTT, m.upstreamRTT = alone(addedDelay), alone(clientRTT), alone(upstreamRTT)
	return m
}

// Register makes reg expose the metrics. The same Metrics may be registered
// with any number of registries, and again with one that has it already. It is
// an error when reg holds other collectors under one of the names.
func (m *Metrics) Register(reg prometheus.Registerer) error {
	if m == nil || reg == nil {
		return nil
	}
	err := reg.Register((*collector)(m))
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) && already.ExistingCollector == prometheus.Collector((*collector)(m)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("register metrics: %w (each registry takes the metrics of one gateway; share one Metrics)", err)
	}
	return nil
}

// Live sets where the gauges come from. The function is called at each scrape,
// possibly several at once, and should return at once; nil takes the gauges
// away. The last one set holds.
func (m *Metrics) Live(state func() LiveState) {
	if m != nil {
		m.live.set(state)
	}
}

// Unmeasured counts a request that passed without a record. Reasons are short
// codes such as UnknownPath, never text from outside.
func (m *Metrics) Unmeasured(reason string) {
	if m != nil {
		m.unmeasured.add(reason, 1)
	}
}

// Barred counts a request without a record that was refused. by is of the same
// words as Record.RefusedBy.
func (m *Metrics) Barred(by string) {
	if m != nil {
		m.refusals.add(by, 1)
	}
}

// AddedDelay counts the gateway's own time on one chunk. It takes some
// nanoseconds and does not allocate; the caller decides which chunks to sample.
func (m *Metrics) AddedDelay(d time.Duration) {
	if m != nil {
		m.addedDelay.observe(d)
	}
}

// collector is Metrics as Prometheus sees it: one collector for the whole
// table, so that registering is all or nothing.
type collector Metrics

// Describe is part of prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range c.families {
		ch <- f.desc
	}
}

// Collect is part of prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	for _, f := range c.families {
		f.collect(ch)
	}
	s := sending{c, ch}
	if walls, set := c.walls.get(); set {
		s.walls(walls)
	}
	if engines, set := c.engines.get(); set {
		s.engines(engines)
	}
	if gpus, set := c.gpus.get(); set {
		s.gpus(gpus)
	}
	if spans, set := c.spans.get(); set {
		s.spans(spans)
	}
	if joins, set := c.joins.get(); set {
		s.joins(joins)
	}
	if state, set := c.slo.get(); set {
		s.slo(&state)
	}
	if live, set := c.live.get(); set {
		s.figure(callsInFlight, float64(live.InFlight))
		s.figure(callsAwaiting, float64(live.AwaitingFirstToken))
		if age, known := live.OldestAwaiting.Get(); known {
			s.figure(oldestAwaiting, age.Seconds())
		}
	}
}
