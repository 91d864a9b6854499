package slo

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestGrid compares a grid with a plain matrix, whatever is done to it.
func TestGrid(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	const rows = 60
	for _, width := range []uint16{0, 1, 4, 8} {
		g, cols := newGrid(rows, 7, width), 7
		want := make([][rows]int64, cols)
		for range 5000 {
			r, c := rng.IntN(rows), rng.IntN(cols)
			n := rng.Int64() >> (27 + rng.IntN(36))
			switch rng.IntN(40) {
			case 0:
				g.pack()
			case 1:
				from := make([]int, 1+rng.IntN(9))
				next := make([][rows]int64, len(from))
				for i := range from {
					if from[i] = rng.IntN(cols+1) - 1; from[i] >= 0 {
						next[i] = want[from[i]]
					}
				}
				g, want, cols = g.remap(from), next, len(from)
			case 2:
				a, b := rng.IntN(rows), rng.IntN(rows+1)
				skip := rng.Uint64() & rng.Uint64()
				sums := make([]int64, cols)
				g.sum(min(a, b), max(a, b), skip, sums)
				for c, got := range sums {
					var n int64
					for r := min(a, b); r < max(a, b); r++ {
						if skip>>r&1 == 0 {
							n += want[c][r]
						}
					}
					if got != n {
						t.Fatalf("column %d sums up to %d, want %d", c, got, n)
					}
				}
			case 3:
				g.put(r, c, min(n, maxCell))
				want[c][r] = min(n, maxCell)
			default:
				if rng.IntN(3) == 0 {
					n = -n
				}
				next := min(max(want[c][r]+n, 0), maxCell)
				if got := g.add(r, c, n); got != next-want[c][r] {
					t.Fatalf("adding %d to %d made it %d more", n, want[c][r], got)
				}
				want[c][r] = next
			}
			for c := range want {
				r := rng.IntN(rows)
				if got := g.get(r, c); got != want[c][r] {
					t.Fatalf("cell %d, %d is %d, want %d", r, c, got, want[c][r])
				}
			}
		}
	}
}

// TestDisplay checks the quantiles that are shown: of the last hour, and of the last
// minutes.
func TestDisplay(t *testing.T) {
	tr, _ := configured(t, Class{Name: "c", Objectives: []Objective{{Number: E2E, Target: 990_000, Threshold: time.Second}}})
	now := start
	call := func(d time.Duration) {
		f := simple(now, Answered)
		f.Ended = now.Add(d)
		f.Values[E2E] = Exactly(d)
		record(tr, "c", []string{"a", "b"}[int(d)%2], now, f)
	}
	for minute := range 180 {
		for i := 1; i <= 100; i++ {
			call(time.Duration(i)*time.Millisecond + time.Duration(minute/175)*time.Second)
		}
		now = now.Add(time.Minute)
		tr.Tick(now)
	}
	o := find(t, tr.Status(now.Add(-time.Second)), "c", AllModels, "e2e_p99")
	if n := o.Quantiles.Calls; n < 5500 || n > 6000 {
		t.Errorf("%d calls in the last hour, want 5500 to 6000", n)
	}
	if n := o.Quantiles5m.Calls; n < 500 || n > 1000 {
		t.Errorf("%d calls in the last five minutes, want 500 to 1000", n)
	}
	within := func(name string, got, want time.Duration) {
		if d := (got - want).Abs(); d > want/100 {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	within("p50 of the hour", o.Quantiles.P50, 55*time.Millisecond)
	within("p95 of the hour", o.Quantiles.P95, 1045*time.Millisecond)
	within("p90 of the last minutes", o.Quantiles5m.P90, 1080*time.Millisecond)
	for _, back := range []time.Duration{-30 * time.Minute, -3 * time.Hour} {
		now = now.Add(back)
		call(time.Millisecond)
	}
	if o := find(t, tr.Status(now), "c", AllModels, "e2e_p99"); o.Quantiles == nil {
		t.Error("nothing is shown after the clock went back")
	}
	now = now.Add(9 * time.Hour)
	tr.Tick(now)
	if o := find(t, tr.Status(now), "c", AllModels, "e2e_p99"); o.Quantiles != nil {
		t.Errorf("after hours without calls %+v is shown", *o.Quantiles)
	}
}
