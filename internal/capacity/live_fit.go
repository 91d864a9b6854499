package capacity

import (
	"math"
	"slices"

	"github.com/weirgate/weir/internal/stats"
)

// liveCost is what steps cost, in seconds.
type liveCost struct {
	alpha, beta    float64 // a step with decoding sequences: alpha + beta·sequences
	gamma          float64 // share of the prompt's time that the engine's steps take
	base, perToken float64 // a step with prompts: base + perToken·uncached tokens
	front          float64 // before prefill, without the engine's time
}

// decode is the cost of a step's decoding part.
func (c *liveCost) decode(sequences float64) float64 {
	if sequences <= 0 {
		return 0
	}
	return c.alpha + c.beta*sequences
}

// prompt is the whole cost of so many steps with so many tokens of prompts.
func (c *liveCost) prompt(steps, tokens float64) float64 { return c.base*steps + c.perToken*tokens }

// liveRow is one equation of a fit: y = Σ θ·x, with a weight.
type liveRow struct {
	x [3]float64
	y float64
	w float64
}

// liveSolve finds θ ≥ 0 of the first p columns by weighted least squares. A column that
// would be negative, or that cannot be told from the others, is left out, 0.
func liveSolve(rows []liveRow, p int, scale []float64) (theta [3]float64, ok bool) {
	var a [3][3]float64
	var b [3]float64
	for i := range rows {
		r := &rows[i]
		w := r.w
		if scale != nil {
			w *= scale[i]
		}
		for j := range p {
			b[j] += w * r.x[j] * r.y
			for k := j; k < p; k++ {
				a[j][k] += w * r.x[j] * r.x[k]
			}
		}
	}
	for j := range p {
		for k := range j {
			a[j][k] = a[k][j]
		}
	}
	use := [3]bool{true, true, true}
	for {
		theta, ok = liveEliminate(a, b, p, use)
		worst := -1
		for j := range p {
			if use[j] && (!ok || theta[j] < 0) && (worst < 0 || theta[j] < theta[worst]) {
				worst = j
			}
		}
		if ok && worst < 0 {
			return theta, true
		}
		if !ok { // columns depend on each other: the last one goes
			for worst = p - 1; worst > 0 && !use[worst]; worst-- {
			}
		}
		if worst <= 0 {
			return theta, false // without the first column there is no fit
		}
		use[worst] = false
	}
}

// liveEliminate solves the normal equations of the columns in use.
func liveEliminate(a [3][3]float64, b [3]float64, p int, use [3]bool) (theta [3]float64, ok bool) {
	var at [3]int
	n := 0
	for j := range p {
		if use[j] {
			at[n] = j
			n++
		}
	}
	var m [3][4]float64
	for r := range n {
		for c := range n {
			m[r][c] = a[at[r]][at[c]]
		}
		m[r][3] = b[at[r]]
	}
	for i := range n {
		// Diagonal first: the matrix is symmetric and not negative, so that no pivoting is
		// needed, and a pivot that has shrunk to nothing is a column that depends on others.
		if !(m[i][i] > 1e-9*a[at[i]][at[i]]) || a[at[i]][at[i]] == 0 {
			return theta, false
		}
		for r := i + 1; r < n; r++ {
			f := m[r][i] / m[i][i]
			for c := i; c < n; c++ {
				m[r][c] -= f * m[i][c]
			}
			m[r][3] -= f * m[i][3]
		}
	}
	for i := n - 1; i >= 0; i-- {
		v := m[i][3]
		for c := i + 1; c < n; c++ {
			v -= m[i][c] * theta[at[c]]
		}
		theta[at[i]] = v / m[i][i]
	}
	return theta, true
}

// fitRounds is how often a robust fit weighs its rows anew.
const fitRounds = 5

