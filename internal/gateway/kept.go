package gateway

import (
	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/dialect"
	"github.com/weirgate/weir/slo"
)

// Kept says what a call that has ended was for an objective, as far as its record
// tells; conditions and goodput are not looked at.
func Kept(rec *call.Record, o *slo.Objective) slo.Verdict {
	d := dialect.ByName(rec.Dialect)
	f := factsOf(rec, rec.Time, d != nil && d.WritesTokens())
	switch o.Number {
	case slo.Success, slo.Goodput:
		switch f.Ending {
		case slo.Answered:
			return slo.Good
		case slo.Failed:
			return slo.Bad
		}
		return slo.NotCounted
	}
	v := f.Values[o.Number].Against(o.Threshold)
	if v == slo.UnknownKept && o.Fallback != o.Number {
		v = f.Values[o.Fallback].Against(o.Threshold)
	}
	return v
}
