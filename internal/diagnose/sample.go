package diagnose

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// sample is one call as comparisons see it. Times are offsets from the first call
// of its window.
type sample struct {
	rec     *call.Record
	has     [measures]bool
	whole   [measures]time.Duration
	parts   [measures][phases]time.Duration
	sources [phases]int8 // where in sourceOrder

	received, sent, first, last, ended time.Duration
	// working is until when it kept the engine busy at least: its end without
	// tail and without what its client blocked.
	working  time.Duration
	decoding bool       // it has first and last
	uncached call.Count // input tokens that were computed, where that is exact
	met      call.Count // requests running in the engine when it was sent, by gauges
	// beside is what ran beside it while it was written; see crowd.
	crowded bool
	beside  [besides]float64
}

// samples reads the records of a window, in the order in which they were
// received, with times from an origin on. odd is how many cannot be true.
func samples(records []*call.Record, origin time.Time) (list []sample, odd int) {
	list = make([]sample, 0, len(records))
	var l look
	for _, rec := range records {
		if !l.at(rec) {
			if rec != nil {
				odd++
			}
			continue
		}
		s := sampleOf(&l)
		s.shift(rec.Time.Sub(origin))
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b sample) int {
		return cmp.Or(cmp.Compare(a.received, b.received), cmp.Compare(a.rec.ID, b.rec.ID), cmp.Compare(a.ended, b.ended))
	})
	return list, odd
}

// originOf is the instant at which the first call of all was received.
func originOf(windows ...[]*call.Record) (origin time.Time) {
	for _, records := range windows {
		for _, rec := range records {
			if rec != nil && (origin.IsZero() || rec.Time.Before(origin)) {
				origin = rec.Time
			}
		}
	}
	return origin
}

func (s *sample) shift(by time.Duration) {
	for _, at := range []*time.Duration{&s.received, &s.sent, &s.first, &s.last, &s.ended, &s.working} {
		*at += by
	}
}

func sampleOf(l *look) sample {
	rec := l.rec
	s := sample{rec: rec, ended: l.elapsed}
	for p := range phases {
		s.sources[p] = int8(slices.Index(sourceOrder[:], l.sources[p]))
	}
	s.sent = l.dispatched().Sub(rec.Time)
	s.working = max(l.elapsed-l.spans[tail].Or(0)-l.spans[delivery].Or(0), s.sent)
	if l.split {
		s.has[ofTTFT], s.whole[ofTTFT] = true, l.ttft
		for p := upload; p <= prefill; p++ {
			s.parts[ofTTFT][p] = l.spans[p].Or(0)
		}
		s.parts[ofTTFT][delivery] = l.early
		if d, known := l.took(decode); known {
			s.decoding, s.first, s.last = true, l.ttft, l.ttft+d
			s.perToken(l, d)
		}
	}
	s.whole[ofE2E] = l.elapsed
	for p := range phases {
		s.parts[ofE2E][p] = l.spans[p].Or(0)
	}
	e2e, known := rec.E2E.Get()
	s.has[ofE2E] = known && e2e == l.elapsed && rec.Outcome == call.Completed
	if n, exact, known := l.computed(); known && exact {
		s.uncached = call.Known(n)
	} else if rec.Input.IsKnown() && rec.Input == rec.Cached {
		s.uncached = call.Known(0)
	}
	s.met = fresh(rec.AtDispatch).Running
	return s
}

// perToken divides TPOT into what the engine wrote and what the client blocked. A
// TPOT that its phases contradict is left out.
func (s *sample) perToken(l *look, d time.Duration) {
	tpot, known := l.rec.TPOT.Get()
	n, counted := l.rec.Output.Get()
	if !known || !counted || n < 2 {
		return
	}
	each := d / time.Duration(n-1)
	blocked := tpot - each
	if blocked < 0 || blocked > (l.spans[delivery].Or(0)-l.early)/time.Duration(n-1)+1 {
		return
	}
	s.has[ofTPOT], s.whole[ofTPOT] = true, tpot
	s.parts[ofTPOT][decode], s.parts[ofTPOT][delivery] = each, blocked
	s.last = s.first + tpot*time.Duration(n-1)
}