// liveRobust is liveSolve with Tukey's biweight: rows further than 4.685 scaled median
// residuals from the fit count for nothing, near ones almost fully (Beaton and
// Tukey 1974). It begins with weights that only dampen (Huber's).
func liveRobust(rows []liveRow, p int, work *liveWork) (theta [3]float64, ok bool) {
	theta, ok = liveSolve(rows, p, nil)
	if !ok {
		return theta, false
	}
	work.scale = slices.Grow(work.scale[:0], len(rows))[:len(rows)]
	work.sorted = slices.Grow(work.sorted[:0], len(rows))[:len(rows)]
	for round := range fitRounds {
		for i := range rows {
			r := &rows[i]
			work.scale[i] = math.Abs(r.y-theta[0]*r.x[0]-theta[1]*r.x[1]-theta[2]*r.x[2]) * math.Sqrt(r.w)
		}
		copy(work.sorted, work.scale)
		spread := 1.4826 * liveMedian(work.sorted)
		if !(spread > 1e-12) {
			return theta, true // exact
		}
		for i, d := range work.scale {
			u := d / spread
			switch {
			case round < 2:
				work.scale[i] = min(1, 1.345/max(u, 1e-9))
			case u < 4.685:
				v := 1 - (u/4.685)*(u/4.685)
				work.scale[i] = v * v
			default:
				work.scale[i] = 0
			}
		}
		next, ok := liveSolve(rows, p, work.scale)
		if !ok {
			return theta, true
		}
		theta = next
	}
	return theta, true
}

// liveWork is memory that fits use again.
type liveWork struct {
	scale, sorted []float64
	tpot, prefill []liveRow
}

