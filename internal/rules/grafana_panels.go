package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weirgate/weir/slo"
)

// Grafana's own variables, and the matchers of ours.
const (
	lately  = "[$__rate_interval]"
	shown   = "[$__range]"
	ofCalls = `class=~"$class",model=~"$model"`
	// ofSums are the sums over all models of a class, which have no label model.
	ofSums = `class=~"$class",objective=~"$objective",model=""`
)

// dashboard builds the whole of it.
func dashboard(c *slo.Config) board {
	b := board{
		UID: "weir", Title: "Weir", Editable: true, SchemaVersion: 38, Refresh: "30s", Tags: []string{"llm", "slo", "weir"},
		Description: "Objectives, error budgets and what stands behind them. Made by weir rules --grafana; the budget's period is " + c.Period.Name() + ".",
		Time:        map[string]any{"from": "now-6h", "to": "now"},
	}
	b.Templating.List = []variable{
		{Name: "datasource", Label: "Prometheus", Type: "datasource", Query: "prometheus", Refresh: 1, Current: map[string]any{}},
		label("class", "Class", "label_values(weir_calls_total, class)"),
		label("model", "Model", `label_values(weir_calls_total{class=~"$class"}, model)`),
		label("objective", "Objective", `label_values(weir_slo_target_ratio{class=~"$class"}, objective)`),
	}
	var l layout
	objectives(&l, c)
	latency(&l, c)
	waiting(&l)
	hardware(&l)
	usage(&l)
	probes(&l)
	b.Panels = l.panels
	return b
}

// label is a variable whose values are those of a label, all of them at first.
func label(name, title, query string) variable {
	return variable{
		Name: name, Label: title, Type: "query", Query: query, Definition: query, Datasource: &source{"prometheus", "${datasource}"},
		Refresh: 2, Sort: 1, Multi: true, IncludeAll: true, AllValue: ".*",
		Current: map[string]any{"text": []string{"All"}, "value": []string{"$__all"}},
	}
}

func objectives(l *layout, c *slo.Config) {
	counted := func(verdicts string) string {
		return fmt.Sprintf(`sum by (class, objective) (increase(weir_slo_calls_total{class=~"$class",objective=~"$objective",verdict=~"%s"}%s))`, verdicts, shown)
	}
	l.row("Objectives")
	l.add(16, table("Objectives", "Over the time shown, for all models together. What nobody knows is in neither good nor bad, and stands beside. Budgets are of "+c.Period.Name()+".",
		column{counted("good") + " / " + counted("good|bad"), "Compliance", "percentunit"},
		column{"max by (class, objective) (weir_slo_target_ratio{class=~\"$class\",objective=~\"$objective\"})", "Promised", "percentunit"},
		column{"1 - max by (class, objective) (weir_slo_budget_consumed_ratio{" + ofSums + `,basis="so_far"})`, "Budget left", "percentunit"},
		column{counted("unknown") + " / " + counted("good|bad|unknown"), "Unknown", "percentunit"},
	))
	l.add(8, graph("Alerts", "Alerts that the gateway itself keeps up.", "none",
		[]line{{"sum by (severity) (weir_alerts_active)", "{{severity}}"}}))
	l.add(24, graph("Error budget left", "1 is all of the budget of "+c.Period.Name()+"; below 0 it is overspent. By the calls so far.", "percentunit",
		[]line{{"1 - max by (class, objective) (weir_slo_budget_consumed_ratio{" + ofSums + `,basis="so_far"})`, "{{class}} {{objective}}"}},
		step{"red", new(0.0)}, step{"orange", new(1 - c.Freeze)}, step{"green", new(1 - c.Warn)}))
	l.panels[len(l.panels)-1].FieldConfig.Defaults.Min = nil // overspent is below 0
	for _, r := range c.Burn {
		burn := func(window string) string {
			return "max by (class, objective) (weir_slo_burn_rate{" + ofSums + `,window="` + window + `"})`
		}
		kind, color := "ticket", "orange"
		if r.Page {
			kind, color = "page", "red"
		}
		long, short := promSpan(r.Long), promSpan(r.Short)
		l.add(8, graph(fmt.Sprintf("Burn rate over %s and %s", long, short),
			fmt.Sprintf("A %s when both are above %s. 1 uses up the budget just by the end of its period.", kind, figure(r.Factor)), "none",
			[]line{{burn(long), "{{class}} {{objective}} " + long}, {burn(short), "{{class}} {{objective}} " + short}}, step{color, new(r.Factor)}))
	}
}

