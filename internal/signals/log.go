package signals

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/diagnose"
	"github.com/weirgate/weir/internal/engine"
	"github.com/weirgate/weir/internal/gpu"
)

const (
	// Every is the least time between two notes. A fault that lasts less is none that
	// anybody looks into afterwards.
	Every = 10 * time.Second
	// Span is how far back a Log reaches, as far as the gateway's sample of calls.
	Span = 2 * time.Hour
	// maxEngines and maxGPUs bound what is noted: of more, the first are.
	maxEngines = 16
	maxGPUs    = 64
	notes      = int(Span / Every)
)

// Engine is one engine as it is now.
type Engine struct {
	Upstream string // host:port as in records
	Gauges   engine.Gauges
}

// Log is what was noted. Its zero value is empty; its methods may be used by many
// goroutines.
type Log struct {
	mu   sync.Mutex
	ring []note // in order of time, at most notes
}

// note is what stood at one instant.
type note struct {
	at      time.Time
	calls   int64 // with the engines
	engines []Engine
	gpus    []gpu.Reading
}

// Due tells whether the last note is as old as Every, or there is none.
func (l *Log) Due(at time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ring) == 0 {
		return true
	}
	since := at.Sub(l.ring[len(l.ring)-1].at)
	return since < 0 || since >= Every
}

// Note keeps what engines and GPUs show at an instant, and how many calls were with
// the engines, unless the last note is more recent than Every. The slices are
// the Log's from then on.
func (l *Log) Note(at time.Time, calls int64, engines []Engine, gpus []gpu.Reading) {
	if len(engines) == 0 && len(gpus) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.ring); n > 0 {
		since := at.Sub(l.ring[n-1].at)
		if since >= 0 && since < Every {
			return
		}
		if since < 0 { // the clock has been set back: what is later than now never was
			l.ring = slices.DeleteFunc(l.ring, func(n note) bool { return n.at.After(at) })
		}
	}
	if len(l.ring) >= notes {
		l.ring = slices.Delete(l.ring, 0, len(l.ring)-notes+1)
	}
	l.ring = append(l.ring, note{at, calls, engines[:min(len(engines), maxEngines)], gpus[:min(len(gpus), maxGPUs)]})
}

// Between sums up what was noted in [from, to). Without notes everything is unknown.
func (l *Log) Between(from, to time.Time) diagnose.Signals {
	l.mu.Lock()
	defer l.mu.Unlock()
	var in []note
	var before *note // the last one before, from which counters count
	for i := range l.ring {
		switch at := l.ring[i].at; {
		case at.Before(from):
			before = &l.ring[i]
		case at.Before(to):
			in = append(in, l.ring[i])
		}
	}
	var s diagnose.Signals
	if len(in) == 0 {
		return s
	}
	if before != nil && from.Sub(before.at) > 3*Every {
		before = nil // something was not noted in between
	}
	s.Engine, s.MaxSeqs = readings(in)
	s.Preemptions, s.CachedShare = counted(before, in)
	s.GPUs = figures(before, in)
	if len(s.Engine) > 0 {
		var calls int64
		for _, n := range in {
			calls += n.calls
		}
		s.InFlight = call.Figure(float64(calls) / float64(len(in)))
	}
	return s
}

// readings lists the gauges, and the cap on sequences where all engines have one.
func readings(in []note) (all []diagnose.EngineReading, maxSeqs call.Count) {
	same := true
	for _, n := range in {
		for _, e := range n.engines {
			g := &e.Gauges
			all = append(all, diagnose.EngineReading{
				Time: n.at, Upstream: e.Upstream, Running: g.Running.Count(), Waiting: g.Waiting.Count(), KVUse: g.KVUse.Number(),
			})
			seqs := g.MaxSeqs.Count()
			if maxSeqs.IsKnown() && seqs != maxSeqs || !seqs.IsKnown() {
				same = false
			}
			maxSeqs = seqs
		}
	}
	if !same {
		maxSeqs = call.Count{}
	}
	return all, maxSeqs
}

// run is an engine's counters at an instant.
type run struct {
	upstream, process string
	start             time.Time
}

// counted is by how much the engines' counters grew. A counter of an engine that was
// started again, or that is not shown throughout, is not known.
func counted(before *note, in []note) (preemptions call.Count, cached call.Number) {
	all := in
	if before != nil {
		all = append([]note{*before}, in...)
	}
	if len(all) < 2 {
		return preemptions, cached
	}
	first, last := all[0], all[len(all)-1]
	var hits, queries int64
	known, shares := true, true
	found := false
	for _, e := range last.engines {
		i := slices.IndexFunc(first.engines, func(f Engine) bool { return runOf(f) == runOf(e) })
		if i < 0 {
			return call.Count{}, call.Number{}
		}
		found = true
		a, b := &first.engines[i].Gauges, &e.Gauges
		grew := func(from, to engine.Figure, ok *bool) int64 {
			if !from.Known || !to.Known || to.N < from.N {
				*ok = false
				return 0
			}
			return to.N - from.N
		}
		lost := grew(a.Preemptions, b.Preemptions, &known)
		preemptions = preemptions.Plus(call.Known(lost))
		if a.PrefixQueries.Known {
			queries += grew(a.PrefixQueries, b.PrefixQueries, &shares)
			hits += grew(a.PrefixHits, b.PrefixHits, &shares)
		} else {
			shares = false
		}
	}
	if !known || !found {
		preemptions = call.Count{}
	}
	if shares && found && queries > 0 && hits <= queries {
		cached = call.Figure(float64(hits) / float64(queries))
	}
	return preemptions, cached
}

