package corpus

import "math"

// random is splitmix64: the corpus must be the same with every version of Go,
// for the token counts belong to it.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number from 0 to n−1.
func (r *random) below(n int) int { return int(r.next() % uint64(n)) }

// between returns a number from low to high.
func (r *random) between(low, high int) int { return low + r.below(high-low+1) }

func (r *random) chance(percent int) bool { return r.below(100) < percent }

// spread returns a number from low to high, each order of magnitude as likely as the next.
func (r *random) spread(low, high int) int {
	u := float64(r.next()>>11) / (1 << 53)
	return int(float64(low) * math.Exp(u*math.Log(float64(high)/float64(low))))
}

func pick[T any](r *random, of []T) T { return of[r.below(len(of))] }
