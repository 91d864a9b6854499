package saturation

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// window is a stair on which all went well.
func window(rate, ttft float64) Window {
	return Window{Rate: rate, Achieved: &rate, Calls: int(rate * 120), Succeeded: 1, TTFTP99: &ttft}
}

// climbing is a staircase around a target of 10/s whose TTFT p99 jumps over the
// limit of 1.6 s beyond safe.
func climbing(safe, top float64) []Window {
	var windows []Window
	for _, rate := range Rates(10, top) {
		ttft := 400 + 40*rate
		if rate > safe {
			ttft = 1900
		}
		windows = append(windows, window(rate, ttft))
	}
	return windows
}

// both changes two of the windows.
func both(w []Window, i, j int, change func(*Window)) []Window {
	change(&w[i])
	change(&w[j])
	return w
}

// TestEnded: a climb ends at a limit, and after two stairs that showed nothing.
func TestEnded(t *testing.T) {
	blank := window(9, 500)
	blank.Distorted = true
	held := window(11, 500)
	held.Achieved = ptr(5)
	broken := window(9, 500)
	broken.Succeeded = 0.4
	for name, c := range map[string]struct {
		windows []Window
		want    bool
	}{
		"none":         {nil, false},
		"kept":         {[]Window{window(9, 1600)}, false},
		"over":         {[]Window{window(9, 1601)}, true},
		"broken":       {[]Window{broken}, true},
		"one blank":    {[]Window{window(7, 500), blank}, false},
		"two blanks":   {[]Window{blank, held}, true},
		"not in a row": {[]Window{blank, window(10, 500), held}, false},
	} {
		if got := Ended(2*time.Second, c.windows); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestUnusable(t *testing.T) {
	for _, c := range []struct {
		delay, of float64
		want      bool
	}{{1.9, 5, false}, {2.1, 5, true}, {30, 300, false}, {30.1, 300, true}, {2.1, 0, true}, {2, 0, false}, {3, math.NaN(), true}} {
		if Unusable(c.delay, c.of) != c.want {
			t.Errorf("%v of %v", c.delay, c.of)
		}
	}
}

func TestRates(t *testing.T) {
	for _, c := range []struct {
		target, most float64
		want         []float64
	}{
		{10, 0, []float64{5, 7, 9, 11, 13, 15, 17, 19}},
		{10, 15, []float64{5, 7, 9, 11, 13, 15}},
		{0.1, 0.13, []float64{0.05, 0.07, 0.09, 0.11, 0.13}},
		{10, 4, nil},
		{0, 10, nil},
		{-1, 10, nil},
		{math.NaN(), 10, nil},
		{math.Inf(1), 10, nil},
	} {
		got := Rates(c.target, c.most)
		if !slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) {
			t.Errorf("Rates(%v, %v) = %v, want %v", c.target, c.most, got, c.want)
		}
	}
	if got := Rates(1, 1e12); len(got) != 100 || math.Abs(got[99]-20.3) > 1e-9 {
		t.Errorf("%d stairs", len(got))
	}
}

func TestJudge(t *testing.T) {
	change := func(i int, f func(*Window)) []Window {
		w := climbing(15, 20)
		f(&w[i])
		return w
	}
	for name, c := range map[string]struct {
		windows []Window
		say     string
		safe    float64
		reached bool
		says    []string
	}{
		"too little": {climbing(7, 20), Add, 7, true, []string{
			"Capacity must be added: the safe rate of 7/s is 70 % of the target of 10/s, which needs 1.43 times the capacity if it grows in proportion.",
			"At 7/s and below the TTFT p99 stayed within 80 % of the objective of 2 s: at 7/s it was 680 ms, which is 34 % of it.",
			"At 9/s the TTFT p99 was 1.9 s, above 1.6 s, which is 80 % of the objective of 2 s."}},
		"just too little": {climbing(9, 20), Add, 9, true, []string{
			"Capacity must be added: the safe rate of 9/s is 90 % of the target of 10/s, which needs 1.12 times the capacity if it grows in proportion. The limit lies between 9/s and 11/s, so it may be close: measure the target itself to be sure.",
			"At 9/s and below", "At 11/s the TTFT p99 was 1.9 s"}},
		"far too little": {climbing(1, 20), Add, 0, true, []string{
			"Capacity must be added: even 5/s, half of the target of 10/s, is too much.", "At 5/s the TTFT p99 was 1.9 s"}},
		"enough": {climbing(11, 20), Enough, 11, true, []string{
			"Capacity is enough: the safe rate of 11/s leaves 10 % above the target of 10/s.", "At 11/s and below", "At 13/s the TTFT p99 was"}},
		"enough, as far as it went": {climbing(99, 12), Enough, 11, false, []string{
			"Capacity is enough: the safe rate of 11/s leaves 10 % above the target of 10/s. Whether it could shrink would show at 15/s.", "At 11/s and below", "The 80 % were not passed"}},
		"more than enough": {climbing(15, 20), Shrink, 15, true, []string{
			"Capacity can shrink: the safe rate of 15/s is 1.5 times the target of 10/s, which needs 67 % of it. Keep a replica in reserve all the same.", "At 15/s and below", "At 17/s the TTFT p99 was"}},
		"more than enough, no end": {climbing(99, 20), Shrink, 19, false, []string{"Capacity can shrink: the safe rate of 19/s is 1.9 times", "At 19/s and below", "The 80 % were not passed"}},
		"ended early": {climbing(99, 9), Undetermined, 9, false, []string{
			"It cannot be told: up to 9/s was shown to be safe, less than the target of 10/s, and no limit above it was seen. Run the staircase to the target at least.", "At 9/s and below", "The 80 % were not passed on any stair"}},
		"nothing measured": {nil, Undetermined, 0, false, []string{"Nothing was measured"}},
		"exactly 80 %":     {[]Window{window(10, 1600)}, Enough, 10, false, []string{"Capacity is enough", "At 10/s and below", "The 80 %"}},
		"distorted at 9": {change(2, func(w *Window) { w.Distorted, w.Delay = true, ptr(250) }), Shrink, 15, true, []string{
			"Capacity can shrink", "At 15/s and below", "At 9/s the load test itself was too late by 250 ms, 12.5 % of the objective, so that stair shows nothing: run it from a machine with more to spare.", "At 17/s the TTFT p99"}},
		"late at 9": {change(2, func(w *Window) { w.Delay = ptr(30) }), Shrink, 15, true, []string{
			"Capacity can shrink", "At 15/s and below", "At 17/s the TTFT p99", "Used although the load test itself was late there, by p99: 9/s by 30 ms, 1.5 % of the objective."}},
		"distorted at 13": {change(4, func(w *Window) { w.Distorted = true })[:5], Enough, 11, false, []string{"Capacity is enough", "At 11/s and below", "At 13/s the load test itself", "The 80 %"}},
		"two in a row, beyond the target": {both(climbing(99, 13), 3, 4, func(w *Window) { w.Achieved = ptr(8) }), Undetermined, 9, false, []string{
			"It cannot be told: up to 9/s was shown to be safe, less than the target of 10/s, and no limit above it was seen.", "At 9/s and below", "At 11/s only 8/s", "At 13/s only 8/s", "Two stairs in a row showed nothing, so the climb ended there."}},
		"unknown at 5":   {change(0, func(w *Window) { w.TTFTP99 = nil })[:1], Undetermined, 0, false, []string{"It cannot be told: even 5/s, half of the target of 10/s, is unmeasured.", "At 5/s the TTFT p99 is not known: measure with streamed answers.", "The 80 %"}},
		"nonsense at 5":  {change(0, func(w *Window) { w.TTFTP99 = ptr(math.NaN()) })[:1], Undetermined, 0, false, []string{"It cannot be told", "At 5/s the TTFT p99 is not known", "The 80 %"}},
		"no rate":        {[]Window{{Rate: math.NaN()}}, Undetermined, 0, false, []string{"It cannot be told: even the lowest stair is unmeasured.", "A stair without a rate shows nothing.", "The 80 %"}},
		"failures at 7":  {change(1, func(w *Window) { w.Succeeded = 0.95 }), Add, 5, true, []string{"Capacity must be added", "At 5/s and below", "At 7/s 5 % of calls failed, and 1 % is the most."}},
		"held back at 9": {change(2, func(w *Window) { w.Achieved = ptr(8) }), Shrink, 15, true, []string{"Capacity can shrink", "At 15/s and below", "At 9/s only 8/s of 9/s offered came to a good end", "At 17/s"}},
		"fewer due at 9": {change(2, func(w *Window) { w.Achieved, w.Offered = ptr(8), ptr(8.1) }), Shrink, 15, true, []string{"Capacity can shrink", "At 15/s and below", "At 17/s"}},
		"far fewer due at 9": {change(2, func(w *Window) { w.Achieved, w.Offered = ptr(7), ptr(7) })[:3], Undetermined, 7, false, []string{
			"It cannot be told", "At 7/s", "At 9/s chance made only 7/s fall due, so that stair shows nothing of its rate", "The 80 %"}},
		"over though fewer due": {change(2, func(w *Window) { w.Achieved, w.Offered, w.TTFTP99 = ptr(7), ptr(7), ptr(1700) }), Add, 7, true, []string{
			"Capacity must be added", "At 7/s", "At 9/s the TTFT p99 was 1.7 s"}},
		"unknown rate": {change(2, func(w *Window) { w.Achieved, w.PerSecond = nil, 5 })[:3], Undetermined, 7, false, []string{"It cannot be told", "At 7/s", "At 9/s it cannot be told which rate was achieved", "The 80 %"}},
		"bound of it":  {change(2, func(w *Window) { w.Achieved, w.PerSecond = nil, 8.5 })[:3], Undetermined, 9, false, []string{"It cannot be told", "At 9/s", "The 80 %"}},
		"blank, then over": {func() []Window { w := climbing(1, 20); w[0].Distorted = true; return w }(), Add, 0, true, []string{
			"Capacity must be added: even 7/s, 70 % of the target of 10/s, is too much.", "At 5/s the load test", "At 7/s the TTFT"}},
		"over beyond the target": {[]Window{window(12, 1700)}, Add, 0, true, []string{
			"Capacity must be added: even 12/s, 120 % of the target of 10/s, is too much. No lower rate was shown to be safe, so the limit may be close: measure the target itself to be sure.", "At 12/s the TTFT"}},
		"ended by blanks": {both(climbing(99, 20), 0, 1, func(w *Window) { w.Achieved, w.Delay = ptr(1), ptr(5) }), Undetermined, 0, false, []string{
			"It cannot be told: even 5/s, half of the target of 10/s, is unmeasured.", "At 5/s only 1/s", "At 7/s only 1/s", "Two stairs in a row showed nothing"}},
		"over, after none": {func() []Window { w := climbing(7, 20); w[2].Distorted = true; return w }(), Add, 7, true, []string{
			"Capacity must be added: the safe rate of 7/s is 70 % of the target of 10/s, which needs 1.43 times the capacity if it grows in proportion. The limit lies between 7/s and 11/s", "At 7/s", "At 9/s the load test", "At 11/s the TTFT"}},
		"twice, once over": {append(climbing(15, 20), window(11, 1700)), Add, 9, true, []string{"Capacity must be added", "At 9/s and below", "At 11/s the TTFT p99 was 1.7 s"}},
	} {
		slices.Reverse(c.windows) // no order is asked for
		v := Judge(10, 2*time.Second, c.windows)
		if v.Say != c.say || v.Safe != c.safe || v.Reached != c.reached || v.Target != 10 || v.Objective != 2000 {
			t.Errorf("%s: %+v", name, v)
		}
		if c := strings.Join(v.Reasons, " "); strings.Contains(c, "Two stairs in a row") && strings.Contains(c, "to the target at least") {
			t.Errorf("%s: it contradicts the climb: %q", name, v.Reasons)
		}
		if reached := slices.ContainsFunc(c.windows, func(w Window) bool { return w.Rate >= 10 }); reached && strings.Contains(strings.Join(v.Reasons, " "), "to the target at least") {
			t.Errorf("%s: it went to the target: %q", name, v.Reasons)
		}
		if !slices.EqualFunc(v.Reasons, c.says, strings.HasPrefix) {
			t.Errorf("%s:\n%s\nwant:\n%s", name, strings.Join(v.Reasons, "\n"), strings.Join(c.says, "\n"))
		}
	}
	if v := Judge(10, 0, climbing(7, 20)); v.Say != Undetermined || v.Safe != 0 || len(v.Reasons) != 1 || !strings.Contains(v.Reasons[0], "give the time within which the first token must come") {
		t.Errorf("without an objective: %+v", v)
	}
	for _, target := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if v := Judge(target, time.Second, climbing(7, 20)); v.Say != Undetermined || v.Target != 0 || !strings.Contains(v.Reasons[0], "give the rate") {
			t.Errorf("target %v: %+v", target, v)
		}
	}
}