func runOf(e Engine) run { return run{e.Upstream, e.Gauges.Process, e.Gauges.Start} }

// tally adds up one GPU.
type tally struct {
	diagnose.GPUFigures
	utilization, bandwidth, clock, power, limit mean
	samples                                     int
	reasons                                     map[string]int
	errorsBefore, errorsLast                    gpu.Number
	heat                                        gpu.Number
}

// mean of what is known.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(n gpu.Number) {
	if x, known := n.Get(); known {
		m.sum += x
		m.n++
	}
}

func (m mean) number() call.Number {
	if m.n == 0 {
		return call.Number{}
	}
	return call.Figure(m.sum / float64(m.n))
}

// goodPart is the share of samples from which on a reason held the clocks down
// for a good part of the time, and not for a moment.
const goodPart = 0.25

// figures sums each GPU up.
func figures(before *note, in []note) []diagnose.GPUFigures {
	byName := make(map[string]*tally)
	var order []string
	for _, n := range in {
		for i := range n.gpus {
			r := &n.gpus[i]
			name := nameOf(r)
			t := byName[name]
			if t == nil {
				t = &tally{reasons: make(map[string]int)}
				t.Name = name
				byName[name] = t
				order = append(order, name)
				if before != nil {
					for j := range before.gpus {
						if nameOf(&before.gpus[j]) == name {
							t.errorsBefore = before.gpus[j].Uncorrected
						}
					}
				} else {
					t.errorsBefore = r.Uncorrected
				}
			}
			t.add(n.at, r, in[0].at)
		}
	}
	all := make([]diagnose.GPUFigures, 0, len(order))
	for _, name := range order {
		all = append(all, byName[name].figures())
	}
	return all
}

func nameOf(r *gpu.Reading) string {
	if r.UUID != "" {
		return r.UUID
	}
	return strings.TrimSpace(r.Host + " GPU " + strconv.Itoa(r.Index))
}

// add takes one sample. begin is when the window does.
func (t *tally) add(at time.Time, r *gpu.Reading, begin time.Time) {
	t.samples++
	t.utilization.add(r.Utilization)
	t.bandwidth.add(r.MemoryBandwidth)
	// A GPU that idles runs slowly and takes little power, which is no fault.
	if u, known := r.Utilization.Get(); known && u > 0 && r.Reasons&gpu.Idle == 0 {
		t.clock.add(r.Clock)
		t.power.add(r.Power)
	}
	t.limit.add(r.PowerLimit)
	if x, known := r.Temperature.Get(); known && x > t.heat.Or(x-1) {
		t.heat = r.Temperature
	}
	throttled := r.Reasons.Throttling().Names()
	for _, name := range throttled {
		t.reasons[name]++
	}
	if x, known := r.XID.Get(); known {
		// An exporter has no time of an error, and shows it for as long as it lives.
		if x != 0 && !r.XIDTime.IsZero() && !r.XIDTime.Before(begin) {
			t.XID = call.Known(int64(x))
			t.seen(r.XIDTime)
		} else if !t.XID.IsKnown() && (x == 0 || !r.XIDTime.IsZero()) {
			t.XID = call.Known(0)
		}
	}
	if len(throttled) > 0 {
		t.seen(at)
	}
	t.errorsLast = r.Uncorrected
}

func (t *tally) seen(at time.Time) {
	if t.Since.IsZero() || at.Before(t.Since) {
		t.Since = at
	}
}

func (t *tally) figures() diagnose.GPUFigures {
	f := t.GPUFigures
	f.Utilization, f.MemoryBandwidth, f.Clock = t.utilization.number(), t.bandwidth.number(), t.clock.number()
	f.Power, f.PowerLimit, f.Temperature = t.power.number(), t.limit.number(), t.heat
	for name, n := range t.reasons {
		if float64(n) >= goodPart*float64(t.samples) {
			f.Reasons = append(f.Reasons, name)
		}
	}
	slices.Sort(f.Reasons)
	if len(f.Reasons) == 0 && f.XID.Or(0) == 0 {
		f.Since = time.Time{}
	}
	from, known := t.errorsBefore.Get()
	to, alsoKnown := t.errorsLast.Get()
	if known && alsoKnown && to >= from {
		f.Uncorrected = call.Known(int64(to - from))
	}
	return f
}
