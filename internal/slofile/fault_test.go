package slofile

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestFaults: whatever fails, once or for long, is told once and is over once,
// and what is on the disk meanwhile is what was there before, or all.
func TestFaults(t *testing.T) {
	for _, op := range []string{"", "prepare", "lock", "list", "create", "write", "sync", "close", "rename", "remove", "syncdir", "size"} {
		for _, torn := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				dir, d := t.TempDir(), newFaultyDisk()
				d.torn = torn
				f := start(t, dir, Options{disk: d, maxJournal: 200})
				r := rand.New(rand.NewPCG(3, 4))
				count := func() {
					f.state.add("a", 1+r.Int64N(5))
					wait(appendEvery)
				}
				for range 30 {
					count()
				}
				hit := false
				for range 4 {
					before := f.state.get("a")
					d.set(func(d *faultyDisk) { d.fault[op] = syscall.ENOSPC })
					for range 5 + r.IntN(20) {
						count()
						hit = hit || !f.Status().Kept
						if r.IntN(4) > 0 {
							continue
						}
						state, told, _ := load(t, image(t, dir))
						if got := state.get("a"); got < before || got > f.state.get("a") || f.Status().Kept && got != f.state.get("a") {
							t.Fatalf("%q: %d are kept, there were %d, and %d were before the fault", op, got, f.state.get("a"), before)
						}
						told.want(t)
					}
					d.set(func(d *faultyDisk) { clear(d.fault) })
					count()
					wait(backoffMax)
					if s := f.Status(); !s.Kept || s.Error != "" {
						t.Fatalf("%q: %+v", op, s)
					}
					state, _, _ := load(t, image(t, dir))
					state.want(t, f.state.counts)
					if got := names(t, dir); len(got) > 6 {
						t.Fatalf("%q: the directory fills: %q", op, got)
					}
					wait(tellEvery) // people are told again
				}
				f.told.mu.Lock()
				for i, line := range f.told.lines {
					if want := [...]string{"not being kept: they are in memory alone, and Weir tries again: ", "being kept again, after "}[i%2]; !strings.Contains(line, want) {
						t.Errorf("%q: told %d %q, not %q", op, i, line, want)
					}
					if i%2 == 0 && !strings.Contains(line, syscall.ENOSPC.Error()) {
						t.Errorf("%q: told %d %q gives no reason", op, i, line)
					}
				}
				n := len(f.told.lines)
				f.told.mu.Unlock()
				rare := op == "prepare" || op == "lock" // asked for at the start alone
				if n%2 != 0 || n > 8 || hit == rare || n < 4 && !rare {
					t.Errorf("%q: told %d times, the fault was met: %v", op, n, hit)
				}
				f.close(t)
				state, _, _ := load(t, dir)
				state.want(t, f.state.counts)
			})
		}
	}
}

// TestFaultAtOpen: a directory that cannot be used at the start is told of once,
// tried again, and what it holds is added to what was counted meanwhile.
func TestFaultAtOpen(t *testing.T) {
	for _, op := range []string{"prepare", "lock", "list", "read"} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			first := start(t, dir, Options{})
			first.state.add("a", 5)
			first.close(t)
			d := newFaultyDisk()
			d.fault[op] = syscall.EIO
			began := time.Now()
			f := start(t, dir, Options{disk: d})
			if took := time.Since(began); took != 0 {
				t.Errorf("%s: Open waited for %v", op, took)
			}
			f.told.want(t, "not being kept")
			f.state.add("a", 1)
			wait(3 * appendEvery)
			f.state.want(t, map[string]int64{"a": 1})
			if s := f.Status(); s.Kept || !strings.Contains(s.Error, syscall.EIO.Error()) || !s.Loaded.At.IsZero() {
				t.Errorf("%s: %+v", op, s)
			}
			d.set(func(d *faultyDisk) { clear(d.fault) })
			wait(backoffMax)
			f.state.want(t, map[string]int64{"a": 6})
			f.told.want(t, "being kept again")
			state, _, _ := load(t, image(t, dir))
			state.want(t, map[string]int64{"a": 6})
			f.close(t)
			state, _, _ = load(t, dir)
			state.want(t, map[string]int64{"a": 6})
		})
	}
}

