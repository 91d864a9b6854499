package workload

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"
)

var fixed = Length{Kind: KindFixed, Mean: 100}

// all deals a plan out to its end, or to limit items.
func all(t *testing.T, p Plan, prompter *Prompter, limit int) []Item {
	t.Helper()
	s, err := New(p, prompter)
	if err != nil {
		t.Fatal(err)
	}
	var items []Item
	for len(items) < limit {
		item, ok := s.Next()
		if !ok {
			if _, again := s.Next(); again {
				t.Error("it goes on after its end")
			}
			break
		}
		if item.Index != len(items) {
			t.Fatalf("item %d has index %d", len(items), item.Index)
		}
		items = append(items, item)
	}
	return items
}

// TestPoisson holds the gaps to the exponential distribution: mean, variance, and
// the distance of Kolmogorov and Smirnov, whose chance to exceed 1.63/√n is 1 %.
// Seeds are fixed, so it holds or it does not.
func TestPoisson(t *testing.T) {
	const n, rate = 20000, 4.0
	for seed := range uint64(5) {
		items := all(t, Plan{Arrivals: Arrivals{Shape: Poisson, Rate: rate}, Input: fixed, Seed: seed, Calls: n}, nil, math.MaxInt)
		if len(items) != n {
			t.Fatalf("%d items", len(items))
		}
		gaps := make([]float64, n)
		var before time.Duration
		var mean, squares float64
		for i, item := range items {
			gaps[i] = (item.Due - before).Seconds() * rate
			before = item.Due
			mean += gaps[i] / n
			squares += gaps[i] * gaps[i] / n
		}
		if variance := squares - mean*mean; math.Abs(mean-1) > 4/math.Sqrt(n) || math.Abs(variance-1) > 4*math.Sqrt(8./n) {
			t.Errorf("seed %d: mean %v, variance %v of gaps that ought to have 1 and 1", seed, mean, variance)
		}
		// Gaps must not depend on the one before either.
		var together float64
		for i := 1; i < n; i++ {
			together += (gaps[i] - mean) * (gaps[i-1] - mean) / n
		}
		if math.Abs(together) > 4/math.Sqrt(n) {
			t.Errorf("seed %d: correlation %v of neighbours", seed, together)
		}
		slices.Sort(gaps)
		distance := 0.0
		for i, g := range gaps {
			f := -math.Expm1(-g)
			distance = max(distance, math.Abs(f-float64(i)/n), math.Abs(float64(i+1)/n-f))
		}
		if distance > 1.63/math.Sqrt(n) {
			t.Errorf("seed %d: distance %v from the exponential distribution", seed, distance)
		}
	}
}

// TestConstant: calls are due at exact times however many came before.
func TestConstant(t *testing.T) {
	items := all(t, Plan{Arrivals: Arrivals{Shape: Constant, Rate: 3}, Input: fixed, Calls: 300001}, nil, math.MaxInt)
	for _, i := range []int{0, 1, 2, 3, 299999, 300000} {
		if want := time.Duration(math.Round(float64(i) * 1e9 / 3)); (items[i].Due - want).Abs() > 50 {
			t.Errorf("call %d is due at %v, want %v", i, items[i].Due, want)
		}
	}
	// The end of an open loop: what would be due at the duration is not sent.
	if got := all(t, Plan{Arrivals: Arrivals{Shape: Constant, Rate: 4}, Input: fixed, Duration: 2 * time.Second}, nil, math.MaxInt); len(got) != 8 || got[7].Due != 1750*time.Millisecond {
		t.Errorf("%d calls in 2 s at 4/s", len(got))
	}
	if got := all(t, Plan{Arrivals: Arrivals{Shape: Constant, Rate: 4}, Input: fixed, Duration: 2 * time.Second, Calls: 5}, nil, math.MaxInt); len(got) != 5 {
		t.Errorf("%d calls, 5 at most", len(got))
	}
}

func TestBurst(t *testing.T) {
	items := all(t, Plan{Arrivals: Arrivals{Shape: Burst, Rate: 2, Group: 10}, Input: fixed, Duration: 15 * time.Second}, nil, math.MaxInt)
	if len(items) != 30 {
		t.Fatalf("%d calls in 15 s at 2/s", len(items))
	}
	for i, item := range items {
		if want := time.Duration(i/10) * 5 * time.Second; item.Due != want {
			t.Errorf("call %d is due at %v, want %v", i, item.Due, want)
		}
	}
}

// TestClosed: a closed loop has no due times, and the caller ends one that only
// has a duration.
func TestClosed(t *testing.T) {
	p := Plan{Arrivals: Arrivals{Shape: Closed, Concurrency: 4}, Input: fixed, Duration: time.Second}
	for _, item := range all(t, p, nil, 1000) {
		if item.Due != 0 || item.Input != 100 || item.Output != 0 || item.Prompt != "" || item.Words != 0 {
			t.Fatalf("%+v", item)
		}
	}
	if p.Calls = 7; len(all(t, p, nil, 1000)) != 7 {
		t.Error("the plan has 7 calls")
	}
}

