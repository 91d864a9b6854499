package ledger

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/call"
)

func TestOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"no path":            {},
		"spill is the file":  {Path: "x", Spill: "x"},
		"tiny spill":         {Path: "x", MaxSpill: 1000},
		"negative spill":     {Path: "x", MaxSpill: -1},
		"negative retention": {Path: "x", Retention: -time.Hour},
		"negative breaker":   {Path: "x", Breaker: -1},
	} {
		if l, err := Open(o); err == nil {
			l.Close(soon(t))
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestCalls walks the ways a call may go.
func TestCalls(t *testing.T) {
	l := open(t, Options{})
	if err := l.Start(start("done")); err != nil {
		t.Fatal(err)
	}
	l.End(ended("done"))
	l.End(ended("done")) // again
	l.End(ended("other"))
	refused := ended("refused") // never had a start
	refused.Outcome, refused.Status, refused.Attempts, refused.UsageSource, refused.Usage = call.Refused, 429, 0, "", call.Usage{}
	refused.EstimatedInput, refused.RefusedBy = call.Known(1000), "key tokens_per_minute"
	l.End(refused)
	// The client closes before the usage chunk (litellm#14457, new-api#4463).
	gone := ended("gone")
	gone.Outcome, gone.UsageSource, gone.Usage = call.ClientGone, call.UsageNone, call.Usage{}
	gone.EstimatedInput, gone.EstimatedOutput = call.Known(70), call.Known(7)
	l.End(gone)
	dark := ended("dark") // and one of which nobody can tell
	dark.Outcome, dark.UsageSource, dark.Usage = call.StreamError, call.UsageNone, call.Usage{}
	l.End(dark)
	broken := ended("broken") // a running figure when the stream broke off
	broken.Outcome, broken.UsageSource, broken.Usage = call.Truncated, call.UsagePartial, call.Usage{Input: call.Known(20), Output: call.Known(1)}
	broken.EstimatedInput, broken.EstimatedOutput = call.Known(99), call.Known(99)
	l.End(broken)
	storm := ended("storm") // the upstream's own refusal generated nothing
	storm.Outcome, storm.Status, storm.UsageSource, storm.Usage = call.UpstreamError, 429, call.UsageNone, call.Usage{}
	storm.EstimatedInput = call.Known(1000)
	l.End(storm)
	unreached := ended("unreached") // the client left while it waited for a slot
	unreached.Outcome, unreached.Status, unreached.Attempts, unreached.UsageSource, unreached.Usage = call.ClientGone, 0, 0, call.UsageNone, call.Usage{}
	unreached.EstimatedInput = call.Known(1000)
	l.End(unreached)
	flush(t, l)

	got := rows(t, l)
	if len(got) != 8 {
		t.Fatalf("%d rows: %v", len(got), got)
	}
	if r := got["gone"]; r.Input.IsKnown() || r.Output.IsKnown() || r.EstimatedInput != call.Known(70) || r.UsageSource != call.UsageNone {
		t.Errorf("an estimate stands among reported figures: %s", jsonOf(t, r))
	}
	usage, err := l.Usage(soon(t), Query{})
	if err != nil || len(usage) != 1 {
		t.Fatal(usage, err)
	}
	u := usage[0]
	if u.Calls != 8 || u.Completed != 2 || u.Refused != 1 || u.NoUsage != 1 ||
		u.Reported != (Sums{Input: 40, Output: 11}) || u.Estimated != (Sums{Input: 70, Output: 7}) {
		t.Errorf("%+v", u)
	}
	if want := map[string]int64{"reported": 30, "partial": 21, "estimated": 77}; fmt.Sprint(u.BySource) != fmt.Sprint(want) {
		t.Errorf("by source %v, want %v", u.BySource, want)
	}
	if st := l.State(); st.Rows != 8 || st.Repeated != 1 || st.Degraded || st.Pending != 0 || st.Lag != 0 || st.Uncovered+st.Dropped != 0 {
		t.Errorf("%+v", st)
	}
}

func TestFilter(t *testing.T) {
	l := open(t, Options{})
	add := func(id, key, model string, after time.Duration, out call.Outcome) {
		row := ended(id)
		row.Key, row.Model, row.Outcome, row.Time = key, model, out, noon.Add(after)
		row.RequestID, row.ResponseID, row.Run, row.Class = "req-"+id, "resp-"+id, "run-"+model, "class-"+key
		l.End(row)
	}
	add("1", "a", "m", 1, call.Completed)
	add("2", "b", "m", 2, call.Timeout)
	add("3", "a", "n", 3, call.ClientGone)
	add("4", "b", "n", 4, call.UpstreamError)
	flush(t, l)
	for name, c := range map[string]struct {
		f    Filter
		want string
	}{
		"all, last first": {Filter{}, "4 3 2 1"},
		"limit":           {Filter{Limit: 2}, "4 3"},
		"key":             {Filter{Key: "a"}, "3 1"},
		"model":           {Filter{Model: "m"}, "2 1"},
		"both":            {Filter{Key: "a", Model: "m"}, "1"},
		"class":           {Filter{Class: "class-b"}, "4 2"},
		"run":             {Filter{Run: "run-n"}, "4 3"},
		"outcome":         {Filter{Outcome: call.Timeout}, "2"},
		"failed":          {Filter{Failed: true}, "4 2"},
		"since":           {Filter{Since: noon.Add(3)}, "4 3"},
		"before":          {Filter{Before: noon.Add(3)}, "2 1"},
		"far off":         {Filter{Since: time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC), Before: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}, "4 3 2 1"},
		"id":              {Filter{ID: "2"}, "2"},
		"request id":      {Filter{ID: "req-3"}, "3"},
		"response id":     {Filter{ID: "resp-4"}, "4"},
		"none":            {Filter{Key: "' OR 1"}, ""},
	} {
		got, err := l.Calls(soon(t), c.f)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var ids []string
		for _, r := range got {
			ids = append(ids, r.ID)
		}
		if strings.Join(ids, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, ids, c.want)
		}
	}
	for _, limit := range []int{-1, MaxCalls + 1} {
		if _, err := l.Calls(soon(t), Filter{Limit: limit}); err == nil {
			t.Errorf("limit %d is accepted", limit)
		}
	}
}

