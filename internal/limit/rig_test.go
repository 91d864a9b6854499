package limit

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// rig runs a pool and its model side by side.
type rig struct {
	t        *testing.T
	pool     *Pool
	clock    *clock
	start    time.Time
	m        model
	replicas int64
	real     [6]Ticket
	tickets  [6]modelTicket
	keys     [2]string
}

var rigSubjects = [3]subject{{PerKey, names{key: "a"}}, {PerKey, names{key: "b"}}, {scope: PerPool}}

// input hands out bytes; after its end all are 0.
type input []byte

func (in *input) next() int64 {
	if len(*in) == 0 {
		return 0
	}
	b := (*in)[0]
	*in = (*in)[1:]
	return int64(b)
}

// limits reads limits, not all of them, and not all above 0; at least one is there.
func (in *input) limits() call.Limits {
	some := func(scale int64) (c call.Count) {
		if n := in.next(); n > 40 {
			c = call.Known((n - 41) * scale)
		}
		return c
	}
	return call.Limits{RequestsPerMinute: some(1), TokensPerMinute: some(17), InputTokensPerMinute: some(10),
		OutputTokensPerMinute: some(13), TokensInFlight: some(29), Concurrency: call.Known(in.next() % 5)}
}

func runModel(t *testing.T, data []byte) {
	in := input(data)
	c := newClock()
	g := &rig{t: t, clock: c, start: c.now(), pool: New("p", c.now), keys: [2]string{"a", "b"}}
	g.apply(&in)
	for step := 0; len(in) > 0 && !t.Failed(); step++ {
		op, i := in.next(), in.next()%int64(len(g.real))
		switch op % 12 {
		case 0, 1, 2, 3:
			g.admit(i, in.next()%2, in.next()*3, in.next()*3, in.next()%2 == 0)
		case 4, 5:
			g.charge(i, in.next()*5)
		case 6, 7:
			g.settle(i, in.next()*3, in.next()*4)
		case 8:
			g.end(i, cost{}, g.real[i].Cancel)
		case 9, 10:
			g.pass(in.next() << (in.next() % 30)) // up to 4.5 minutes
		case 11:
			if op > 128 {
				g.apply(&in)
			} else {
				c.pass(-time.Duration(in.next() << 28)) // the pool must not follow
			}
		}
		g.compare(step, op%12)
	}
}

func (g *rig) pass(ns int64) {
	g.clock.pass(time.Duration(ns))
	g.m.now = max(g.m.now, int64(g.clock.now().Sub(g.start)))
}

func (g *rig) apply(in *input) {
	general, named, pool := in.limits(), in.limits(), in.limits()
	policy := enforced(perKey(general), Rule{Scope: PerKey, Key: "b", Limits: named}, Rule{Scope: PerPool, Limits: pool})
	policy.Replicas = int(1 + in.next()%3)
	// Levels come in until now under the old policy.
	for i := range g.m.sets {
		for _, b := range g.m.sets[i].buckets {
			if b != nil {
				b.advance(g.m.now)
			}
		}
	}
	was := make(map[*modelBucket]bool) // full, where the fraction is too near to tell
	for i := range g.m.sets {
		for d, b := range g.m.sets[i].buckets {
			if b == nil {
				continue
			}
			was[b] = b.level.Cmp(rat(b.burst)) >= 0
			g.pool.mu.Lock()
			if s := g.pool.sets[rigSubjects[i]]; s != nil && s.rates[d] != nil && g.close(b, float64(b.burst)) {
				was[b] = s.rates[d].full(g.pool.now())
			}
			g.pool.mu.Unlock()
		}
	}
	apply(g.t, g.pool, policy)
	g.replicas = int64(policy.Replicas)
	both := newSizes(&general, &Burst{}, g.replicas)
	own := both
	own.over(newSizes(&named, &Burst{}, g.replicas))
	for i, z := range []sizes{both, own, newSizes(&pool, &Burst{}, g.replicas)} {
		s := &g.m.sets[i]
		s.sizes = z
		for d, b := range s.buckets {
			switch {
			case z[d].applies && b == nil:
				s.buckets[d] = &modelBucket{level: rat(z[d].burst), last: g.m.now}
				s.buckets[d].newRate(z[d], g.replicas)
			case z[d].applies:
				b.newRate(z[d], g.replicas)
				if was[b] {
					b.level = rat(b.burst)
				}
				b.advance(g.m.now)
			case s.calls == 0:
				s.buckets[d] = nil
			}
		}
	}
}

