package gpu

import "time"

// Window sums up what all sampled GPUs did in a span of time. The zero value is
// that no sample speaks for any of it.
//
// A sample speaks for the time since the one before, two seconds at most, and the
// last one for two seconds after it, until the next is there. Means are by time,
// over what samples speak for. A span shorter than the second between samples so
// has the figures of the one sample, or the two, that it lies in: a mean of a
// second around it, which may be busier or less busy than the span itself.
type Window struct {
	GPUs    int // for which samples speak
	Samples int // of all of them together
	// Utilization, MemoryBandwidth and MemoryBusy are means of what Reading says.
	Utilization     Number
	MemoryBandwidth Number
	MemoryBusy      Number
	// ClockRatio is the lowest SM clock of a GPU at work, as a share of its
	// maximum, 0–1.
	ClockRatio Number
	// Reasons are those seen, the benign ones left out.
	Reasons Reasons
	// Energy is what all the GPUs used, J: the difference of the energy counter
	// where there is one, else the integral of power, interpolated to the ends of
	// the span. After the last sample power is held for two seconds, behind a slow
	// exporter for as long as its collections are apart: by so much may the end of
	// it be off, in time, until the next sample. Absent if any GPU's is not known
	// for the whole span.
	Energy Number
}

// IsZero reports that nothing was sampled.
func (w Window) IsZero() bool { return w.Samples == 0 }

// Window returns what the GPUs did from from to to. Of what is longer ago than a
// quarter of an hour nothing is known.
func (s *Sampler) Window(from, to time.Time) Window {
	if s == nil || to.Before(from) {
		return Window{}
	}
	a, b := s.since(from), s.since(to)
	sum := sums{clock: notAtWork}
	s.mu.RLock()
	for _, g := range s.tracks {
		g.window(a, b, &sum)
	}
	s.mu.RUnlock()
	w := Window{
		GPUs: sum.gpus, Samples: sum.samples,
		Utilization: sum.shares[shareUtil].mean(), MemoryBandwidth: sum.shares[shareBandwidth].mean(),
		MemoryBusy: sum.shares[shareBusy].mean(),
		Reasons:    sum.reasons,
	}
	if sum.clock <= 1 {
		w.ClockRatio = Figure(sum.clock)
	}
	if sum.joulesKnown && !sum.joulesAbsent {
		w.Energy = Figure(sum.joules)
	}
	return w
}
