package command

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/ledger"
	"github.com/weirgate/weir/internal/spend"
)

// column is one of a table for people.
type column struct {
	head string
	left bool // aligned left; numbers are aligned right
	cell func(spend.Line) string
}

// costDecimals is how many decimals of a cost people see. Sums are exact, and so
// are --json and --csv.
const costDecimals = 6

// clockLayout names the zone: a clock that is put back shows an hour twice.
const clockLayout = "2006-01-02 15:04 MST"

// table writes the report for people. Columns about which there is nothing to say
// are left out.
func (r usageReport) table(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "Usage %s, %s\n\n", period(r.query), groupedBy(r.query.By))
	total := spend.Total(r.lines)
	if total.Calls == 0 {
		fmt.Fprintln(out, "No call was recorded there. A longer period is asked for with --since, for example --since 90d or --since all.")
		return out.Flush()
	}
	columns := r.columns(total)
	rows := make([][]string, 0, len(r.lines)+2)
	head, sum := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		head[i], sum[i] = c.head, c.cell(total)
		if i < len(r.query.By) {
			sum[i] = ""
		}
	}
	if len(r.query.By) > 0 {
		sum[0] = "total"
	}
	rows = append(rows, head)
	for _, l := range r.lines {
		cells := make([]string, len(columns))
		for i, c := range columns {
			cells[i] = c.cell(l)
		}
		rows = append(rows, cells)
	}
	if len(r.query.By) > 0 {
		rows = append(rows, sum)
	}
	left := func(i int) bool { return columns[i].left }
	writeAligned(out, rows, left)
	for _, note := range r.notes(total) {
		fmt.Fprintf(out, "\n%s\n", note)
	}
	return out.Flush()
}

// columns are those that have something to say in the total.
func (r usageReport) columns(total spend.Line) []column {
	var columns []column
	for _, by := range r.query.By {
		columns = append(columns, column{strings.ToUpper(string(by)), true, func(l spend.Line) string { return groupName(by, l, r.query.Zone) }})
	}
	number := func(head string, of func(spend.Line) int64) {
		columns = append(columns, column{head, false, func(l spend.Line) string { return thousands(of(l)) }})
	}
	maybe := func(head string, of func(spend.Line) int64) {
		if of(total) != 0 {
			number(head, of)
		}
	}
	number("CALLS", func(l spend.Line) int64 { return l.Calls })
	maybe("REFUSED", func(l spend.Line) int64 { return l.Refused })
	maybe("NO USAGE", func(l spend.Line) int64 { return l.NoUsage })
	number("INPUT", func(l spend.Line) int64 { return l.Reported.Input })
	maybe("CACHED", func(l spend.Line) int64 { return l.Reported.Cached })
	maybe("CACHE WRITE", func(l spend.Line) int64 { return l.Reported.CacheWrite })
	number("OUTPUT", func(l spend.Line) int64 { return l.Reported.Output })
	maybe("REASONING", func(l spend.Line) int64 { return l.Reported.Reasoning })
	number("EST. INPUT", func(l spend.Line) int64 { return l.Estimated.Input })
	number("EST. OUTPUT", func(l spend.Line) int64 { return l.Estimated.Output })
	columns = append(columns, column{"PROVENANCE", true, provenance})
	if r.prices == nil {
		return columns
	}
	cost := func(head string, of func(*spend.Cost) spend.Money) {
		columns = append(columns, column{head + " " + r.prices.Currency(), false, func(l spend.Line) string {
			if l.Cost == nil {
				return "-"
			}
			return of(l.Cost).Rounded(costDecimals)
		}})
	}
	cost("COST", func(c *spend.Cost) spend.Money { return c.Reported })
	cost("EST. COST", func(c *spend.Cost) spend.Money { return c.Estimated })
	if total.UnpricedTokens.Or(0) > 0 {
		columns = append(columns, column{"PRICED", false, func(l spend.Line) string {
			share, known := l.PricedShare()
			if !known {
				return "-"
			}
			return percent(share)
		}})
	}
	return columns
}

