package ledger

import (
	"context"
	"errors"
	"fmt"
	"math"
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
	a := newAdding(q.By, newCalendar(period, q.zone()))
	if err := r.inside(ctx, func(conn *sqlite3.Conn) error { return a.read(conn, &q) }); err != nil {
		return nil, err
	}
	all := a.usage()
	if len(q.By) == 0 && len(all) == 0 {
		all = []Usage{{}}
	}
	return all, nil
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

// read adds up what the query asks for.
func (a *adding) read(conn *sqlite3.Conn, q *Query) (err error) {
	from, until, some, err := q.bounds(conn)
	if err != nil {
		return err
	}
	if err := conn.CreateWindowFunction(adder, a.arguments(), sqlite3.DIRECTONLY, func() sqlite3.AggregateFunction { return a }); err != nil {
		return err
	}
	defer func() { // the connection must not keep what was added up
		err = errors.Join(err, conn.CreateWindowFunction(adder, a.arguments(), sqlite3.DIRECTONLY, nil))
	}()
	days, err := a.prepare(conn, q, "usage_days", "day")
	if err != nil {
		return err
	}
	defer days.Close()
	hours, err := a.prepare(conn, q, "usage_hours", "hour")
	if err != nil {
		return err
	}
	defer hours.Close()
	for p := range cover(some, from, until, a.spans) {
		stmt, unit := hours, hour
		if p.days {
			stmt, unit = days, day
		}
		a.begin(p)
		step := p.until - p.from
		if q.seeks() {
			step = unit
		}
		for at := p.from; at < p.until; at += step {
			if err := errors.Join(stmt.BindInt64(1, at), stmt.BindInt64(2, at+step)); err != nil {
				return err
			}
			if err := stmt.Exec(); err != nil {
				return err
			}
		}
	}
	return nil
}

// adder is the function that hands rows to an adding. It costs less than to
// fetch each row's columns, and much less than to group by them in SQL, which sorts.
const adder = "weir_add"

// prepare returns the statement that adds up the rows of one table whose start
// lies from ?1 on and before ?2.
func (a *adding) prepare(conn *sqlite3.Conn, q *Query, table, start string) (*sqlite3.Stmt, error) {
	var what []string
	for _, g := range a.by {
		what = append(what, string(g)) // one of four names, by check
	}
	what = append(what, "provenance")
	for _, s := range sums {
		what = append(what, s.name)
	}
	sql := "SELECT " + adder + "(" + strings.Join(what, ", ") + ") FROM " + table + " WHERE " + start
	if q.seeks() {
		sql += " = ?1 AND ?1 < ?2" // one at a time: the primary key finds each key's rows in it
	} else {
		sql += " >= ?1 AND " + start + " < ?2"
	}
	n := 2
	for _, only := range []struct {
		column string
		to     []string
	}{{"key", q.Keys}, {"model", q.Models}} {
		if len(only.to) == 0 {
			continue
		}
		sql += " AND " + only.column + " IN (?" + strings.Repeat(", ?", len(only.to)-1) + ")"
	}
	stmt, _, err := conn.Prepare(sql)
	if err != nil {
		return nil, err
	}
	for _, s := range slices.Concat(q.Keys, q.Models) {
		n++
		if err := stmt.BindText(n, s); err != nil {
			return nil, errors.Join(err, stmt.Close())
		}
	}
	return stmt, nil
}

// seeks tells whether it is cheaper to look up the rows of the keys asked for
// than to read all rows of an hour or a day and leave out those of other keys.
func (q *Query) seeks() bool { return 0 < len(q.Keys) && len(q.Keys) <= 8 }

// bounds returns the hours that the query asks for, in seconds since 1970, until
// not included, and the beginnings of the UTC days within them that have sums.
func (q *Query) bounds(conn *sqlite3.Conn) (from, until int64, days []int64, err error) {
	from, until = math.MinInt64, math.MaxInt64
	if !q.Since.IsZero() {
		from = hourOf(q.Since)
	}
	if !q.Until.IsZero() {
		until = hourOf(q.Until)
	}
	// Each is one step in the index: no gap is walked, be it as long as to 1970,
	// where clocks begin that have not been set.
	next, _, err := conn.Prepare(`SELECT min(day) FROM usage_days WHERE day > ?`)
	if err != nil {
		return 0, 0, nil, err
	}
	defer next.Close()
	last := from
	if last != math.MinInt64 {
		last = from - day // begins before the day of from, and not before the day before
	}
	for {
		if err := next.BindInt64(1, last); err != nil {
			return 0, 0, nil, err
		}
		if !next.Step() || next.ColumnType(0) == sqlite3.NULL {
			return from, until, days, next.Err()
		}
		last = next.ColumnInt64(0)
		if last >= until {
			return from, until, days, nil
		}
		if err := next.Reset(); err != nil {
			return 0, 0, nil, err
		}
		days = append(days, last)
	}
}
