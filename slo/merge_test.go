package slo

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"
)

// replicas plays the same time on several trackers, which see different calls.
func replicas(t *testing.T, n int, begin time.Time, config Config, spread time.Duration, calls int) (all []*trace, joint *reference) {
	t.Helper()
	for seed := range n {
		x := newTrace(t, uint64(seed+100), begin, config)
		x.spread = spread
		for range calls {
			x.call()
			x.play(x.now.Add(time.Duration(x.rng.Int64N(int64(spread)))))
			if x.rng.IntN(40) == 0 {
				x.restart()
			}
		}
		all = append(all, x)
	}
	end := begin
	for _, x := range all {
		if last := x.now.Add(6 * time.Hour); last.After(end) {
			end = last
		}
	}
	joint = &reference{}
	joint.configure(all[0].config)
	for _, x := range all {
		x.play(end)
		joint.calls = append(joint.calls, x.ref.calls...)
		joint.current = append(joint.current, x.ref.current...)
	}
	return all, joint
}

// TestMergedReplicas checks that a reader of several replicas shows what one that had seen all calls
// would.
func TestMergedReplicas(t *testing.T) {
	for _, k := range []struct {
		name    string
		n       int
		classes []Class
		spread  time.Duration
		calls   int
	}{
		{"an hour", 3, twoClasses(), 20 * time.Second, 150},
		{"a day", 2, twoClasses(), 20 * time.Minute, 100},
		{"a month", 4, twoClasses()[1:], 8 * time.Hour, 100},
	} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			all, joint := replicas(t, k.n, start, Config{Classes: k.classes}, k.spread, k.calls)
			var snapshots [][]byte
			for _, x := range all {
				x.check()
				snapshots = append(snapshots, x.tracker.Snapshot())
			}
			now := all[0].now
			configured := reader(t, all[0].config, now, snapshots...)
			joint.check(t, now, configured.Status(now))
			late := reader(t, Config{}, now, snapshots...)
			if err := late.Configure(all[0].config, now); err != nil {
				t.Fatal(err)
			}
			joint.check(t, now, late.Status(now))

			// The order and the grouping do not matter.
			backwards := slices.Clone(snapshots)
			slices.Reverse(backwards)
			if got, want := shown(t, reader(t, all[0].config, now, backwards...), now), shown(t, configured, now); got != want {
				t.Fatalf("backwards:\n%s\nwant\n%s", got, want)
			}
			pair := reader(t, Config{}, now, snapshots[1:]...).Snapshot()
			if got, want := shown(t, reader(t, all[0].config, now, pair, snapshots[0]), now), shown(t, configured, now); got != want {
				t.Fatalf("grouped:\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// reader returns a tracker that merges snapshots; one without classes is not configured.
func reader(t *testing.T, c Config, now time.Time, snapshots ...[]byte) *Tracker {
	t.Helper()
	tr := New()
	if len(c.Classes) > 0 {
		if err := tr.Configure(c, now); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range snapshots {
		if err := tr.Merge(b); err != nil {
			t.Fatal(err)
		}
	}
	return tr
}

// shown is a status as text.
func shown(t *testing.T, tr *Tracker, now time.Time) string {
	t.Helper()
	s := tr.Status(now)
	for i := range s.Objectives {
		s.Objectives[i].Quantiles, s.Objectives[i].Quantiles5m, s.Objectives[i].Firing = nil, nil, nil
	}
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestMergeRefuses checks what cannot be merged, and that it changes nothing.
func TestMergeRefuses(t *testing.T) {
	one, c := configured(t, successClass(990_000))
	many(one, "c", start, 10, 1)
	before := one.Snapshot()
	other := successClass(990_000)
	other.Valid.CallsPerMinute = 7
	two, _ := configured(t, other)
	many(two, "c", start, 5, 5)
	plain := reader(t, Config{}, start, before)
	if err := plain.Merge(two.Snapshot()); err == nil {
		t.Error("another envelope was merged into what is not configured")
	}
	ahead := New()
	if err := ahead.Configure(c, start.AddDate(0, 0, 2)); err != nil {
		t.Fatal(err)
	}
	if err := one.Merge(ahead.Snapshot()); err == nil {
		t.Error("counts of the day after tomorrow were merged")
	}
	if err := one.Merge([]byte("nonsense")); err == nil {
		t.Error("nonsense was merged")
	}
	if err := one.Merge(one.Changes()); err == nil {
		t.Error("no changes at all were merged")
	}
	if got := one.Snapshot(); !reflect.DeepEqual(got, before) {
		t.Error("what was refused has changed counts")
	}
	// A configured reader takes the counts, and has its own envelope.
	many(two, "c", start, 3, 0)
	if err := one.Merge(two.Snapshot()); err != nil {
		t.Fatal(err)
	}
	if o := find(t, one.Status(start), "c", "m", "success"); o.Good != 18 || o.Bad != 6 {
		t.Errorf("merged %+v", o.Counts)
	}
}
