package sim

import (
	"math/rand/v2"
	"testing"
)

// TestKVCacheNeverLosesABlock plays at random with sequences of shared
// beginnings, and counts after each move.
func TestKVCacheNeverLosesABlock(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		k := newKVCache(40, 4, seed%5 != 0)
		var live []*sequence
		hits := 0
		for range 400 {
			switch random.IntN(4) {
			case 0:
				prompt := make([]token, 1+random.IntN(40))
				for i := range prompt {
					prompt[i] = token(i/8*random.IntN(2) + 1)
				}
				s := &sequence{prompt: prompt, hashes: blockHashes("m", prompt, 4)}
				n := k.cachedPrefix(s.hashes, len(prompt))
				free := k.free + k.idle.Len()
				if k.admit(s, n, len(prompt)) {
					s.computed = n * 4
					hits += n
					live = append(live, s)
				} else if k.free+k.idle.Len() != free || len(s.shared) > 0 {
					t.Fatal("a refused sequence took blocks")
				}
			case 1:
				if len(live) > 0 {
					s := live[random.IntN(len(live))]
					s.computed = max(s.computed, len(s.prompt))
					k.publish(s)
				}
			case 2:
				if len(live) > 0 {
					s := live[random.IntN(len(live))]
					if k.grow(s, max(s.computed, len(s.prompt))+1) {
						s.computed = max(s.computed, len(s.prompt)) + 1
					}
				}
			case 3:
				if len(live) > 0 {
					i := random.IntN(len(live))
					k.release(live[i])
					live = append(live[:i], live[i+1:]...)
				}
			}
			held, shared := 0, map[*block]int{}
			for _, s := range live {
				held += s.private
				for _, b := range s.shared {
					shared[b]++
				}
				if len(s.shared)+s.private < k.blocksFor(len(s.prompt)) {
					t.Fatal("a live sequence has less room than its prompt")
				}
			}
			for b, n := range shared {
				if b.uses != n || b.idle != nil {
					t.Fatalf("a block has %d uses, counts %d, idle %v", n, b.uses, b.idle != nil)
				}
			}
			if k.used() != held+len(shared) || k.free < 0 || len(k.prefixes) != len(shared)+k.idle.Len() {
				t.Fatalf("used %d, but %d are held and %d shared; free %d, named %d, idle %d",
					k.used(), held, len(shared), k.free, len(k.prefixes), k.idle.Len())
			}
		}
		for _, s := range live {
			k.release(s)
		}
		if k.used() != 0 {
			t.Fatalf("%d blocks in use by nobody", k.used())
		}
		if seed == 1 && hits == 0 {
			t.Fatal("nothing was ever shared: the test is too tame")
		}
	}
}

func TestKVCacheForgetsTheLeastRecentlyUsed(t *testing.T) {
	k := newKVCache(4, 1, true)
	use := func(name string) int {
		s := &sequence{prompt: make([]token, 2), hashes: blockHashes(name, make([]token, 2), 1)}
		hits := k.cachedPrefix(s.hashes, 3) // of two, with one more token to come
		if !k.admit(s, hits, 2) {
			t.Fatal("no room")
		}
		s.computed = 2
		k.publish(s)
		k.release(s)
		return hits
	}
	for i, step := range []struct {
		name string
		hits int
	}{{"a", 0}, {"b", 0}, {"a", 2}, {"c", 0}, {"a", 2}, {"b", 0}} {
		if got := use(step.name); got != step.hits {
			t.Errorf("step %d, %s: %d hits, want %d", i, step.name, got, step.hits)
		}
	}
}