func TestReplay(t *testing.T) {
	trace := []Row{{0, 10, 5}, {time.Second, 0, 0}, {time.Second, 3000, 1}, {9 * time.Second, 40, 900}}
	p := Plan{Arrivals: Arrivals{Shape: Replay, Rate: 2}, Input: Length{Kind: KindTrace, Max: 1000}, Output: Length{Kind: KindTrace, Min: 2}, Trace: trace, Calls: 100}
	items := all(t, p, nil, math.MaxInt)
	if len(items) != len(trace) {
		t.Fatalf("%d calls from %d rows", len(items), len(trace))
	}
	if in := items[1].Input; in != 10 && in != 1000 && in != 40 {
		t.Errorf("a row without input got %d", in)
	}
	items[1].Input = 0
	want := []Item{{Index: 0, Input: 10, Output: 5}, {Index: 1, Due: time.Second / 2}, {Index: 2, Due: time.Second / 2, Input: 1000, Output: 2}, {Index: 3, Due: 4500 * time.Millisecond, Input: 40, Output: 900}}
	if !reflect.DeepEqual(items, want) {
		t.Errorf("got %+v\nwant %+v", items, want)
	}
	p.Arrivals.Rate, p.Calls = 0, 0 // its own speed, to its end
	if items = all(t, p, nil, math.MaxInt); len(items) != 4 || items[3].Due != 9*time.Second {
		t.Errorf("%d items, the last at %v", len(items), items[len(items)-1].Due)
	}
	if p.Duration = 9 * time.Second; len(all(t, p, nil, math.MaxInt)) != 3 {
		t.Error("a call due at the duration was sent")
	}
	// Lengths of a trace end a closed loop with it as well.
	p = Plan{Arrivals: Arrivals{Shape: Closed, Concurrency: 1}, Input: Length{Kind: KindTrace}, Trace: trace, Duration: time.Hour}
	if n := len(all(t, p, nil, 1000)); n != 4 {
		t.Errorf("%d calls from 4 rows", n)
	}
}

// TestSeed: a plan is the same plan each time, and another with another seed; the
// arrivals do not move the lengths.
func TestSeed(t *testing.T) {
	p := Plan{Arrivals: Arrivals{Shape: Poisson, Rate: 5}, Input: Length{Kind: KindUniform, Min: 20, Max: 60}, Output: Length{Kind: KindLognormal, Mean: 50, Deviation: 20}, Seed: 3, Calls: 50}
	first := all(t, p, NewPrompter(), math.MaxInt)
	if again := all(t, p, NewPrompter(), math.MaxInt); !reflect.DeepEqual(first, again) {
		t.Error("the same plan gave other calls")
	}
	q := p
	q.Arrivals = Arrivals{Shape: Closed, Concurrency: 2}
	for i, item := range all(t, q, NewPrompter(), math.MaxInt) {
		if item.Due = first[i].Due; item != first[i] {
			t.Fatalf("other arrivals changed call %d: %+v and %+v", i, item, first[i])
		}
	}
	q = p
	q.Seed = 4
	same := 0
	for i, item := range all(t, q, NewPrompter(), math.MaxInt) {
		if item.Prompt == first[i].Prompt || item.Due == first[i].Due {
			t.Errorf("seeds 3 and 4 agree on call %d", i)
		}
		if item.Input == first[i].Input && item.Output == first[i].Output {
			same++
		}
	}
	if same > 5 {
		t.Errorf("%d of 50 lengths are the same for two seeds", same)
	}
}

