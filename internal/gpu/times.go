package gpu

// ring is how many samples are kept of each GPU: a quarter of an hour at one a
// second, and some. A power of two, so that the place of a sample is cheap.
const ring = 1024

// times are the instants of the last samples of something, rising, in ns. Sample
// i is at i % ring, here and in the arrays beside it.
type times struct {
	at [ring]int64
	n  int // samples so far
}

// place is where sample i lies.
func place(i int) int { return i & (ring - 1) }

// first is the oldest sample that is kept.
func (t *times) first() int { return max(0, t.n-ring) }

func (t *times) of(i int) int64 { return t.at[place(i)] }

// last is the instant of the last sample, of which there must be one.
func (t *times) last() int64 { return t.of(t.n - 1) }

// seek returns the first sample at or after x; t.n is none. It goes back from
// the end in growing strides: most questions are about the last seconds.
func (t *times) seek(x int64) int {
	low, high := t.first(), t.n
	for stride := 1; high > low; stride *= 2 {
		i := max(low, high-stride)
		if t.of(i) < x {
			low = i + 1
			break
		}
		high = i
	}
	for low < high {
		if i := int(uint(low+high) >> 1); t.of(i) < x {
			low = i + 1
		} else {
			high = i
		}
	}
	return low
}
