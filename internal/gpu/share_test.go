package gpu

import (
	"math"
	"math/rand/v2"
	"testing"
)

// steady is a sampler of two GPUs that used 300 W together for so many seconds,
// sampled half-way through each.
func steady(seconds int) *Sampler {
	s := NewSampler(none{}, Options{})
	for i := range seconds + 1 {
		now := float64(i) - 0.5
		s.keep([]Reading{busy(s, 0, now, 1, 100), busy(s, 1, now, 1, 200)})
	}
	return s
}

func TestShare(t *testing.T) {
	count := func(s *Sampler, from, to float64, tokens int) { // spread evenly
		for i := range tokens {
			s.Count(s.at(from+(to-from)*float64(i)/float64(tokens)), 1)
		}
	}
	for name, tt := range map[string]struct {
		count    func(s *Sampler)
		from, to float64
		tokens   int64
		want     float64 // < 0 is unknown
	}{
		"alone in whole seconds":                    {func(s *Sampler) { count(s, 2, 5, 30) }, 2, 5, 30, 900},
		"alone, the second before and after it too": {func(s *Sampler) { count(s, 2.5, 4.5, 20) }, 2.5, 4.5, 20, 900},
		"one token":                   {func(s *Sampler) { count(s, 3.3, 3.3, 1) }, 3.3, 3.3, 1, 300},
		"half of one of two calls":    {func(s *Sampler) { count(s, 2, 4, 20); count(s, 2, 4, 60) }, 2, 4, 20, 150},
		"one joins":                   {func(s *Sampler) { count(s, 2, 6, 40); count(s, 4, 6, 20) }, 2, 6, 40, 600 + 300},
		"the one that joined":         {func(s *Sampler) { count(s, 2, 6, 40); count(s, 4, 6, 20) }, 4, 6, 20, 300},
		"nobody else, with a pause":   {func(s *Sampler) { count(s, 2, 3, 10); count(s, 6, 7, 10) }, 2, 7, 20, 240},
		"never more than all":         {func(s *Sampler) { count(s, 2, 4, 1) }, 2, 4, 1000, 300},
		"the last second is not over": {func(s *Sampler) { count(s, 9, 10.75, 7) }, 9, 10.75, 7, 300 + 0.75*300},
		"beyond what samples hold":    {func(s *Sampler) { count(s, 9, 13, 7) }, 9, 13, 7, -1},
		"before the first sample":     {func(s *Sampler) { count(s, -3, 2, 7) }, -3, 2, 7, -1},
		"nothing was counted":         {func(*Sampler) {}, 2, 4, 10, -1},
		"no token":                    {func(s *Sampler) { count(s, 2, 5, 30) }, 2, 5, 0, -1},
		"backwards":                   {func(s *Sampler) { count(s, 2, 5, 30) }, 5, 2, 30, -1},
		"over a quarter of an hour":   {func(s *Sampler) { count(s, 2, 5, 30) }, 2, 1000, 30, -1},
	} {
		s := steady(10)
		tt.count(s)
		got, ok := s.Share(s.at(tt.from), s.at(tt.to), tt.tokens)
		if ok != (tt.want >= 0) || ok && math.Abs(got-tt.want) > 1e-6 {
			t.Errorf("%s: %v (%v), want %v", name, got, ok, tt.want)
		}
	}
	if _, ok := (*Sampler)(nil).Share(noon, noon, 1); ok {
		t.Error("a share of nothing")
	}
	(*Sampler)(nil).Count(noon, 1)
}

// TestSharesOfEvenCallsAreAll: of calls that write evenly, in whole seconds, the
// shares add up to the energy of all seconds in which anybody wrote; of others
// they never exceed it by more than calls are uneven.
func TestSharesOfEvenCallsAreAll(t *testing.T) {
	for range 50 {
		s := steady(60)
		written := [60]bool{}
		type call struct {
			from, to int
			rate     int
		}
		var calls []call
		for range 1 + rand.IntN(20) {
			from := 1 + rand.IntN(50)
			c := call{from, from + 1 + rand.IntN(58-from), 1 + rand.IntN(100)}
			calls = append(calls, c)
			for k := c.from; k < c.to; k++ {
				written[k] = true
				for j := range c.rate {
					s.Count(s.at(float64(k)+float64(j)/float64(c.rate)), 1)
				}
			}
		}
		var sum, want float64
		for _, c := range calls {
			joules, ok := s.Share(s.at(float64(c.from)), s.at(float64(c.to)), int64(c.rate*(c.to-c.from)))
			if !ok {
				t.Fatalf("%+v has no share", c)
			}
			sum += joules
		}
		for _, any := range written {
			if any {
				want += 300
			}
		}
		if math.Abs(sum-want) > 1e-6*want {
			t.Fatalf("shares of %+v are %v J, want %v", calls, sum, want)
		}
	}
}

// TestShareIsBounded: whatever was counted, a share is never negative nor more
// than all energy of the seconds that the call touches.
func TestShareIsBounded(t *testing.T) {
	s := steady(60)
	for range 1000 {
		s.Count(s.at(rand.Float64()*60), 1+rand.IntN(5))
	}
	for range 2000 {
		from := 1 + rand.Float64()*57
		to := from + rand.Float64()*(58-from)
		joules, ok := s.Share(s.at(from), s.at(to), 1+rand.Int64N(1000))
		if most := 300 * (math.Floor(to) + 1 - math.Floor(from)); !ok || joules < 0 || joules > most+1e-6 {
			t.Fatalf("%v to %v: %v (%v), at most %v", from, to, joules, ok, most)
		}
	}
}

// TestShareNeedsAllGPUs: without the energy of one, no call has a share.
func TestShareNeedsAllGPUs(t *testing.T) {
	s := NewSampler(none{}, Options{})
	for i := range 20 {
		readings := []Reading{busy(s, 0, float64(i), 1, 100)}
		if i >= 10 {
			readings = append(readings, Reading{Time: s.at(float64(i)), Index: 1})
		}
		s.keep(readings)
		s.Count(s.at(float64(i)+0.5), 1)
	}
	if joules, ok := s.Share(s.at(2), s.at(6), 4); !ok || !near(joules, 400) {
		t.Errorf("%v (%v)", joules, ok)
	}
	if joules, ok := s.Share(s.at(12), s.at(16), 4); ok {
		t.Errorf("%v J of one GPU pass for those of two", joules)
	}
	if _, ok := NewSampler(none{}, Options{}).Share(s.at(2), s.at(6), 4); ok {
		t.Error("a share without samples")
	}
}

func TestCount(t *testing.T) {
	s := NewSampler(none{}, Options{})
	s.Count(s.at(-1), 5) // before the epoch
	s.Count(s.at(1), 0)
	s.Count(s.at(1), -3)
	s.Count(s.at(1.5), 2)
	s.Count(s.at(1.999), 3)
	s.Count(s.at(2), 7)
	s.Count(s.at(1.2), 1)
	for k, want := range []int64{0, 6, 7, 0} {
		if got := s.counted(int64(k)); got != want {
			t.Errorf("second %d: %d, want %d", k, got, want)
		}
	}
	// A quarter of an hour later its place is taken, and who comes late is dropped.
	s.Count(s.at(1+buckets), 4)
	s.Count(s.at(1), 9)
	if s.counted(1) != 0 || s.counted(1+buckets) != 4 {
		t.Errorf("%d, then %d", s.counted(1), s.counted(1+buckets))
	}
	for range 4000 {
		s.Count(s.at(3), math.MaxInt)
	}
	if got := s.counted(3); got != 4000*mostAtOnce {
		t.Errorf("%d", got)
	}
}
