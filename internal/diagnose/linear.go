package diagnose

import (
	"math"
	"slices"
)

// linear is a least-squares line through several figures. What hardly varies, or
// goes with an earlier figure, is left out: its coefficient is not known then.
type linear struct {
	n     int
	means []float64 // of the figures
	level float64   // mean of what is explained
	coef  []float64 // 0 where not known
	known []bool
	// basis makes each figure independent of the ones before it, with mean square
	// 1; q[k] is (x[k] − mean − Σ mix[k][j]·q[j]) / scale[k].
	mix   [][]float64
	scale []float64
	sd    float64 // of what is left unexplained
}

const (
	// spread is the least standard deviation of a figure, relative to its mean,
	// that a slope is read from.
	spread = 0.1
	// apart is the least part of a figure's variance that the figures before it do
	// not share: with less than a tenth slopes cannot be told from each other.
	apart = 0.1
)

// fitLinear explains y by the columns of x, each of which may only make it larger:
// one that came out below 0 is left out, and the others fitted again.
func fitLinear(x [][]float64, y []float64) (linear, bool) {
	dropped := make([]bool, len(x))
	for range len(x) + 1 {
		l, ok := fitOnce(x, y, dropped)
		if !ok {
			return linear{}, false
		}
		worst := -1
		for k, c := range l.coef {
			if c < 0 && (worst < 0 || c*l.scale[k] < l.coef[worst]*l.scale[worst]) {
				worst = k
			}
		}
		if worst < 0 {
			return l, true
		}
		dropped[worst] = true
	}
	return linear{}, false
}

func fitOnce(x [][]float64, y []float64, dropped []bool) (linear, bool) {
	n := len(y)
	if n < MinCalls {
		return linear{}, false
	}
	l := linear{n: n, means: make([]float64, len(x)), coef: make([]float64, len(x)), known: make([]bool, len(x)),
		mix: make([][]float64, len(x)), scale: make([]float64, len(x))}
	l.level = average(y)
	rest := make([]float64, n)
	for i := range y {
		rest[i] = y[i] - l.level
	}
	basis := make([][]float64, len(x))
	along := make([]float64, len(x)) // y along each of the basis
	used := 0
	for k := range x {
		l.means[k] = average(x[k])
		l.mix[k] = make([]float64, k)
		q := make([]float64, n)
		for i := range q {
			q[i] = x[k][i] - l.means[k]
		}
		all := dot(q, q)
		if dropped[k] || all <= float64(n)*spread*spread*l.means[k]*l.means[k] || all == 0 {
			continue
		}
		for j := range k {
			if l.known[j] {
				l.mix[k][j] = dot(q, basis[j]) / float64(n)
				for i := range q {
					q[i] -= l.mix[k][j] * basis[j][i]
				}
			}
		}
		own := dot(q, q)
		if own < apart*all {
			continue
		}
		l.scale[k] = math.Sqrt(own / float64(n))
		for i := range q {
			q[i] /= l.scale[k]
		}
		basis[k], l.known[k] = q, true
		used++
		along[k] = dot(rest, q) / float64(n)
		for i := range rest {
			rest[i] -= along[k] * q[i]
		}
	}
	if used == 0 || n <= used+1 {
		return linear{}, false
	}
	l.sd = math.Sqrt(dot(rest, rest) / float64(n-used-1))
	// Back to the figures themselves, the last one first.
	for k := len(x) - 1; k >= 0; k-- {
		if !l.known[k] {
			continue
		}
		l.coef[k] = along[k] / l.scale[k]
		for j := range k {
			along[j] -= l.coef[k] * l.mix[k][j]
		}
	}
	return l, true
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// moved is what each figure explains of a change, if their means move so far;
// within is the standard error of their sum.
func (l *linear) moved(to []float64) (by []float64, within float64) {
	by = make([]float64, len(to))
	q := make([]float64, len(to))
	variance := 1 / float64(l.n)
	for k := range to {
		if !l.known[k] {
			continue
		}
		by[k] = l.coef[k] * (to[k] - l.means[k])
		q[k] = to[k] - l.means[k]
		for j := range k {
			if l.known[j] {
				q[k] -= l.mix[k][j] * q[j]
			}
		}
		q[k] /= l.scale[k]
		variance += q[k] * q[k] / float64(l.n)
	}
	return by, l.sd * math.Sqrt(variance)
}

// without is how much less what is explained would be if some figures were 0 and the
// others as they are; within is its standard error.
func (l *linear) without(figures ...int) (less, within float64) {
	to := slices.Clone(l.means)
	for _, k := range figures {
		to[k] = 0
	}
	by, within := l.moved(to)
	for _, k := range figures {
		less -= by[k]
	}
	return less, within
}
