package slo

import (
	"math"
	"math/bits"
	"time"
)

// forecastAfter is how long a period has to have been counted before what it will come to
// can be told.
const forecastAfter = time.Hour

// budget returns how much of the budget is used. since is when the counts began.
func (r *report) budget(target Target, n Counts, since time.Time) Budget {
	total := n.All()
	b := Budget{Calls: total, State: StateOK}
	calls := total
	b.Allowed, b.Consumed = allowed(total, target), consumed(n.Bad, total, target)
	by := b.Consumed
	if f, ok := r.forecast(total, since); ok {
		b.Forecast, b.AllowedForecast, b.ConsumedForecast = &f, allowed(f, target), consumed(n.Bad, f, target)
		calls, by = f, b.ConsumedForecast
	}
	if by != nil {
		left := 1 - *by
		b.Left = &left
	}
	switch {
	case spent(n.Bad, calls, target, million):
		b.State = StateExhausted
	case spent(n.Bad, calls, target, millionths(r.config.Freeze)):
		b.State = StateFreeze
	case spent(n.Bad, calls, target, millionths(r.config.Warn)):
		b.State = StateWarning
	}
	if b.State != StateOK && total < r.config.CallsToFreeze(target) {
		b.State, b.TooFew = StateOK, true
	}
	return b
}

// forecast returns how many calls a calendar period comes to if traffic goes on as it was since
// its beginning, or since counts began: total · (to − beginning)/(now − beginning), rounded.
func (r *report) forecast(total int64, since time.Time) (int64, bool) {
	if r.config.Period.Rolling != 0 {
		return 0, false
	}
	begin := r.w.period.From
	if since.After(begin) {
		begin = since
	}
	elapsed, whole := r.w.now.Sub(begin), r.w.period.To.Sub(begin)
	if elapsed < forecastAfter || whole < elapsed {
		return 0, false
	}
	hi, lo := bits.Mul64(uint64(total), uint64(whole))
	lo, carry := bits.Add64(lo, uint64(elapsed/2), 0)
	if hi += carry; hi >= uint64(elapsed) {
		return math.MaxInt64, true
	}
	n, _ := bits.Div64(hi, lo, uint64(elapsed))
	return int64(min(n, math.MaxInt64)), true
}

// millionths returns a share in millionths, to the nearest, by which it is compared.
func millionths(share float64) int64 { return int64(math.Round(share * million)) }

// allowed returns (1 − target) · calls, nil without calls.
func allowed(calls int64, target Target) *float64 {
	if calls == 0 {
		return nil
	}
	f := float64(calls) * float64(million-target) / million
	return &f
}

// consumed returns bad / ((1 − target) · calls), nil without calls.
func consumed(bad, calls int64, target Target) *float64 {
	if calls == 0 {
		return nil
	}
	f := float64(bad) * million / (float64(million-target) * float64(calls))
	return &f
}

// spent tells exactly whether bad ≥ share · (1 − target) · calls, with share in millionths.
func spent(bad, calls int64, target Target, share int64) bool {
	return calls > 0 && compare(bad, million*million, calls, share*int64(million-target)) >= 0
}

// burnRate returns bad / all / (1 − target), nil without calls.
func burnRate(n Counts, target Target) *float64 {
	return consumed(n.Bad, n.All(), target)
}

// burns tells exactly whether the burn rate is above a factor, which is taken to the nearest millionth.
func burns(bad, total int64, target Target, factor float64) bool {
	return total > 0 && compare(bad, million*million, total, millionths(factor)*int64(million-target)) > 0
}

// compare compares a·b with c·d, none of them below 0, without overflow.
func compare(a, b, c, d int64) int {
	h, l := bits.Mul64(uint64(a), uint64(b))
	i, m := bits.Mul64(uint64(c), uint64(d))
	switch {
	case h > i || h == i && l > m:
		return 1
	case h == i && l == m:
		return 0
	}
	return -1
}