// notes say in words what the sums leave out.
func (r usageReport) notes(total spend.Line) []string {
	var notes []string
	if total.NoUsage > 0 {
		notes = append(notes, fmt.Sprintf("Calls that reached an upstream, and of whose usage nothing is known: %s. The sums are too low by theirs.", thousands(total.NoUsage)))
	}
	if r.prices == nil {
		return notes
	}
	if unpriced := total.UnpricedTokens.Or(0); unpriced > 0 {
		models := make([]string, len(total.UnpricedModels))
		for i, m := range total.UnpricedModels {
			models[i] = named(m)
		}
		notes = append(notes, fmt.Sprintf("%s tokens have no price, and the costs leave them out; models without a price in their hour: %s.", thousands(unpriced), strings.Join(models, ", ")))
	}
	return append(notes, fmt.Sprintf("Costs are rounded to %d decimals here; their sums are exact, as --json and --csv show.", costDecimals))
}

// period says from when to when.
func period(q ledger.Query) string {
	zone := q.Zone
	if zone == nil {
		zone = time.UTC
	}
	show := func(t time.Time) string { return t.In(zone).Format(clockLayout) }
	switch {
	case q.Since.IsZero() && q.Until.IsZero():
		return "of all time"
	case q.Since.IsZero():
		return "until " + show(q.Until)
	case q.Until.IsZero():
		return "since " + show(q.Since)
	}
	return "from " + show(q.Since) + " until " + show(q.Until)
}

func groupedBy(by []ledger.Grouping) string {
	if len(by) == 0 {
		return "all together"
	}
	return "by " + spend.Joined(by)
}

// groupName is what a line is about.
func groupName(by ledger.Grouping, l spend.Line, zone *time.Location) string {
	if zone == nil {
		zone = time.UTC
	}
	switch by {
	case ledger.ByKey:
		return named(l.Key)
	case ledger.ByModel:
		return named(l.Model)
	case ledger.ByClass:
		return named(l.Class)
	case ledger.ByUpstream:
		return named(l.Upstream)
	case ledger.ByHour:
		return l.From.In(zone).Format(clockLayout)
	case ledger.ByDay:
		return l.From.In(zone).Format(time.DateOnly)
	}
	return l.From.In(zone).Format("2006-01")
}

// named shows a name that came from outside; a dash stands for none.
func named(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// sources are the provenances in the order in which they are shown.
var sources = []string{string(call.UsageReported), string(call.UsageTimings), string(call.UsageCounted), string(call.UsagePartial), "estimated"}

// provenance shows which share of a line's tokens is known in which way.
func provenance(l spend.Line) string {
	var total int64
	for _, tokens := range l.BySource {
		total += tokens
	}
	var parts []string
	for _, source := range sources {
		switch tokens := l.BySource[source]; {
		case tokens == 0:
		case tokens == total:
			return source
		default:
			parts = append(parts, source+" "+percent(float64(tokens)/float64(total)))
		}
	}
	if parts == nil {
		return "-"
	}
	return strings.Join(parts, ", ")
}

// percent shows a share with one decimal, and neither nothing as 0 nor a part as
// all.
func percent(share float64) string {
	switch {
	case share > 0 && share < 0.0005:
		return "<0.1%"
	case share < 1 && share >= 0.9995:
		return ">99.9%"
	}
	return strconv.FormatFloat(share*100, 'f', 1, 64) + "%"
}

// thousands writes a number in groups of three digits.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	from := len(s) % 3
	if n < 0 {
		from = (len(s)-1)%3 + 1
	}
	var b strings.Builder
	b.WriteString(s[:from])
	for i := from; i < len(s); i += 3 {
		if b.Len() > 0 && s[:i] != "-" {
			b.WriteByte(',')
		}
		b.WriteString(s[i : i+3])
	}
	return b.String()
}

// writeAligned writes rows in columns two blanks apart.
func writeAligned(w io.Writer, rows [][]string, left func(column int) bool) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if left(i) {
				b.WriteString(cell + pad)
			} else {
				b.WriteString(pad + cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// indent puts two blanks before each line.
func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
