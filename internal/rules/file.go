package rules

import (
	"io"
	"time"
)

// file is a file of rules.
type file struct {
	comment string
	groups  []group
}

// group is rules that are evaluated together, one after the other.
type group struct {
	name, comment string
	interval      time.Duration // 0 is Prometheus's own
	rules         []rule
}

// rule records a series, or raises an alert.
type rule struct {
	comment     string
	record      string
	alert       string
	expr        string
	hold, keep  time.Duration // how long it must be true first, and stays firing afterwards
	labels      []pair
	annotations []pair
}

// pair is a name and its value, in an order that people chose.
type pair struct{ name, value string }

func (f *file) writeTo(w io.Writer) error {
	var y yaml
	y.comment(0, f.comment)
	y.line(0, "groups:")
	for i := range f.groups {
		f.groups[i].write(&y)
	}
	return y.writeTo(w)
}

func (g *group) write(y *yaml) {
	if g.comment != "" {
		y.comment(1, g.comment)
	}
	y.line(1, "- name: %s", scalar(g.name))
	if g.interval > 0 {
		y.line(2, "interval: %s", promSpan(g.interval))
	}
	y.line(2, "rules:")
	for i := range g.rules {
		g.rules[i].write(y)
	}
}

func (r *rule) write(y *yaml) {
	if r.comment != "" {
		y.comment(3, r.comment)
	}
	if r.record != "" {
		y.line(3, "- record: %s", r.record) // a colon without a space after it is part of a plain word
	} else {
		y.line(3, "- alert: %s", scalar(r.alert))
	}
	y.text(4, "expr", r.expr)
	if r.hold > 0 {
		y.line(4, "for: %s", promSpan(r.hold))
	}
	if r.keep > 0 {
		y.line(4, "keep_firing_for: %s", promSpan(r.keep))
	}
	pairs(y, "labels", r.labels)
	pairs(y, "annotations", r.annotations)
}

func pairs(y *yaml, name string, all []pair) {
	if len(all) == 0 {
		return
	}
	y.line(4, "%s:", name)
	for _, p := range all {
		y.text(5, p.name, p.value)
	}
}
