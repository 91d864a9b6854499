package limit

import (
	"slices"
	"strconv"
	"testing"
	"time"
)

// small returns a policy with room for n buckets.
func small(n int, rules ...Rule) Policy {
	policy := enforced(rules...)
	policy.MaxBuckets = n
	return policy
}

// consistent checks what the pool counts of its sets against the sets.
func consistent(t *testing.T, p *Pool) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.order) != len(p.sets) {
		t.Fatalf("%d sets in order, %d in all", len(p.order), len(p.sets))
	}
	buckets := 0
	for i, s := range p.order {
		if s.at != i || p.sets[s.subject] != s || s.dropped || s.count != s.sizes.count() || s.calls < 0 || s.tokens < 0 {
			t.Fatalf("set %d is out of order: %+v", i, s)
		}
		for d, b := range s.rates {
			if s.sizes[d].applies && (b == nil || b.size != s.sizes[d]) {
				t.Fatalf("set %d: %s is %+v, want %+v", i, Dimension(d), b, s.sizes[d])
			}
		}
		buckets += s.count
	}
	if buckets != p.buckets {
		t.Fatalf("%d buckets counted, %d are there", p.buckets, buckets)
	}
}

// TestIdleGo: sets that are full and have nothing in flight make room, before it is
// needed.
func TestIdleGo(t *testing.T) {
	p, c := newPool(t, small(1000, perKey(tpm(60))))
	for i := range 10_000 {
		c.pass(100 * time.Millisecond)
		admit(t, p, Request{Key: strconv.Itoa(i), Input: 1}).Settle(known(1, 0))
	}
	consistent(t, p)
	// Each is idle after a second, so about ten are not.
	if snap := p.Snapshot(1000); len(p.sets) > 40 || snap.Overflowed != 0 {
		t.Errorf("%d sets, %d overflowed", len(p.sets), snap.Overflowed)
	}
}

// TestIdleStay: a few keys keep their sets between their calls, so that a call makes none.
func TestIdleStay(t *testing.T) {
	p, c := newPool(t, enforced(perKey(tpm(60))))
	made := make(map[string]*set)
	for i := range 1000 {
		c.pass(time.Minute) // all are full again
		key := strconv.Itoa(i % 50)
		admit(t, p, Request{Key: key, Input: 1}).Settle(known(1, 0))
		s := p.sets[subjectOf(PerKey, key, "")]
		if before := made[key]; before != nil && before != s {
			t.Fatalf("call %d has made the set of key %s anew", i, key)
		}
		made[key] = s
	}
	consistent(t, p)
}

// TestDroppedIsUnseen: a pool that drops what it can decides as one that never does.
func TestDroppedIsUnseen(t *testing.T) {
	for seed := range int64(50) {
		rng := newRand(seed)
		rules := []Rule{perKey(six(4, 100, 80, 80, 2, 120)), {Scope: PerKeyModel, Limits: tpm(50)}}
		a, ca := newPool(t, small(1<<20, rules...))
		b, cb := newPool(t, small(1<<20, rules...))
		var ta, tb [20]Ticket
		for step := range 500 {
			d := time.Duration(rng.Int64N(int64(5 * time.Second)))
			ca.pass(d)
			cb.pass(d)
			b.mu.Lock()
			b.sweep(b.now(), 1000) // drops all that is idle; only a sweeps as it must
			b.mu.Unlock()
			i := rng.IntN(len(ta))
			if in, out := known(rng.Int64N(60), rng.Int64N(60)); rng.IntN(2) == 0 {
				ta[i].Settle(in, out)
				tb[i].Settle(in, out)
				continue
			}
			ta[i].Settle(known(0, 0))
			tb[i].Settle(known(0, 0))
			r := Request{Key: strconv.Itoa(rng.IntN(8)), Model: strconv.Itoa(rng.IntN(3)), Input: rng.Int64N(60), Output: rng.Int64N(60)}
			ra, rb := a.Admit(&r, &ta[i]), b.Admit(&r, &tb[i])
			if (ra == nil) != (rb == nil) || ra != nil && *ra != *rb {
				t.Fatalf("seed %d, step %d: %+v and %+v", seed, step, ra, rb)
			}
		}
		consistent(t, a)
		consistent(t, b)
	}
}

