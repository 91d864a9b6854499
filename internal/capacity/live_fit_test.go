package capacity

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRobust: the fit finds the truth through noise and through wild rows, finds it again when
// the rows come twice, and leaves out what would be negative or cannot be told apart.
func TestRobust(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	truth := [3]float64{0.018, 0.0004, 0.8}
	rows := make([]liveRow, 600)
	for i := range rows {
		r := liveRow{x: [3]float64{1, 1 + 20*rng.Float64(), 0.01 * rng.Float64()}, w: 1 + 60*rng.Float64()}
		r.y = truth[0] + truth[1]*r.x[1] + truth[2]*r.x[2] + 0.0003*rng.NormFloat64()
		if i%8 == 0 {
			r.y *= 3 + 5*rng.Float64() // a call that something else held up
		}
		rows[i] = r
	}
	var work liveWork
	theta, ok := liveRobust(rows, 3, &work)
	if !ok {
		t.Fatal("no fit")
	}
	for i := range truth {
		if math.Abs(theta[i]/truth[i]-1) > 0.05 {
			t.Errorf("θ%d is %v, want %v", i, theta[i], truth[i])
		}
	}
	again, _ := liveRobust(slices.Concat(rows, rows), 3, &work)
	for i := range theta {
		if math.Abs(again[i]/theta[i]-1) > 1e-9 {
			t.Errorf("doubled rows give θ%d = %v, not %v", i, again[i], theta[i])
		}
	}

	for i := range rows {
		rows[i].y = 0.05 - 0.001*rows[i].x[1]
	}
	if theta, ok := liveRobust(rows, 2, &work); !ok || theta[1] != 0 || !(theta[0] > 0) {
		t.Errorf("a falling line gives %v, %v", theta, ok)
	}
	for i := range rows {
		rows[i].x[2] = 3 * rows[i].x[0] // the same column twice
		rows[i].y = 0.01 + 0.001*rows[i].x[1]
	}
	if theta, ok := liveRobust(rows, 3, &work); !ok || theta[2] != 0 || math.Abs(theta[0]-0.01) > 1e-9 || math.Abs(theta[1]-0.001) > 1e-9 {
		t.Errorf("columns that depend on each other give %v, %v", theta, ok)
	}
	for i := range rows {
		rows[i].y = -1
	}
	if theta, ok := liveRobust(rows, 2, &work); ok {
		t.Errorf("negative times give %v", theta)
	}
}

func FuzzMedian(f *testing.F) {
	f.Add(uint64(1), uint16(5))
	f.Add(uint64(2), uint16(100))
	f.Fuzz(func(t *testing.T, seed uint64, n uint16) {
		rng := rand.New(rand.NewPCG(seed, 1))
		v := make([]float64, int(n)%500+1)
		for i := range v {
			v[i] = float64(rng.IntN(40))
		}
		sorted := slices.Clone(v)
		slices.Sort(sorted)
		if got := liveMedian(v); got != sorted[len(sorted)/2] {
			t.Errorf("the middle of %v is %v", sorted, got)
		}
	})
}

// TestStretches: a change of rate is found where it is, random arrivals have none, and unit
// gaps have the mean 1 and the burstiness that arrivals had.
func TestStretches(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	cuts := 0
	for range 100 {
		gaps := make([]float64, 1000)
		for i := range gaps {
			gaps[i] = rng.ExpFloat64()
		}
		cuts += len(liveStretches(gaps)) - 1
	}
	t.Logf("%d cuts in 100 times 1000 random arrivals", cuts)
	if cuts > 15 {
		t.Errorf("%d cuts in 100 times 1000 random arrivals", cuts)
	}
	found := 0
	for range 50 {
		gaps := make([]float64, 900)
		for i := range gaps {
			gaps[i] = rng.ExpFloat64()
			if i >= 300 {
				gaps[i] /= 1.6
			}
		}
		list := liveStretches(gaps)
		for _, s := range list {
			if s.from > 240 && s.from < 360 && math.Abs(s.rate/1.6-1) < 0.2 {
				found++
				break
			}
		}
		if first, last := list[0], list[len(list)-1]; first.from != 0 || last.to != len(gaps) {
			t.Fatalf("%+v", list)
		}
	}
	if found < 40 {
		t.Errorf("a change from 1 to 1.6 calls/s was found %d times of 50", found)
	}
	// Fours: the scatter of unit gaps is that of batches, cv² = 7.
	calls := make([]liveCall, 4000)
	at := 0.0
	for i := range calls {
		if i%4 == 0 {
			at += 4 * rng.ExpFloat64() / (1 + float64(i/2000))
		}
		calls[i].received = at
	}
	a := liveArrive(calls)
	sum, squares := 0.0, 0.0
	for _, u := range a.unit {
		sum += u
		squares += u * u
	}
	n := float64(len(a.unit))
	if cv2 := (squares/n - sum*sum/n/n) / (sum * sum / n / n); math.Abs(sum/n-1) > 0.01 || cv2 < 5.5 || cv2 > 8.5 {
		t.Errorf("unit gaps have mean %v and cv² %v, want 1 and 7", sum/n, cv2)
	}
	if math.Abs(a.present-2) > 0.3 || a.highest < a.present || a.over != stretchCalls {
		t.Errorf("%v calls/s at last, %v over %d calls at most", a.present, a.highest, a.over)
	}
	if same := liveArrive(make([]liveCall, 300)); math.IsNaN(same.rate) || math.IsInf(same.rate, 0) || math.IsInf(same.highest, 0) {
		t.Errorf("calls that all came at once: %+v", same)
	}
}

// TestCurve: values and integrals of a step function, against a sum by hand.
func TestCurve(t *testing.T) {
	c := newLiveCurve([]liveEdge{{1, 1}, {3, -1}, {2, 1}, {5, -1}, {3, 1}, {4, -1}})
	for _, p := range []struct{ at, before, area float64 }{{0, 0, 0}, {1, 0, 0}, {1.5, 1, 0.5}, {2, 1, 1}, {3, 2, 3}, {3.5, 2, 4}, {4, 2, 5}, {5, 1, 6}, {9, 0, 6}} {
		if c.before(p.at) != p.before || math.Abs(c.integral(p.at)-p.area) > 1e-12 {
			t.Errorf("before %v it is %v with area %v, want %v and %v", p.at, c.before(p.at), c.integral(p.at), p.before, p.area)
		}
	}
	if c.most() != 2 || c.mean(2, 4) != 2 || !math.IsNaN(c.mean(2, 2)) {
		t.Errorf("most %v, mean %v", c.most(), c.mean(2, 4))
	}
	empty := newLiveCurve(nil)
	if empty.most() != 0 || empty.before(1) != 0 || empty.integral(1) != 0 {
		t.Error("nothing has a value")
	}
}
