package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/weirgate/weir/internal/call"
)

// brute answers a query from records, by the words of the definitions.
func brute(q Query, records []*call.Record) []Usage {
	zone := q.Zone
	if zone == nil {
		zone = time.UTC
	}
	var all []Usage
	if len(q.By) == 0 {
		all = append(all, Usage{})
	}
	for _, r := range records {
		h := r.Time.Truncate(time.Hour)
		if !q.Since.IsZero() && h.Before(q.Since.Truncate(time.Hour)) || !q.Until.IsZero() && !h.Before(q.Until.Truncate(time.Hour)) ||
			len(q.Keys) > 0 && !slices.Contains(q.Keys, r.Key) || len(q.Models) > 0 && !slices.Contains(q.Models, r.Model) {
			continue
		}
		var u Usage
		for _, g := range q.By {
			y, m, d := h.Add(30 * time.Minute).In(zone).Date()
			switch g {
			case ByKey:
				u.Key = r.Key
			case ByModel:
				u.Model = r.Model
			case ByClass:
				u.Class = r.Class
			case ByUpstream:
				u.Upstream = r.Upstream
			case ByHour:
				u.From = h.In(zone)
			case ByDay:
				u.From = time.Date(y, m, d, 0, 0, 0, 0, zone)
			case ByMonth:
				u.From = time.Date(y, m, 1, 0, 0, 0, 0, zone)
			}
		}
		at := slices.IndexFunc(all, func(o Usage) bool {
			return o.Key == u.Key && o.Model == u.Model && o.Class == u.Class && o.Upstream == u.Upstream && o.From.Equal(u.From)
		})
		if at < 0 {
			at = len(all)
			all = append(all, u)
		}
		addTo(&all[at], r)
	}
	return inOrder(all)
}

// inOrder sorts a report as Usage promises.
func inOrder(rows []Usage) []Usage {
	slices.SortFunc(rows, func(a, b Usage) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Model, b.Model),
			cmp.Compare(a.Class, b.Class), cmp.Compare(a.Upstream, b.Upstream))
	})
	return rows
}

func addTo(u *Usage, r *call.Record) {
	u.Calls++
	if r.Outcome == call.Completed {
		u.Completed++
	}
	if r.Outcome == call.Refused {
		u.Refused++
	}
	source, in, out := string(r.UsageSource), r.Input.Or(0), r.Output.Or(0)
	switch {
	case r.UsageSource != call.UsageNone:
		plus(&u.Reported, Sums{Input: in, Output: out, Cached: r.Cached.Or(0), CacheWrite: r.CacheWrite.Or(0), Reasoning: r.Reasoning.Or(0)})
	case r.Outcome == call.Refused,
		r.Outcome == call.UpstreamError && r.Status >= 400,
		r.Outcome != call.Crashed && r.Attempts == 0 && (r.Status == 0 || r.Status >= 400):
		return // used nothing
	case !r.EstimatedInput.IsKnown() && !r.EstimatedOutput.IsKnown():
		u.NoUsage++
		return
	default:
		source, in, out = "estimated", r.EstimatedInput.Or(0), r.EstimatedOutput.Or(0)
		plus(&u.Estimated, Sums{Input: in, Output: out})
	}
	if in+out > 0 {
		if u.BySource == nil {
			u.BySource = make(map[string]int64)
		}
		u.BySource[source] += in + out
	}
}

func plus(s *Sums, t Sums) {
	s.Input += t.Input
	s.Output += t.Output
	s.Cached += t.Cached
	s.CacheWrite += t.CacheWrite
	s.Reasoning += t.Reasoning
}