// TestOverflow: what cannot be dropped and has no room shares one bucket, and is
// counted. Whom a rule names, or who has limits of its own, always has room.
func TestOverflow(t *testing.T) {
	p, _ := newPool(t, small(10, perKey(atOnce(2)), Rule{Scope: PerKey, Key: "named", Limits: atOnce(3)}))
	for i := range 10 {
		admit(t, p, Request{Key: strconv.Itoa(i)})
	}
	admit(t, p, Request{Key: "x"})
	admit(t, p, Request{Key: "y"})
	if ref := refuse(t, p, Request{Key: "z"}); ref.Subject != Other || ref.Used != 2 || ref.Limit != 2 {
		t.Errorf("got %+v", ref)
	}
	if got := p.Snapshot(100).Overflowed; got != 3 {
		t.Errorf("%d overflowed, want 3", got)
	}
	own := atOnce(5)
	for i := range 20 { // far past the room
		admit(t, p, Request{Key: "own " + strconv.Itoa(i), KeyLimits: &own})
	}
	for range 3 {
		admit(t, p, Request{Key: "named"})
	}
	admit(t, p, Request{}) // without a key: one subject
	admit(t, p, Request{})
	if ref := refuse(t, p, Request{}); ref.Subject != "" {
		t.Errorf("got %+v", ref)
	}
	if got := p.Snapshot(100).Overflowed; got != 3 {
		t.Errorf("%d overflowed, want 3", got)
	}
	for i := range 10 { // those from before keep their own
		admit(t, p, Request{Key: strconv.Itoa(i)})
	}
	consistent(t, p)
	if want := 10 + 1 + 20 + 1 + 1; len(p.sets) != want {
		t.Errorf("%d sets, want %d", len(p.sets), want)
	}
}

// TestOverflowNames: of a key and a model only what no rule names becomes Other.
func TestOverflowNames(t *testing.T) {
	p, _ := newPool(t, small(1,
		Rule{Scope: PerKeyModel, Limits: atOnce(10)},
		Rule{Scope: PerKeyModel, Key: "k", Limits: atOnce(20)},
		Rule{Scope: PerKeyModel, Model: "m", Limits: atOnce(30)}))
	admit(t, p, Request{Key: "first", Model: "first"})
	for _, tt := range []struct {
		key, model, subject string
		limit               int64
	}{
		{"x", "y", "_other _other", 10},
		{"k", "y", "k _other", 20},
		{"x", "m", "_other m", 30},
		{"k", "m", "k m", 20},
		{"", "y", " _other", 10},
		{"x", "", "_other ", 10},
	} {
		admit(t, p, Request{Key: tt.key, Model: tt.model})
		uses := spent(p)
		if !slices.ContainsFunc(uses, func(u Use) bool { return u.Subject == tt.subject && u.Limit == tt.limit && u.Used == 1 }) {
			t.Errorf("%q %q: no %q of %d in %+v", tt.key, tt.model, tt.subject, tt.limit, uses)
		}
	}
	consistent(t, p)
}

// TestOverflowEnds: when there is room again, subjects get buckets of their own.
func TestOverflowEnds(t *testing.T) {
	p, c := newPool(t, small(5, perKey(tpm(60))))
	for i := range 5 {
		admit(t, p, Request{Key: strconv.Itoa(i), Input: 30}).Settle(known(30, 0))
	}
	admit(t, p, Request{Key: "x", Input: 60}).Settle(known(60, 0))
	refuse(t, p, Request{Key: "y", Input: 1})
	c.pass(30 * time.Second)
	admit(t, p, Request{Key: "y", Input: 60})
	consistent(t, p)
}

// TestManySubjects: sets made by one admission do not make each other go, and sets
// stay consistent whatever happens.
func TestManySubjects(t *testing.T) {
	for seed := range int64(20) {
		rng := newRand(seed)
		rules := []Rule{perKey(six(9, 900, 900, 900, 3, 900)), {Scope: PerModel, Limits: tpm(5000)},
			{Scope: PerKeyModel, Limits: rpm(7)}, {Scope: PerPool, Limits: atOnce(40)}}
		p, c := newPool(t, small(60, rules...))
		var tickets [30]Ticket
		for range 3000 {
			c.pass(time.Duration(rng.Int64N(int64(2 * time.Second))))
			ticket := &tickets[rng.IntN(len(tickets))]
			switch rng.IntN(10) {
			case 0:
				ticket.Cancel()
			case 1, 2, 3:
				ticket.Settle(known(rng.Int64N(300), rng.Int64N(300)))
			case 4:
				ticket.Charge(rng.Int64N(500))
			case 5:
				if rng.IntN(20) == 0 {
					apply(t, p, small(60, rules[:1+rng.IntN(len(rules))]...))
				}
			default:
				p.Admit(&Request{Key: strconv.Itoa(rng.IntN(50)), Model: strconv.Itoa(rng.IntN(9)), Input: rng.Int64N(300), Output: rng.Int64N(300)}, ticket)
				for _, h := range ticket.holds {
					if h.set != nil && h.set.dropped {
						t.Fatal("a ticket holds a set that is gone")
					}
				}
			}
		}
		consistent(t, p)
		for i := range tickets {
			tickets[i].Cancel()
		}
		consistent(t, p)
		for _, s := range p.order {
			if s.calls != 0 || s.tokens != 0 {
				t.Fatalf("seed %d: %s %q still has %d calls with %d tokens", seed, s.scope, s.text, s.calls, s.tokens)
			}
		}
	}
}
