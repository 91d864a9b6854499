package diagnose

import (
	"time"

	"github.com/weirgate/weir/internal/call"
)

// phase numbers the phases in the order of a call.
type phase int

const (
	upload phase = iota
	queueGateway
	connect
	upstreamRTT
	queueEngine
	frontend
	prefill
	engine // of an answer that is not streamed and that nothing splits
	decode
	tail
	delivery
	phases
)

// phaseNames are those of the JSON form, without the unit.
var phaseNames = [phases]string{"upload", "queue_gateway", "connect", "upstream_rtt", "queue_engine", "frontend", "prefill",
	"engine", "decode", "tail", "delivery"}

// look is one record as the rules see it.
type look struct {
	rec     *call.Record
	spans   [phases]call.Duration
	sources [phases]call.Source
	elapsed time.Duration // received to ended: the sum of all spans
	// ttft is the sum of the spans before the first token and early, which is what
	// writes to the client blocked before it; both only if split.
	ttft, early time.Duration
	split       bool
	// of is what the first part of the call is judged against: whole.
	of    Whole
	whole time.Duration
	// Of a window: the calls of its size, what those took that met an idle engine,
	// and the time since the call before it was sent to the same upstream.
	peers peers
	idle  idle
	gap   call.Duration
}

// at reads a record into l; false when it is none, or when its figures cannot be true.
func (l *look) at(rec *call.Record) bool {
	if rec == nil {
		return false
	}
	p, s := &rec.Phases, &rec.PhaseSources
	*l = look{
		rec: rec,
		spans: [phases]call.Duration{p.Upload, p.QueueGateway, p.Connect, p.UpstreamRTT, p.QueueEngine, p.Frontend, p.Prefill,
			p.Engine, p.Decode, p.Tail, p.Delivery},
		sources: [phases]call.Source{s.Upload, s.QueueGateway, s.Connect, s.UpstreamRTT, s.QueueEngine, s.Frontend, s.Prefill,
			s.Engine, s.Decode, s.Tail, s.Delivery},
	}
	before := time.Duration(0)
	for i, d := range l.spans {
		d := d.Or(0) // adds nothing to a sum
		if d < 0 || d > longest {
			return false
		}
		l.elapsed += d
		if phase(i) <= prefill {
			before += d
		}
		switch l.sources[i] {
		case call.Measured, call.FromEngine, call.Inferred:
		default:
			l.sources[i] = call.Unattributed // nobody says how it is known
		}
	}
	if l.elapsed > longest {
		return false
	}
	l.of, l.whole = OfElapsed, l.elapsed
	if ttft, known := rec.TTFT.Get(); known && rec.Stream && ttft >= before && ttft-before <= l.spans[delivery].Or(0) {
		l.split, l.ttft, l.early = true, ttft, ttft-before
		l.of, l.whole = OfTTFT, ttft
	}
	return true
}

// took returns what a phase took and whether that is known.
func (l *look) took(p phase) (time.Duration, bool) { return l.spans[p].Get() }

// stands tells whether a time is worth a finding: noticeable, and at least such
// a share of a whole.
func stands(d time.Duration, share float64, whole time.Duration) bool {
	return d >= Noticeable && whole > 0 && float64(d) >= share*float64(whole)
}

// queueing is the share from which on a queue explains the call.
func (l *look) queueing() float64 {
	if l.of == OfTTFT {
		return QueueShare
	}
	return Dominant
}

// fresh returns a reading of the gauges if it is recent enough to speak for the
// call; else nothing is known.
func fresh(e call.EngineLoad) call.EngineLoad {
	if age, known := e.Age.Get(); known && age >= 0 && age <= FreshReading {
		return e
	}
	return call.EngineLoad{}
}

// computed returns how many prompt tokens were computed, and whether that is
// exact: what was cached being unknown, it is that many at most.
func (l *look) computed() (n int64, exact, known bool) {
	in, known := l.rec.Input.Get()
	if !known || in <= 0 {
		return 0, false, false
	}
	cached, exact := l.rec.Cached.Get()
	if exact = exact && cached >= 0 && cached <= in; exact {
		in -= cached
	}
	return in, exact, in > 0
}

// sampled tells whether GPUs were sampled often enough to speak for the call.
func (l *look) sampled() bool {
	g := &l.rec.GPU
	return g.GPUs > 0 && g.Samples >= SamplesPerGPU*g.GPUs
}

// interToken returns the time per output token without what the client blocked.
func (l *look) interToken() (time.Duration, bool) {
	n, known := l.rec.Output.Get()
	d, timed := l.took(decode)
	if !known || !timed || n < 2 || !l.rec.TPOT.IsKnown() {
		return 0, false
	}
	return d / time.Duration(n-1), true
}