// TestUnreadableForGood: files that cannot be read whatever one tries count as
// damaged in the end, so that counting is kept again.
func TestUnreadableForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		first := start(t, dir, Options{})
		first.state.add("a", 5)
		first.close(t)
		d := newFaultyDisk()
		d.fault["read"] = syscall.EIO
		f := start(t, dir, Options{disk: d})
		f.state.add("a", 1)
		f.told.want(t, "not being kept")
		wait(5 * time.Minute)
		f.told.want(t, "counting begins anew, and the latest snapshot is kept there as unreadable.snapshot: read 0000000000000001.snapshot: "+syscall.EIO.Error(), "being kept again")
		if l := f.Status().Loaded; !l.Anew || l.Damaged != 1 {
			t.Errorf("%+v", l)
		}
		f.close(t)
		state, _, _ := load(t, dir)
		state.want(t, map[string]int64{"a": 1})
	})
}

// TestHungDisk: Open, counting and Close do not wait for a disk that hangs, and
// what it says in the end is taken up.
func TestHungDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		first := start(t, dir, Options{})
		first.state.add("a", 5)
		first.close(t)

		d := newFaultyDisk()
		hang := make(chan struct{})
		d.hang = hang
		began := time.Now()
		f := start(t, dir, Options{disk: d})
		if took := time.Since(began); took != openWait {
			t.Errorf("Open took %v", took)
		}
		f.told.want(t, "has not answered for 2s")
		for range 1000 {
			f.state.add("a", 1)
			wait(appendEvery)
		}
		if s := f.Status(); s.Kept || !strings.Contains(s.Error, "hangs") || s.Since != began.Add(openWait) {
			t.Errorf("%+v", s)
		}
		d.set(func(d *faultyDisk) { d.hang = nil })
		close(hang)
		wait(2 * appendEvery)
		f.state.want(t, map[string]int64{"a": 1005})
		f.told.want(t, "being kept again, after 33m2")
		state, _, _ := load(t, image(t, dir))
		state.want(t, map[string]int64{"a": 1005})

		wait(tellEvery)
		hang = make(chan struct{})
		d.set(func(d *faultyDisk) { d.hang = hang })
		f.state.add("a", 1)
		wait(appendEvery + hungAfter - time.Nanosecond)
		f.told.want(t)
		wait(appendEvery)
		f.told.want(t, "the disk has not answered for 10s; look whether it hangs")
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		began = time.Now()
		err := f.Close(ctx)
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 3*time.Second {
			t.Errorf("Close took %v: %v", took, err)
		}
		close(hang) // it writes, and gives the directory up
		<-f.ended
		state, _, _ = load(t, dir)
		state.want(t, map[string]int64{"a": 1006})
	})
}

// TestHungAtOpen: Close of a File whose disk never answered.
func TestHungAtOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFaultyDisk()
		hang := make(chan struct{})
		d.hang = hang
		state := newTally()
		f, err := Open(t.TempDir(), state, Options{disk: d})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := f.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		close(hang)
		<-f.done
	})
}

// TestHungTooLate: a timer that fires as its step ends says nothing.
func TestHungTooLate(t *testing.T) {
	told := new(told)
	f := &faults{tell: told.report}
	f.watch()()
	f.hung(1)
	if told.want(t); f.err != nil {
		t.Error(f.err)
	}
	defer f.watch()()
	f.hung(3)
	told.want(t, "has not answered for 10s")
}

// TestSlowDisk is no fault: it is waited for.
func TestSlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, d := t.TempDir(), newFaultyDisk()
		f := start(t, dir, Options{disk: d, maxJournal: 300})
		d.set(func(d *faultyDisk) { d.delay = 700 * time.Millisecond })
		for range 200 {
			f.state.add("a", 1)
			wait(appendEvery)
		}
		f.told.want(t)
		f.close(t)
		state, _, _ := load(t, dir)
		state.want(t, map[string]int64{"a": 200})
	})
}

// TestFlappingDisk: people are not told of each time.
func TestFlappingDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFaultyDisk()
		f := start(t, t.TempDir(), Options{disk: d})
		for i := range 300 { // 20 minutes
			d.set(func(d *faultyDisk) { d.fault[""] = [...]error{nil, syscall.EIO}[i%2] })
			f.state.add("a", 1)
			wait(2 * appendEvery)
		}
		d.set(func(d *faultyDisk) { clear(d.fault) })
		f.told.mu.Lock()
		defer f.told.mu.Unlock()
		if n := len(f.told.lines); n < 6 || n > 8 {
			t.Errorf("told %d times in 20 minutes", n)
		}
	})
}

