package rules

import (
	"fmt"
	"strings"
	"time"
)

// The recorded series, by window: calls by verdict, and the share of bad ones in all that
// count: a call of which nobody knows takes nothing from the budget.
func callsName(window time.Duration) string { return "weir_slo:calls:increase" + promSpan(window) }
func ratioName(window time.Duration) string { return "weir_slo:errors:ratio" + promSpan(window) }

// recorded returns the rules that record one window. Single models come first, under a
// name of their own: the sum over them must not have itself in it.
func recorded(window time.Duration, o Options) []rule {
	calls := callsName(window)
	models := "weir_slo_model:calls:increase" + promSpan(window)
	return []rule{
		{record: models, expr: fmt.Sprintf(`sum by (class, model, objective, verdict) (increase(weir_slo_calls_total{verdict=~"good|bad|unknown"}[%s]))`,
			promSpan(o.window(window)))},
		{record: calls, expr: fmt.Sprintf("%s or sum without (model) (%s)", models, models)},
		{record: ratioName(window), expr: fmt.Sprintf(`sum without (verdict) (%s{verdict="bad"}) / (sum without (verdict) (%s) > 0)`, calls, calls)},
	}
}

const (
	// slowFrom is the length from which windows are not recorded at each evaluation:
	// they hardly change in between, and cost the most.
	slowFrom = 24 * time.Hour
	// slowly is how often instead. It stays below the 5 minutes for which Prometheus
	// takes a series' last value for its value.
	slowly = 2 * time.Minute
	// slowest is the same of the budget's period.
	slowest = 4 * time.Minute
)

// recording returns the groups that record the windows.
func recording(all []time.Duration, o Options) []group {
	fast := group{name: "weir_slo", comment: "Error ratios over the windows of the burn rules. The series without a model are the sums over all models."}
	slow := group{name: "weir_slo_slow", interval: o.span(slowly)}
	for _, w := range all {
		g := &fast
		if w >= slowFrom {
			g = &slow
		}
		g.rules = append(g.rules, recorded(w, o)...)
	}
	if len(slow.rules) == 0 {
		return []group{fast}
	}
	return []group{fast, slow}
}

// both joins conditions that must hold together, one a line.
func both(conditions ...string) string { return strings.Join(conditions, "\nand ") }

// either joins alternatives, one block each.
func either(alternatives ...string) string {
	if len(alternatives) == 1 {
		return alternatives[0]
	}
	for i, a := range alternatives {
		alternatives[i] = "(\n" + indent(a) + "\n)"
	}
	return strings.Join(alternatives, "\nor ")
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
