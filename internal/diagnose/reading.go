package diagnose

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// reading is one reading of an engine's gauges, and how many calls were in flight
// here then.
type reading struct {
	at               time.Time
	running, waiting call.Count
	kv               call.Number
	own              call.Count
}

// readings are those that were watched, or else those that the records bear, in
// the order of time; of some upstreams alone if names are given. list has all
// calls of the window.
func readings(list []sample, from time.Time, sig *Signals, names []string) []reading {
	flights := flightsOf(list)
	of := func(upstream string) bool { return len(names) == 0 || slices.Contains(names, upstream) }
	var out []reading
	for i := range sig.Engine {
		if e := &sig.Engine[i]; e.Upstream == "" || of(e.Upstream) {
			out = append(out, reading{at: e.Time, running: e.Running, waiting: e.Waiting, kv: e.KVUse, own: flights.at(e.Upstream, e.Time.Sub(from))})
		}
	}
	if len(out) == 0 {
		for i := range list {
			s := &list[i]
			if then := fresh(s.rec.AtDispatch); !then.IsZero() && of(s.rec.Upstream) {
				at := s.sent - then.Age.Or(0)
				out = append(out, reading{at: from.Add(at), running: then.Running, waiting: then.Waiting, kv: then.KVUse, own: flights.at(s.rec.Upstream, at)})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b reading) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.running.Or(-1), b.running.Or(-1)), cmp.Compare(a.waiting.Or(-1), b.waiting.Or(-1)))
	})
	return out
}

// flights are the calls of each upstream by when they were sent and until when they
// kept it busy; those of "" are of all upstreams.
type flights map[string]*[2][]time.Duration

func flightsOf(list []sample) flights {
	f := make(flights)
	for i := range list {
		s := &list[i]
		names := []string{"", s.rec.Upstream}
		if s.rec.Upstream == "" {
			names = names[:1]
		}
		for _, name := range names {
			at := f[name]
			if at == nil {
				at = new([2][]time.Duration)
				f[name] = at
			}
			at[0], at[1] = append(at[0], s.sent), append(at[1], s.working)
		}
	}
	for _, at := range f {
		slices.Sort(at[0])
		slices.Sort(at[1])
	}
	return f
}

// at is how many calls were in flight at an instant: fewer than in truth where
// some have not ended yet, so that what the engine does not know is never
// overstated.
func (f flights) at(upstream string, t time.Duration) call.Count {
	calls := f[upstream]
	if calls == nil {
		return call.Count{}
	}
	began, _ := slices.BinarySearch(calls[0], t+1)
	ended, _ := slices.BinarySearch(calls[1], t+1)
	return call.Known(int64(began - ended))
}

// gauged sums up the readings of the gauges.
func (f *Figures) gauged(read []reading) {
	var running, waiting, cache, cacheThen numbers
	held := make(map[int64]int) // running while calls wait, by how often
	n, full := 0, 0
	for i := range read {
		r := &read[i]
		running.count(r.running)
		waiting.count(r.waiting)
		cache.number(r.kv)
		if r.waiting.Or(0) <= 0 {
			continue
		}
		cacheThen.number(r.kv)
		if ran, known := r.running.Get(); known {
			n++
			held[ran]++
			if most, told := f.MaxSeqs.Get(); told && ran >= most {
				full++
			}
		}
	}
	f.Running, f.Waiting = running.mean(), waiting.mean()
	f.KVUse, f.KVMost = cache.quantile(0.5), cache.quantile(1)
	if len(cacheThen) > 0 {
		f.KVUse = cacheThen.quantile(0.5)
	}
	if n > 0 {
		most := int64(-1)
		for ran, times := range held {
			if most < 0 || times > held[most] || times == held[most] && ran > most {
				most = ran
			}
		}
		f.Held = call.Known(most)
		if !f.MaxSeqs.IsKnown() {
			full = held[most]
		}
		f.AtCap = call.Figure(float64(full) / float64(n))
	}
	f.Residual = residualOf(read)
}

// residualOf is the share of the calls that were in flight here at the instants of
// readings which the engine did not count; unknown where fewer than one were, on
// average.
func residualOf(read []reading) call.Number {
	own, theirs, n := 0.0, 0.0, 0
	for i := range read {
		here, counted := read[i].own.Get()
		running, known := read[i].running.Get()
		waiting, read := read[i].waiting.Get()
		if counted && known && read {
			own += float64(here)
			theirs += float64(running + waiting)
			n++
		}
	}
	if n < MinCalls || own < float64(n) {
		return call.Number{}
	}
	return call.Figure(max(1-theirs/own, 0))
}

// oneEngine tells whether all readings that were watched are of one engine, so that its
// means are to be set beside all calls in flight.
func oneEngine(sig *Signals) bool {
	for i := range sig.Engine {
		if sig.Engine[i].Upstream != sig.Engine[0].Upstream {
			return false
		}
	}
	return len(sig.Engine) > 0
}

// residualFrom is the same of means over a window.
func residualFrom(own, running, waiting call.Number) call.Number {
	n, counted := own.Get()
	ran, known := running.Get()
	waited, read := waiting.Get()
	if !counted || !known || !read || n < 1 {
		return call.Number{}
	}
	return call.Figure(max(1-(ran+waited)/n, 0))
}
