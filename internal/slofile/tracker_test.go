package slofile

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/slo"
)

var (
	_ State  = (*slo.Tracker)(nil)
	_ merger = (*slo.Tracker)(nil)
)

// tracker makes a Tracker as a gateway has it.
func tracker(t *testing.T, configured bool) *slo.Tracker {
	t.Helper()
	k := slo.New()
	if !configured {
		return k
	}
	class, _ := slo.Preset(slo.Interactive)
	class.Valid.CallsPerMinute = 140 // of each model
	config, _, err := slo.Config{Classes: []slo.Class{class}}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Configure(config, time.Now()); err != nil {
		t.Fatal(err)
	}
	return k
}

// call counts a call in trackers. Some fail, but none of the first: a model is known by its
// name once it has answered.
func call(r *rand.Rand, first bool, trackers ...*slo.Tracker) {
	now := time.Now()
	f := slo.Facts{Received: now.Add(-time.Second), Ended: now, Input: 10, Output: 10}
	f.Values[slo.TTFT] = slo.Exactly(time.Duration(r.IntN(3000)) * time.Millisecond)
	f.Values[slo.Queue] = slo.Unknown()
	if r.IntN(30) == 0 && !first {
		f.Ending = slo.Failed
	}
	model := fmt.Sprint("m", r.IntN(3))
	for _, k := range trackers {
		p, facts := new(slo.Pending), f
		k.Watch(p, slo.Interactive, model, f.Received, false, nil)
		k.End(p, &facts)
	}
}

// sameStatus compares all but what is for display.
func sameStatus(t *testing.T, got, want *slo.Tracker) {
	t.Helper()
	texts := func(k *slo.Tracker) (all []string) {
		s := k.Status(time.Now())
		for _, o := range s.Objectives {
			// These are of the process: quantiles, and the last half minute.
			o.Quantiles, o.Quantiles5m, o.Firing, o.State = nil, nil, nil, ""
			b, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(b))
		}
		return append(all, fmt.Sprint(s.Since, s.Lost))
	}
	g, w := texts(got), texts(want)
	if len(g) != len(w) {
		t.Fatalf("%d entries, want %d", len(g), len(w))
	}
	for i := range w {
		if g[i] != w[i] {
			t.Errorf("status is\n%s\nwant\n%s", g[i], w[i])
		}
	}
}

// TestTracker: a Tracker that is killed, restarted and overtaken by another process
// stands as one that was not.
func TestTracker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		dir := t.TempDir()
		want := tracker(t, true)
		open := func(dir string) (*slo.Tracker, *File) {
			k := tracker(t, true)
			f, err := Open(dir, k, Options{Fresh: func() State { return slo.New() }, maxJournal: 20_000})
			if err != nil {
				t.Fatal(err)
			}
			go f.Run(t.Context())
			return k, f
		}
		for range 10 { // lives
			k, f := open(dir)
			sameStatus(t, k, want)
			for range r.IntN(300) {
				for range r.IntN(30) {
					call(r, false, k, want)
				}
				wait(appendEvery)
				k.Tick(time.Now())
				want.Tick(time.Now())
				if r.IntN(100) == 0 {
					time.Sleep(time.Duration(r.IntN(10)) * time.Hour)
				}
			}
			sameStatus(t, k, want)
			wait(appendEvery)
			if killed := image(t, dir); r.IntN(2) == 0 {
				dir = killed
			}
			f.Close(soon(t))
		}
		// Two at once: the second counts in memory, and gets all when the first ends.
		first, one := open(dir)
		second, two := open(dir)
		for i := range 200 {
			call(r, i < 100, first, want)
			call(r, i < 100, second, want)
			wait(appendEvery)
		}
		one.Close(soon(t))
		wait(2 * appendEvery)
		sameStatus(t, second, want)
		two.Close(soon(t))
		if o := want.Status(time.Now()).Objectives[2]; o.Outside.Total() == 0 || o.Total() == 0 {
			t.Errorf("%+v", o)
		}
		last, f := open(dir)
		sameStatus(t, last, want)
		if s := f.Status(); s.Error != "" || s.Loaded.Damaged+s.Loaded.Refused != 0 {
			t.Errorf("%+v", s)
		}
		f.Close(soon(t))
	})
}
