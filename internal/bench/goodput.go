package bench

import "time"

// verdict says whether a call kept its objectives.
type verdict uint8

const (
	kept verdict = iota
	missed
	undecided
)

// any tells whether there is an objective at all.
func (o Objectives) any() bool { return o.TTFT > 0 || o.TPOT > 0 || o.E2E > 0 }

// judge says whether a call kept all objectives. A failed call kept none. One
// missed objective decides; otherwise an unknown figure leaves it open, since
// unknown is neither good nor bad. An answer of fewer than two tokens keeps any
// TPOT: there is no time between its tokens.
func (o Objectives) judge(p *point) verdict {
	if !p.ok() {
		return missed
	}
	result := kept
	for _, one := range [...]struct {
		objective time.Duration
		figure    span
	}{{o.TTFT, p.ttft}, {o.TPOT, p.tpot}, {o.E2E, p.e2e}} {
		switch {
		case one.objective <= 0:
		case one.figure == unknown:
			result = undecided
		case time.Duration(one.figure) > one.objective:
			return missed
		}
	}
	if result == undecided && o.TPOT > 0 && p.tpot == unknown && p.output >= 0 && p.output < 2 {
		o.TPOT = 0
		return o.judge(p)
	}
	return result
}

// goodput returns the share of calls that kept all objectives, among those of
// which it can be said, and how many it cannot. It is absent without objectives,
// and when nothing can be said.
func (o Objectives) goodput(calls []*point) (share *float64, open int) {
	if !o.any() {
		return nil, 0
	}
	good, decided := 0, 0
	for _, p := range calls {
		switch o.judge(p) {
		case kept:
			good++
			decided++
		case missed:
			decided++
		case undecided:
			open++
		}
	}
	if decided == 0 {
		return nil, open
	}
	v := float64(good) / float64(decided)
	return &v, open
}