func usageJSON(t testing.TB, all []Usage) string {
	t.Helper()
	b, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestUsageIsTheSumOfRows: on random traces, over restarts and crashes, every
// report equals what brute force finds in the records.
func TestUsageIsTheSumOfRows(t *testing.T) {
	zones := []*time.Location{nil, zone(t, "Europe/Berlin"), zone(t, "America/New_York"), zone(t, "Asia/Kolkata"), zone(t, "Asia/Kathmandu")}
	seeds := 10 / underRace
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		path := filepath.Join(t.TempDir(), "usage.db")
		var all []*call.Record
		begin := time.Date(2026, []time.Month{3, 10}[r.IntN(2)], 20, 0, 0, 0, 0, time.UTC) // clocks change
		pick := func(of ...string) string { return of[r.IntN(len(of))] }
		for life := range 3 {
			l := open(t, Options{Path: path})
			for i := range 200 {
				rec := anyRow(r, false)
				rec.ID = fmt.Sprint(life, "-", i)
				if rec.Outcome == call.Crashed { // of such only the start is known
					rec.Outcome = call.Completed
				}
				rec.Time = begin.Add(time.Duration(r.Int64N(int64(15 * 24 * time.Hour))))
				rec.Key, rec.Model, rec.Class, rec.Upstream = pick("", "alice", "bob"), pick("m", "n", ""), pick("interactive", "batch"), pick("", "u:1")
				if r.IntN(10) == 0 {
					s := start(rec.ID)
					s.Time, s.Key, s.Model, s.Class = rec.Time, rec.Key, rec.Model, rec.Class
					s.EstimatedInput, s.EstimatedOutput = rec.EstimatedInput, rec.EstimatedOutput
					l.Start(s)
					*rec = call.Record{Identity: call.Identity{Time: rec.Time, Key: rec.Key, Model: rec.Model, Class: rec.Class},
						Result: call.Result{Outcome: call.Crashed}, Tokens: call.Tokens{UsageSource: call.UsageNone}, Admission: call.Admission{
							EstimatedInput: rec.EstimatedInput, EstimatedOutput: rec.EstimatedOutput}}
				} else {
					l.End(rec)
				}
				all = append(all, rec)
				if r.IntN(50) == 0 {
					flush(t, l)
				}
			}
			if r.IntN(2) == 0 {
				abandon(t, l)
			} else if err := l.Close(soon(t)); err != nil {
				t.Fatal(err)
			}
		}
		l := open(t, Options{Path: path})
		flush(t, l)
		daysFollow(t, l)
		reader, err := OpenReader(path)
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			q := Query{Zone: zones[r.IntN(len(zones))]}
			for _, g := range []Grouping{ByKey, ByModel, ByClass, ByUpstream} {
				if r.IntN(3) == 0 {
					q.By = append(q.By, g)
				}
			}
			if r.IntN(3) > 0 {
				q.By = append(q.By, []Grouping{ByHour, ByDay, ByMonth}[r.IntN(3)])
			}
			r.Shuffle(len(q.By), func(i, j int) { q.By[i], q.By[j] = q.By[j], q.By[i] })
			if r.IntN(2) == 0 {
				q.Since = begin.Add(time.Duration(r.Int64N(int64(15 * 24 * time.Hour))))
			}
			if r.IntN(2) == 0 {
				q.Until = begin.Add(time.Duration(r.Int64N(int64(20 * 24 * time.Hour))))
				if q.Until.Before(q.Since) {
					q.Since, q.Until = q.Until, q.Since
				}
			}
			if r.IntN(3) == 0 {
				q.Keys = [][]string{{"alice"}, {"alice", ""}, {"nobody"}}[r.IntN(3)]
			}
			if r.IntN(3) == 0 {
				q.Models = [][]string{{"m"}, {"", "n"}}[r.IntN(2)]
			}
			want := usageJSON(t, brute(q, all))
			for _, reporter := range []Reporter{l, reader} {
				got, err := reporter.Usage(soon(t), q)
				if err != nil || usageJSON(t, got) != want {
					t.Fatalf("seed %d, %+v: %v\n got %s\nwant %s", seed, q, err, usageJSON(t, got), want)
				}
			}
		}
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	}
}

