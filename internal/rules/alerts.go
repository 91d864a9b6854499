package rules

import (
	"fmt"
	"strconv"
	"time"

	"github.com/weirgate/weir/slo"
)

const (
	// held is how long the gateway's own alerts wait before they end, and held slowly
	// those about hours: what comes and goes is one alert.
	held       = 5 * time.Minute
	heldSlowly = 30 * time.Minute
)

// subject is one objective of one class.
type subject struct {
	class     string
	objective *slo.Objective
	config    *slo.Config
	options   Options
}

// alert makes a rule with the labels that the gateway's own alert has; the model comes
// from the series. What it says follows the subject's name.
func (s subject) alert(name, severity, expr string, keep time.Duration, says, since string) rule {
	return rule{
		alert: name, expr: expr, keep: s.options.span(keep),
		labels: []pair{{"class", s.class}, {"objective", s.objective.Name}, {"severity", severity}, {"service", "weir"}},
		annotations: []pair{
			{"summary", template(s.class) + `, {{ with $labels.model }}model {{ . }}{{ else }}all models{{ end }}: "` + template(s.objective.Text()) + `" ` + says},
			{"look_closer", closer(s.class, since)},
		},
	}
}

// closer is the commands that show more, a line each.
func closer(class, since string) string {
	return "weir slo --class " + class + "\nweir diagnose --since " + since + " --class " + class
}

func (s subject) series(name string, more ...string) string {
	return selector(name, s.class, s.objective.Name, more...)
}

// enough is the condition that a window has n bad calls or more, which increase computes
// as a fraction.
func (s subject) enough(window time.Duration, n int64) string {
	return "ignoring (verdict) " + s.series(callsName(window), `verdict="bad"`) + " > " + figure(float64(n)-0.5)
}

// burning are the alternatives in which the rules of one kind fire.
func (s subject) burning(page bool) []string {
	var all []string
	for _, r := range s.config.Burn {
		if r.Page != page {
			continue
		}
		above := " > " + figure(slo.FactorFor(r, s.objective.Target)) + " * " + figure(s.objective.Target.BudgetShare())
		all = append(all, both(
			s.series(ratioName(r.Long))+above,
			s.series(ratioName(r.Short))+above,
			s.enough(r.Short, s.config.MinBad),
		))
	}
	return all
}

// An outage is nearly all calls bad, as the gateway's own alert has it, which looks at half
// a minute: too short for scrapes.
const (
	outageWindow = time.Minute // the shortest that still has a few scrapes, 15 seconds apart
	outageShare  = 0.9
	outageBad    = 10
)

func (s subject) outage() string {
	return both(
		s.series(ratioName(outageWindow))+" >= "+figure(outageShare),
		s.enough(outageWindow, outageBad),
	)
}

// burns returns the alerts about burn rates.
func (s subject) burns() []rule {
	missed := ": {{ $value | humanizePercentage }} of the calls missed it, and " +
		figure(float64(1_000_000-s.objective.Target)/10_000) + "% may"
	rules := []rule{s.alert(alertPage, page, either(append(s.burning(true), s.outage())...), held,
		"uses up its error budget so fast that somebody has to look now"+missed, "5m")}
	if slow := s.burning(false); len(slow) > 0 {
		rules = append(rules, s.alert(alertTicket, ticket, either(slow...), heldSlowly, "uses up its error budget slowly, all the time"+missed, "6h"))
	}
	return rules
}

// hang is the alert about a class whose calls await their first token, and nothing comes.
func hang(class string, o *slo.Objective, opts Options) rule {
	s := strconv.Quote(class)
	return rule{
		comment: "A hang that has few calls in it burns no budget, as none ends and none comes.",
		alert:   alertHang,
		expr: both(
			fmt.Sprintf("max by (class) (weir_slo_oldest_awaiting_seconds{class=%s}) > %s", s, figure(o.Threshold.Seconds())),
			fmt.Sprintf("on (class) sum by (class) (increase(weir_slo_calls_total{class=%s,objective=%s,verdict=\"good\"}[%s])) == 0",
				s, strconv.Quote(o.Name), promSpan(opts.window(hangTime))),
		),
		hold: opts.span(hangTime), keep: opts.span(held),
		labels: []pair{{"class", class}, {"objective", o.Name}, {"severity", page}, {"service", "weir"}},
		annotations: []pair{
			{"summary", template(class) + `, all models: "` + template(o.Text()) + `" is promised, the oldest call has waited for {{ $value | humanizeDuration }}, and for ` +
				promSpan(hangTime) + " none has got its first token in time"},
			{"look_closer", closer(class, promSpan(hangTime))},
		},
	}
}

// hangTime is how long nothing has to come: one slow call at night is no reason to wake
// somebody.
const hangTime = 5 * time.Minute

// down is the alert that a gateway, or every gateway, is gone.
func down(opts Options) rule {
	return rule{
		comment: "A target that is down and had objectives within the last 6 hours, whatever its job is called; or there is none.",
		alert:   alertDown,
		expr: either(
			"up == 0\nand on (job, instance) last_over_time(weir_slo_data_since_timestamp_seconds["+promSpan(opts.window(6*time.Hour))+"])",
			"absent(weir_slo_data_since_timestamp_seconds)",
		),
		hold:   opts.span(downTime),
		labels: []pair{{"severity", page}, {"service", "weir"}},
		annotations: []pair{
			{"summary", "{{ with $labels.instance }}Weir at {{ . }} cannot be reached{{ else }}No gateway tells of its objectives{{ end }}"},
			{"look_closer", "Without it there are no counts, and none of the other alerts can fire. Look at its process, and at the targets page of Prometheus."},
		},
	}
}

// downTime is how long that has to be so: longer than a restart takes, and than the first
// scrape after a start of Prometheus.
const downTime = 2 * time.Minute
