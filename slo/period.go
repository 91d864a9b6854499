package slo

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Bounds of a rolling period. The longest is as long as the longest month.
const (
	minRolling = 24 * time.Hour
	maxRolling = 31 * 24 * time.Hour
)

const periodExample = "write it like rolling 30d, calendar_month or calendar_month Europe/Berlin"

// ParsePeriod reads a period: "rolling 30d", from 1d to 31d in whole hours;
// "calendar_month", in UTC; or "calendar_month Europe/Berlin", in a zone of the IANA
// database. Errors show how it is written.
func ParsePeriod(text string) (Period, error) {
	p, err := parsePeriod(strings.Fields(text))
	if err != nil {
		return Period{}, fmt.Errorf("period %.60q: %w", text, err)
	}
	return p, nil
}

func parsePeriod(w words) (p Period, err error) {
	switch kind := w.next(); {
	case len(w) > 1:
		return p, errors.New("there is too much of it; " + periodExample)
	case kind == "rolling":
		if p.Rolling, err = parseSpan(w.next()); err != nil {
			return p, fmt.Errorf("%w; %s", err, periodExample)
		}
		return p, p.validate()
	case kind == "calendar_month":
		switch name := w.next(); name {
		case "":
			p.Zone = time.UTC
		case "Local":
			return p, errors.New("Local is another zone on another machine; name it, such as Europe/Berlin")
		default:
			if p.Zone, err = time.LoadLocation(name); err != nil {
				return p, fmt.Errorf("unknown time zone; %s: %w", periodExample, err)
			}
		}
		return p, nil
	}
	return p, errors.New("unknown kind; " + periodExample)
}

// Name returns the period as ParsePeriod reads it: "rolling 30d", "calendar_month
// Europe/Berlin".
func (p Period) Name() string {
	if p.Rolling != 0 {
		return "rolling " + spanText(p.Rolling)
	}
	return "calendar_month " + p.zone().String()
}

// At returns the period that holds the moment: from ≤ now < to for calendar months, which
// begin at the first instant of the first day in the zone, also where that is not midnight
// or comes twice; and the time up to now, to = now, for rolling ones. Months follow each
// other without a gap.
func (p Period) At(now time.Time) (from, to time.Time) {
	if p.Rolling != 0 {
		return now.Add(-p.Rolling), now
	}
	zone := p.zone()
	year, month, _ := now.In(zone).Date()
	from, to = monthStart(year, month, zone), monthStart(year, month+1, zone)
	if !now.Before(to) {
		// The clock was set back over midnight, and shows the old month once more.
		from, to = to, monthStart(year, month+2, zone)
	}
	return from, to
}

// monthStart returns the first instant of a month; months beyond 12 are in the next year.
func monthStart(year int, month time.Month, zone *time.Location) time.Time {
	t := time.Date(year, month, 1, 0, 0, 0, 0, zone)
	before, after := t.ZoneBounds()
	if t.Day() != 1 && !after.IsZero() {
		return after // midnight is left out, and this is on its other side
	}
	if hour, minute, second := t.Clock(); hour+minute+second > 0 && !before.IsZero() {
		return before // the same, seen from this side
	}
	if before.IsZero() {
		return t
	}
	// Midnight may come twice: with the offset that held before, it may be earlier.
	_, old := before.Add(-time.Nanosecond).Zone()
	first := time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).Add(-time.Duration(old) * time.Second).In(zone)
	if first.Before(before) {
		return first
	}
	return t
}

// shortest returns the least length that the period can have.
func (p Period) shortest() time.Duration {
	if p.Rolling != 0 {
		return p.Rolling
	}
	return 28 * 24 * time.Hour
}

func (p Period) zone() *time.Location {
	if p.Zone == nil {
		return time.UTC
	}
	return p.Zone
}

// MarshalText writes the period as Name does; the zero Period, which Complete
// replaces, is written as nothing.
func (p Period) MarshalText() ([]byte, error) {
	if p == (Period{}) {
		return nil, nil
	}
	return []byte(p.Name()), nil
}

// UnmarshalText reads what MarshalText writes.
func (p *Period) UnmarshalText(b []byte) (err error) {
	if *p = (Period{}); len(b) > 0 {
		*p, err = ParsePeriod(string(b))
	}
	return err
}
