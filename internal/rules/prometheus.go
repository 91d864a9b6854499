package rules

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weirgate/weir/slo"
)

// Prometheus writes recording and alerting rules for a complete configuration. Errors say
// what cannot be, or are the writer's.
func Prometheus(w io.Writer, c slo.Config, o Options) error {
	o, err := o.complete()
	if err != nil {
		return err
	}
	if err := check(&c); err != nil {
		return err
	}
	f := file{comment: head(&c, o), groups: recording(windows(&c), o)}
	if period := c.Period.Rolling; period > 0 && !slices.Contains(windows(&c), period) {
		f.groups = append(f.groups, group{
			name: "weir_slo_period", interval: o.span(slowest), rules: recorded(period, o),
			comment: "The budget's period. Prometheus has to keep data for as long (--storage.tsdb.retention.time, 15d if not set): with less, the budget is that of what is kept.",
		})
	}
	f.groups = append(f.groups, group{name: "weir_slo_outage", rules: recorded(outageWindow, o)})
	for i := range c.Classes {
		f.groups = append(f.groups, alerting(&c, &c.Classes[i], o))
	}
	f.groups = append(f.groups, group{name: "weir", rules: []rule{down(o)}})
	return f.writeTo(w)
}

// check tells what rules cannot be made of.
func check(c *slo.Config) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("the objectives: %w", err)
	}
	if len(c.Classes) == 0 {
		return errors.New("there are no objectives: the gateway has no class in use")
	}
	return nil
}

// alerting returns the alerts of one class.
func alerting(c *slo.Config, class *slo.Class, o Options) group {
	g := group{name: "weir_slo_alerts_" + class.Name}
	if valid := class.Valid.Text(); valid != "" {
		g.comment = "The objectives are valid while " + valid + ". Minutes outside that are not counted."
	}
	for i := range class.Objectives {
		s := subject{class.Name, &class.Objectives[i], c, o}
		rules := append(s.burns(), s.budgets()...)
		rules[0].comment = strings.TrimSpace(s.objective.Name + ": " + s.objective.Text() + ". " + rules[0].comment)
		g.rules = append(g.rules, rules...)
	}
	for i := range class.Objectives {
		if n := class.Objectives[i].Number; n == slo.TTFT || n == slo.TTFTVisible {
			g.rules = append(g.rules, hang(class.Name, &class.Objectives[i], o))
			break
		}
	}
	return g
}

// head is what stands above the rules.
func head(c *slo.Config, o Options) string {
	var b strings.Builder
	b.WriteString("Recording and alerting rules for the objectives of Weir, made by weir rules --prometheus. Write them anew when the objectives change. Needs Prometheus 2.42 or later.\n\n" +
		"The budget's period is " + c.Period.Name() + ". Alerts have the names and labels of the gateway's own, so that Alertmanager takes both for one; they end 5 minutes after their cause, tickets 30. " +
		"Prometheus estimates the calls of a window from the scrapes in it, so its counts are not whole, and it misses the calls before the first scrape of a model that is new; the gateway's own alerts go by every call.")
	if o.Scale != 1 {
		fmt.Fprintf(&b, "\n\nFor a drill: every time is divided by %s, and no window is shorter than a second.", figure(o.Scale))
	}
	return b.String()
}