// close tells whether the exact level is too near to a figure for doubles to tell.
func (g *rig) close(b *modelBucket, figure float64) bool {
	exact, _ := b.level.Float64()
	return math.Abs(exact-figure) < 1e-6
}

// wait is bucket.wait, and whether it is too near to a nanosecond to tell.
func (g *rig) wait(b *modelBucket, n int64) (ns float64, unsure bool) {
	if b.limit == 0 || n > b.burst {
		return math.Inf(1), false
	}
	b.advance(g.m.now)
	short := new(big.Rat).Sub(rat(n), b.level)
	ns, _ = short.Quo(short, b.perNano).Float64()
	return max(ns, 0), math.Abs(ns-1) < 0.9
}

func (g *rig) admit(i, key, input, output int64, clamp bool) {
	g.end(i, cost{}, g.real[i].Cancel)
	c := cost{1, input, output}
	at := [2]int{int(key), 2}
	for _, j := range at {
		s := &g.m.sets[j]
		for _, d := range []Dimension{Tokens, OutputTokens, TokensInFlight} {
			if clamp && s.sizes[d].applies {
				beside := int64(0)
				if d != OutputTokens {
					beside = input
				}
				c.output = max(min(c.output, s.sizes[d].burst-beside), 0)
			}
		}
	}
	waits := map[string]float64{}
	unsure, longest := false, -1.0
	meet := func(j int, d Dimension, ns float64) {
		waits[rigSubjects[j].scope.String()+" "+d.String()] = ns
		longest = max(longest, ns)
	}
	for _, j := range at {
		s := &g.m.sets[j]
		for d, z := range s.sizes {
			n := c.of(Dimension(d))
			switch {
			case !z.applies:
			case d < numRates:
				ns, near := g.wait(s.buckets[d], n)
				unsure = unsure || near
				if ns >= 1 {
					meet(j, Dimension(d), ns)
				}
			case z.limit == 0 || n > z.limit:
				meet(j, Dimension(d), math.Inf(1))
			case Dimension(d) == Concurrency && s.calls+n > z.limit, Dimension(d) == TokensInFlight && s.tokens+n > z.limit:
				meet(j, Dimension(d), 0)
			}
		}
	}
	ref := g.pool.Admit(&Request{Key: g.keys[key], Model: "m", Input: input, Output: output, Clamp: clamp}, &g.real[i])
	if !unsure && (ref == nil) != (longest < 0) {
		g.t.Errorf("%+v: got %+v, want walls %v", c, ref, waits)
		return
	}
	if ref != nil {
		if !unsure {
			g.checkRefusal(ref, waits, longest, c)
		}
		return
	}
	mt := &g.tickets[i]
	*mt = modelTicket{held: true, set: at, reserved: c.output}
	for n, j := range at {
		s := &g.m.sets[j]
		if mt.takes[n] = s.sizes.count() > 0; !mt.takes[n] {
			continue
		}
		s.calls++
		for d := range mt.took[n] {
			mt.took[n][d] = s.sizes[d].applies
		}
	}
	g.book(mt, c)
}