// TestLengths holds what is drawn to its distribution.
func TestLengths(t *testing.T) {
	const n = 100000
	draw := func(l Length) (mean, deviation float64, low, high int, count map[int]int) {
		count = map[int]int{}
		low = math.MaxInt
		var sum, squares float64
		for _, item := range all(t, Plan{Arrivals: Arrivals{Shape: Closed, Concurrency: 1}, Input: l, Calls: n, Seed: 11}, nil, math.MaxInt) {
			v := float64(item.Input)
			sum += v
			squares += v * v
			low, high = min(low, item.Input), max(high, item.Input)
			count[item.Input]++
		}
		mean = sum / n
		return mean, math.Sqrt(squares/n - mean*mean), low, high, count
	}
	mean, deviation, low, _, _ := draw(Length{Kind: KindLognormal, Mean: 256, Deviation: 128})
	if math.Abs(mean-256) > 2 || math.Abs(deviation-128) > 4 || low < 1 {
		t.Errorf("lognormal: mean %v, deviation %v, least %d", mean, deviation, low)
	}
	if _, _, low, high, _ := draw(Length{Kind: KindLognormal, Mean: 256, Deviation: 512, Min: 16, Max: 1000}); low != 16 || high != 1000 {
		t.Errorf("bounded lognormal: %d to %d", low, high)
	}
	if _, _, low, _, _ := draw(Length{Kind: KindLognormal, Mean: 1, Deviation: 10}); low != 1 {
		t.Errorf("short lognormal: least %d", low)
	}
	_, _, low, high, count := draw(Length{Kind: KindUniform, Min: 5, Max: 14})
	if low != 5 || high != 14 {
		t.Errorf("uniform: %d to %d", low, high)
	}
	chi := 0.0
	for v := 5; v <= 14; v++ {
		d := float64(count[v]) - n/10
		chi += d * d / (n / 10)
	}
	if chi > 21.7 { // 1 % of chi-square with 9 degrees of freedom
		t.Errorf("uniform: chi-square %v", chi)
	}
}

func TestPlanValidate(t *testing.T) {
	good := Plan{Arrivals: Arrivals{Shape: Poisson, Rate: 1}, Input: fixed, Calls: 1}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	row := []Row{{0, 1, 1}}
	for name, change := range map[string]func(*Plan){
		"no arrivals":          func(p *Plan) { p.Arrivals = Arrivals{} },
		"unknown shape":        func(p *Plan) { p.Arrivals.Shape = "x" },
		"no rate":              func(p *Plan) { p.Arrivals.Rate = 0 },
		"rate not a number":    func(p *Plan) { p.Arrivals.Rate = math.NaN() },
		"rate in a closed one": func(p *Plan) { p.Arrivals = Arrivals{Shape: Closed, Concurrency: 1, Rate: 1} },
		"group without burst":  func(p *Plan) { p.Arrivals.Group = 2 },
		"burst without group":  func(p *Plan) { p.Arrivals.Shape = Burst },
		"negative bound":       func(p *Plan) { p.Arrivals.Concurrency = -1 },
		"no input":             func(p *Plan) { p.Input = Length{} },
		"input unknown":        func(p *Plan) { p.Input.Kind = "x" },
		"input without kind":   func(p *Plan) { p.Input.Kind = "" },
		"input fraction":       func(p *Plan) { p.Input.Mean = 1.5 },
		"output deviation":     func(p *Plan) { p.Output = Length{Kind: KindFixed, Mean: 5, Deviation: 1} },
		"output mean":          func(p *Plan) { p.Output = Length{Kind: KindUniform, Mean: 5, Min: 1, Max: 2} },
		"output not a number":  func(p *Plan) { p.Output = Length{Kind: KindLognormal, Mean: math.NaN(), Deviation: 1} },
		"negative max":         func(p *Plan) { p.Output = Length{Kind: KindLognormal, Mean: 5, Deviation: 1, Max: -1} },
		"trace with mean":      func(p *Plan) { p.Output, p.Trace = Length{Kind: KindTrace, Mean: 1}, row },
		"negative sharing":     func(p *Plan) { p.Sharing.Tokens = -1 },
		"groups of nothing":    func(p *Plan) { p.Sharing.Groups = 2 },
		"sharing all":          func(p *Plan) { p.Sharing.Tokens = 100 },
		"negative calls":       func(p *Plan) { p.Calls = -1 },
		"negative duration":    func(p *Plan) { p.Duration = -1 },
		"no end":               func(p *Plan) { p.Calls = 0 },
		"no trace":             func(p *Plan) { p.Arrivals = Arrivals{Shape: Replay} },
		"trace not sorted":     func(p *Plan) { p.Arrivals, p.Trace = Arrivals{Shape: Replay}, []Row{{At: 2}, {At: 1}} },
		"trace before 0":       func(p *Plan) { p.Arrivals, p.Trace = Arrivals{Shape: Replay}, []Row{{At: -2}} },
		"trace without input":  func(p *Plan) { p.Input, p.Trace = Length{Kind: KindTrace}, []Row{{0, 0, 5}} },
	} {
		p := good
		change(&p)
		if err := p.Validate(); err == nil {
			t.Errorf("%s: %+v is valid", name, p)
		}
		if s, err := New(p, nil); err == nil || s != nil {
			t.Errorf("%s: a source was made", name)
		}
	}
}

func TestDurationsDoNotOverflow(t *testing.T) {
	p := Plan{Arrivals: Arrivals{Shape: Replay, Rate: MinRate}, Input: fixed, Trace: []Row{{}, {At: math.MaxInt64}}}
	if items := all(t, p, nil, 10); len(items) != 2 || items[1].Due != math.MaxInt64 {
		t.Errorf("%+v", items)
	}
}
