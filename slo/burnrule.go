package slo

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// usableShare is how much of the largest possible burn a factor may ask: a rule fires at the
// latest when nine calls of ten are bad.
const usableShare = 0.9

// DefaultBurn returns the rules that Google's SRE workbook recommends ("Alerting on SLOs"):
// pages at 2 % of a 30-day budget spent in an hour and at 5 % in six, a ticket at 10 % in
// three days, each with a twelfth of the window beside it so that it ends soon after the
// trouble.
func DefaultBurn() []BurnRule {
	return []BurnRule{
		{Long: time.Hour, Short: 5 * time.Minute, Factor: 14.4, Page: true},
		{Long: 6 * time.Hour, Short: 30 * time.Minute, Factor: 6, Page: true},
		{Long: 72 * time.Hour, Short: 6 * time.Hour, Factor: 1},
	}
}

func (r BurnRule) isDefault() bool { return slices.Contains(DefaultBurn(), r) }

// FactorFor returns the factor by which a rule judges objectives with this target: its own,
// or 0.9/(1 − target) if that is less. The burn rate cannot pass 1/(1 − target), when all
// calls are bad, so p90, which burns at most 10, would never reach 14.4; there the rule fires
// above 9, when more than nine calls of ten are bad. From p93.75 on all default rules have
// their own factors. Other rules always do: Validate refuses those that would be scaled.
func FactorFor(rule BurnRule, target Target) float64 {
	return min(rule.Factor, usableShare*target.MaxBurn())
}

// TimeToAlert returns how long a rule takes to fire when from some moment on a share of
// errorRatio of all calls is bad, and none was before, at steady traffic that fills the long
// window. It tells false when it never fires. By the SRE workbook,
//
//	time = factor · (1 − target) · long / errorRatio
//
// which is when the long window burns at the factor; the short one does earlier. A Tracker
// counts whole minutes, and asks for a minimum of bad calls, which few calls a minute reach
// later.
func TimeToAlert(rule BurnRule, target Target, errorRatio float64) (time.Duration, bool) {
	needed := FactorFor(rule, target) * target.BudgetShare()
	if !(errorRatio > needed) || errorRatio > 1 || !(needed > 0) {
		return 0, false // also for what is no ratio
	}
	return time.Duration(math.Round(needed / errorRatio * float64(rule.Long))), true
}

// BudgetSpentAtAlert returns which share of a period's budget is spent when the rule fires,
// whatever the target and the error ratio, at steady traffic:
//
//	spent = factor · long / period
//
// The defaults spend 2 %, 5 % and 10 % of 30 days. Where FactorFor scales, it is less in
// proportion. For a period of no length it is infinite.
func BudgetSpentAtAlert(rule BurnRule, period time.Duration) float64 {
	if period <= 0 {
		return math.Inf(1)
	}
	return rule.Factor * float64(rule.Long) / float64(period)
}

// floorFloat writes a figure with at most four significant digits, never rounded up.
func floorFloat(f float64) string {
	place := math.Pow(10, 3-math.Floor(math.Log10(f)))
	return strconv.FormatFloat(math.Floor(f*place*(1+1e-12))/place, 'f', -1, 64)
}
