package gateway

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

func ids(recs []*call.Record) []string {
	all := []string{}
	for _, r := range recs {
		all = append(all, r.ID)
	}
	return all
}

// TestRing: the newest first, RingSize of them at most.
func TestRing(t *testing.T) {
	var r ring
	if got := r.newest(); len(got) != 0 {
		t.Errorf("an empty ring has %d records", len(got))
	}
	for n := 1; n <= 2*RingSize+3; n++ {
		r.add(&call.Record{Identity: call.Identity{ID: fmt.Sprint(n)}})
		if n > 3 && n != RingSize && n != RingSize+1 && n != 2*RingSize+3 {
			continue
		}
		got := ids(r.newest())
		if len(got) != min(n, RingSize) {
			t.Fatalf("%d of %d records", len(got), n)
		}
		for i, id := range got {
			if id != fmt.Sprint(n-i) {
				t.Fatalf("place %d of %d is %s", i, n, id)
			}
		}
	}
}

func TestFilter(t *testing.T) {
	g := New(new(counted))
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	add := func(id, key, model, run string, o call.Outcome, s int, ttft call.Duration) {
		g.keep(&call.Record{Identity: call.Identity{ID: id, Key: key, Model: model, Run: run, Time: at(s)},
			Result: call.Result{Outcome: o}, Timing: call.Timing{TTFT: ttft}})
	}
	slow, none := call.Lasting(time.Second), call.Duration{}
	add("1", "k", "m", "r", call.Completed, 1, call.Lasting(time.Millisecond))
	add("2", "k", "n", "", call.Truncated, 2, slow)
	add("3", "l", "m", "r", call.ClientGone, 3, none)
	add("4", "", "m", "s", call.UpstreamError, 4, none)
	for name, c := range map[string]struct {
		f    Filter
		want []string
	}{
		"all":           {Filter{}, []string{"4", "3", "2", "1"}},
		"limit":         {Filter{Limit: 2}, []string{"4", "3"}},
		"limit of many": {Filter{Limit: 99}, []string{"4", "3", "2", "1"}},
		"key":           {Filter{Key: "k"}, []string{"2", "1"}},
		"model":         {Filter{Model: "m"}, []string{"4", "3", "1"}},
		"id":            {Filter{ID: "3"}, []string{"3"}},
		"run and model": {Filter{Run: "r", Model: "m"}, []string{"3", "1"}},
		"outcome":       {Filter{Outcome: call.Truncated}, []string{"2"}},
		"since":         {Filter{Since: at(3)}, []string{"4", "3"}},
		"slow":          {Filter{MinTTFT: time.Second}, []string{"2"}},
		"too slow":      {Filter{MinTTFT: time.Second + 1}, []string{}},
		"failed":        {Filter{Failed: true}, []string{"4", "2"}},
		"failed, limit": {Filter{Failed: true, Key: "k", Limit: 1}, []string{"2"}},
		"nobody":        {Filter{Key: "x"}, []string{}},
	} {
		if got := ids(g.Calls(c.f)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestRingConcurrently: readers always see whole records in order, for each writer.
func TestRingConcurrently(t *testing.T) {
	var r ring
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for n := range 2000 {
				r.add(&call.Record{Identity: call.Identity{Key: string(rune('a' + w)), Time: time.Unix(int64(n), 0)}})
			}
		})
	}
	for range 2 {
		all.Go(func() {
			for range 200 {
				last := map[string]time.Time{}
				for _, rec := range r.newest() {
					if seen, ok := last[rec.Key]; ok && !rec.Time.Before(seen) {
						t.Errorf("%s: %v stands before %v", rec.Key, seen, rec.Time)
						return
					}
					last[rec.Key] = rec.Time
				}
			}
		})
	}
	all.Wait()
	if n := len(r.newest()); n != RingSize {
		t.Errorf("%d records", n)
	}
}

// TestFilterByAnyID: whoever holds one of a call's three ids finds it.
func TestFilterByAnyID(t *testing.T) {
	rec := &call.Record{Identity: call.Identity{ID: "ours", RequestID: "theirs", ResponseID: "upstream"}}
	for id, want := range map[string]bool{"ours": true, "theirs": true, "upstream": true, "": true, "other": false} {
		if f := (Filter{ID: id}); f.picks(rec) != want {
			t.Errorf("id %q: picked %v", id, !want)
		}
	}
}
