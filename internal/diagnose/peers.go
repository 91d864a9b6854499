package diagnose

import (
	"math/bits"
	"slices"
	"time"
)

// peers are the calls of a window whose prompts take a like amount of work.
type peers struct {
	calls  int
	median time.Duration // of their prefill; of an even number the lower one
}

// cell tells calls apart by what prefill depends on: the model, and the number
// of computed tokens to within a factor of two. Upstreams are not told apart, so
// that one which is slow stands out beside its siblings.
type cell struct {
	model string
	size  int
}

// cells gathers the prefill times of a window.
type cells map[cell][]time.Duration

func (l *look) cell() (cell, bool) {
	n, _, known := l.computed()
	return cell{model: l.rec.Model, size: bits.Len64(uint64(n))}, known
}

func (c cells) add(l *look) {
	d, _, known := l.computing()
	if at, counted := l.cell(); known && counted {
		c[at] = append(c[at], d)
	}
}

// medians ends the gathering. It costs n log n in the calls of a cell.
func (c cells) medians() map[cell]peers {
	m := make(map[cell]peers, len(c))
	for at, times := range c {
		slices.Sort(times)
		m[at] = peers{calls: len(times), median: times[(len(times)-1)/2]}
	}
	return m
}