// TestJudgeOfQueues: a queue of known capacity, its p99 by the formula of M/M/1
// (time in system is exponential with rate µ − λ) and 3 % of noise.
func TestJudgeOfQueues(t *testing.T) {
	const target, objective = 10.0, 2 * time.Second
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 8))
		capacity := 6 + 20*rng.Float64()
		// ln(100)/(µ − λ) ≤ 1.6 s up to this rate.
		limit := capacity - math.Log(100)/1.6
		var windows []Window
		for _, rate := range Rates(target, 0) {
			ttft := 60000.0
			if rate < capacity {
				ttft = 1000 * math.Log(100) / (capacity - rate)
			}
			windows = append(windows, window(rate, noisy(rng, ttft)))
			if ttft > 1650 {
				break
			}
		}
		v := Judge(target, objective, windows)
		// The highest stair below the limit, give or take what noise does at it.
		want := func(limit float64) (safe float64) {
			for _, rate := range Rates(target, 0) {
				if rate <= limit {
					safe = rate
				}
			}
			return safe
		}
		if low, high := want(limit-0.15), want(limit+0.15); v.Safe != low && v.Safe != high {
			t.Fatalf("seed %d: safe %v, want %v to %v", seed, v.Safe, low, high)
		}
		switch {
		case v.Safe >= 15 && v.Say != Shrink, v.Safe >= 10 && v.Safe < 15 && v.Say != Enough, v.Safe < 10 && v.Say != Add:
			t.Fatalf("seed %d: %+v", seed, v)
		}
	}
}