// abandon ends a ledger as kill -9 would: nothing is flushed, nothing removed.
func abandon(t *testing.T, l *Ledger) {
	t.Helper()
	l.closing.Do(func() {
		l.interrupt() // so that the committer can finish nothing
		l.spill.close()
		<-l.spill.done
		l.committer.quit()
		<-l.committer.ended
		l.reader.Close()
		l.log.close()
	})
}

// TestCrashedCalls: starts without an end become rows after the process ended.
func TestCrashedCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "usage.db")
	l := open(t, Options{Path: path})
	for i := range many { // more than a group
		if err := l.Start(start(fmt.Sprint("lost", i))); err != nil {
			t.Fatal(err)
		}
	}
	l.Start(start("done"))
	l.End(ended("done"))
	flush(t, l)
	abandon(t, l)

	for again := range 3 { // another start of the program changes nothing
		l = open(t, Options{Path: path})
		flush(t, l)
		if st := l.State(); again == 0 && (st.Crashed != many || st.Replayed != many || st.Repeated != 1) || again > 0 && st.Rows != 0 || st.Replaying {
			t.Fatalf("time %d: %+v", again, st)
		}
		if err := l.Close(soon(t)); err != nil {
			t.Fatal(err)
		}
		if files, _ := filepath.Glob(path + ".spill/*.spill"); len(files) != 0 {
			t.Errorf("time %d: %v is left", again, files)
		}
	}
	r, err := OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := rows(t, r)
	if len(got) != many+1 {
		t.Fatalf("%d rows", len(got))
	}
	lost := got["lost7"]
	if lost.Outcome != call.Crashed || lost.UsageSource != call.UsageNone || lost.Input.IsKnown() || lost.EstimatedInput != call.Known(100) ||
		lost.Reserved != call.Known(150) || lost.Key != "alice" || !lost.Time.Equal(noon) {
		t.Errorf("%s", jsonOf(t, lost))
	}
	usage, err := r.Usage(soon(t), Query{})
	if err != nil || usage[0].Estimated != (Sums{Input: 100 * many, Output: 50 * many}) || usage[0].Reported != (Sums{Input: 10, Output: 5}) || usage[0].NoUsage != 0 {
		t.Errorf("%+v, %v", usage, err)
	}
}

