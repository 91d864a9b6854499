package spend

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/ledger"
	"github.com/weirgate/weir/internal/quantity"
)

// Groupings are what usage can be grouped by, in the order in which help texts
// name them.
var Groupings = []ledger.Grouping{ledger.ByKey, ledger.ByModel, ledger.ByClass, ledger.ByUpstream, ledger.ByHour, ledger.ByDay, ledger.ByMonth}

// Ask is a query as people write it, on a command line or in a URL.
type Ask struct {
	By           []string // names of Groupings; none is one line over everything
	Since, Until string   // as ParseTime reads them; "" is no bound
	Zone         string   // of the time zone database; "" is UTC
	Keys, Models []string
}

// Query reads the question; spans end at now. Its errors name the field and what
// could stand there.
func (a Ask) Query(now time.Time) (ledger.Query, error) {
	q := ledger.Query{Keys: a.Keys, Models: a.Models, Zone: time.UTC}
	var err error
	if q.By, err = groupings(a.By); err != nil {
		return q, err
	}
	if a.Zone != "" {
		if q.Zone, err = time.LoadLocation(a.Zone); err != nil {
			return q, fmt.Errorf("zone %.60q: %w; write it like Europe/Berlin, UTC or Local, and see that this machine has the time zone database", a.Zone, err)
		}
	}
	if q.Since, err = ParseTime(a.Since, q.Zone, now); err != nil {
		return q, fmt.Errorf("since: %w", err)
	}
	if q.Until, err = ParseTime(a.Until, q.Zone, now); err != nil {
		return q, fmt.Errorf("until: %w", err)
	}
	if !q.Until.IsZero() && !q.Since.Before(q.Until) {
		return q, fmt.Errorf("since %s is not before until %s, each rounded down to an hour of UTC: the period is empty",
			q.Since.Format(time.RFC3339), q.Until.Format(time.RFC3339))
	}
	return q, nil
}

func groupings(names []string) ([]ledger.Grouping, error) {
	if len(names) == 1 && names[0] == "" {
		return nil, nil
	}
	var by []ledger.Grouping
	divided := ledger.Grouping("")
	for _, name := range names {
		g := ledger.Grouping(strings.TrimSpace(name))
		overTime := g == ledger.ByHour || g == ledger.ByDay || g == ledger.ByMonth
		switch {
		case !slices.Contains(Groupings, g):
			return nil, fmt.Errorf("by %.40q: choose from %s, joined by commas", name, Joined(Groupings))
		case slices.Contains(by, g):
			return nil, fmt.Errorf("by names %s twice", g)
		case overTime && divided != "":
			return nil, fmt.Errorf("by names both %s and %s: choose one of them", divided, g)
		case overTime:
			divided = g
		}
		by = append(by, g)
	}
	return by, nil
}

// Joined writes groupings with commas between them.
func Joined(by []ledger.Grouping) string {
	names := make([]string, len(by))
	for i, g := range by {
		names[i] = string(g)
	}
	return strings.Join(names, ", ")
}

// ParseTime reads a span that ends now (30d, 12h), a day where it begins in the
// zone (2026-11-01) or an instant (RFC 3339), rounded down to an hour of UTC as the
// ledger does. "" and all are no bound, the zero time.
func ParseTime(text string, zone *time.Location, now time.Time) (time.Time, error) {
	if text == "" || text == "all" {
		return time.Time{}, nil
	}
	at, err := time.ParseInLocation(time.DateOnly, text, zone)
	if err != nil {
		at, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		var span time.Duration
		if span, err = quantity.ParseDuration(text); err == nil {
			at = now.Add(-span)
		}
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("%.40q is no time: write a span like 30d or 12h, a day like 2026-11-01, or an instant like 2026-11-01T09:00:00Z", text)
	}
	if at.Year() < 1971 || at.Year() > 9999 {
		return time.Time{}, fmt.Errorf("%.40q is too far away: write all for everything there is", text)
	}
	return at.UTC().Truncate(time.Hour), nil
}

// Answer is a report for programs; amounts are exact decimal numbers.
type Answer struct {
	Since    time.Time         `json:"since,omitzero"` // absent: unbounded
	Until    time.Time         `json:"until,omitzero"`
	Zone     string            `json:"zone"`
	By       []ledger.Grouping `json:"by"`
	Currency string            `json:"currency,omitempty"` // absent: without prices
	Lines    []Line            `json:"lines"`
	Total    Line              `json:"total"`
}

// AnswerOf makes the Answer of a report's lines.
func AnswerOf(q ledger.Query, p *Prices, lines []Line) Answer {
	a := Answer{Since: q.Since, Until: q.Until, Zone: "UTC", By: q.By, Currency: p.Currency(), Lines: lines, Total: Total(lines)}
	if q.Zone != nil {
		a.Zone = q.Zone.String()
	}
	if a.By == nil {
		a.By = []ledger.Grouping{}
	}
	if a.Lines == nil {
		a.Lines = []Line{}
	}
	return a
}