func TestWords(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1: "1", 0.12345: "0.123", 12.345: "12.3", 999.4: "999", 1234.5: "1,235", 27800: "27,800", 1234567: "1,234,567", -1234: "-1,234", 2.25: "2.25", 0.1 + 0.2: "0.3"} {
		if got := plain(v); got != want {
			t.Errorf("plain(%v) = %q, want %q", v, got, want)
		}
	}
	for ms, want := range map[float64][2]string{1300: {"1.3 s", "1.3 s"}, 1304: {"1.3 s", "1.31 s"}, 26.5: {"26.5 ms", "26.5 ms"}, 18.31: {"18.3 ms", "18.4 ms"}, 999.9: {"1 s", "1 s"},
		0.0421: {"0.0421 ms", "0.0421 ms"}, 75123: {"75.1 s", "75.2 s"}, 18.3: {"18.3 ms", "18.3 ms"}, 0.1 + 0.2: {"0.3 ms", "0.3 ms"}, 820: {"820 ms", "820 ms"}, 820.4: {"820 ms", "821 ms"}} {
		if got := [2]string{span(ms), spanUp(ms)}; got != want {
			t.Errorf("%v ms is %q, want %q", ms, got, want)
		}
	}
	for _, c := range []struct {
		a, b float64
		want string
	}{{4, 8, "doubled"}, {1, 4, "rose 4-fold"}, {4, 10, "rose 2.5-fold"}, {10, 11, "rose by 10 %"}, {10, 10.01, "stayed the same"}, {10, 9, "fell by 10 %"}, {0, 1, "changed"}, {100, 199.9, "doubled"}} {
		if got := changed(c.a, c.b); got != c.want {
			t.Errorf("from %v to %v: %q, want %q", c.a, c.b, got, c.want)
		}
	}
	// A promise may be rounded, but never below what was measured.
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20000 {
		ms := math.Exp(10*rng.Float64() - 3)
		if up := digits(ms, math.Ceil); up < ms*(1-1e-9) || up > ms*1.0101 {
			t.Fatalf("%v is promised as %v", ms, up)
		}
	}
}

