package command

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/quantity"
	"github.com/weirgate/weir/slo"
)

// sloColumns are the columns for people; the first is aligned left, as are those of
// words. All together are narrower than 120.
var sloColumns = []struct {
	over, head string
	left       bool
}{
	{"", "OBJECTIVE", true},
	{"", "CALLS", false},
	{"", "KEPT", false},
	{"", "UNKNOWN", false},
	{"BUDGET", "LEFT", false},
	{"BURN", "5m", false},
	{"RATE", "1h", false},
	{"OVER", "6h", false},
	{"", "3d", false},
	{"", "STATE", true},
	{"", "SINCE", true},
}

const (
	sloWidth  = 119
	sloName   = 23 // characters of an objective or model in a line
	sloIndent = "  "
	sloClear  = "\x1b[H\x1b[2J\x1b[3J" // what a terminal clears itself by
	// absent stands for what is not known.
	absent = "–"
)

// shownBurns are the windows that have a column.
var shownBurns = []time.Duration{5 * time.Minute, time.Hour, 6 * time.Hour, 72 * time.Hour}

// table writes it for people. hidden is whether single models were left out.
func (s *sight) table(w io.Writer, hidden, clear bool) error {
	out := bufio.NewWriter(w)
	if clear {
		out.WriteString(sloClear)
	}
	fmt.Fprintln(out, s.headline())
	if len(s.gateways) > 1 {
		fmt.Fprintf(out, "%d gateways as one: %s\n", len(s.gateways), someNames(s.gateways))
	}
	var classes []string
	for _, o := range s.status.Objectives {
		if !slices.Contains(classes, o.Class) {
			classes = append(classes, o.Class)
		}
	}
	if len(classes) == 0 {
		fmt.Fprintln(out, "\nNo call has been counted for any objective yet.")
	} else {
		s.rows(out, classes)
	}
	for _, note := range s.footnotes(hidden) {
		fmt.Fprintf(out, "\n%s\n", strings.Join(wrapped(note, sloWidth), "\n"))
	}
	return out.Flush()
}

// headline says what the figures are of, in the gateway's own zone.
func (s *sight) headline() string {
	st := s.status
	since := "no counts yet"
	if !st.Since.IsZero() {
		since = "counts since " + st.Since.In(st.At.Location()).Format("2006-01-02 15:04")
	}
	return fmt.Sprintf("Budget: %s; %s; now %s", named(st.Period.Name), since, st.At.Format("2006-01-02 15:04:05 -07:00"))
}

// rows writes the table of all classes, with the same widths, and below each class
// what does not fit into columns.
func (s *sight) rows(out *bufio.Writer, classes []string) {
	over, head := make([]string, len(sloColumns)), make([]string, len(sloColumns))
	for i, c := range sloColumns {
		over[i], head[i] = c.over, c.head
	}
	rows := [][]string{over, head}
	ends := make([]int, len(classes))
	for i, class := range classes {
		name := ""
		for _, o := range s.ordered(class) {
			if o.Model != slo.AllModels && o.Objective.Name != name {
				for _, part := range wrapped(shownText(o), sloName) { // without the sum over all
					rows = append(rows, append([]string{part}, make([]string, len(sloColumns)-1)...))
				}
			}
			name = o.Objective.Name
			rows = append(rows, s.lines(o)...)
		}
		ends[i] = len(rows)
	}
	var table strings.Builder
	writeAligned(&table, rows, func(column int) bool { return sloColumns[column].left })
	lines := strings.Split(table.String(), "\n")
	write := func(lines []string) {
		for _, line := range lines {
			fmt.Fprintln(out, sloIndent+line)
		}
	}
	fmt.Fprintln(out)
	write(lines[:2])
	at := 2
	for i, class := range classes {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, named(class))
		write(lines[at:ends[i]])
		for _, text := range s.remarksOf(class) {
			write(wrapped(text, sloWidth-2*len(sloIndent)))
		}
		at = ends[i]
	}
}

// ordered returns the objectives of a class as the gateway has them, goodput last,
// and each one's models below it.
func (s *sight) ordered(class string) []slo.ObjectiveStatus {
	var all []slo.ObjectiveStatus
	var names []string // in order
	for _, goodput := range []bool{false, true} {
		for _, o := range s.status.Objectives {
			if o.Class == class && (o.Objective.Number == slo.Goodput) == goodput && !slices.Contains(names, o.Objective.Name) {
				names = append(names, o.Objective.Name)
			}
		}
	}
	for _, name := range names {
		for _, o := range s.status.Objectives {
			if o.Class == class && o.Objective.Name == name {
				all = append(all, o)
			}
		}
	}
	return all
}

