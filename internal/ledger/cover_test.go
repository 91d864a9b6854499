package ledger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// hourRow is a row of usage_hours.
type hourRow struct {
	hour                                    int64
	key, model, class, upstream, provenance string
	tally
}

// TestReportsAreTheSumsOfHours: whatever a report takes from whole days and
// puts on or off in hours, it is what adding up the rows of usage_hours gives.
func TestReportsAreTheSumsOfHours(t *testing.T) {
	places := []struct {
		zone  string
		begin string // of three days; clocks change on the second
	}{
		{"UTC", "2026-11-01"},
		{"Europe/Berlin", "2026-03-28"},
		{"Europe/Berlin", "2026-10-24"},
		{"America/New_York", "2026-10-31"},
		{"America/Havana", "2026-10-31"},      // there are two midnights
		{"America/Sao_Paulo", "2018-11-03"},   // there is no midnight
		{"Australia/Lord_Howe", "2026-04-04"}, // by half an hour
		{"Pacific/Apia", "2011-12-29"},        // a day is left out
		{"Pacific/Kiritimati", "2026-12-30"},  // +14
		{"Pacific/Pago_Pago", "2026-12-30"},   // -11
		{"Asia/Kolkata", "2026-01-30"},        // +5:30
		{"Pacific/Chatham", "2026-09-26"},     // +12:45
		{"Pacific/Marquesas", "2026-02-27"},   // -9:30
	}
	rounds := 3
	if testing.Short() || underRace > 1 {
		rounds = 1
	}
	for i, p := range places {
		begin, err := time.Parse(time.DateOnly, p.begin)
		if err != nil {
			t.Fatal(err)
		}
		for round := range rounds {
			r := rand.New(rand.NewPCG(uint64(i), uint64(round)))
			rows := anyHours(r, begin.Unix()-30*hour, 5*24)
			reader := ledgerOf(t, rows)
			for _, by := range everyGrouping() {
				q := Query{By: by, Zone: zone(t, p.zone)}
				bound := func() time.Time { return begin.Add(time.Duration(r.IntN(5*24*60)-30*60) * time.Minute) }
				switch r.IntN(4) {
				case 1:
					q.Since = bound()
				case 2:
					q.Until = bound()
				case 3:
					q.Since = bound()
					q.Until = q.Since.Add(time.Duration(r.IntN(80*60)) * time.Minute)
				}
				switch r.IntN(6) {
				case 0:
					q.Keys = []string{"alice", ""}
				case 1:
					q.Keys = strings.Split("a,b,c,d,e,f,g,h,alice", ",") // too many to be looked up
				case 2:
					q.Keys, q.Models = []string{"bob", "nobody"}, []string{"m"}
				case 3:
					q.Models = []string{"", "n"}
				}
				got, err := reader.Usage(context.Background(), q)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := usageJSON(t, got), usageJSON(t, sumOf(q, rows)); got != want {
					t.Fatalf("%s, round %d, by %v, since %v, until %v, keys %q, models %q:\n got %s\nwant %s",
						p.zone, round, by, q.Since, q.Until, q.Keys, q.Models, got, want)
				}
			}
		}
	}
}

// everyGrouping is each set of texts with each division of time.
func everyGrouping() [][]Grouping {
	var all [][]Grouping
	for set := range 1 << 4 {
		for _, period := range []Grouping{"", ByHour, ByDay, ByMonth} {
			var by []Grouping
			for i, g := range []Grouping{ByUpstream, ByKey, ByClass, ByModel} {
				if set>>i&1 == 1 {
					by = append(by, g)
				}
			}
			if period != "" {
				by = append(by, period)
			}
			all = append(all, by)
		}
	}
	return all
}

