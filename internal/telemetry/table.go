package telemetry

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Type is the kind of a metric, as Prometheus names it.
type Type string

const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Metric describes one metric as it is exposed.
type Metric struct {
	// Name in Prometheus, with its base unit.
	Name string
	// OTel is the name in OpenTelemetry's conventions when the metric means
	// the same, else "".
	OTel   string
	Type   Type
	Labels []Label
	// Edges are the upper, inclusive bounds of a histogram's classic buckets.
	// The native histogram beside them has 8 buckets per power of two.
	Edges []time.Duration
	// TokenEdges are the same of a histogram of tokens instead of times.
	TokenEdges []int64
	// Exemplars tells that buckets show the trace of a call they counted, if
	// the spans of one have been exported.
	Exemplars bool
	// Help is the definition of the figure.
	Help string
}

// units are the units that names end with, as OpenTelemetry writes them (UCUM).
var units = []struct{ suffix, ucum string }{
	{"_seconds", "s"}, {"_bytes", "By"}, {"_joules", "J"}, {"_watts", "W"}, {"_celsius", "Cel"}, {"_hertz", "Hz"},
	{"_ratio", "1"}, {"_tokens", "{token}"},
}

// Unit is the unit as OpenTelemetry writes it, "" of what is merely counted.
func (m *Metric) Unit() string {
	if len(m.TokenEdges) > 0 {
		return "{token}"
	}
	name := strings.TrimSuffix(m.Name, "_total")
	for _, u := range units {
		if strings.HasSuffix(name, u.suffix) {
			return u.ucum
		}
	}
	return ""
}

// Table returns the description of every metric, in the order of its table.
// The caller may keep and change what it gets.
func Table() []Metric {
	all := slices.Clone(table[:])
	for i := range all {
		all[i].Labels = slices.Clone(all[i].Labels)
		all[i].Edges = slices.Clone(all[i].Edges)
		all[i].TokenEdges = slices.Clone(all[i].TokenEdges)
	}
	return all
}

// WriteTable prints the table for people: name, type, labels with the most
// values of each, and definition.
func WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tTYPE\tLABELS (MOST VALUES)\tDEFINITION")
	for _, m := range table {
		labels := make([]string, len(m.Labels))
		for i, l := range m.Labels {
			labels[i] = l.Name + " (" + strconv.Itoa(l.Cap) + ")"
		}
		if len(labels) == 0 {
			labels = []string{"-"}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", m.Name, m.Type, strings.Join(labels, ", "), m.Help)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print the table of metrics: %w", err)
	}
	return nil
}