// liveMedian returns the middle value, and leaves values in some order.
func liveMedian(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	k := len(v) / 2
	for low, high := 0, len(v)-1; low < high; {
		pivot := v[(low+high)/2]
		i, j := low, high
		for i <= j {
			for v[i] < pivot {
				i++
			}
			for v[j] > pivot {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			high = j
		case k >= i:
			low = i
		default:
			return v[k]
		}
	}
	return v[k]
}

// livePrefills says which calls tell what a prompt costs, and how that is known.
type livePrefills struct {
	source string
	calls  []int
}

const (
	// fitCalls is the least number of calls for a fit, maxFitCalls the most: of more, so many are
	// taken at even distances, for chance then matters less than what the model lacks.
	fitCalls    = 50
	maxFitCalls = 5000
	// weightTokens is the number of tokens from which on a longer answer counts no more.
	weightTokens = 64
)

// liveThin takes maxFitCalls of a list that is longer, at even distances.
func liveThin(list []int) []int {
	n := len(list)
	if n <= maxFitCalls {
		return list
	}
	thin := make([]int, maxFitCalls)
	for i := range thin {
		thin[i] = list[i*n/maxFitCalls]
	}
	return thin
}

// livePick chooses the calls for the prefill's fit: the engine's own figures, else those
// where the gauges told that there was no queue, else those that met no other call's
// prompt at low load.
func livePick(calls []liveCall, maxSeqs float64) livePrefills {
	pick := func(take func(c *liveCall) bool) (list []int) {
		for i := range calls {
			if c := &calls[i]; !c.guessed && !math.IsNaN(c.first) && c.uncached > 0 && take(c) {
				list = append(list, i)
			}
		}
		return list
	}
	if list := pick(func(c *liveCall) bool { return !math.IsNaN(c.prefill) }); len(list) >= fitCalls {
		return livePrefills{"engine", list}
	}
	if list := pick(func(c *liveCall) bool { return c.noQueue && c.ahead == 0 }); len(list) >= fitCalls {
		return livePrefills{"inferred", list}
	}
	var met []float64
	for i := range calls {
		if c := &calls[i]; !math.IsNaN(c.first) && !c.guessed {
			met = append(met, c.at)
		}
	}
	slices.Sort(met)
	low := stats.Quantile(met, 0.5)
	if maxSeqs > 0 {
		low = min(low, maxSeqs/2)
	}
	if list := pick(func(c *liveCall) bool { return c.at <= low && c.ahead == 0 }); len(list) >= fitCalls {
		return livePrefills{"low load", list}
	}
	return livePrefills{"low load", pick(func(c *liveCall) bool { return c.at <= low })}
}

// liveFitCost fits the costs to the calls at these places, which may repeat. What a token costs
// and what a prompt costs depend on each other and are fitted in turn, from nothing or from
// costs that are about right. A step takes stepTokens of a prompt.
func liveFitCost(calls []liveCall, l *liveLoad, tpots []int, prefills livePrefills, stepTokens float64, from *liveCost, work *liveWork) (c liveCost, ok bool) {
	c.gamma = 1
	turns := 4
	if from != nil {
		c, turns = *from, 2
	}
	for turn := range turns {
		work.tpot = work.tpot[:0]
		for _, i := range tpots {
			k := &calls[i]
			n := k.output - 1
			r := liveRow{x: [3]float64{1, k.batch, c.prompt(k.prompts, k.others) / n}, y: k.tpot, w: min(n, weightTokens)}
			work.tpot = append(work.tpot, r)
		}
		p := 3
		if turn == 0 && from == nil {
			p = 2 // what prompts cost is not known yet
		}
		theta, fits := liveRobust(work.tpot, p, work)
		if !fits {
			return c, false
		}
		c.alpha, c.beta = theta[0], theta[1]
		if p == 3 {
			c.gamma = min(theta[2], maxGamma)
		}
		if !c.fitPrefill(calls, l, prefills, stepTokens, work) {
			return c, false
		}
	}
	return c, true
}

// maxGamma bounds γ: that decoding feels more than twice what a prompt takes has other causes.
const maxGamma = 2

// fitPrefill fits base and perToken, given what decoding costs. From a prefill that the engine
// reports goes what the sequences that decoded beside it cost; from an upstream TTFT also half
// a step, which a call that comes at any time waits for the step under way.
func (c *liveCost) fitPrefill(calls []liveCall, l *liveLoad, pre livePrefills, stepTokens float64, work *liveWork) bool {
	work.prefill = work.prefill[:0]
	var tokens, squares float64
	for _, i := range pre.calls {
		k := &calls[i]
		steps := math.Ceil(k.uncached / stepTokens)
		beside := c.decode(l.decoding.before(k.first) / l.share)
		r := liveRow{x: [3]float64{steps, k.uncached}, w: 1}
		if pre.source == "engine" {
			// All prompts of the step are in its time.
			if at := l.steps.index(k.first); at >= 0 {
				together := l.steps.tokens[at]
				if at > 0 {
					together -= l.steps.tokens[at-1]
				}
				r.x[1] = max(together, k.uncached)
				r.x[0] = math.Ceil(r.x[1] / stepTokens)
				steps = r.x[0]
			}
			r.y = k.prefill - steps*beside
		} else {
			r.x[2] = 1 // the front end
			r.y = k.first - k.sent - steps*beside - c.decode(k.at)/2
		}
		r.w = 1 / (r.x[1] + stepTokens) // longer prompts scatter more
		work.prefill = append(work.prefill, r)
		tokens += r.x[1]
		squares += r.x[1] * r.x[1]
	}
	n := float64(len(work.prefill))
	if n < fitCalls/2 {
		return false
	}
	// Prompts of one length cannot tell a base from a cost for each token. All is then put down
	// to tokens, so that two prompts in a step cost twice as much: the careful reading.
	if mean := tokens / n; !(squares/n-mean*mean > 0.0025*mean*mean) {
		for i := range work.prefill {
			work.prefill[i].x[0], work.prefill[i].x[1] = work.prefill[i].x[1], 0
		}
		theta, fits := liveRobust(work.prefill, 1, work)
		c.base, c.perToken, c.front = 0, max(theta[0], 0), 0
		return fits
	}
	// Where all prompts take one step, the front end cannot be told from the base, and the last
	// column drops out: γ then says how much of the base the engine's steps feel.
	theta, fits := liveRobust(work.prefill, 3, work)
	if !fits {
		// Quicker for longer prompts, or nothing left: no base can be told.
		for i := range work.prefill {
			work.prefill[i].x[0], work.prefill[i].x[1] = work.prefill[i].x[1], 0
		}
		theta, fits = liveRobust(work.prefill, 1, work)
		c.base, c.perToken, c.front = 0, max(theta[0], 0), 0
		return fits
	}
	c.base, c.perToken, c.front = theta[0], theta[1], theta[2]
	return true
}

// foretell is the TPOT that the fit gives a call, s.
func (c *liveCost) foretell(k *liveCall) float64 {
	return c.decode(k.batch) + c.gamma*c.prompt(k.prompts, k.others)/(k.output-1)
}
