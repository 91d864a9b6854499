package gateway

import (
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/dialect"
	"github.com/weirgate/weir/slo"
)

// Kept says what a call that has ended was for an objective, as far as its record
// tells, what was missed before the end included; conditions and goodput are not looked at.
func Kept(rec *call.Record, o *slo.Objective) slo.Verdict {
	d := dialect.ByName(rec.Dialect)
	writes := d != nil && d.WritesTokens()
	f := factsOf(rec, rec.Time, writes)
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
	if v == slo.NotCounted && waited(rec, o.Number, writes) > o.Threshold {
		return slo.Bad // as it was when the threshold passed
	}
	return v
}

// waited is how long a call had waited for what a number measures when it ended
// without it, or had it; 0 where it was not waited for.
func waited(rec *call.Record, n slo.Number, writes bool) time.Duration {
	ended := rec.Instants.Ended.Or(rec.Phases.Sum()) // of a record from the ledger
	switch n {
	case slo.E2E:
		return ended
	case slo.TTFT, slo.TTFTUpstream, slo.TTFTVisible:
		// An error that is no stream does not tell whether one was asked for. As most
		// are, so is this: what is asked here is what such calls have in common.
		if !rec.Stream && !(rec.Outcome.Failed() && writes) {
			return 0
		}
		since := time.Duration(0)
		at := rec.TTFT
		switch n {
		case slo.TTFTVisible:
			at = rec.TTFTVisible
		case slo.TTFTUpstream:
			sent, known := rec.Instants.Sent.Get()
			if !known {
				return 0
			}
			since, at = sent, rec.Instants.FirstToken
		}
		return at.Or(ended) - since
	}
	return 0
}
