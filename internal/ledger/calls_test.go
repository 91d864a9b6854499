package ledger

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/weirgate/weir/internal/call"
)

// TestCallsOfAKey pages through the calls of keys that come on some days and on
// others not, and holds each list against one made from the records.
func TestCallsOfAKey(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	l := open(t, Options{Retention: KeepAll})
	var all []*call.Record
	for i := range 600 / underRace {
		rec := ended(fmt.Sprint("call", i))
		day := r.IntN(20)
		rec.Time = noon.AddDate(0, 0, day).Add(time.Duration(r.IntN(24*60)) * time.Minute) // some at the same time
		rec.Key = []string{"", "often", "on some days", "once a week"}[r.IntN(4)]
		if rec.Key == "on some days" && day%3 == 1 || rec.Key == "once a week" && day%7 != 2 {
			rec.Key = "often"
		}
		all = append(all, rec)
		l.End(rec)
	}
	flush(t, l)
	order := make(map[string]int) // of arrival
	for i, rec := range all {
		order[rec.ID] = i
	}
	slices.SortFunc(all, func(a, b *call.Record) int {
		if c := b.Time.Compare(a.Time); c != 0 {
			return c
		}
		return order[b.ID] - order[a.ID]
	})
	for range 200 / underRace {
		f := Filter{Key: []string{"", "often", "on some days", "once a week", "nobody"}[r.IntN(5)], Limit: 1 + r.IntN(40)}
		if r.IntN(2) == 0 {
			f.Since = noon.Add(time.Duration(r.IntN(20*24*60)) * time.Minute)
		}
		if r.IntN(2) == 0 {
			f.Before = noon.Add(time.Duration(r.IntN(20*24*60)) * time.Minute)
		}
		var want []string
		for _, rec := range all {
			if (f.Key == "" || rec.Key == f.Key) && (f.Since.IsZero() || !rec.Time.Before(f.Since)) && (f.Before.IsZero() || rec.Time.Before(f.Before)) {
				want = append(want, rec.ID)
			}
		}
		filter := fmt.Sprintf("%+v", f)
		var got []string
		for {
			page, err := l.Calls(soon(t), f)
			if err != nil {
				t.Fatal(err)
			}
			for _, rec := range page {
				got = append(got, rec.ID)
				f.BeforeID = rec.ID
			}
			if len(page) < f.Limit {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s:\n got %v\nwant %v", filter, got, want)
		}
	}
	if got, err := l.Calls(soon(t), Filter{Key: "often", BeforeID: "of no call"}); err != nil || len(got) != 0 {
		t.Errorf("before a call that is not there: %d calls, %v", len(got), err)
	}
}

// TestPlans: what people ask by time, key and id goes by an index.
func TestPlans(t *testing.T) {
	l := open(t, Options{})
	l.End(ended("one"))
	flush(t, l)
	plan := func(sql string) (steps string) {
		t.Helper()
		err := l.reader.query(soon(t), "EXPLAIN QUERY PLAN "+sql, nil, func(row *sqlite3.Stmt) { steps += row.ColumnText(3) + "\n" })
		if err != nil {
			t.Fatal(err)
		}
		return steps
	}
	for sql, by := range map[string]string{
		"SELECT * FROM calls ORDER BY time_ns DESC LIMIT 10":                                                   "SCAN calls USING INDEX calls_by_time",
		"SELECT model, ttft_ms FROM calls WHERE time_ns >= 17 AND model = 'm'":                                 "SEARCH calls USING INDEX calls_by_time (time_ns>?)",
		"SELECT * FROM calls WHERE key = 'alice' ORDER BY time_ns DESC LIMIT 10":                               "SCAN calls USING INDEX calls_by_time",
		"SELECT * FROM calls WHERE key = 'alice' AND time_ns >= 17 AND time_ns < 18 ORDER BY time_ns DESC":     "SEARCH calls USING INDEX calls_by_time (time_ns>? AND time_ns<?)",
		"SELECT count(*) FROM calls WHERE key = 'alice'":                                                       "SCAN calls USING COVERING INDEX calls_by_time",
		"SELECT * FROM calls WHERE id = 'one'":                                                                 "SEARCH calls USING INDEX sqlite_autoindex_calls_1 (id=?)",
		"SELECT * FROM calls WHERE id = 'one' AND attempt = 0":                                                 "SEARCH calls USING INDEX sqlite_autoindex_calls_1 (id=? AND attempt=?)",
		"SELECT * FROM calls WHERE seq > 17 ORDER BY seq":                                                      "SEARCH calls USING INTEGER PRIMARY KEY (rowid>?)",
		selectSQL + " WHERE key = 'alice' AND time_ns >= 17 AND time_ns < 18 ORDER BY time_ns DESC, seq DESC":  "SEARCH calls USING INDEX calls_by_time (time_ns>? AND time_ns<?)",
		selectSQL + " WHERE (time_ns, seq) < (SELECT time_ns, seq FROM calls) ORDER BY time_ns DESC, seq DESC": "SEARCH calls USING INDEX calls_by_time (time_ns<?)",
	} {
		steps := plan(sql)
		if !strings.HasPrefix(steps, by+"\n") || strings.Contains(steps, "TEMP B-TREE FOR ORDER BY") {
			t.Errorf("%s\n goes by %q, want %q", sql, steps, by)
		}
	}
	// A row of another key is not read: its key stands in the index.
	ops := ""
	sql := "EXPLAIN SELECT * FROM calls WHERE key = 'alice' ORDER BY time_ns DESC LIMIT 10"
	if err := l.reader.query(soon(t), sql, nil, func(row *sqlite3.Stmt) { ops += row.ColumnText(1) + " " }); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(ops, "DeferredSeek Column Ne ") {
		t.Errorf("rows are read before their key has been looked at: %s", ops)
	}
}
