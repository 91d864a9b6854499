package alert

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/slo"
)

// annotations say how an alert stands. Their names do not change; one of which nothing is
// known is left out.
func (v *view) annotations(o *Options) map[string]string {
	a := map[string]string{
		"summary":       v.summary(),
		"windows":       strings.Join(v.windows(), "\n"),
		"budget":        v.budget(),
		"since":         wall(v.starts).Format(time.RFC3339),
		"look_closer":   strings.Join(v.commands(), "\n"),
		"objective_url": v.link(o, "/weir/slo", nil),
		"diagnosis_url": v.link(o, "/weir/diagnose", map[string]string{"since": v.lately()}),
	}
	if b := v.blame; b != nil {
		a["phase"], a["blame"] = b.Phase, b.text()
		a["evidence"] = strings.Join(b.Evidence, "\n")
	}
	for name, text := range a {
		if text == "" {
			delete(a, name)
		}
	}
	a["description"] = v.description(a)
	return a
}

// description is all of it in one text, as that is what most templates show.
func (v *view) description(a map[string]string) string {
	var lines []string
	add := func(head, name string) {
		if text := a[name]; text != "" {
			lines = append(lines, head+strings.ReplaceAll(text, "\n", "; ")+".")
		}
	}
	add("Fired: ", "windows")
	add("", "blame")
	add("Evidence: ", "evidence")
	add("Budget: ", "budget")
	lines = append(lines, "Since "+a["since"]+".")
	return strings.Join(append(lines, "To look closer:", a["look_closer"]), "\n")
}

// text is the blame in a sentence, without a full stop.
func (b *Blame) text() string {
	text := strings.TrimRight(b.Text, ". ")
	if b.Phase != "" && b.Phase != "undetermined" {
		phase := "phase " + b.Phase
		if share, known := b.Share.Get(); known {
			phase += ", share " + percent(share)
		}
		if text == "" {
			return "To blame is " + phase
		}
		return text + " (" + phase + ")"
	}
	if b.Phase != "" {
		return strings.TrimSuffix("Which phase is to blame cannot be told: "+text, ": ")
	}
	return text
}

// subject names class, model and objective.
func (v *view) subject() string {
	model := "all models"
	if v.key.model != "" {
		model = "model " + labelValue(v.key.model)
	}
	text := call.OneLine(v.objective.Text)
	if text == "" {
		text = labelValue(v.key.objective)
	}
	return fmt.Sprintf("%s, %s: %q", labelValue(v.key.class), model, text)
}

// summary is one sentence with the figures that matter most.
func (v *view) summary() string {
	s := v.subject()
	if v.status() == Resolved {
		return fmt.Sprintf("%s: the %s is over; it lasted %s, until %s", s, v.what(), span(v.ends.Sub(v.starts)), wall(v.ends).Format(time.RFC3339))
	}
	if v.key.severity.budget() {
		return s + " has used " + v.used()
	}
	f := v.fired()
	if f == nil {
		return s + " is missed too often"
	}
	if f.Outage {
		return fmt.Sprintf("%s is missed by nearly every call: %s in the last half minute", s, counts(f.Bad, f.Total))
	}
	burn := fmt.Sprintf("more than %s times as fast as it may", figure(f.Rule.Factor))
	if rate := v.rate(f.Rule.Short); rate != nil {
		burn = figure(*rate) + " times as fast as it may"
	}
	return fmt.Sprintf("%s uses up its error budget %s: %s in the last %s", s, burn, counts(f.Bad, f.Total), span(f.Rule.Short))
}

// what is the alert as a noun.
func (v *view) what() string {
	switch v.key.severity {
	case Page:
		return "page"
	case Ticket:
		return "ticket"
	case Freeze:
		return "freeze"
	case Exhausted:
		return "exhausted budget"
	}
	return "warning"
}

// fired returns the most telling of what fired with the alert's severity: an outage, else the
// shortest windows; nil is none.
func (v *view) fired() *slo.Firing {
	var most *slo.Firing
	for i := range v.objective.Firing {
		f := &v.objective.Firing[i]
		if pages(f) != (v.key.severity == Page) {
			continue
		}
		if most == nil || !most.Outage && (f.Outage || f.Rule.Short < most.Rule.Short) {
			most = f
		}
	}
	return most
}

