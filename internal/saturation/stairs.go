package saturation

// maxStairs bounds a staircase: with the last the rate is twenty times the target.
const maxStairs = 100

// DefaultTop is how far a staircase goes unless told otherwise, as a multiple of
// its target: far enough to see whether capacity can shrink.
const DefaultTop = 2

// Rates returns the stairs around a target, in calls a second: from half of it in
// steps of a fifth of it, up to and including most; 0 or less stands for
// DefaultTop times the target. There are at most a hundred, and none when target is
// not a positive number.
func Rates(target, most float64) []float64 {
	if !positive(target) {
		return nil
	}
	if !(most > 0) {
		most = DefaultTop * target
	}
	var rates []float64
	for tenths := 5; len(rates) < maxStairs; tenths += 2 {
		rate := target * float64(tenths) / 10
		if rate > most*(1+1e-12) {
			break
		}
		rates = append(rates, rate)
	}
	return rates
}