func (g *rig) checkRefusal(ref *Refusal, waits map[string]float64, longest float64, c cost) {
	wait, met := waits[ref.Wall()]
	switch {
	case !met || longest-wait > 2+1e-9*longest:
		g.t.Errorf("met %s, want the longest of %v", ref.Wall(), waits)
	case ref.TooLarge != math.IsInf(wait, 1):
		g.t.Errorf("too large is %v for %v", ref.TooLarge, waits)
	case !ref.TooLarge && math.Abs(float64(ref.RetryAfter)-wait) > 2+1e-9*wait:
		g.t.Errorf("retry after %d ns, want %v", ref.RetryAfter, wait)
	case ref.Requested != c.of(ref.Dimension):
		g.t.Errorf("requested %d, want %d", ref.Requested, c.of(ref.Dimension))
	}
}

func (g *rig) book(mt *modelTicket, c cost) {
	more := cost{c.requests - mt.booked.requests, c.input - mt.booked.input, c.output - mt.booked.output}
	mt.booked = c
	for n, j := range mt.set {
		if !mt.takes[n] {
			continue
		}
		s := &g.m.sets[j]
		s.tokens += more.input + more.output
		for d, took := range mt.took[n] {
			if took {
				s.buckets[d].book(g.m.now, more.of(Dimension(d)))
			}
		}
	}
}

func (g *rig) charge(i, output int64) {
	g.real[i].Charge(output)
	if mt := &g.tickets[i]; mt.held && output >= mt.booked.output+64 {
		c := mt.booked
		c.output = output
		g.book(mt, c)
	}
}

// settle takes figures above 600 for unknown.
func (g *rig) settle(i, input, output int64) {
	c := g.tickets[i].booked
	var in, out call.Count
	if input <= 600 {
		in, c.input = call.Known(input), input
	}
	if output <= 600 {
		out, c.output = call.Known(output), output
	}
	g.end(i, c, func() { g.real[i].Settle(in, out) })
}

func (g *rig) end(i int64, c cost, real func()) {
	real()
	mt := &g.tickets[i]
	if !mt.held {
		return
	}
	g.book(mt, c)
	mt.held = false
	for n, j := range mt.set {
		if !mt.takes[n] {
			continue
		}
		s := &g.m.sets[j]
		s.calls--
		s.tokens -= mt.booked.input + mt.booked.output
		for d := range s.buckets {
			if s.calls == 0 && !s.sizes[d].applies {
				s.buckets[d] = nil
			}
		}
	}
}

// compare holds every bucket of the pool to the model's.
func (g *rig) compare(step int, op int64) {
	g.pool.mu.Lock()
	defer g.pool.mu.Unlock()
	now := g.pool.now()
	for i := range g.m.sets {
		s, ms := g.pool.sets[rigSubjects[i]], &g.m.sets[i]
		if s == nil {
			if ms.calls != 0 {
				g.t.Errorf("step %d (%d): %v is gone with %d calls", step, op, rigSubjects[i], ms.calls)
			}
			continue
		}
		if s.calls != ms.calls || s.tokens != ms.tokens {
			g.t.Errorf("step %d (%d): %v has %d calls with %d tokens, want %d with %d", step, op, rigSubjects[i],
				s.calls, s.tokens, ms.calls, ms.tokens)
		}
		for d, mb := range ms.buckets {
			if (mb == nil) != (s.rates[d] == nil) {
				g.t.Errorf("step %d (%d): %v %s: bucket %v, want %v", step, op, rigSubjects[i], Dimension(d), s.rates[d], mb)
				continue
			}
			if mb == nil {
				continue
			}
			mb.advance(g.m.now)
			if got := s.rates[d].level(now); !g.close(mb, got) {
				want, _ := mb.level.Float64()
				g.t.Errorf("step %d (%d): %v %s holds %v, want %v", step, op, rigSubjects[i], Dimension(d), got, want)
			}
		}
	}
}

// TestModel runs random sequences of everything against the model.
func TestModel(t *testing.T) {
	for seed := range int64(300) {
		rng := newRand(seed)
		data := make([]byte, 400)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		if runModel(t, data); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzModel(f *testing.F) {
	for seed := range int64(10) {
		rng := newRand(seed)
		data := make([]byte, 300)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { runModel(t, data[:min(len(data), 1000)]) })
}
