package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// Usage answers a query from the hourly and daily sums, so that its cost depends on hours,
// keys and models and not on calls. Rows come in the order of their time, then
// key, model, class and upstream. A query without groupings has one row, of
// zeros when there were no calls. What was recorded within the last few
// milliseconds may be missing; State tells the lag.
func (l *Ledger) Usage(ctx context.Context, q Query) ([]Usage, error) {
	rows, err := l.reader.Usage(ctx, q)
	if errors.Is(err, errNone) {
		return nil, nil // no call has ended yet
	}
	return rows, err
}

// Usage is as Ledger.Usage.
func (r *Reader) Usage(ctx context.Context, q Query) ([]Usage, error) {
	rows, err := r.usage(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("report usage: %w", err)
	}
	return rows, nil
}

func (r *Reader) usage(ctx context.Context, q Query) ([]Usage, error) {
	period, err := q.check()
	if err != nil {
		return nil, err
	}
	from, until, some, err := r.hours(ctx, &q)
	if err != nil {
		return nil, err
	}
	var all []Usage
	switch {
	case !some:
	case period == "":
		all, err = r.sum(ctx, &q, 0, from, until, time.Time{})
	case period == ByHour:
		all, err = r.sum(ctx, &q, hour, from, until, time.Time{})
	case period == ByDay && q.zone() == time.UTC:
		all, err = r.sum(ctx, &q, day, from, until, time.Time{})
	default:
		for _, b := range buckets(from, until, q.zone(), period) {
			rows, err := r.sum(ctx, &q, 0, b.from, b.until, b.label)
			if err != nil {
				return nil, err
			}
			all = append(all, rows...)
		}
	}
	if err != nil {
		return nil, err
	}
	if len(q.By) == 0 && len(all) == 0 {
		all = []Usage{{}}
	}
	return sorted(merged(all)), nil
}

// check returns how the query divides time, "" when it does not.
func (q *Query) check() (period Grouping, err error) {
	seen := make(map[Grouping]bool)
	for _, g := range q.By {
		if seen[g] {
			return "", fmt.Errorf("grouped by %s twice", g)
		}
		seen[g] = true
		switch g {
		case ByKey, ByModel, ByClass, ByUpstream:
		case ByHour, ByDay, ByMonth:
			if period != "" {
				return "", fmt.Errorf("grouped by %s and by %s: choose one", period, g)
			}
			period = g
		default:
			return "", fmt.Errorf("cannot group by %q: there are key, model, class, upstream, hour, day and month", g)
		}
	}
	if !q.Since.IsZero() && !q.Until.IsZero() && q.Until.Before(q.Since) {
		return "", errors.New("until lies before since")
	}
	return period, nil
}

func (q *Query) zone() *time.Location {
	if q.Zone == nil {
		return time.UTC
	}
	return q.Zone
}

// hours returns the hours that the query asks for and that have sums, as
// seconds since 1970, until not included.
func (r *Reader) hours(ctx context.Context, q *Query) (from, until int64, some bool, err error) {
	// Two queries, each of which is one step in the index; together they would
	// read it all.
	for _, end := range []struct {
		sql string
		to  *int64
	}{{`SELECT min(hour) FROM usage_hours`, &from}, {`SELECT max(hour) + 3600 FROM usage_hours`, &until}} {
		err = r.query(ctx, end.sql, nil, func(row *sqlite3.Stmt) {
			some = row.ColumnType(0) != sqlite3.NULL
			*end.to = row.ColumnInt64(0)
		})
		if err != nil || !some {
			return 0, 0, false, err
		}
	}
	if !q.Since.IsZero() {
		from = max(from, hourOf(q.Since))
	}
	if !q.Until.IsZero() {
		until = min(until, hourOf(q.Until))
	}
	return from, until, from < until, nil
}

// sum adds up the hours from … until by the query's groupings; for time, by
// units of so many seconds, an hour or a UTC day, or not at all if unit is 0:
// then rows have the label.
func (r *Reader) sum(ctx context.Context, q *Query, unit, from, until int64, label time.Time) ([]Usage, error) {
	sql, args := sumSQL(q, unit, from, until)
	var all []Usage
	err := r.query(ctx, sql, args, func(row *sqlite3.Stmt) {
		u := Usage{From: label}
		at := 0
		for _, g := range q.By {
			if field := u.field(g); field != nil {
				*field = row.ColumnText(at)
				at++
			}
		}
		if unit != 0 {
			u.From = time.Unix(row.ColumnInt64(at), 0).In(q.zone())
			at++
		}
		u.scan(row, at)
		all = append(all, u)
	})
	return all, err
}

