package workload

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestParseArrivals(t *testing.T) {
	for text, want := range map[string]Arrivals{
		"concurrency 8":           {Shape: Closed, Concurrency: 8},
		"  concurrency   1 ":      {Shape: Closed, Concurrency: 1},
		"rate 4/s":                {Shape: Poisson, Rate: 4},
		"rate 240/min":            {Shape: Poisson, Rate: 4},
		"poisson 4/s":             {Shape: Poisson, Rate: 4},
		"poisson 0.25/s max 64":   {Shape: Poisson, Rate: 0.25, Concurrency: 64},
		"constant 7200/h":         {Shape: Constant, Rate: 2},
		"burst 10 at 2/s":         {Shape: Burst, Group: 10, Rate: 2},
		"burst 10 at 2/s max 100": {Shape: Burst, Group: 10, Rate: 2, Concurrency: 100},
		"replay":                  {Shape: Replay},
		"replay 2x":               {Shape: Replay, Rate: 2},
		"replay max 9":            {Shape: Replay, Concurrency: 9},
		"replay 0.5x max 9":       {Shape: Replay, Rate: 0.5, Concurrency: 9},
	} {
		got, err := ParseArrivals(text)
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "8", "concurrency", "concurrency 0", "concurrency -1", "concurrency 8 max 9", "concurrency 1000000",
		"rate 4", "rate /s", "rate 0/s", "rate -4/s", "rate inf/s", "rate nan/s", "rate 1e3/s", "rate 0x10/s", "rate 4/d", "rate 4/s max 0", "rate 4/s max", "max 4",
		"poisson 2000000/s", "poisson 0.0000001/s", "burst 10", "burst 0 at 2/s", "burst 10 by 2/s", "burst x at 2/s", "burst 1.5 at 2/s",
		"replay 2", "replay 0x", "replay x", "replay max", "closed 8", "rate 4/s 5/s", "rate 1.2.3/s"} {
		if got, err := ParseArrivals(text); err == nil {
			t.Errorf("%q was read as %+v", text, got)
		} else if !strings.HasPrefix(err.Error(), "read arrivals: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestParseLength(t *testing.T) {
	for text, want := range map[string]Length{
		"128":                                 {Kind: KindFixed, Mean: 128},
		"uniform 64-512":                      {Kind: KindUniform, Min: 64, Max: 512},
		"uniform 5-5":                         {Kind: KindUniform, Min: 5, Max: 5},
		"lognormal 256 sd 128":                {Kind: KindLognormal, Mean: 256, Deviation: 128},
		"lognormal 256 sd 128 max 2048":       {Kind: KindLognormal, Mean: 256, Deviation: 128, Max: 2048},
		"lognormal 25.5 sd 0.5 min 4 max 200": {Kind: KindLognormal, Mean: 25.5, Deviation: 0.5, Min: 4, Max: 200},
		"trace":                               {Kind: KindTrace},
		"trace max 4096":                      {Kind: KindTrace, Max: 4096},
		"none":                                {},
	} {
		got, err := ParseLength(text)
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "1.5", "128 tokens", "20000000", "fixed 128", "uniform", "uniform 64", "uniform 64 512", "uniform 0-5", "uniform 9-5", "uniform a-b",
		"uniform 1-2-3", "lognormal", "lognormal 256", "lognormal 256 128", "lognormal 256 sd 0", "lognormal 0 sd 5", "lognormal 256 sd -1", "lognormal 256 sd 128 max 1.5", "lognormal 256 sd 128 max 0",
		"lognormal 256 sd 128 max 20 min 5", "lognormal 256 sd 128 min 20 max 5", "trace 5", "trace max", "none 1", "lognormal NaN sd Inf"} {
		if got, err := ParseLength(text); err == nil {
			t.Errorf("%q was read as %+v", text, got)
		} else if !strings.HasPrefix(err.Error(), "read length: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestTextsReadBack: whatever is valid is written so that it reads back as itself.
func TestTextsReadBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	rates := []func() float64{
		func() float64 { return float64(1 + rng.IntN(1000)) },
		func() float64 { return float64(1+rng.IntN(1000)) / 60 },
		func() float64 { return float64(1+rng.IntN(1000)) / 3600 },
		func() float64 { return MinRate + rng.Float64()*MaxRate },
		func() float64 { return MinRate * (1 + rng.Float64()) },
		func() float64 { return float64(1+rng.IntN(999)) / 100 },
	}
	shapes := []Shape{Closed, Poisson, Constant, Burst, Replay}
	for range 20000 {
		a := Arrivals{Shape: shapes[rng.IntN(len(shapes))], Concurrency: rng.IntN(3) * rng.IntN(1000), Rate: rates[rng.IntN(len(rates))]()}
		switch a.Shape {
		case Closed:
			a.Rate, a.Concurrency = 0, a.Concurrency+1
		case Burst:
			a.Group = 1 + rng.IntN(100)
		case Replay:
			a.Rate *= float64(rng.IntN(2))
		}
		if err := a.Validate(); err != nil {
			t.Fatalf("%+v: %v", a, err)
		}
		if got, err := ParseArrivals(a.String()); err != nil || got != a {
			t.Fatalf("%+v is written %q and read as %+v, %v", a, a, got, err)
		}
	}
	for range 20000 {
		var l Length
		bounds := func() {
			l.Min, l.Max = rng.IntN(2)*(1+rng.IntN(100)), rng.IntN(2)*(200+rng.IntN(5000))
		}
		switch rng.IntN(5) {
		case 0:
			l = Length{Kind: KindFixed, Mean: float64(1 + rng.IntN(MaxTokens))}
		case 1:
			l = Length{Kind: KindUniform, Min: 1 + rng.IntN(100), Max: 100 + rng.IntN(10000)}
		case 2:
			l = Length{Kind: KindLognormal, Mean: 1 + 1e4*rng.Float64(), Deviation: 1e3 * (1 - rng.Float64())}
			bounds()
		case 3:
			l = Length{Kind: KindTrace}
			bounds()
		}
		if err := l.Validate(); err != nil {
			t.Fatalf("%+v: %v", l, err)
		}
		if got, err := ParseLength(l.String()); err != nil || got != l {
			t.Fatalf("%+v is written %q and read as %+v, %v", l, l, got, err)
		}
	}
	for rate, want := range map[float64]string{4: "poisson 4/s", 1. / 60: "poisson 1/min", 90. / 60: "poisson 1.5/s", 5. / 3600: "poisson 5/h", 0.25: "poisson 0.25/s", 2.5 / 60: "poisson 2.5/min"} {
		if got := (Arrivals{Shape: Poisson, Rate: rate}).String(); got != want {
			t.Errorf("%v/s is written %q, want %q", rate, got, want)
		}
	}
}

// FuzzTexts: no text is read as something that cannot be carried out, and what is
// read is written so that it reads back.
func FuzzTexts(f *testing.F) {
	for _, text := range []string{"concurrency 8", "rate 240/min max 5", "burst 10 at 2/s", "replay 2x", "128", "uniform 64-512", "lognormal 256 sd 128 min 1 max 2048", "trace", "none"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if a, err := ParseArrivals(text); err == nil {
			if err := a.Validate(); err != nil {
				t.Errorf("%q is read as %+v: %v", text, a, err)
			}
			if again, err := ParseArrivals(a.String()); err != nil || again != a {
				t.Errorf("%q is written %q, and read as %+v, %v", text, a, again, err)
			}
		}
		if l, err := ParseLength(text); err == nil {
			if err := l.Validate(); err != nil {
				t.Errorf("%q is read as %+v: %v", text, l, err)
			}
			if again, err := ParseLength(l.String()); err != nil || again != l {
				t.Errorf("%q is written %q, and read as %+v, %v", text, l, again, err)
			}
		}
	})
}
