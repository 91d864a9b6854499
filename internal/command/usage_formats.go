package command

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/ledger"
	"github.com/weirgate/weir/internal/spend"
)

// json writes one object.
func (r usageReport) json(w io.Writer) error {
	return writeJSON(w, spend.AnswerOf(r.query, r.prices, r.lines))
}

func writeJSON(w io.Writer, doc any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(doc)
}

// csv writes a line of names and one for each line of the report.
func (r usageReport) csv(w io.Writer) error {
	out := csv.NewWriter(w)
	var head []string
	for _, by := range r.query.By {
		head = append(head, string(by))
	}
	head = append(head, "calls", "completed", "refused", "no_usage",
		"input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens",
		"estimated_input_tokens", "estimated_output_tokens")
	for _, source := range sources {
		head = append(head, "tokens_"+source)
	}
	if r.prices != nil {
		head = append(head, "currency", "cost_reported", "cost_estimated", "priced_tokens", "unpriced_tokens")
	}
	if err := out.Write(head); err != nil {
		return err
	}
	for _, l := range r.lines {
		if err := out.Write(r.csvLine(l)); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func (r usageReport) csvLine(l spend.Line) []string {
	var cells []string
	for _, by := range r.query.By {
		switch by {
		case ledger.ByKey:
			cells = append(cells, harmless(l.Key))
		case ledger.ByModel:
			cells = append(cells, harmless(l.Model))
		case ledger.ByClass:
			cells = append(cells, harmless(l.Class))
		case ledger.ByUpstream:
			cells = append(cells, harmless(l.Upstream))
		default:
			cells = append(cells, l.From.Format(time.RFC3339))
		}
	}
	number := func(n int64) { cells = append(cells, strconv.FormatInt(n, 10)) }
	for _, n := range []int64{l.Calls, l.Completed, l.Refused, l.NoUsage, l.Reported.Input, l.Reported.Cached, l.Reported.CacheWrite,
		l.Reported.Output, l.Reported.Reasoning, l.Estimated.Input, l.Estimated.Output} {
		number(n)
	}
	for _, source := range sources {
		number(l.BySource[source])
	}
	if r.prices == nil {
		return cells
	}
	cells = append(cells, r.prices.Currency())
	if l.Cost != nil {
		cells = append(cells, l.Cost.Reported.String(), l.Cost.Estimated.String())
	} else {
		cells = append(cells, "", "") // no price is no cost, and not 0
	}
	number(l.PricedTokens.Or(0))
	number(l.UnpricedTokens.Or(0))
	return cells
}

// harmless marks a name that a spreadsheet would run as a formula. Clients choose
// the names of models.
func harmless(name string) string {
	if name != "" && strings.ContainsRune("=+-@\t\r", rune(name[0])) {
		return "'" + name
	}
	return name
}