// anyHours makes rows of n hours: in some no call came, and some groups have
// calls in a single hour only.
func anyHours(r *rand.Rand, from int64, n int) []hourRow {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	var all []hourRow
	for i := range n {
		at := from + int64(i)*hour
		for range r.IntN(6) * r.IntN(3) {
			row := hourRow{hour: at, key: pick("", "alice", "bob"), model: pick("m", "n", ""), class: pick("interactive", "batch"), upstream: pick("", "u:1"),
				provenance: pick("reported", "reported", "timings", "counted", "partial", "estimated", "none", "unused")}
			if r.IntN(20) == 0 {
				row.key = fmt.Sprint("once", i)
			}
			calls := 1 + r.Int64N(9)
			row.tally[0] = calls
			row.tally[1+r.IntN(2)] = r.Int64N(calls + 1)
			switch row.provenance {
			case "none", "unused":
			case "estimated":
				row.tally[8], row.tally[9] = r.Int64N(3)*r.Int64N(1e12), r.Int64N(100)
			default:
				for i := 3; i < 8; i++ {
					row.tally[i] = r.Int64N(3) * r.Int64N(1e12) // often 0
				}
			}
			same := func(o hourRow) bool {
				return o.hour == row.hour && o.key == row.key && o.model == row.model && o.class == row.class && o.upstream == row.upstream && o.provenance == row.provenance
			}
			if !slices.ContainsFunc(all, same) {
				all = append(all, row)
			}
		}
	}
	return all
}

// ledgerOf makes a ledger of rows of usage_hours, with the days that belong to them.
func ledgerOf(t *testing.T, rows []hourRow) *Reader {
	t.Helper()
	path := filepath.Join(t.TempDir(), "usage.db")
	db, err := openDatabase(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	var sql strings.Builder
	sql.WriteString("BEGIN;")
	for _, r := range rows {
		fmt.Fprintf(&sql, "INSERT INTO usage_hours VALUES (%d, '%s', '%s', '%s', '%s', '%s'", r.hour, r.key, r.model, r.class, r.upstream, r.provenance)
		for _, n := range r.tally {
			fmt.Fprintf(&sql, ", %d", n)
		}
		sql.WriteString(");")
	}
	var added []string
	for _, s := range sums {
		added = append(added, "sum("+s.name+")")
	}
	sql.WriteString("DELETE FROM usage_days; INSERT INTO usage_days SELECT hour / 86400 * 86400, key, model, class, upstream, provenance, " + strings.Join(added, ", ") +
		" FROM usage_hours GROUP BY 1, 2, 3, 4, 5, 6; COMMIT")
	if err := db.conn.Exec(sql.String()); err != nil {
		t.Fatal(err)
	}
	if err := db.close(); err != nil {
		t.Fatal(err)
	}
	reader, err := OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reader.Close() })
	return reader
}

// sumOf answers a query from rows of usage_hours, one by one.
func sumOf(q Query, rows []hourRow) []Usage {
	var all []Usage
	if len(q.By) == 0 {
		all = append(all, Usage{})
	}
	begins := make(beginnings)
	for _, r := range rows {
		h := time.Unix(r.hour, 0).UTC()
		if !q.Since.IsZero() && h.Before(q.Since.Truncate(time.Hour)) || !q.Until.IsZero() && !h.Before(q.Until.Truncate(time.Hour)) ||
			len(q.Keys) > 0 && !slices.Contains(q.Keys, r.key) || len(q.Models) > 0 && !slices.Contains(q.Models, r.model) {
			continue
		}
		var u Usage
		for _, g := range q.By {
			switch g {
			case ByKey:
				u.Key = r.key
			case ByModel:
				u.Model = r.model
			case ByClass:
				u.Class = r.class
			case ByUpstream:
				u.Upstream = r.upstream
			case ByHour:
				u.From = h.In(q.Zone)
			default:
				u.From = begins.of(h.Add(30*time.Minute).In(q.Zone), g == ByMonth)
			}
		}
		at := slices.IndexFunc(all, func(o Usage) bool {
			return o.Key == u.Key && o.Model == u.Model && o.Class == u.Class && o.Upstream == u.Upstream && o.From.Equal(u.From)
		})
		if at < 0 {
			at = len(all)
			all = append(all, u)
		}
		s := &all[at]
		s.Calls += r.tally[0]
		s.Completed += r.tally[1]
		s.Refused += r.tally[2]
		plus(&s.Reported, Sums{Input: r.tally[3], Output: r.tally[4], Cached: r.tally[5], CacheWrite: r.tally[6], Reasoning: r.tally[7]})
		plus(&s.Estimated, Sums{Input: r.tally[8], Output: r.tally[9]})
		if r.provenance == "none" {
			s.NoUsage += r.tally[0]
		}
		if n := r.tally[3] + r.tally[4] + r.tally[8] + r.tally[9]; n > 0 {
			if s.BySource == nil {
				s.BySource = make(map[string]int64)
			}
			s.BySource[r.provenance] += n
		}
	}
	return inOrder(all)
}

