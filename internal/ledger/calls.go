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
	"github.com/weirgate/weir/internal/call"
)

// Limits of Filter.Limit.
const (
	DefaultCalls = 100
	MaxCalls     = 1000
)

// Filter picks calls; empty fields pick all.
type Filter struct {
	Key, Model, Class, Run string
	Outcome                call.Outcome
	Failed                 bool      // only outcomes that are failures of the service
	Since, Before          time.Time // received at or after; received earlier than
	// BeforeID goes on where a page ended: it is the id of its last call.
	BeforeID string
	// ID is the call's own, which is found at once, or else the client's request
	// id or the upstream's response id, for which calls are looked through.
	ID    string
	Limit int // at most so many, up to MaxCalls; 0 is DefaultCalls
}

// Calls returns the calls that f picks, those received last first. They are as
// they were recorded, but for Instants and Gaps, which are not kept.
//
// Time has an index; the calls of a key are found by it and the days on which the
// key made any. A filter that picks few calls by anything else looks through all
// rows of the period, seconds for millions.
func (l *Ledger) Calls(ctx context.Context, f Filter) ([]*call.Record, error) {
	calls, err := l.reader.Calls(ctx, f)
	if errors.Is(err, errNone) {
		return nil, nil // no call has ended yet
	}
	return calls, err
}

// Calls is as Ledger.Calls.
func (r *Reader) Calls(ctx context.Context, f Filter) ([]*call.Record, error) {
	if f.Limit < 0 || f.Limit > MaxCalls {
		return nil, fmt.Errorf("list calls: limit %d is not within 0 and %d", f.Limit, MaxCalls)
	}
	if f.ID != "" {
		rows, err := r.calls(ctx, &f, onlyID)
		if err != nil || len(rows) > 0 {
			return rows, err
		}
		return r.calls(ctx, &f, "? IN (request_id, response_id)")
	}
	return r.calls(ctx, &f, "")
}

func (r *Reader) calls(ctx context.Context, f *Filter, byID string) ([]*call.Record, error) {
	var where []string
	var args []any
	and := func(condition string, arg ...any) {
		where = append(where, condition)
		args = append(args, arg...)
	}
	if byID != "" {
		and(byID, f.ID)
	}
	for _, is := range []struct{ column, value string }{
		{"key", f.Key}, {"model", f.Model}, {"class", f.Class}, {"run", f.Run}, {"outcome", string(f.Outcome)},
	} {
		if is.value != "" {
			and(is.column+" = ?", is.value)
		}
	}
	if f.Failed {
		and(onlyFailed)
	}
	if !f.Since.IsZero() {
		and("time_ns >= ?", bound(f.Since))
	}
	if !f.Before.IsZero() {
		and("time_ns < ?", bound(f.Before))
	}
	if f.BeforeID != "" {
		and("(time_ns, seq) < (SELECT time_ns, seq FROM calls WHERE id = ? AND attempt = 0)", f.BeforeID)
	}
	limit := f.Limit
	if limit == 0 {
		limit = DefaultCalls
	}
	var rows []*call.Record
	list := func() error {
		sql := selectSQL
		if len(where) > 0 {
			sql += " WHERE " + strings.Join(where, " AND ")
		}
		sql += fmt.Sprintf(" ORDER BY time_ns DESC, seq DESC LIMIT %d", limit-len(rows))
		return r.query(ctx, sql, args, func(stmt *sqlite3.Stmt) { rows = append(rows, scanRow(stmt)) })
	}
	if f.Key == "" || byID == onlyID {
		if err := list(); err != nil {
			return nil, fmt.Errorf("list calls: %w", err)
		}
		return rows, nil
	}
	periods, err := r.daysOf(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("list days of calls: %w", err)
	}
	and("time_ns >= ? AND time_ns < ?", int64(0), int64(0))
	for _, p := range periods {
		copy(args[len(args)-2:], []any{p.from, p.until})
		if err := list(); err != nil {
			return nil, fmt.Errorf("list calls: %w", err)
		}
		if len(rows) == limit {
			break
		}
	}
	return rows, nil
}

// onlyID finds one call.
const onlyID = "id = ?"

// period is a time in nanoseconds since 1970, until not included.
type period struct{ from, until int64 }

// daysOf returns the runs of days, the last first, on which the filter's key made
// calls of which there may be rows: the index by time has the calls of other keys
// beside them, and these days need not be read for one that made none.
func (r *Reader) daysOf(ctx context.Context, f *Filter) (runs []period, err error) {
	where := "key = ? AND day >= (SELECT min(time_ns) FROM calls) / 86400000000000 * 86400"
	args := []any{f.Key}
	if !f.Since.IsZero() {
		where, args = where+" AND day >= ? / 86400000000000 * 86400", append(args, bound(f.Since))
	}
	if !f.Before.IsZero() {
		where, args = where+" AND day <= ? / 1000000000", append(args, bound(f.Before))
	}
	if f.BeforeID != "" {
		where, args = where+" AND day <= (SELECT time_ns FROM calls WHERE id = ? AND attempt = 0) / 1000000000", append(args, f.BeforeID)
	}
	err = r.query(ctx, "SELECT day FROM usage_days WHERE "+where+" GROUP BY day ORDER BY day DESC", args, func(stmt *sqlite3.Stmt) {
		const second = int64(time.Second)
		from := stmt.ColumnInt64(0) * second
		if n := len(runs); n > 0 && runs[n-1].from == from+day*second {
			runs[n-1].from = from
			return
		}
		runs = append(runs, period{from, from + day*second})
	})
	return runs, err
}

// bound returns t in nanoseconds since 1970, the nearest that can be said.
func bound(t time.Time) int64 {
	switch y := t.Year(); {
	case y < 1678:
		return math.MinInt64
	case y > 2261:
		return math.MaxInt64
	}
	return t.UnixNano()
}

// scanRow reads a row of selectSQL.
func scanRow(stmt *sqlite3.Stmt) *call.Record {
	rec := new(call.Record)
	for c := colID; c < colEnd; c++ {
		at := int(c) - 1
		if stmt.ColumnType(at) == sqlite3.NULL {
			continue
		}
		var v value
		switch columns[c].kind {
		case text:
			v.b = stmt.ColumnRawText(at)
		case millis:
			v.n = int64(math.Round(stmt.ColumnFloat(at) * 1e6))
		default:
			v.n = stmt.ColumnInt64(at)
		}
		set(rec, c, v)
	}
	measuredSources(rec)
	return rec
}

var selectSQL = func() string {
	var names []string
	for _, c := range columns[colID:] {
		names = append(names, c.name)
	}
	return "SELECT " + strings.Join(names, ", ") + " FROM calls"
}()

// onlyFailed picks the outcomes that call.Outcome.Failed does.
var onlyFailed = func() string {
	failed := slices.DeleteFunc(slices.Clone(call.Outcomes), func(o call.Outcome) bool { return !o.Failed() })
	names := make([]string, len(failed))
	for i, o := range failed {
		names[i] = "'" + string(o) + "'"
	}
	return "outcome IN (" + strings.Join(names, ", ") + ")"
}()