// sumSQL returns the query of sum. Whole UTC days within the time come from the
// sums by day, unless hours are asked for; what is left at both ends from those
// by hour.
func sumSQL(q *Query, unit, from, until int64) (string, []any) {
	var groups []string
	for _, g := range q.By {
		if g != ByHour && g != ByDay && g != ByMonth {
			groups = append(groups, string(g)) // one of four names, by check
		}
	}
	of := slices.Clone(groups)
	if unit != 0 {
		groups = append(groups, "start")
	}
	groups, of = append(groups, "provenance"), append(of, "provenance")
	what := slices.Clone(groups)
	for _, s := range sums {
		what = append(what, "sum("+s.name+")")
		of = append(of, s.name)
	}
	firstDay, lastDay := from+(day-from%day)%day, until-until%day
	if unit == hour || firstDay >= lastDay {
		firstDay, lastDay = until, until
	}
	var args []any
	narrow := ""
	for _, only := range []struct {
		column string
		to     []string
	}{{"key", q.Keys}, {"model", q.Models}} {
		if len(only.to) == 0 {
			continue
		}
		narrow += " AND " + only.column + " IN ("
		for i, s := range only.to {
			if i > 0 {
				narrow += ", "
			}
			args = append(args, s)
			narrow += fmt.Sprint("?", len(args)) // the same in each part
		}
		narrow += ")"
	}
	part := func(table, column string, from, until int64) string {
		start := column
		if unit == day {
			start += " / 86400 * 86400"
		}
		return fmt.Sprintf("SELECT %s AS start, %s FROM %s WHERE %s >= %d AND %s < %d%s", start, strings.Join(of, ", "), table, column, from, column, until, narrow)
	}
	parts := part("usage_hours", "hour", from, firstDay)
	if firstDay < lastDay {
		parts += " UNION ALL " + part("usage_days", "day", firstDay, lastDay)
	}
	if lastDay < until {
		parts += " UNION ALL " + part("usage_hours", "hour", lastDay, until)
	}
	return "SELECT " + strings.Join(what, ", ") + " FROM (" + parts + ") GROUP BY " + strings.Join(groups, ", "), args
}

// field returns the text that a grouping fills; nil for those by time.
func (u *Usage) field(g Grouping) *string {
	switch g {
	case ByKey:
		return &u.Key
	case ByModel:
		return &u.Model
	case ByClass:
		return &u.Class
	case ByUpstream:
		return &u.Upstream
	}
	return nil
}

// scan reads the sums of one provenance, from a row's column at on.
func (u *Usage) scan(row *sqlite3.Stmt, at int) {
	for i, to := range []*int64{&u.Calls, &u.Completed, &u.Refused,
		&u.Reported.Input, &u.Reported.Output, &u.Reported.Cached, &u.Reported.CacheWrite, &u.Reported.Reasoning,
		&u.Estimated.Input, &u.Estimated.Output} {
		*to = row.ColumnInt64(at + 1 + i)
	}
	provenance := row.ColumnText(at)
	if provenance == "none" {
		u.NoUsage = u.Calls
	}
	if n := u.Reported.Input + u.Reported.Output + u.Estimated.Input + u.Estimated.Output; n != 0 {
		u.BySource = map[string]int64{provenance: n}
	}
}

// merged adds up rows of the same groups, which come apart by provenance. A day
// may come in two pieces, too, where a zone's clock was set back over midnight.
func merged(rows []Usage) []Usage {
	type groups struct {
		from                        int64
		key, model, class, upstream string
	}
	at := make(map[groups]int, len(rows))
	var out []Usage
	for _, u := range rows {
		g := groups{u.From.Unix(), u.Key, u.Model, u.Class, u.Upstream}
		if i, known := at[g]; known {
			out[i].add(&u)
			continue
		}
		at[g] = len(out)
		out = append(out, u)
	}
	return out
}

func (u *Usage) add(v *Usage) {
	u.Calls += v.Calls
	u.Completed += v.Completed
	u.Refused += v.Refused
	u.NoUsage += v.NoUsage
	u.Reported.add(&v.Reported)
	u.Estimated.add(&v.Estimated)
	for source, n := range v.BySource {
		if u.BySource == nil {
			u.BySource = make(map[string]int64)
		}
		u.BySource[source] += n
	}
}

func (s *Sums) add(t *Sums) {
	s.Input += t.Input
	s.Cached += t.Cached
	s.CacheWrite += t.CacheWrite
	s.Output += t.Output
	s.Reasoning += t.Reasoning
}

func sorted(rows []Usage) []Usage {
	slices.SortFunc(rows, func(a, b Usage) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Model, b.Model),
			cmp.Compare(a.Class, b.Class), cmp.Compare(a.Upstream, b.Upstream))
	})
	return rows
}