// beginnings finds where days and months begin, by walking back to there.
type beginnings map[date]time.Time

func (b beginnings) of(t time.Time, month bool) time.Time {
	days := 3
	var d date
	if d.year, d.month, d.day = t.Date(); month {
		days, d.day = 32, 0
	}
	first, known := b[d]
	if known {
		return first
	}
	t = t.Truncate(15 * time.Minute)
	for back := time.Duration(0); back < time.Duration(days)*24*time.Hour; back += 15 * time.Minute {
		at := t.Add(-back)
		if y, m, n := at.Date(); y == d.year && m == d.month && (month || n == d.day) {
			first = at
		}
	}
	b[d] = first
	return first
}

// TestCover: each hour that is asked for counts once, for its own span, and no
// more is read than must be.
func TestCover(t *testing.T) {
	for _, c := range []struct {
		zone        string
		period      Grouping
		from, until time.Duration // of 2026-11-01
		hours, days int           // most that may be read
	}{
		{"UTC", "", 0, 72 * time.Hour, 0, 3},
		{"UTC", "", 5 * time.Hour, 70 * time.Hour, 7, 3},  // the first and the last day, less some hours
		{"UTC", "", 20 * time.Hour, 50 * time.Hour, 6, 1}, // four hours, a day, and two hours
		{"UTC", "", 3 * time.Hour, 9 * time.Hour, 6, 0},
		{"UTC", ByDay, 0, 72 * time.Hour, 0, 3},
		{"UTC", ByHour, 0, 72 * time.Hour, 72, 0},
		{"Europe/Berlin", ByDay, 0, 72 * time.Hour, 3, 3},
		{"America/Los_Angeles", ByDay, 0, 72 * time.Hour, 24, 3}, // 7, 8 and 8: clocks change
		{"Pacific/Auckland", ByDay, 0, 72 * time.Hour, 33, 3},    // +13: 11 each
		{"Asia/Kolkata", ByMonth, 0, 29 * 24 * time.Hour, 0, 29},
		{"Asia/Kolkata", ByMonth, 0, 31 * 24 * time.Hour, 6, 31},
	} {
		begin := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		from, until := begin.Add(c.from).Unix(), begin.Add(c.until).Unix()
		cal := newCalendar(c.period, zone(t, c.zone))
		var all []int64
		for d := begin.Unix(); d < until; d += day {
			all = append(all, d)
		}
		type counted struct {
			span int
			hour int64
		}
		times := make(map[counted]int)
		hours, days := 0, 0
		for p := range cover(all, from, until, cal) {
			if p.days {
				days += int((p.until - p.from) / day)
			} else {
				hours += int((p.until - p.from) / hour)
			}
			for h := p.from; h < p.until; h += hour {
				times[counted{p.to, h}]++
				times[counted{p.off, h}]--
			}
		}
		if hours > c.hours || days > c.days {
			t.Errorf("%+v: %d hours and %d days are read", c, hours, days)
		}
		again := newCalendar(c.period, zone(t, c.zone))
		for h := from; h < until; h += hour {
			if k := (counted{again.of(h), h}); times[k] != 1 {
				t.Errorf("%+v: hour %d counts %d times", c, (h-begin.Unix())/hour, times[k])
			} else {
				delete(times, k)
			}
		}
		for k, n := range times {
			if k.span != none && n != 0 {
				t.Errorf("%+v: hour %d counts %d times for span %d", c, (k.hour-begin.Unix())/hour, n, k.span)
			}
		}
	}
}