// windows says which rules fired, with their burn rates and counts, a line each.
func (v *view) windows() []string {
	if v.key.severity.budget() {
		return nil
	}
	var lines []string
	for i := range v.objective.Firing {
		f := &v.objective.Firing[i]
		if pages(f) != (v.key.severity == Page) {
			continue
		}
		if f.Outage {
			lines = append(lines, "outage: "+counts(f.Bad, f.Total)+" in the last half minute")
			continue
		}
		lines = append(lines, fmt.Sprintf("burn rate above %s over %s and %s: %s, %s", figure(f.Rule.Factor),
			span(f.Rule.Long), span(f.Rule.Short), v.window(f.Rule.Long, nil), v.window(f.Rule.Short, f)))
	}
	return lines
}

// window says how fast the budget burns over one window. f has the counts where the
// Status does not keep the window.
func (v *view) window(w time.Duration, f *slo.Firing) string {
	for _, b := range v.objective.Burn {
		if b.Window == w && b.Rate != nil {
			return fmt.Sprintf("%s over %s (%s)", figure(*b.Rate), span(w), counts(b.Bad, b.All()))
		}
	}
	if f != nil {
		return fmt.Sprintf("over %s %s", span(w), counts(f.Bad, f.Total))
	}
	return "more over " + span(w)
}

// rate is the burn rate over a window; nil is unknown.
func (v *view) rate(w time.Duration) *float64 {
	for _, b := range v.objective.Burn {
		if b.Window == w {
			return b.Rate
		}
	}
	return nil
}

// budget says how much of the error budget is used and left, and of which period.
func (v *view) budget() string {
	used := v.used()
	if used == "" {
		return ""
	}
	b := &v.objective.Budget
	used += " is used"
	if b.Left != nil {
		if *b.Left < 0 {
			used += ", " + percent(-*b.Left) + " more than there is"
		} else {
			used += ", " + percent(*b.Left) + " is left"
		}
	}
	return used
}

// used says how much of the budget of which period; "" is unknown.
func (v *view) used() string {
	b := &v.objective.Budget
	consumed := judged(b)
	if consumed == nil {
		return ""
	}
	allowed, by := b.Allowed, ""
	if b.ConsumedForecast != nil {
		allowed, by = b.AllowedForecast, " by the forecast of its calls"
	}
	of := ""
	if allowed != nil {
		of = fmt.Sprintf(" (%s bad of %s allowed%s)", whole(v.objective.Bad), amount(*allowed), by)
	}
	period := call.OneLine(v.period.Name)
	if period == "" {
		period = "its period"
	}
	return fmt.Sprintf("%s of the error budget of %s%s", percent(*consumed), period, of)
}

// counts writes bad of total.
func counts(bad, total int64) string { return whole(bad) + " bad of " + whole(total) }

// whole writes a number with its thousands apart.
func whole(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// amount writes a number of calls that need not be whole.
func amount(x float64) string {
	if math.Abs(x) >= 100 && math.Abs(x) < 1e15 {
		return whole(int64(math.Floor(x)))
	}
	return figure(x)
}

// figure writes at most three significant digits, or all before the point.
func figure(x float64) string {
	switch a := math.Abs(x); {
	case a >= 100 || a == 0 || math.IsNaN(a) || math.IsInf(a, 0):
		return strconv.FormatFloat(x, 'f', 0, 64)
	default:
		return strconv.FormatFloat(round3(x), 'f', -1, 64)
	}
}

func round3(x float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	if err != nil {
		return x // what was just written can be read
	}
	return rounded
}

// percent writes a share.
func percent(share float64) string { return figure(100*share) + " %" }

// span writes a time as people do, without what does not matter: 3d, 1h30m, 5m, 30s.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= time.Minute:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(100 * time.Millisecond)
	}
	text := ""
	if d >= day {
		text = strconv.FormatInt(int64(d/day), 10) + "d"
		if d %= day; d == 0 {
			return text
		}
	}
	rest := d.String()
	if d >= time.Minute {
		rest = strings.TrimSuffix(rest, "0s")
		if !strings.HasSuffix(rest, "m") {
			rest = d.String() // 1m30s and not 1m3
		}
		if d%time.Hour == 0 {
			rest = strings.TrimSuffix(rest, "0m")
		}
	}
	return text + rest
}
