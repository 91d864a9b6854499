package limit

import (
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestShadowIsExact: on the same trace a pool in mode shadow counts exactly the calls
// that an enforcing one refuses, for the same walls with the same figures, and its buckets
// are the same to the last bit. In the one the refused calls never ran; in the other they
// ran, streamed and settled.
func TestShadowIsExact(t *testing.T) {
	for seed := range int64(300) {
		rng := newRand(seed)
		limits := func() (l Rule) {
			l.Limits = six(1+rng.Int64N(40), 500+rng.Int64N(3000), 500+rng.Int64N(2000), 500+rng.Int64N(2000), 1+rng.Int64N(6), 500+rng.Int64N(3000))
			return l
		}
		rules := []Rule{limits(), limits(), limits(), limits()}
		for i := range rules {
			rules[i].Scope = Scope(i)
		}
		policy := enforced(rules...)
		policy.MaxBuckets = 40 // so that some overflow too
		enforce, ce := newPool(t, policy)
		policy.Mode = Shadow
		shadow, cs := newPool(t, policy)
		var te, ts [16]Ticket
		refused := 0
		for step := range 120 {
			d := time.Duration(rng.Int64N(int64(2 * time.Second)))
			ce.pass(d)
			cs.pass(d)
			i := rng.IntN(len(te))
			switch rng.IntN(6) {
			case 0:
				n := rng.Int64N(1000)
				te[i].Charge(n)
				ts[i].Charge(n)
			case 1:
				in, out := known(rng.Int64N(600), rng.Int64N(900))
				te[i].Settle(in, out)
				ts[i].Settle(in, out)
			case 2:
				te[i].Cancel()
				ts[i].Cancel()
			default:
				r := Request{Key: strconv.Itoa(rng.IntN(5)), Model: strconv.Itoa(rng.IntN(4)),
					Input: rng.Int64N(500), Output: rng.Int64N(500), Clamp: rng.IntN(2) == 0}
				ref := enforce.Admit(&r, &te[i])
				if got := shadow.Admit(&r, &ts[i]); got != nil {
					t.Fatalf("shadow refused: %+v", *got)
				}
				would := ts[i].WouldRefuse()
				if (ref == nil) != (would == nil) || ref != nil && *ref != *would {
					t.Fatalf("seed %d, step %d: enforce %+v, shadow %+v", seed, step, ref, would)
				}
				if ref != nil {
					refused++
				}
			}
			if a, b := capture(enforce), capture(shadow); !slices.Equal(a, b) {
				t.Fatalf("seed %d, step %d: enforce holds\n%v, shadow\n%v", seed, step, a, b)
			}
		}
		a, b := enforce.Snapshot(1000), shadow.Snapshot(1000)
		if !slices.Equal(a.Uses, b.Uses) || a.Overflowed != b.Overflowed {
			t.Errorf("seed %d: enforce ends with %+v, shadow with %+v", seed, a.Uses, b.Uses)
		}
		sum := int64(0)
		for i := range b.Refused {
			if b.Refused[i].Mode != Shadow {
				t.Errorf("seed %d: %+v in mode shadow", seed, b.Refused[i])
			}
			b.Refused[i].Mode = Enforce
			sum += b.Refused[i].Calls
		}
		if !slices.Equal(a.Refused, b.Refused) || sum != int64(refused) || refused == 0 {
			t.Errorf("seed %d: %d refused; enforce counted %+v, shadow %+v", seed, refused, a.Refused, b.Refused)
		}
	}
}