// TestLongCallsDoNotKeepTheSpill: segments go although calls started in the
// first of them, and those calls are not forgotten: be it one, or so many that
// they fill segments by themselves.
func TestLongCallsDoNotKeepTheSpill(t *testing.T) {
	for _, c := range []struct {
		long int
		ends bool
	}{{1, false}, {1, true}, {2000, false}, {2000, true}} {
		path := filepath.Join(t.TempDir(), "usage.db")
		l := open(t, Options{Path: path, MaxSpill: minSpill}) // segments of 64 KiB
		for i := range c.long {
			l.Start(start(fmt.Sprint("long", i)))
		}
		held := l.State().SpillBytes
		const short = 1500
		for i := range short {
			l.Start(start(fmt.Sprint(i)))
			l.End(ended(fmt.Sprint(i)))
			if i%100 == 0 {
				flush(t, l)
			}
		}
		flush(t, l)
		if st := l.State(); st.SpillBytes > 2*held+3*minSpill/16 || st.Dropped != 0 {
			t.Errorf("%+v: %d bytes held, %+v", c, held, st)
		}
		if _, err := os.Stat(l.spill.path(segment{n: 1})); err == nil && c.long == 1 {
			t.Error("the first segment is still there")
		}
		want := call.Crashed
		if c.ends {
			want = call.Completed
			for i := range c.long {
				l.End(ended(fmt.Sprint("long", i)))
			}
			flush(t, l)
		}
		abandon(t, l)
		l = open(t, Options{Path: path})
		flush(t, l)
		got := rows(t, l)
		for i := range c.long {
			if row := got[fmt.Sprint("long", i)]; row == nil || row.Outcome != want {
				t.Fatalf("%+v: call %d is %v, want %s", c, i, row, want)
			}
		}
		if st := l.State(); len(got) != short+c.long || st.Damaged+st.Torn+st.Refused != 0 {
			t.Errorf("%+v: %d rows; %+v", c, len(got), st)
		}
	}
}

// TestCloseKeepsRunningCalls: a call that goes on when the ledger closes is
// found by the next.
func TestCloseKeepsRunningCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "usage.db")
	l := open(t, Options{Path: path})
	l.Start(start("running"))
	if err := l.Close(soon(t)); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(soon(t)); err != nil {
		t.Fatal("a second time: ", err)
	}
	l.End(ended("late"))
	if st := l.State(); st.Dropped != 1 {
		t.Errorf("%+v", st)
	}
	l = open(t, Options{Path: path})
	flush(t, l)
	if got := rows(t, l); len(got) != 1 || got["running"].Outcome != call.Crashed {
		t.Error(got)
	}
}

// TestRetention: rows go in chunks, the sums stay.
func TestRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, Options{Retention: 24 * time.Hour})
		const n = 2*maxDelete/underRace + 7
		for i := range n + 5 {
			row := ended(fmt.Sprint(i))
			row.Time = time.Now()
			if i < n {
				row.Time = row.Time.Add(-25 * time.Hour)
			}
			l.End(row)
		}
		flush(t, l)
		before, err := l.Usage(soon(t), Query{By: []Grouping{ByHour, ByKey}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(forgetFirst + time.Second)
		synctest.Wait()
		if st := l.State(); st.Deleted != n || st.Degraded {
			t.Errorf("%+v", st)
		}
		if got := rows(t, l); len(got) != 5 {
			t.Errorf("%d rows are left", len(got))
		}
		after, err := l.Usage(soon(t), Query{By: []Grouping{ByHour, ByKey}})
		if err != nil || fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("%v: %v became %v", err, before, after)
		}
		row := ended("one more") // its seq must not be one that the sums have
		row.Time = time.Now()
		l.End(row)
		flush(t, l)
		if u, err := l.Usage(soon(t), Query{}); err != nil || u[0].Calls != n+6 {
			t.Errorf("%+v, %v", u, err)
		}
		l.Close(soon(t))
	})
}
