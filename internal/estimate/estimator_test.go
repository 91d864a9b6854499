package estimate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/estimate/testdata/corpus"
)

// settled returns an estimator that has learnt the test corpus of one tokenizer.
func settled(t testing.TB, model string, tokenizer int) (*Estimator, []keyed) {
	e := New(0, 0)
	of := mixed(samples(t, corpus.Test), 1, false)
	for _, s := range of {
		e.Learn(model, s.key, &s.features, s.tokens[tokenizer])
	}
	return e, of
}

// meanOff is how far off predictions are.
func meanOff(e *Estimator, model string, of []keyed, tokenizer int) float64 {
	var o offs
	for _, s := range of {
		o.add(float64(e.Predict(model, s.key, &s.features)), float64(s.tokens[tokenizer]))
	}
	return o.mean()
}

// within fails unless every prediction keeps to its bounds.
func within(t *testing.T, e *Estimator, model string, of []keyed) {
	t.Helper()
	for _, s := range of {
		low, high := s.features.bounds()
		if n := e.Predict(model, s.key, &s.features); n < 1 || float64(n) < math.Floor(low) || float64(n) > math.Ceil(high) {
			t.Fatalf("%s: predicted %d, which is not from %g to %g", s.Name, n, low, high)
		}
	}
}

// TestGarbage: whatever is reported, predictions stay within their bounds, and
// once reports are true again they are good again soon.
func TestGarbage(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for name, lie := range map[string]func(s keyed) int64{
		"zero":      func(keyed) int64 { return 0 },
		"negative":  func(keyed) int64 { return math.MinInt64 },
		"one":       func(keyed) int64 { return 1 },
		"huge":      func(keyed) int64 { return math.MaxInt64 },
		"random":    func(keyed) int64 { return int64(rng.Uint64() >> rng.IntN(64)) },
		"constant":  func(keyed) int64 { return 777 },
		"swinging":  func(s keyed) int64 { return s.tokens[0] * int64(1+9*rng.IntN(2)) },
		"backwards": func(s keyed) int64 { return 100000 / s.tokens[0] },
	} {
		t.Run(name, func(t *testing.T) {
			e, of := settled(t, "m", 0)
			before := meanOff(e, "m", of, 0)
			for range 3 {
				for _, s := range of {
					e.Learn("m", s.key, &s.features, lie(s))
				}
			}
			within(t, e, "m", of)
			switch off := meanOff(e, "m", of, 0); {
			case name == "zero" || name == "negative":
				if off != before {
					t.Errorf("what says nothing changed the error from %.2f to %.2f %%", before, off)
				}
			case off < before:
				t.Errorf("the lie did nothing: %.2f %% before, %.2f after", before, off)
			}
			for _, s := range of[:300] {
				e.Learn("m", s.key, &s.features, s.tokens[0])
			}
			if off := meanOff(e, "m", of[300:], 0); off > 8 {
				t.Errorf("after 300 true reports the error is %.1f %%", off)
			}
		})
	}
}

// TestOneAbsurdReport moves a model that has settled only a little.
func TestOneAbsurdReport(t *testing.T) {
	e, of := settled(t, "m", 0)
	before := meanOff(e, "m", of, 0)
	e.Learn("m", "elsewhere", &of[0].features, math.MaxInt64)
	e.Learn("m", "elsewhere", &of[1].features, 1)
	if after := meanOff(e, "m", of, 0); after > before+1 {
		t.Errorf("two absurd reports moved the error from %.2f to %.2f %%", before, after)
	}
}

// TestExtremeBodies: features of no prompt that anybody writes.
func TestExtremeBodies(t *testing.T) {
	e := New(0, 0)
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20000 {
		f := Features{known: true, bytes: int64(rng.Uint64() >> (1 + rng.IntN(63)))}
		f.x[one] = 1
		for i := one + 1; i < numFeatures; i++ {
			if rng.IntN(3) == 0 {
				f.x[i] = float64(rng.Uint64() >> (1 + rng.IntN(63)))
			}
		}
		e.Learn("m", "k", &f, int64(rng.Uint64()>>rng.IntN(64)))
		low, high := f.bounds()
		if n := float64(e.Predict("m", "k", &f)); n < 1 || n < math.Floor(low) || n > math.Ceil(high) {
			t.Fatalf("predicted %g of %+v, which is not from %g to %g", n, f, low, high)
		}
	}
}

// TestBlanks: rows of spaces are fewer tokens than one for 16 bytes.
func TestBlanks(t *testing.T) {
	f := scan(saying(strings.Repeat(" ", 64000)))
	e := New(0, 0)
	for range 200 {
		e.Learn("m", "k", &f, 510)
	}
	if n := e.Predict("m", "k", &f); n < 480 || n > 540 {
		t.Errorf("predicted %d for 64,000 spaces, want about 510", n)
	}
}

// TestOtherTokenizer: another one that answers to the same name is learnt anew.
func TestOtherTokenizer(t *testing.T) {
	e, of := settled(t, "m", 0)
	for _, s := range of[:200] {
		e.Learn("m", s.key, &s.features, 2*s.tokens[3])
	}
	var o offs
	for _, s := range of[200:] {
		o.add(float64(e.Predict("m", s.key, &s.features)), float64(2*s.tokens[3]))
	}
	if o.mean() > 8 {
		t.Errorf("200 reports after the change the error is %.1f %%", o.mean())
	}
}