// quantiles are lines of a histogram, by class.
func quantiles(name string) []line {
	var lines []line
	for _, percent := range []string{"50", "95", "99"} {
		lines = append(lines, line{
			fmt.Sprintf("histogram_quantile(0.%s, sum by (le, class) (rate(%s_bucket{%s}%s)))", percent, name, ofCalls, lately),
			"{{class}} p" + percent,
		})
	}
	return lines
}

// promised is a line of the thresholds of all objectives about a number; none without one.
func promised(c *slo.Config, number slo.Number) []line {
	var names []string
	for _, class := range c.Classes {
		for _, o := range class.Objectives {
			if o.Number == number {
				names = append(names, regexp.QuoteMeta(o.Name))
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return []line{{`max by (class, objective) (weir_slo_threshold_seconds{class=~"$class",objective=~` +
		strconv.Quote(strings.Join(slices.Compact(names), "|")) + "})", "{{class}} {{objective}} promised"}}
}

func latency(l *layout, c *slo.Config) {
	l.row("Latency")
	l.add(8, graph("Time to first token", "What users waited, the gateway's own queue included. Quantiles are interpolated within buckets.", "s",
		append(quantiles("weir_ttft_seconds"), promised(c, slo.TTFT)...)))
	l.add(8, graph("Time per output token", "From first to last model output, by the reported output tokens after the first.", "s",
		append(quantiles("gen_ai_server_time_per_output_token_seconds"), promised(c, slo.TPOT)...)))
	l.add(8, graph("End to end", "Calls that the client left are not in it.", "s",
		append(quantiles("weir_e2e_seconds"), promised(c, slo.E2E)...)))
	l.add(16, stacked(graph("Where the time of a call goes", "The mean time of each phase of a call; the phases add up to its whole time.", "s",
		[]line{{"sum by (phase) (rate(weir_phase_seconds_sum" + lately + ")) / scalar(sum(rate(weir_calls_total" + lately + ")))", "{{phase}}"}})))
	l.add(8, graph("Calls a second", "By how they ended.", "reqps",
		[]line{{"sum by (outcome) (rate(weir_calls_total{" + ofCalls + "}" + lately + "))", "{{outcome}}"}}))
}

func waiting(l *layout) {
	l.row("Waiting")
	l.add(8, graph("Calls that await their first token", "", "none",
		[]line{{`sum by (class) (weir_slo_awaiting{class=~"$class"})`, "{{class}}"}, {"sum(weir_calls_awaiting_first_token)", "all"}}))
	l.add(8, graph("Oldest call that awaits its first token", "A line that rises steadily is a hang.", "s",
		[]line{{`max by (class) (weir_slo_oldest_awaiting_seconds{class=~"$class"})`, "{{class}}"}}))
	l.add(8, graph("Gateway's own queue", "Calls that wait for a place upstream.", "none",
		[]line{{"sum by (pool, class) (weir_queue_waiting)", "{{pool}} {{class}}"}}))
	l.add(8, graph("Engine: requests", "By the engine's own metrics.", "none",
		[]line{{"weir_engine_running", "{{engine}} running"}, {"weir_engine_waiting", "{{engine}} waiting"}, {"weir_engine_max_seqs", "{{engine}} at most"}}))
	l.add(8, graph("Engine: KV cache in use", "", "percentunit", []line{{"weir_engine_kv_use_ratio", "{{engine}}"}}, step{"red", new(0.9)}))
	l.add(8, graph("Engine: preemptions and prefix cache", "Requests put back because the KV cache was full, a second; share of prompt tokens found in the prefix cache.", "none",
		[]line{{"rate(weir_engine_preemptions_total" + lately + ")", "{{engine}} preemptions/s"},
			{"rate(weir_engine_prefix_cache_hit_tokens_total" + lately + ") / rate(weir_engine_prefix_cache_queried_tokens_total" + lately + ")", "{{engine}} prefix hits"}}))
}

func hardware(l *layout) {
	const gpu = "{{host}} {{gpu}}"
	l.row("GPUs")
	l.add(8, graph("Utilisation", "Share of time in which a kernel was resident: high does not mean busy.", "percentunit",
		[]line{{"weir_gpu_utilization_ratio", gpu + " kernels"}, {"weir_gpu_memory_bandwidth_ratio", gpu + " memory traffic"}}))
	l.add(8, graph("Clock and what holds it down", "Share of the highest clock; a throttled GPU has its reason beside it.", "percentunit",
		[]line{{"weir_gpu_sm_clock_hertz / weir_gpu_sm_clock_max_hertz", gpu}, {"weir_gpu_throttled == 1", gpu + " {{reason}}"}}))
	l.add(8, graph("Power", "", "watt", []line{{"weir_gpu_power_watts", gpu}, {"weir_gpu_power_limit_watts", gpu + " limit"}}))
	l.add(8, graph("Temperature", "", "celsius", []line{{"weir_gpu_temperature_celsius", gpu}}))
	l.add(8, graph("Memory in use", "", "percentunit", []line{{"weir_gpu_memory_used_bytes / weir_gpu_memory_size_bytes", gpu}}))
	l.add(8, graph("Energy of an output token", "Energy attributed to calls by output tokens.", "joule",
		[]line{{"sum by (model) (rate(weir_gpu_call_joules_total{" + ofCalls + "}" + lately + ")) / sum by (model) (rate(weir_tokens_total{" + ofCalls + `,kind="output"}` + lately + "))", "{{model}}"}}))
}

func usage(l *layout) {
	l.row("Tokens")
	l.add(8, graph("Tokens a minute", "As reported, never estimated.", "none",
		[]line{{"60 * sum by (model, kind) (rate(weir_tokens_total{" + ofCalls + `,kind=~"input|output"}` + lately + "))", "{{model}} {{kind}}"}}))
	l.add(8, graph("Tokens of keys", "What keys have used of their limits on tokens a minute, the most used ones. Metrics have no other figure by key; for all of it: weir usage --by key,day.", "none",
		[]line{{`max by (subject, dimension) (weir_limit_used{scope=~"key.*",dimension=~".*tokens_per_minute"})`, "{{subject}} {{dimension}}"},
			{`max by (subject, dimension) (weir_limit{scope=~"key.*",dimension=~".*tokens_per_minute"})`, "{{subject}} {{dimension}} limit"}}))
	l.add(8, graph("Budgets of keys", "Share that is spent; from 1 on calls are refused.", "percentunit",
		[]line{{"max by (subject) (weir_budget_used_ratio)", "{{subject}}"}}, step{"red", new(1.0)}))
	l.add(8, graph("Refusals a second", "By what stood in the way.", "reqps",
		[]line{{"sum by (by) (rate(weir_refusals_total" + lately + "))", "{{by}}"}}))
}

func probes(l *layout) {
	l.row("Probes and notifications")
	l.add(8, graph("Synthetic calls", "Share that completed.", "percentunit",
		[]line{{`sum by (probe) (rate(weir_probe_calls_total{outcome="completed"}` + lately + ")) / sum by (probe) (rate(weir_probe_calls_total" + lately + "))", "{{probe}}"}}))
	l.add(8, graph("Synthetic calls: time to first token", "The mean: there are too few for quantiles.", "s",
		[]line{{"sum by (probe) (rate(weir_probe_ttft_seconds_sum" + lately + ")) / sum by (probe) (rate(weir_probe_ttft_seconds_count" + lately + "))", "{{probe}}"}}))
	l.add(8, graph("Notifications of alerts", "In the last hour, by what became of them.", "none",
		[]line{{"sum by (receiver, result) (increase(weir_alert_notifications_total[1h]))", "{{receiver}} {{result}}"}}))
}