// daysFollow checks that the sums by day are those of the sums by hour.
func daysFollow(t *testing.T, l *Ledger) {
	t.Helper()
	var names, added []string
	for _, s := range sums {
		names = append(names, s.name)
		added = append(added, "sum("+s.name+")")
	}
	groups := "key, model, class, upstream, provenance"
	hours := "SELECT hour / 86400 * 86400, " + groups + ", " + strings.Join(added, ", ") + " FROM usage_hours GROUP BY 1, " + groups
	days := "SELECT day, " + groups + ", " + strings.Join(names, ", ") + " FROM usage_days"
	for _, pair := range [][2]string{{hours, days}, {days, hours}} {
		err := l.reader.query(soon(t), pair[0]+" EXCEPT "+pair[1], nil, func(row *sqlite3.Stmt) {
			t.Errorf("day %d of key %q differs", row.ColumnInt64(0), row.ColumnText(1))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestUsageQueries(t *testing.T) {
	l := open(t, Options{})
	l.End(ended("one"))
	flush(t, l)
	for name, q := range map[string]Query{
		"unknown grouping":   {By: []Grouping{"color"}},
		"injection":          {By: []Grouping{"key; DROP TABLE calls"}},
		"twice":              {By: []Grouping{ByKey, ByKey}},
		"two times":          {By: []Grouping{ByDay, ByHour}},
		"until before since": {Since: noon, Until: noon.Add(-time.Hour)},
	} {
		if got, err := l.Usage(soon(t), q); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	for name, q := range map[string]Query{
		"before all":  {Until: noon},
		"after all":   {Since: noon.Add(time.Hour)},
		"nobody":      {Keys: []string{"nobody"}},
		"empty hours": {Since: noon, Until: noon},
	} {
		if got, err := l.Usage(soon(t), q); err != nil || len(got) != 1 || got[0].Calls != 0 {
			t.Errorf("%s: one row over nothing is %v, %v", name, got, err)
		}
		q.By = []Grouping{ByKey, ByDay}
		if got, err := l.Usage(soon(t), q); err != nil || len(got) != 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.Usage(ctx, Query{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled query: %v", err)
	}
	if _, err := l.Calls(ctx, Filter{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled list: %v", err)
	}
}

// TestReader: it makes nothing, and says what is wrong.
func TestReader(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing.db")
	empty := filepath.Join(dir, "empty.db")
	text := filepath.Join(dir, "text.db")
	os.WriteFile(empty, nil, 0o600)
	os.WriteFile(text, []byte(strings.Repeat("text ", 1000)), 0o600)
	for path, says := range map[string]string{missing: "no ledger at", empty: "still empty", text: "move it away", dir: ""} {
		r, err := OpenReader(path)
		if err == nil {
			r.Close()
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v does not say %q", path, err, says)
		}
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("a reader made the database")
	}
	path := filepath.Join(dir, "usage ?#%20.db") // a name that is no URL
	l := open(t, Options{Path: path})
	l.End(ended("one"))
	flush(t, l)
	r, err := OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := rows(t, r); len(got) != 1 {
		t.Errorf("%v", got)
	}
	err = r.query(soon(t), "DELETE FROM calls", nil, nil)
	if err == nil || len(rows(t, l)) != 1 {
		t.Errorf("a reader can write: %v", err)
	}
	if err := l.committer.db.conn.Exec("PRAGMA user_version = 99"); err != nil { // the committer is idle
		t.Fatal(err)
	}
	if _, err := OpenReader(path); err == nil || !strings.Contains(err.Error(), "use a newer weir") {
		t.Errorf("a newer schema: %v", err)
	}
}

// TestManyReaders: queries run beside each other and beside the writer.
func TestManyReaders(t *testing.T) {
	l := open(t, Options{})
	l.End(ended("first"))
	flush(t, l)
	done := make(chan error)
	const readers = 3 * maxReaders
	for range readers {
		go func() {
			var err error
			last := int64(0)
			for range 20 {
				var u []Usage
				if u, err = l.Usage(context.Background(), Query{}); err != nil {
					break
				}
				if u[0].Calls < last || u[0].Reported.Input != 10*u[0].Calls {
					err = fmt.Errorf("%+v after %d calls", u[0], last)
					break
				}
				last = u[0].Calls
			}
			done <- err
		}()
	}
	for i := range many {
		l.End(ended(fmt.Sprint(i)))
	}
	for range readers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
