package stats

import "math"

// MeanRatio says how much greater now is than base where each has few values,
// such as the throughputs of three repeats: the ratio of their geometric means,
// with an interval of 95 % by Welch's t test on the logarithms. It asks for
// values that scatter about their mean as measurement errors do, not for
// equal scatter on both sides.
//
// With fewer than two values on a side the ends are NaN: one value says nothing
// of its scatter. All is NaN when a sample is empty or holds a value that is not
// positive and finite. Samples without any scatter give an interval of no width, which
// then says only that the measurement does not show it.
func MeanRatio(base, now []float64) Interval {
	a, va := logMoments(base)
	b, vb := logMoments(now)
	i := Interval{Point: math.Exp(b - a), Low: math.NaN(), High: math.NaN()}
	na, nb := float64(len(base)), float64(len(now))
	if math.IsNaN(i.Point) || na < 2 || nb < 2 {
		return i
	}
	sa, sb := va/na, vb/nb // squared errors of the two means
	if sa+sb == 0 {
		i.Low, i.High = i.Point, i.Point
		return i
	}
	// The degrees of freedom by Welch and Satterthwaite.
	freedom := (sa + sb) * (sa + sb) / (sa*sa/(na-1) + sb*sb/(nb-1))
	width := studentQuantile(0.975, freedom) * math.Sqrt(sa+sb)
	i.Low, i.High = math.Exp(b-a-width), math.Exp(b-a+width)
	return i
}

// logMoments returns mean and variance (divided by n − 1) of the logarithms.
func logMoments(values []float64) (mean, variance float64) {
	n := float64(len(values))
	if n == 0 {
		return math.NaN(), math.NaN()
	}
	for _, v := range values {
		if !(v > 0) || math.IsInf(v, 1) {
			return math.NaN(), math.NaN()
		}
		mean += math.Log(v) / n
	}
	for _, v := range values {
		d := math.Log(v) - mean
		variance += d * d
	}
	return mean, variance / max(n-1, 1)
}

// studentQuantile returns the p-quantile, 0.5 < p < 1, of Student's t distribution,
// by halving an interval on its distribution function.
func studentQuantile(p, freedom float64) float64 {
	low, high := 0.0, 1.0
	for studentAbove(high, freedom) > 1-p && high < 1e9 {
		low, high = high, 2*high
	}
	for range 60 {
		middle := (low + high) / 2
		if studentAbove(middle, freedom) > 1-p {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// studentAbove is the probability that a variable of Student's t distribution is
// greater than t ≥ 0: I(ν/(ν+t²); ν/2, 1/2)/2, I being the incomplete beta function.
func studentAbove(t, freedom float64) float64 {
	return incompleteBeta(freedom/(freedom+t*t), freedom/2, 0.5) / 2
}

// incompleteBeta is the regularised incomplete beta function I(x; a, b), by its
// continued fraction (Abramowitz and Stegun 26.5.8), evaluated from the front by
// Lentz's method.
func incompleteBeta(x, a, b float64) float64 {
	if x <= 0 {
		return 0
	}
	if x >= 1 {
		return 1
	}
	if x > (a+1)/(a+b+2) { // where the fraction converges slowly, its mirror image does not
		return 1 - incompleteBeta(1-x, b, a)
	}
	ga, _ := math.Lgamma(a)
	gb, _ := math.Lgamma(b)
	gab, _ := math.Lgamma(a + b)
	front := math.Exp(gab-ga-gb+a*math.Log(x)+b*math.Log1p(-x)) / a

	const tiny = 1e-300 // stands for 0 where it would be divided by
	away := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/away(1-(a+b)*x/(a+1))
	f := d
	for m := 1.0; m < 1000; m++ {
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d = 1 / away(1+even*d)
		c = away(1 + even/c)
		f *= d * c
		d = 1 / away(1+odd*d)
		c = away(1 + odd/c)
		f *= d * c
		if math.Abs(d*c-1) < 1e-15 {
			break
		}
	}
	return front * f
}
