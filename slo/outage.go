package slo

// An outage is looked for in the last outageSeconds: at least outageBad calls are bad, and they
// are outageShare of all. It shows long before a burn rate over an hour does where
// calls are few.
const (
	outageSeconds = 30
	outageBad     = 10
	outageShare   = 900_000 // in millionths
	secondSlots   = 32
)

// seconds counts good and bad calls second by second, for a little longer than an outage
// takes to show. A verdict's second is that of its decision.
type seconds struct {
	second [secondSlots]int64
	n      []uint32 // for each second and column: good, bad
	// width is how many of n a second has.
	width int
}

func (s *seconds) init(cols int) {
	s.width = 2 * cols
	s.n = make([]uint32, secondSlots*s.width)
	for i := range s.second {
		s.second[i] = longAgo
	}
}

// at returns the counts of a second, nil if that is too long ago. now is the last second that is known
// to have begun.
func (s *seconds) at(now, second int64) []uint32 {
	i := int(second & (secondSlots - 1))
	if s.second[i] != second && !s.turn(now, i, second) {
		return nil
	}
	return s.n[i*s.width:][:s.width]
}

// turn gives a place to a second, unless that is too long ago.
func (s *seconds) turn(now int64, i int, second int64) bool {
	if second <= now-secondSlots || s.second[i] > second && s.second[i] <= now {
		return false
	}
	s.second[i] = second
	clear(s.n[i*s.width:][:s.width])
	return true
}

// sum adds good and bad of the seconds up to now to dst, two for each column.
func (s *seconds) sum(now int64, dst []int64) {
	for i, at := range s.second {
		if at > now-outageSeconds && at <= now {
			for c, n := range s.n[i*s.width:][:s.width] {
				dst[c] += int64(n)
			}
		}
	}
}

// remap makes column i what column from[i] was.
func (s *seconds) remap(from []int) {
	was := *s
	s.init(len(from))
	s.second = was.second
	width, old := s.width, was.width
	for i := range secondSlots {
		for c, o := range from {
			if o >= 0 {
				copy(s.n[i*width+2*c:][:2], was.n[i*old+2*o:][:2])
			}
		}
	}
}
