package report

import (
	"slices"
	"strings"

	"github.com/weirgate/weir/internal/bench"
	"github.com/weirgate/weir/internal/saturation"
)

// addLadder shows the steps, marks the knee among them, and says why it is there.
func addLadder(d *document, l *bench.Ladder) {
	if l == nil {
		return
	}
	rate := l.Knee.Unit == saturation.Rate
	t := table{columns: []column{{head: unitName(l.Knee.Unit)}}}
	if rate {
		t.columns = []column{{figure: "calls/s", head: "rate"}, {figure: "calls/s", head: "offered"}, {figure: "calls/s", head: "achieved"}}
	} else {
		t.columns = append(t.columns, column{head: "calls/s"})
	}
	t.columns = append(t.columns, []column{{head: "calls"}, {figure: "success", head: "%"}, {figure: "TPM", head: "tok/min"},
		{figure: "TTFT p95", head: "ms"}, {figure: "TPOT p95", head: "ms"}, {head: "", left: true}}...)
	for _, s := range l.Steps {
		mark := cell{text: stepMark(s, l.Knee)}
		switch {
		case s.Distorted:
			mark.tone = bad
		case l.Knee.Saturated && s.Load >= l.Knee.Before:
			mark.tone = warn
		case l.Knee.LastGood > 0 && s.Load == l.Knee.LastGood:
			mark.tone = good
		}
		row := []cell{{text: tidy(s.Load)}}
		if rate {
			row = append(row, cell{text: maybe(s.Offered)})
		}
		achieved := number(s.Achieved)
		if rate && s.AtLeast {
			achieved = unknown // as in the other tables
		}
		t.rows = append(t.rows, append(row, cell{text: achieved}, cell{text: count(s.Calls)}, cell{text: percent(s.Succeeded)},
			cell{text: whole(s.TPM)}, cell{text: maybe(s.TTFTP95)}, cell{text: maybe(s.TPOTP95)}, mark))
	}
	d.section("Ladder", t, kneeFacts(l), reasons(l.Knee.Reasons))
}

// stepMark says what is to be known of a step.
func stepMark(s saturation.Step, k saturation.Knee) string {
	var marks []string
	if k.LastGood > 0 && s.Load == k.LastGood {
		marks = append(marks, "◀ last good")
	}
	switch {
	case !k.Saturated:
	case s.Load == k.Before:
		marks = append(marks, "◀ KNEE")
	case s.Load > k.Before:
		marks = append(marks, "past knee")
	}
	if s.Distorted {
		marks = append(marks, "DISTORTED, not used")
	}
	return strings.Join(marks, ", ")
}

// unitName is what the load of a ladder counts.
func unitName(u saturation.Unit) string {
	switch u {
	case saturation.Concurrency, saturation.Rate:
		return string(u)
	}
	return "load"
}

// load writes a load with its unit.
func load(v float64, unit saturation.Unit) string {
	if unit == saturation.Rate {
		return tidy(v) + " calls/s"
	}
	return unitName(unit) + " " + tidy(v)
}

// kneeFacts is what the ladder came to.
func kneeFacts(l *bench.Ladder) pairs {
	k := l.Knee
	usable := slices.ContainsFunc(l.Steps, func(s saturation.Step) bool { return !s.Distorted })
	var p pairs
	switch {
	case k.Saturated && k.After > 0:
		p = append(p, pair{name: "knee", value: "between " + tidy(k.After) + " and " + tidy(k.Before) + " (" + unitName(k.Unit) + ")"})
	case k.Saturated:
		p = append(p, pair{name: "knee", value: "at or below the first step, " + load(k.Before, k.Unit)})
	case len(l.Steps) == 0:
	case !usable:
		p = append(p, pair{name: "knee", value: "not known: no step can be used"})
	default:
		p = append(p, pair{name: "knee", value: "none seen: the run did not saturate"})
	}
	if k.LastGood > 0 {
		p = append(p, pair{name: "last good", value: load(k.LastGood, k.Unit)})
	} else if usable {
		p = append(p, pair{name: "last good", value: "no step was good"})
	}
	if k.Recommended > 0 {
		p = append(p, pair{name: "recommended", value: load(k.Recommended, k.Unit) + ", which leaves headroom"})
	} else if len(l.Steps) > 0 {
		p = append(p, pair{name: "recommended", value: "none"})
	}
	if k.Promise != "" {
		p = append(p, pair{name: "promise", value: sentence(k.Promise)})
	}
	return p
}

// reasons are sentences.
func reasons(list []string) bullets {
	var b bullets
	for _, r := range list {
		b = append(b, sentence(r))
	}
	return b
}

// addStaircase shows the stairs and what they say of the target.
func addStaircase(d *document, s *bench.Staircase) {
	if s == nil {
		return
	}
	v := s.Verdict
	t := table{columns: []column{{figure: "calls/s", head: "rate"}, {figure: "calls/s", head: "offered"}, {figure: "calls/s", head: "achieved"},
		{figure: "calls/s", head: "succeeded"}, {head: "calls"}, {figure: "success", head: "%"},
		{figure: "TTFT p99", head: "ms"}, {head: "", left: true}}}
	for _, w := range s.Windows {
		var marks []string
		m := cell{}
		if v.Safe > 0 && w.Rate == v.Safe {
			marks, m.tone = append(marks, "◀ highest safe rate"), good
		}
		if w.TTFTP99 != nil && v.Objective > 0 && *w.TTFTP99 > 0.8*v.Objective {
			marks, m.tone = append(marks, "over 80 % of the objective"), warn
		}
		if w.Rate == v.Target {
			marks = append(marks, "target")
		}
		if w.Distorted {
			marks, m.tone = append(marks, "DISTORTED, not used"), bad
		}
		m.text = strings.Join(marks, ", ")
		t.rows = append(t.rows, []cell{{text: tidy(w.Rate)}, {text: maybe(w.Offered)}, {text: maybe(w.Achieved)}, {text: number(w.PerSecond)}, {text: count(w.Calls)}, {text: percent(w.Succeeded)},
			{text: maybe(w.TTFTP99)}, m})
	}
	var p pairs
	if v.Say != "" {
		p = append(p, pair{name: "verdict", value: strings.ToUpper(named(v.Say)) + verdictMeaning(v.Say)})
	}
	switch {
	case v.Safe > 0 && v.Reached:
		p = append(p, pair{name: "safe rate", value: tidy(v.Safe) + " calls/s"})
	case v.Safe > 0:
		p = append(p, pair{name: "safe rate", value: "at least " + tidy(v.Safe) + " calls/s: the limit was not reached"})
	default:
		p = append(p, pair{name: "safe rate", value: "none of those that were measured"})
	}
	p = append(p, pair{name: "target", value: tidy(v.Target) + " calls/s with TTFT p99 ≤ " + number(v.Objective) + " ms"})
	d.section("Staircase", t, p, reasons(v.Reasons))
}

func verdictMeaning(say string) string {
	switch say {
	case "add":
		return ": capacity must be added for the target"
	case "enough":
		return ": there is capacity for the target"
	case "shrink":
		return ": there is more capacity than the target needs"
	case "undetermined":
		return ": the measurement does not decide it"
	}
	return ""
}