// FuzzJudge: whatever the windows, the verdict follows from its own figures.
func FuzzJudge(f *testing.F) {
	f.Add(uint64(1), uint8(5), 10.0, int64(2e9))
	f.Fuzz(func(t *testing.T, seed uint64, n uint8, target float64, objective int64) {
		rng := rand.New(rand.NewPCG(seed, 9))
		windows := make([]Window, n%30)
		for i := range windows {
			rate := math.Exp(2 * rng.NormFloat64())
			windows[i] = Window{Rate: rate, Achieved: ptr(rate * (1 - 0.12*rng.Float64())), Succeeded: 1 - 0.012*rng.Float64(), Distorted: rng.IntN(20) == 0}
			if rng.IntN(15) > 0 {
				windows[i].TTFTP99 = ptr(math.Exp(6 + 2*rng.NormFloat64()))
			}
		}
		v := Judge(target, time.Duration(objective), windows)
		if len(v.Reasons) == 0 || strings.Contains(strings.Join(v.Reasons, " "), "%!") {
			t.Fatalf("reasons %q", v.Reasons)
		}
		var want string
		switch {
		case v.Target == 0, v.Objective == 0:
			want = Undetermined
		case v.Safe >= 1.5*v.Target*near:
			want = Shrink
		case v.Safe >= v.Target*near:
			want = Enough
		case v.Reached:
			want = Add
		default:
			want = Undetermined
		}
		if v.Say != want {
			t.Errorf("%+v, want %s", v, want)
		}
		for _, w := range windows { // no limit was passed on any stair up to a safe rate
			if w.Rate <= v.Safe && !w.Distorted && (w.TTFTP99 != nil && *w.TTFTP99 > 0.8*v.Objective || w.Succeeded < 0.99) {
				t.Errorf("safe is %v with %+v", v.Safe, w)
			}
		}
	})
}
