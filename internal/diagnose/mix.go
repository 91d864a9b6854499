package diagnose

import (
	"math/bits"
	"strconv"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// Standard compares two windows on equal cells: calls are told apart by what By
// names, the healthy window's mean of each cell is weighted by the calls that the
// new window has in it (direct standardisation), and what that alone changes is
// Mix. It is exact: Mix, Equal and Other add up to the change.
type Standard struct {
	// By is what tells cells apart: model, and input and output tokens to within
	// a factor of √2; then uncached_input in place of input; then the batch too,
	// to within a factor of two. Where tokens are not reported the bytes of the
	// request and the pieces of the answer stand in.
	By []string `json:"by"`
	// Cells is how many cells both windows have.
	Cells int `json:"cells"`
	// Before and After are how many calls of each window lie in these.
	Before int `json:"calls_before"`
	After  int `json:"calls_after"`
	// Overlap is the share of the new window's calls that lie in them, 0–1.
	Overlap call.Number `json:"overlap,omitzero"`
	// Determined is whether that is enough to speak: half of the new window's
	// calls, and MinCalls of either window.
	Determined bool `json:"determined"`
	// Mix is what the mean would have changed by if calls of each cell had stayed
	// as they were. Equal is the change on equal cells, at the new window's mix.
	// Other is what calls add for which the healthy window has no equal.
	Mix   call.Duration `json:"mix_ms,omitzero"`
	Equal call.Duration `json:"equal_cells_ms,omitzero"`
	Other call.Duration `json:"other_ms,omitzero"`
}

// The levels of standardisation, each finer than the one before.
const (
	byShape = iota
	byUncached
	byBatch
	levels
)

var levelNames = [levels][]string{
	{"model", "input", "output"},
	{"model", "input", "uncached_input", "output"},
	{"model", "input", "uncached_input", "output", "batch"},
}

// kind is a cell: which calls are alike.
type kind struct {
	model                           string
	input, output, uncached, batch  int16
	inputBy, outputBy               int8 // 0 is unknown, 1 by tokens, 2 by bytes or pieces
	uncachedKnown, batchKnown, flow bool
}

// size is a number to within a factor of √2: two steps for each doubling.
func size2(n int64) int16 {
	if n <= 0 {
		return 0
	}
	octave := bits.Len64(uint64(n)) // 2^(octave−1) ≤ n
	step := int16(2 * octave)
	if x := float64(n) / float64(uint64(1)<<(octave-1)); x*x >= 2 {
		step++
	}
	return step
}

// kindOf returns the cell of a call at a level, as far as its figures are known,
// and whether all are that tell cells apart.
func (s *sample) kindOf(level int) (k kind, ok bool) {
	rec := s.rec
	k.model, k.flow = rec.Model, rec.Stream
	if n, known := rec.Input.Get(); known {
		k.input, k.inputBy = size2(n), 1
	} else if n, known := rec.BytesIn.Get(); known {
		k.input, k.inputBy = size2(n), 2
	}
	if n, known := rec.Output.Get(); known {
		k.output, k.outputBy = size2(n), 1
	} else if n, known := rec.ContentEvents.Get(); known {
		k.output, k.outputBy = size2(n), 2
	}
	ok = k.inputBy != 0 && k.outputBy != 0
	if level >= byUncached {
		if !s.uncached.IsKnown() {
			return k, false
		}
		k.uncached, k.uncachedKnown = size2(s.uncached.Or(0)), true
	}
	if level >= byBatch {
		n, known := s.met.Get()
		if !known {
			return k, false
		}
		k.batch, k.batchKnown = int16(bits.Len64(uint64(max(n, 0)))), true
	}
	return k, ok
}

// standard compares two windows by cells of a level; false when calls have none.
func standard(before, after []sample, m measure, level int, change Change) (Standard, bool) {
	type pair struct {
		calls [2]int
		total [2]time.Duration
	}
	cells := make(map[kind]*pair)
	var all, without [2]int
	for i, list := range [2][]sample{before, after} {
		for j := range list {
			s := &list[j]
			if !s.has[m] {
				continue
			}
			all[i]++
			k, ok := s.kindOf(level)
			if !ok {
				without[i]++
				continue
			}
			at := cells[k]
			if at == nil {
				at = new(pair)
				cells[k] = at
			}
			at.calls[i]++
			at.total[i] += s.whole[m]
		}
	}
	out := Standard{By: levelNames[level]}
	if all[0] == 0 || all[1] == 0 || without[0] == all[0] || without[1] == all[1] {
		return out, false
	}
	weighted, now := 0.0, time.Duration(0) // sums over the new window's calls, ns
	for _, at := range cells {
		if at.calls[0] < leastInCell || at.calls[1] < leastInCell {
			continue
		}
		out.Cells++
		out.Before += at.calls[0]
		out.After += at.calls[1]
		now += at.total[1]
	}
	// In the order of the calls, so that the sum does not depend on that of a map.
	for j := range after {
		s := &after[j]
		if k, ok := s.kindOf(level); ok && s.has[m] {
			if at := cells[k]; at.calls[0] >= leastInCell && at.calls[1] >= leastInCell {
				weighted += float64(at.total[0]) / float64(at.calls[0])
			}
		}
	}
	out.Overlap = call.Figure(float64(out.After) / float64(all[1]))
	out.Determined = out.Overlap.Or(0) >= Dominant && min(out.Before, out.After) >= MinCalls
	if out.Cells == 0 {
		return out, true
	}
	mean := func(sum float64, n int) time.Duration { return time.Duration(sum / float64(n)) }
	expected, equal := mean(weighted, out.After), mean(float64(now), out.After)
	delta := change.Change.Or(0)
	mix := expected - change.Before.Mean.Or(0)
	out.Mix, out.Equal = call.Lasting(mix), call.Lasting(equal-expected)
	out.Other = call.Lasting(delta - mix - (equal - expected))
	return out, true
}

// words say what the cells show.
func (s *Standard) words(m measure) string {
	share, _ := s.Overlap.Get()
	return "on equal cells (" + strconv.Itoa(s.Cells) + ", with " + percent(share) + " of the calls) " + inCapitals[m] + " changed by " + signed(s.Equal.Or(0))
}

// signed writes a change of time with its sign; less than a microsecond is none.
func signed(d time.Duration) string {
	switch {
	case d <= -time.Microsecond:
		return "−" + span(-d)
	case d < time.Microsecond:
		return "+0 ms"
	}
	return "+" + span(d)
}
