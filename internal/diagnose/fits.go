package diagnose

import (
	"math"
	"slices"
	"time"
)

// decodeFit explains the change of the time per output token, without what clients
// blocked, by TPOT = α + β·batch + δ·context + γ·prefill as the healthy window
// shows it. Times are in seconds.
type decodeFit struct {
	known bool // there is a line
	calls int
	// change is what is explained. batch is what the calls and the context beside
	// each one explain of it, prefill what the prompts that came between do,
	// and residual what is left at the same batch.
	change, batch, prefill, residual float64
	within                           float64 // standard error of residual
	before                           float64 // mean in the healthy window
	// held is by how much longer than before the prompts that come between hold each
	// token up, as the new window's own calls show it; heldBefore and heldAfter are
	// how long they did, and heldWithin is its standard error. 0 where the new window
	// shows no slope for them.
	held, heldBefore, heldAfter, heldWithin float64
	// grown is how many times what they were the figures beside are, 0 where that
	// is not known.
	grown [besides]float64
	// sameLoad is that none of them is up, and blind that one is of which the
	// healthy window shows no slope.
	sameLoad, blind bool
}

// What runs beside a call while it is written.
const (
	besideCalls   = iota // mean number of calls, itself included
	besideContext        // tokens that these hold
	besideStalls         // prefills that end meanwhile, by output token
	besidePrefill        // tokens that these compute, by output token
	besides
)

// fitDecode fits the healthy window and looks at the new one. Calls are left out
// of which what ran beside them has in part not ended within the window, and so has
// no record.
func fitDecode(before, after []sample) decodeFit {
	var f decodeFit
	x, y := written(before)
	newX, newY := written(after)
	if len(y) < MinCalls || len(newY) < FocusCalls {
		return f
	}
	f.calls = len(newY)
	f.before = average(y)
	f.change = average(newY) - f.before
	to := make([]float64, besides)
	f.sameLoad = true
	for k := range to {
		to[k] = average(newX[k])
		if was := average(x[k]); was > 0 {
			f.grown[k] = to[k] / was
		}
		if f.grown[k] > Rise {
			f.sameLoad = false
		}
	}
	sampling := variance(newY) / float64(len(newY))
	l, ok := fitLinear(x, y)
	f.hold(&l, ok, before, average(x[besideStalls]), newX, newY)
	if !ok {
		f.residual, f.within, f.blind = f.change, math.Sqrt(variance(y)/float64(len(y))+sampling), !f.sameLoad
		return f
	}
	f.known = true
	by, off := l.moved(to)
	f.batch, f.prefill = by[besideCalls]+by[besideContext], by[besideStalls]+by[besidePrefill]
	f.residual = f.change - f.batch - f.prefill
	f.within = math.Hypot(off, math.Sqrt(sampling))
	// What goes with a figure that has a slope may grow as that does.
	for k, other := range [besides]int{besideContext, besideCalls, besidePrefill, besideStalls} {
		explained := 1.0
		if l.known[other] {
			explained = max(f.grown[other], 1)
		}
		f.blind = f.blind || !l.known[k] && f.grown[k] > Rise*explained
	}
	return f
}

// hold finds how long prompts hold tokens up in the new window, by a line of its own,
// and how long they did. Where the healthy window shows no slope for that, all of its
// TTFT counts, which is more than prefill took, so that held is rather too low.
func (f *decodeFit) hold(healthy *linear, ok bool, before []sample, stalls float64, x [][]float64, y []float64) {
	l, shown := fitLinear(x, y)
	if !shown || !l.known[besideStalls] && !l.known[besidePrefill] {
		return
	}
	after, within := l.without(besideStalls, besidePrefill)
	switch {
	case ok && (healthy.known[besideStalls] || healthy.known[besidePrefill]):
		var off float64
		f.heldBefore, off = healthy.without(besideStalls, besidePrefill)
		within = math.Hypot(within, off)
	default:
		var first numbers
		for i := range before {
			if before[i].has[ofTTFT] {
				first = append(first, before[i].whole[ofTTFT].Seconds())
			}
		}
		f.heldBefore = stalls * first.mean().Or(0)
	}
	f.heldAfter, f.heldWithin = after, within
	f.held = f.heldAfter - f.heldBefore
}

func average(v []float64) float64 { return numbers(v).sum() / float64(len(v)) }

func variance(v []float64) float64 {
	if len(v) < 2 {
		return 0
	}
	mean, sum := average(v), 0.0
	for _, x := range v {
		sum += (x - mean) * (x - mean)
	}
	return sum / float64(len(v)-1)
}

// written are the calls that were written whole while all that ran beside them is
// known: what did, and the time per output token.
func written(list []sample) (x [][]float64, y []float64) {
	x = make([][]float64, besides)
	cutoff := settled(list)
	for i := range list {
		s := &list[i]
		if !s.crowded || !s.has[ofTPOT] || s.last > cutoff {
			continue
		}
		for k, v := range s.beside {
			x[k] = append(x[k], v)
		}
		y = append(y, s.parts[ofTPOT][decode].Seconds())
	}
	return x, y
}

// settled is until when nine of ten calls that were under way have ended within
// the window.
func settled(list []sample) time.Duration {
	var took []time.Duration
	end := time.Duration(0)
	for i := range list {
		s := &list[i]
		end = max(end, s.ended)
		if s.decoding {
			took = append(took, s.last-s.first)
		}
	}
	if len(took) == 0 {
		return end
	}
	slices.Sort(took)
	return end - took[len(took)*9/10]
}

// promptFit explains the change of the time of prefill by the tokens to compute.
type promptFit struct {
	known bool // a line, or the ratio below
	line  bool
	// change is what is explained, s, and expected what the new window's tokens
	// explain of it; before is the healthy mean.
	change, expected, before float64
	within                   float64 // standard error of change less expected
	// grown is how many times what it was the mean of computed tokens is, and
	// perToken the same of the time per computed token.
	grown, perToken float64
	exact           bool // what was cached is known; else all input counts
	calls           int
}

func fitPrompt(before, after []sample) promptFit {
	f := promptFit{exact: true}
	gather := func(list []sample) (x, y []float64) {
		for i := range list {
			s := &list[i]
			if !s.has[ofTTFT] {
				continue
			}
			n, exact, known := s.computed()
			if !known {
				continue
			}
			f.exact = f.exact && exact
			x, y = append(x, n), append(y, s.parts[ofTTFT][prefill].Seconds())
		}
		return x, y
	}
	x, y := gather(before)
	newX, newY := gather(after)
	if len(y) < MinCalls || len(newY) < FocusCalls {
		return f
	}
	mean := average
	f.before, f.change, f.calls = mean(y), mean(newY)-mean(y), len(newY)
	if mean(x) <= 0 || mean(newX) <= 0 || f.before <= 0 {
		return f
	}
	f.known = true
	f.grown = mean(newX) / mean(x)
	f.perToken = (mean(newY) / mean(newX)) / (f.before / mean(x))
	f.within = math.Sqrt(variance(y)/float64(len(y)) + variance(newY)/float64(len(newY)))
	if l, ok := fitLinear([][]float64{x}, y); ok {
		f.line = true
		by, off := l.moved([]float64{mean(newX)})
		f.expected, f.within = by[0], math.Hypot(off, math.Sqrt(variance(newY)/float64(len(newY))))
		return f
	}
	// Without a line the time is taken to go with the tokens, which overstates
	// what they explain where a part of it is the same for all.
	f.expected = f.before * (f.grown - 1)
	return f
}