// lines returns the rows of one objective: more than one where its name is long.
func (s *sight) lines(o slo.ObjectiveStatus) [][]string {
	name, indent := wrapped(shownText(o), sloName), sloIndent
	if o.Model != slo.AllModels {
		name = []string{sloIndent + cutName(named(o.Model), sloName-len(sloIndent))}
		indent += sloIndent
	}
	if o.OutsideMinutes > 0 {
		name = append(name, fmt.Sprintf("%soutside: %s min", indent, shortCount(o.OutsideMinutes)))
	}
	state, since := s.stateOf(o)
	first := []string{name[0], shortCount(o.Total()), keptText(o), shareText(o.UnknownShare), leftText(o.Budget.Left)}
	for _, window := range shownBurns {
		first = append(first, burnText(burnOver(o, window)))
	}
	mark := string(state)
	if state == slo.StateOK && o.Budget.TooFew {
		mark += "*"
	}
	when := absent
	if !since.IsZero() {
		when = since.In(s.status.At.Location()).Format("Jan _2 15:04")
	}
	lines := [][]string{append(first, mark, when)}
	below := func(i int) []string { // the i-th row below
		for len(lines) <= i {
			lines = append(lines, make([]string, len(sloColumns)))
		}
		return lines[i]
	}
	for i, part := range name[1:] {
		below(i + 1)[0] = part
	}
	if interval := intervalText(o); interval != "" {
		below(1)[2] = interval
	}
	return lines
}

// stateOf is the worse of how the counts stand at this moment and of the alert that
// stays for a while, so that it does not flap; since is when that alert began.
func (s *sight) stateOf(o slo.ObjectiveStatus) (state slo.State, since time.Time) {
	state = o.State
	for _, a := range s.alerts {
		if a.Status != "firing" || a.Class != o.Class || a.Objective != o.Objective.Name || a.Model != o.Model {
			continue
		}
		if at := slices.Index(slo.States, a.Severity); at > slices.Index(slo.States, state) {
			state = a.Severity
		}
	}
	for _, a := range s.alerts {
		if a.Status == "firing" && a.Class == o.Class && a.Objective == o.Objective.Name && a.Model == o.Model && a.Severity == state {
			since = a.StartsAt
		}
	}
	return state, since
}

// remarksOf says about a class what is happening right now.
func (s *sight) remarksOf(class string) []string {
	var texts []string
	judged, waits := false, slo.ObjectiveStatus{}
	for _, o := range s.ordered(class) {
		if n := o.Objective.Number; n == slo.TTFT || n == slo.TTFTUpstream || n == slo.TTFTVisible {
			judged = true
			if o.Awaiting > waits.Awaiting {
				waits = o
			}
		}
	}
	switch {
	case waits.Awaiting > 0 && !waits.OldestReceived.IsZero():
		age := max(0, s.status.At.Sub(waits.OldestReceived)).Round(100 * time.Millisecond)
		texts = append(texts, fmt.Sprintf("Awaiting their first token: %s, the oldest for %v.", thousands(waits.Awaiting), age))
	case waits.Awaiting > 0:
		texts = append(texts, fmt.Sprintf("Awaiting their first token: %s.", thousands(waits.Awaiting)))
	case judged:
		texts = append(texts, "Awaiting their first token: none.")
	}
	for _, o := range s.ordered(class) {
		if o.Since.After(s.status.Since.Add(time.Minute)) && o.Model == slo.AllModels {
			texts = append(texts, fmt.Sprintf("%s: counts since %s.", objectiveName(o), o.Since.In(s.status.At.Location()).Format("2006-01-02 15:04")))
		}
		if why := firingText(o); why != "" {
			texts = append(texts, fmt.Sprintf("%s: %s.", objectiveName(o), why))
		}
		if n := o.Outside.Total() + o.Outside.Unknown; n > 0 && o.Model == slo.AllModels {
			texts = append(texts, fmt.Sprintf("%s: %s calls in minutes outside the envelope are in no figure here.", objectiveName(o), thousands(n)))
		}
	}
	return texts
}

// shownText is what an objective promises.
func shownText(o slo.ObjectiveStatus) string { return strings.ReplaceAll(named(o.Text), "<=", "≤") }

// objectiveName names an objective in a sentence.
func objectiveName(o slo.ObjectiveStatus) string {
	name := shownText(o)
	if o.Model != slo.AllModels {
		name += " of " + named(o.Model)
	}
	return name
}

// firingText says which burn rules hold, the most urgent one; "" for none.
func firingText(o slo.ObjectiveStatus) string {
	for _, urgent := range []bool{true, false} {
		for _, f := range o.Firing {
			switch {
			case (f.Page || f.Outage) != urgent:
			case f.Outage:
				return fmt.Sprintf("nearly all calls of the last half minute are bad (%s of %s)", thousands(f.Bad), thousands(f.Total))
			default:
				return fmt.Sprintf("the burn rate is above %s over %s and over %s, where %s of %s calls are bad",
					strconv.FormatFloat(f.Rule.Factor, 'g', 4, 64), quantity.FormatDuration(f.Rule.Long), quantity.FormatDuration(f.Rule.Short), thousands(f.Bad), thousands(f.Total))
			}
		}
	}
	return ""
}

// footnotes are what is said once, below all.
func (s *sight) footnotes(hidden bool) []string {
	notes := slices.Clone(s.notes)
	few := false
	for _, o := range s.status.Objectives {
		state, _ := s.stateOf(o)
		few = few || state == slo.StateOK && o.Budget.TooFew
	}
	if few {
		notes = append(notes, "* The period has too few calls to say more than that.")
	}
	if hidden {
		notes = append(notes, "Sums over all models; --models shows each.")
	}
	if n := s.status.Lost; n > 0 {
		notes = append(notes, fmt.Sprintf("Not counted: %s (models beyond the bound, corrections that came too late).", thousands(n)))
	}
	return notes
}
