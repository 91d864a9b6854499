package engine

import (
	"fmt"
	"math"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// A place is where a sample belongs: a data-parallel rank of an engine, by the
// model that it serves. A place without labels is an engine of one rank.
type place struct{ model, rank string }

// point is a sample, or what stands for several that repeat each other.
type point struct {
	place
	value float64
}

// gather makes the points of a family.
//
// SGLang may write one request several times. Its tensor-, pipeline- and
// expert-parallel ranks (labels that end in _rank, dp_rank apart) all show what
// their data-parallel rank does, within a step of each other: the largest stands
// for them. With priorities the series without one is the sum of the others.
//
// The same series twice is an error, since nobody can say which is true.
func gather(family *dto.MetricFamily, kind Kind) ([]point, error) {
	n := gauges[kind]
	whole := false
	for _, m := range family.Metric {
		whole = whole || kind == SGLang && label(m, "priority") == ""
	}
	var points []point
	seen := make(map[string]bool, len(family.Metric))
	at := make(map[string]int, len(family.Metric))
	var labels []*dto.LabelPair
	for _, m := range family.Metric {
		if whole && label(m, "priority") != "" {
			continue
		}
		labels = append(labels[:0], m.Label...)
		slices.SortFunc(labels, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
		var full, own strings.Builder
		for _, l := range labels {
			text := l.GetName() + "\x00" + l.GetValue() + "\x00"
			full.WriteString(text)
			if kind != SGLang || !strings.HasSuffix(l.GetName(), "_rank") || l.GetName() == n.rank {
				own.WriteString(text)
			}
		}
		if seen[full.String()] {
			return nil, fmt.Errorf("%s is there twice with the same labels", family.GetName())
		}
		seen[full.String()] = true
		i, repeated := at[own.String()]
		if !repeated {
			i = len(points)
			at[own.String()] = i
			points = append(points, point{place: n.place(m), value: value(m)})
		} else if v := value(m); !(v <= points[i].value) { // NaN stays to be noticed
			points[i].value = v
		}
	}
	return points, nil
}

// place says where a sample belongs.
func (n gaugeNames) place(m *dto.Metric) place {
	p := place{}
	if n.rank != "" {
		p.rank = shorten(label(m, n.rank), maxText)
	}
	for _, name := range n.model {
		if p.model = shorten(label(m, name), maxText); p.model != "" {
			break
		}
	}
	return p
}

// count makes a Figure of a point; false if it is no count.
func count(v float64, rounded bool) (Figure, bool) {
	if !(v >= 0 && v <= largest) || v != math.Trunc(v) {
		return Figure{}, false
	}
	f := exactly(int64(v))
	if rounded {
		f.Within = sixDigits(f.N)
	}
	return f, true
}
