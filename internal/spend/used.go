package spend

import (
	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/ledger"
)

// maxTokens is the most tokens believed of one call, as in the ledger.
const maxTokens = 1 << 36

// Used is what a call counts against a budget: what its upstream reported, else
// the estimates that stand in for it. A call that used nothing, by the ledger's
// rule for provenance "unused", counts nothing: one that a limit refused, one
// that never reached an upstream, one that an upstream answered with an error
// status. So a budget counts what the ledger sums.
func Used(rec *call.Record) ledger.Sums {
	if rec.UsageSource != "" && rec.UsageSource != call.UsageNone {
		return ledger.Sums{Input: tokens(rec.Input), Cached: tokens(rec.Cached), CacheWrite: tokens(rec.CacheWrite),
			Output: tokens(rec.Output), Reasoning: tokens(rec.Reasoning)}
	}
	switch {
	case rec.Outcome == call.Refused,
		rec.Outcome == call.UpstreamError && rec.Status >= 400,
		rec.Attempts == 0 && (rec.Status == 0 || rec.Status >= 400):
		return ledger.Sums{}
	}
	return ledger.Sums{Input: tokens(rec.EstimatedInput), Output: tokens(rec.EstimatedOutput)}
}

// tokens is a count that may be one of tokens; an upstream may report anything.
func tokens(c call.Count) int64 {
	if n := c.Or(0); n >= 0 && n <= maxTokens {
		return n
	}
	return 0
}
