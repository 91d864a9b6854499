package rules

import "strconv"

// budgets returns the alerts about how much of the error budget is used. They are levels,
// as the gateway's own are: a budget that is exhausted is past its warning too.
func (s subject) budgets() []rule {
	used, first := s.used()
	level := func(name, severity string, from float64, summary string) rule {
		return s.alert(name, severity, both(used+" >= "+figure(from), s.calls()), held,
			"has used {{ $value | humanizePercentage }} of the error budget of "+s.config.Period.Name()+summary, "1h")
	}
	rules := []rule{
		level(alertWarning, warning, s.config.Warn, ""),
		level(alertFreeze, freeze, s.config.Freeze, ": release nothing risky"),
		level(alertExhausted, exhausted, 1, ": it is gone"),
	}
	rules[0].comment = first
	return rules
}

// used returns the share of the budget that is used, and what is to be said of it.
func (s subject) used() (expr, comment string) {
	if window := s.config.Period.Rolling; window > 0 {
		return s.series(ratioName(window)) + " / " + figure(s.objective.Target.BudgetShare()), ""
	}
	return "max by (class, model, objective) (\n" +
		"  " + selector("weir_slo_budget_consumed_ratio", s.class, s.objective.Name, `basis="forecast"`) + "\n" +
		"  or ignoring (basis) " + selector("weir_slo_budget_consumed_ratio", s.class, s.objective.Name, `basis="so_far"`) + "\n)", calendar
}

// calendar is said of budgets that Prometheus cannot compute.
const calendar = "Prometheus has no calendar: it cannot tell since when a month is, nor forecast its calls. So this is the gateway's own figure, and of several gateways the highest."

// calls is the condition that there are enough calls to tell.
func (s subject) calls() string {
	n := s.config.CallsToFreeze(s.objective.Target)
	if window := s.config.Period.Rolling; window > 0 {
		return "sum without (verdict) (" + s.series(callsName(window)) + ") > " + figure(float64(n)-0.5)
	}
	return "sum by (class, model, objective) (" + s.series("weir_slo_period_calls") + ") >= " + strconv.FormatInt(n, 10)
}
