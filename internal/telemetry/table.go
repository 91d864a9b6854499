package telemetry

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Table returns the description of every metric, in the order of its table.
// The caller may keep and change what it gets.
func Table() []Metric {
	all := slices.Clone(table[:])
	for i := range all {
		all[i].Labels = slices.Clone(all[i].Labels)
		all[i].Edges = slices.Clone(all[i].Edges)
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