// TestKeysApart: what one key's prompts cost more than the model says is
// learnt for it alone.
func TestKeysApart(t *testing.T) {
	e := New(0, 0)
	of := mixed(samples(t, corpus.Test), 2, false)
	for i, s := range of {
		factor := []float64{1, 1.3, 0.75}[i%3]
		e.Learn("m", fmt.Sprint("k", i%3), &s.features, int64(float64(s.tokens[1])*factor))
	}
	for i, factor := range []float64{1, 1.3, 0.75} {
		var sum float64
		for _, s := range of {
			sum += float64(e.Predict("m", fmt.Sprint("k", i), &s.features)) / float64(s.tokens[1]) / float64(len(of))
		}
		if math.Abs(sum/factor-1) > 0.05 {
			t.Errorf("the key that costs %g times as much is predicted at %.3f", factor, sum)
		}
	}
	// A key that was never seen gets what the model says.
	var sum float64
	for _, s := range of {
		sum += float64(e.Predict("m", "new", &s.features)) / float64(s.tokens[1]) / float64(len(of))
	}
	if sum < 0.9 || sum > 1.12 {
		t.Errorf("a new key is predicted at %.3f", sum)
	}
}

// TestModelsApart: models do not learn from each other.
func TestModelsApart(t *testing.T) {
	e, of := settled(t, "m", 0)
	for _, s := range of {
		e.Learn("n", s.key, &s.features, s.tokens[3])
	}
	if m, n := meanOff(e, "m", of, 0), meanOff(e, "n", of, 3); m > 4 || n > 4 {
		t.Errorf("the errors are %.1f and %.1f %%", m, n)
	}
}

// TestMediaPrice: images are priced by what they turned out to cost.
func TestMediaPrice(t *testing.T) {
	image := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("QUJD", 5000) + `"}}`
	body := func(text []byte, images int) Features {
		return scan(`{"messages":[{"role":"user","content":[` + strings.Repeat(image+",", images) + `{"type":"text","text":"` + string(text) + `"}]}]}`)
	}
	e := New(0, 0)
	rng := rand.New(rand.NewPCG(7, 8))
	text := func() []byte { return []byte(strings.Repeat("some words of it ", 5+rng.IntN(100))) }
	for range 100 {
		x, images := text(), rng.IntN(4)
		f := body(x, images)
		e.Learn("m", "k", &f, int64(len(x)*4/17+12+1105*images))
	}
	for images := range 4 {
		x := text()
		f := body(x, images)
		want := float64(len(x)*4/17 + 12 + 1105*images)
		if got := float64(e.Predict("m", "k", &f)); math.Abs(got/want-1) > 0.05 {
			t.Errorf("%d images: predicted %g, want %g", images, got, want)
		}
	}
}

// TestTokensAsInput: an input that is tokens already costs their number.
func TestTokensAsInput(t *testing.T) {
	f := scan(`{"model":"m","input":[` + strings.Repeat("1234,", 999) + `1]}`)
	if n := New(0, 0).Predict("m", "k", &f); n < 950 || n > 1050 {
		t.Errorf("predicted %d for 1,000 tokens", n)
	}
}

// TestBounded: names beyond the limit drive out those not used for longest,
// and only learning makes entries.
func TestBounded(t *testing.T) {
	e := New(3, 5)
	f := scan(saying("some text"))
	for i := range 100 {
		e.Predict(fmt.Sprint("scan", i), "k", &f)
		e.Output(fmt.Sprint("scan", i), "k")
	}
	if len(e.models.entries) != 0 || len(e.pairs.entries) != 0 {
		t.Fatalf("asking made %d models and %d pairs", len(e.models.entries), len(e.pairs.entries))
	}
	for i := range 100 {
		e.Learn(fmt.Sprint("m", i), "k", &f, 3)
		e.LearnOutput("kept", "k", 7)
		e.Predict("m0", "k", &f)
	}
	if len(e.models.entries) != 3 || len(e.pairs.entries) != 5 {
		t.Fatalf("%d models and %d pairs, want 3 and 5", len(e.models.entries), len(e.pairs.entries))
	}
	for _, name := range []string{"kept", "m0", "m99"} {
		if e.models.entries[name] == nil {
			t.Errorf("%s was forgotten", name)
		}
	}
	if p95, known := e.Output("kept", "k"); !known || p95 != 7 {
		t.Errorf("got %d, %v for the pair that was kept", p95, known)
	}
	// An entry used again begins with nothing.
	e.LearnOutput("fresh", "k", 9)
	if _, known := e.Output("fresh", "k"); known {
		t.Error("a new model knows what the one before it learnt")
	}
}

func TestLongNames(t *testing.T) {
	e := New(0, 0)
	long := strings.Repeat("é", 10*call.MaxName)
	for range enough {
		e.LearnOutput(long, long, 5)
	}
	if p95, known := e.Output(long, long); !known || p95 != 5 {
		t.Errorf("got %d, %v", p95, known)
	}
	for name := range e.models.entries {
		if len(name) > call.MaxName {
			t.Errorf("a name of %d bytes is kept", len(name))
		}
	}
	if err := New(0, 0).Restore(e.Snapshot()); err != nil {
		t.Error(err)
	}
}

// TestConcurrent is for the race detector.
func TestConcurrent(t *testing.T) {
	e := New(4, 16)
	of := samples(t, corpus.Test)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 300 {
				s := &of[(g*300+i)%len(of)]
				model, key := fmt.Sprint("m", i%6), fmt.Sprint("k", i%7)
				e.Predict(model, key, &s.features)
				e.Learn(model, key, &s.features, s.tokens[0])
				e.LearnOutput(model, key, s.tokens[1])
				e.Output(model, key)
				if i%100 == 0 {
					if err := e.Restore(e.Snapshot()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if len(e.models.entries) > 4 || len(e.pairs.entries) > 16 {
		t.Errorf("%d models and %d pairs", len(e.models.entries), len(e.pairs.entries))
	}
}
