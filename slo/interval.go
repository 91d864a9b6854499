package slo

import "math"

// ClopperPearson returns the two-sided confidence interval of a share of which good of total
// were seen, by Clopper and Pearson: whatever the true share, the interval misses it on each
// side with a chance of at most (1 − confidence)/2. It is exact for a binomial and wider
// than others for few calls.
//
// Up to 1e9 calls the chances that make the limits are right to 1e-11 of themselves, and the
// limits to much less. Without calls, and for counts that cannot be or a confidence outside
// 0 to 1, it is 0 to 1, which says nothing.
func ClopperPearson(good, total int64, confidence float64) (low, high float64) {
	if good < 0 || good > total || total == 0 || !(confidence > 0 && confidence < 1) {
		return 0, 1
	}
	tail := (1 - confidence) / 2
	high, _ = upperLimit(good, total, tail)
	_, low = upperLimit(total-good, total, tail)
	return low, high
}

// UpperBad returns the one-sided upper bound of the share of bad calls of which bad of total
// were seen: whatever the true share, it is above the bound with a chance of at most 1 −
// confidence. Confidence is from 0.5 to below 1. Without calls, and for what cannot be, it
// is 1.
func UpperBad(bad, total int64, confidence float64) float64 {
	if bad < 0 || bad > total || total == 0 || !(confidence >= 0.5 && confidence < 1) {
		return 1
	}
	p, _ := upperLimit(bad, total, 1-confidence)
	return p
}

// CallsNeeded returns how many calls without one bad are needed to say with this confidence
// that the target is kept: the least n with target^n ≤ 1 − confidence. At 95 % it is 59 for
// p95, 299 for p99 and 2995 for p99.9. No number is enough for a target or a confidence of
// 1, and the largest int64 is returned; none is needed where either is 0.
func CallsNeeded(target Target, confidence float64) int64 {
	switch {
	case target <= 0 || confidence <= 0:
		return 0
	case target >= million || !(confidence < 1):
		return math.MaxInt64
	}
	n := math.Log1p(-confidence) / math.Log1p(-target.BudgetShare())
	return max(1, int64(math.Ceil(n*(1-1e-12)))) // what is whole but for rounding stays so
}

// upperLimit returns the share p for which k or fewer of n have the chance tail, and 1 − p
// to the same relative precision. 0 ≤ k ≤ n, n > 0, 0 < tail ≤ 0.5.
//
// With w = log(p/(1−p)), the logarithm of that chance is a concave falling function: it is
// the distribution of a variable whose density in w, proportional to p^(k+1)·(1−p)^(n−k), is
// log-concave. So Newton's steps after the first come from above, never pass the solution,
// and need no bracket.
func upperLimit(k, n int64, tail float64) (p, q float64) {
	if k == n {
		return 1, 0
	}
	if k == 0 { // (1−p)^n = tail
		l := math.Log(tail) / float64(n)
		return -math.Expm1(l), math.Exp(l)
	}
	bad, calls := float64(k), float64(n)
	w := wilson(bad, calls, tail)
	for range 100 { // six are the most that were seen
		p, q = logistic(w)
		// The chance of k or fewer is I_q(n−k, k+1), and 1/B(n−k, k+1) is n−k times n over k.
		f := tailFraction(calls-bad, bad+1, q, p)
		chance := logBinomial(bad, calls, p, q) + math.Log((calls-bad)*p/f)
		// By w its logarithm changes by −f: the chance itself by −(n−k)·p times that of just k.
		step := (chance - math.Log(tail)) / f
		w += step
		if math.Abs(step) <= 1e-12*math.Max(1, math.Abs(w)) {
			break
		}
	}
	return logistic(w)
}

// logistic returns p and 1 − p of w = log(p/(1−p)).
func logistic(w float64) (p, q float64) {
	return 1 / (1 + math.Exp(-w)), 1 / (1 + math.Exp(w))
}

// wilson returns Wilson's approximation of the upper limit for one more than k, as a logit:
// a start near and mostly above the solution.
func wilson(k, n, tail float64) float64 {
	z := math.Sqrt2 * math.Erfinv(1-2*tail)
	k = math.Min(k+1, n-0.5)
	half := z * math.Sqrt(k*(n-k)/n+z*z/4)
	return math.Log((k + z*z/2 + half) / (n - k + z*z/2 - half))
}

// tailFraction returns the continued fraction b₀ + a₁/(b₁ + a₂/(b₂ + …)) by which the
// incomplete beta function is
//
//	I_x(a, b) = x^a·y^b / (B(a, b) · fraction),  y = 1 − x,
//
// after DiDonato and Morris ("Significant digit computation of the incomplete beta function
// ratios", 1992). Where y is above b/(a+b), as in the tails that are asked for here, all
// terms are positive, and nothing cancels. It is evaluated forwards by the method of Lentz
// as modified by Thompson and Barnett.
func tailFraction(a, b, x, y float64) float64 {
	const tiny = 1e-300
	nonzero := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	lambda := a*y - b*x + 1
	f := nonzero(a * lambda / (a + 1))
	c, d := f, 0.0
	const most = 100_000 // 100 are needed for 95 % of 1e9 calls, 4300 for 50 %
	for m := 1.0; m < most; m++ {
		odd := a + 2*m - 1
		numerator := (a + m - 1) / odd * ((a + b + m - 1) / odd) * m * (b - m) * x * x
		denominator := m + m*(b-m)*x/odd + (a+m)*(lambda+m*(1+y))/(a+2*m+1)
		d = 1 / nonzero(denominator+numerator*d)
		c = nonzero(denominator + numerator/c)
		f *= c * d
		if math.Abs(c*d-1) < 1e-15 {
			break
		}
	}
	return f
}

// logBinomial returns the logarithm of the chance of exactly k of n, by the saddle-point
// form of Loader ("Fast and accurate computation of binomial probabilities", 2000), which
// subtracts no large numbers. 0 < k < n, q = 1 − p.
func logBinomial(k, n, p, q float64) float64 {
	return stirlingError(n) - stirlingError(k) - stirlingError(n-k) -
		deviance(k, n*p) - deviance(n-k, n*q) + 0.5*math.Log(n/(2*math.Pi*k*(n-k)))
}

// stirlingError returns log(n!) − log(√(2πn)·(n/e)^n), n ≥ 1.
func stirlingError(n float64) float64 {
	if n < 16 {
		lg, _ := math.Lgamma(n + 1)
		return lg - (n+0.5)*math.Log(n) + n - 0.5*math.Log(2*math.Pi)
	}
	s := n * n
	return (1.0/12 - (1.0/360-(1.0/1260-(1.0/1680-1.0/1188/s)/s)/s)/s) / n
}

// deviance returns x·log(x/mean) + mean − x, also where both are nearly equal.
func deviance(x, mean float64) float64 {
	v := (x - mean) / (x + mean)
	if math.Abs(v) >= 0.1 {
		return x*math.Log(x/mean) + mean - x
	}
	// log(x/mean) = 2·(v + v³/3 + v⁵/5 + …), and the first term is taken together with mean − x.
	sum := (x - mean) * v
	term := 2 * x * v
	for j := 3.0; ; j += 2 {
		term *= v * v
		next := sum + term/j
		if next == sum {
			return sum
		}
		sum = next
	}
}