// TestRemoved: somebody removes the journal, the lock or all of the directory
// under a running gateway, or puts something else there.
func TestRemoved(t *testing.T) {
	for name, harm := range map[string]func(dir string) error{
		"journal":   func(dir string) error { return os.Remove(filepath.Join(dir, "0000000000000001.journal")) },
		"truncated": func(dir string) error { return os.Truncate(filepath.Join(dir, "0000000000000001.journal"), 30) },
		"lock":      func(dir string) error { return os.Remove(filepath.Join(dir, lockName)) },
		"directory": os.RemoveAll,
		"replaced": func(dir string) error { // by an older state of itself
			if err := os.Rename(dir, dir+".away"); err != nil {
				return err
			}
			return os.CopyFS(dir, os.DirFS(dir+".away"))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "counts")
			f := start(t, dir, Options{})
			for range 5 {
				f.state.add("a", 1)
				wait(appendEvery)
			}
			if err := harm(dir); err != nil {
				t.Fatal(err)
			}
			for range 5 {
				f.state.add("a", 1)
				wait(appendEvery)
			}
			f.state.want(t, map[string]int64{"a": 10})
			f.told.want(t, "not being kept", "being kept again")
			state, told, _ := load(t, image(t, dir))
			state.want(t, map[string]int64{"a": 10})
			told.want(t)
			f.close(t)
			state, _, _ = load(t, dir)
			if state.want(t, map[string]int64{"a": 10}); t.Failed() {
				t.Log(name)
			}
		})
	}
}

// TestTwoProcesses: the second says so, counts in memory, and takes over what the
// first has counted when that ends.
func TestTwoProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		first := start(t, dir, Options{})
		first.state.add("a", 1)
		wait(appendEvery)
		second := start(t, dir, Options{})
		second.told.want(t, "in use by another process: each gateway needs its own; this one counts in memory until it is free")
		for range 100 {
			first.state.add("a", 1)
			second.state.add("b", 1)
			wait(appendEvery)
		}
		second.told.want(t)
		second.state.want(t, map[string]int64{"b": 100})
		first.close(t)
		wait(2 * appendEvery)
		second.told.want(t, "being kept again")
		second.state.want(t, map[string]int64{"a": 101, "b": 100})
		second.close(t)
		first.told.want(t)
		state, _, _ := load(t, dir)
		state.want(t, map[string]int64{"a": 101, "b": 100})

		// Where there is nothing to take up, nothing is told of that.
		first = start(t, t.TempDir(), Options{})
		second = start(t, first.dir, Options{Fresh: func() State { return nil }})
		first.close(t)
		wait(2 * appendEvery)
		second.told.want(t, "in use", "being kept again") // though nothing was counted
		second.close(t)

		// One that never got it says what is lost.
		first = start(t, dir, Options{})
		second = start(t, dir, Options{})
		second.state.add("c", 1)
		if err := second.Close(soon(t)); err == nil || !strings.Contains(err.Error(), "are lost: the directory of counts") {
			t.Error(err)
		}
		first.close(t)
	})
}

// TestCannotMerge: a state that cannot be added to keeps what it has counted itself,
// and so does one that refuses what was kept.
func TestCannotMerge(t *testing.T) {
	for _, c := range []struct {
		fresh func() State
		wrap  func(*tally) State
		why   string
	}{
		{nil, func(s *tally) State { return s }, "counting had begun"},
		{func() State { return newTally() }, func(s *tally) State { return plain{s} }, "counting had begun"},
		{func() State { return newTally() }, func(s *tally) State { s.refuse = "{"; return s }, "add what was kept to what has been counted: not of this version"},
	} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			first := start(t, dir, Options{})
			first.state.add("a", 1)
			state, told := newTally(), new(told)
			f, err := Open(dir, c.wrap(state), Options{Report: told.report, Fresh: c.fresh})
			if err != nil {
				t.Fatal(err)
			}
			first.close(t)
			state.add("b", 1)
			if err := f.Close(soon(t)); err != nil {
				t.Error(err)
			}
			told.want(t, "in use by another process", "counting begins anew, and the latest snapshot is kept there as unreadable.snapshot: "+c.why, "being kept again")
			again, _, _ := load(t, dir)
			again.want(t, map[string]int64{"b": 1})
			if _, err := os.Stat(filepath.Join(dir, asideName)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNoLocks: without them counting is kept, and people are told to take care.
func TestNoLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, d := t.TempDir(), newFaultyDisk()
		d.fault["lock"] = errNoLocks
		f := start(t, dir, Options{disk: d})
		f.told.want(t, "cannot be locked: let no other gateway use it")
		f.state.add("a", 1)
		f.close(t)
		state, _, _ := load(t, dir)
		state.want(t, map[string]int64{"a": 1})
	})
}