// crowd fills in what ran beside each call of both windows, by upstream, from the
// calls themselves. Calls of others than this gateway's are not in it, nor those
// that have not ended. It costs n log n.
func crowd(windows ...[]sample) {
	by := make(map[string][]*sample)
	for _, list := range windows {
		for i := range list {
			if s := &list[i]; s.decoding {
				by[s.rec.Upstream] = append(by[s.rec.Upstream], s)
			}
		}
	}
	for _, calls := range by {
		slices.SortStableFunc(calls, func(a, b *sample) int { return cmp.Compare(a.first, b.first) })
		began, ended := integrate(calls, func(s *sample) time.Duration { return s.first }), integrate(calls, func(s *sample) time.Duration { return s.last })
		for _, s := range calls {
			n := float64(s.rec.Output.Or(0) - 1)
			took := (s.last - s.first).Seconds()
			if took <= 0 || n < 1 {
				continue
			}
			beganCalls, beganTokens := began.between(s.first, s.last)
			endedCalls, endedTokens := ended.between(s.first, s.last)
			from, to := began.before(s.first+1), max(began.before(s.last), began.before(s.first+1))
			s.crowded = true
			s.beside = [besides]float64{(beganCalls - endedCalls) / took, (beganTokens - endedTokens) / took,
				float64(to-from) / n, (began.computed[to] - began.computed[from]) / n}
		}
	}
}

// context is about how many tokens a call holds while it is written: its prompt and
// half of its answer.
func (s *sample) context() float64 {
	return float64(s.rec.Input.Or(0)) + float64(s.rec.Output.Or(0))/2
}

// steps are a number of calls, and of their tokens, that goes up at each of some
// instants.
type steps struct {
	instants []time.Duration // sorted
	tokens   []float64       // of the first i calls
	computed []float64       // of these the prompt tokens that were computed
	// The integrals of both up to an instant t are count·t − times and tokens·t −
	// products, with sums over the first i calls, in seconds.
	times, products []float64
}

func integrate(calls []*sample, at func(*sample) time.Duration) steps {
	calls = slices.Clone(calls)
	slices.SortStableFunc(calls, func(a, b *sample) int { return cmp.Compare(at(a), at(b)) })
	n := len(calls)
	st := steps{instants: make([]time.Duration, n), tokens: make([]float64, n+1), computed: make([]float64, n+1), times: make([]float64, n+1), products: make([]float64, n+1)}
	for i, s := range calls {
		t, c := at(s), s.context()
		st.instants[i] = t
		st.tokens[i+1] = st.tokens[i] + c
		st.computed[i+1] = st.computed[i] + float64(s.uncached.Or(s.rec.Input.Or(0)))
		st.times[i+1] = st.times[i] + t.Seconds()
		st.products[i+1] = st.products[i] + t.Seconds()*c
	}
	return st
}

// between is the integral of both numbers over a span.
func (s *steps) between(from, to time.Duration) (calls, tokens float64) {
	at := func(t time.Duration) (float64, float64) {
		i := s.before(t)
		return float64(i)*t.Seconds() - s.times[i], s.tokens[i]*t.Seconds() - s.products[i]
	}
	c1, t1 := at(from)
	c2, t2 := at(to)
	return c2 - c1, t2 - t1
}

// before is how many instants lie before t.
func (s *steps) before(t time.Duration) int {
	i, _ := slices.BinarySearch(s.instants, t)
	return i
}

// only keeps the samples within a scope.
func only(list []sample, scope *Scope) []sample {
	var kept []sample
	for d := range dimensions {
		if named[d].figure != scope.Dimension {
			continue
		}
		for i := range list {
			if slices.Contains(scope.Names, named[d].of(list[i].rec)) {
				kept = append(kept, list[i])
			}
		}
	}
	return kept
}

// computed is how many tokens of its prompt were computed; where what the cache gave is
// not known, all of them, which is not exact.
func (s *sample) computed() (tokens float64, exact, known bool) {
	if n, known := s.uncached.Get(); known {
		return float64(n), true, true
	}
	n, known := s.rec.Input.Get()
	return float64(n), false, known
}
