package slofile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// rig is a File in a bubble with its state, and what people were told.
type rig struct {
	*File
	state *tally
	told  *told
	dir   string
	ended chan struct{}
}

// start opens a directory and runs the File until the test ends.
func start(t *testing.T, dir string, o Options) *rig {
	t.Helper()
	r := &rig{state: newTally(), told: new(told), dir: dir, ended: make(chan struct{})}
	if o.Report = r.told.report; o.Fresh == nil {
		o.Fresh = func() State { return newTally() }
	}
	var err error
	if r.File, err = Open(dir, r.state, o); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(r.ended); r.Run(context.Background()) }()
	t.Cleanup(func() { r.Close(soon(t)); <-r.ended }) // tests that close it look at the error
	return r
}

// soon is a context that only a test that hangs sees the end of.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	t.Cleanup(cancel)
	return ctx
}

// wait lets steps pass.
func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (r *rig) close(t *testing.T) {
	t.Helper()
	if err := r.Close(soon(t)); err != nil {
		t.Error(err)
	}
}

// image is what a kill at this moment leaves: a copy of the directory.
func image(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "image")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return to
}

// load opens a directory, and returns its counts, and what was told of it.
func load(t *testing.T, dir string) (*tally, *told, Status) {
	t.Helper()
	state, told := newTally(), new(told)
	f, err := Open(dir, state, Options{Report: told.report})
	if err != nil {
		t.Fatal(err)
	}
	s := f.Status()
	if err := f.Close(soon(t)); err != nil {
		t.Error(err)
	}
	return state, told, s
}

// names lists a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimLeft(e.Name(), "0"))
	}
	return names
}

// TestKilledAtAnyStep: whenever the process is killed, all is there that was counted before
// the last step, and nothing twice, over many lives.
func TestKilledAtAnyStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		dir := filepath.Join(t.TempDir(), "counts")
		want := map[string]int64{}
		for life := range 20 {
			f := start(t, dir, Options{maxJournal: 500})
			f.state.want(t, want)
			f.told.want(t)
			for range r.IntN(200) {
				if name := fmt.Sprint("c", r.IntN(5)); r.IntN(3) > 0 {
					n := 1 + r.Int64N(9)
					f.state.add(name, n)
					want[name] += n
				}
				wait(appendEvery)
				if r.IntN(20) == 0 {
					state, told, _ := load(t, image(t, dir))
					state.want(t, want)
					told.want(t)
				}
			}
			if life%2 == 0 {
				f.close(t)
			} else {
				dir = image(t, dir) // a kill; the old directory is left to the old process
			}
		}
		if len(want) != 5 {
			t.Errorf("counted %v", want)
		}
	})
}

// TestGenerations: what is written when, and that it does not grow.
func TestGenerations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, d := filepath.Join(t.TempDir(), "a", "counts"), newFaultyDisk()
		f := start(t, dir, Options{disk: d})
		files := func(want ...string) {
			t.Helper()
			if got := names(t, dir); !slices.Equal(got, want) {
				t.Errorf("files are %q, want %q", got, want)
			}
		}
		wait(time.Hour) // nothing to write
		files("lock")
		f.state.add("a", 1)
		wait(appendEvery)
		files("1.snapshot", "lock")
		f.state.add("a", 1)
		wait(appendEvery)
		files("1.journal", "1.snapshot", "lock")
		wait(time.Hour)
		files("1.journal", "1.snapshot", "2.snapshot", "lock")
		before := d.count("write")
		wait(24 * time.Hour)
		if after := d.count("write"); after != before {
			t.Errorf("%d writes, and nothing has changed", after-before)
		}
		for range 3000 {
			f.state.add("a", 1)
			wait(appendEvery)
		}
		files("11.journal", "11.snapshot", "12.journal", "12.snapshot", "lock")
		s := f.Status()
		if !s.Kept || s.Error != "" || s.Path != dir || time.Since(s.LastWritten) > appendEvery || s.Bytes < 100 || s.Bytes > 20_000 {
			t.Errorf("%+v", s)
		}
		f.close(t)
		files("12.journal", "12.snapshot", "13.snapshot", "lock")
		f.told.want(t)
		for _, name := range []string{"lock", "0000000000000013.snapshot", "."} {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s is open to others: %v", name, info.Mode())
			}
		}
		state, _, st := load(t, dir)
		state.want(t, map[string]int64{"a": 3002})
		if l := st.Loaded; l.Generation != 13 || l.Records != 0 || l.Torn+l.Damaged+l.Refused != 0 || l.Anew || l.At.IsZero() {
			t.Errorf("%+v", l)
		}
		files("12.journal", "12.snapshot", "13.snapshot", "lock") // nothing has changed
	})
}

// TestLongJournal: a journal that passes its bound is ended by a snapshot, and
// changes too long for it become one.
func TestLongJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		f := start(t, dir, Options{maxJournal: 10_000})
		for i := range 100 {
			f.state.add(strings.Repeat("x", 900)+fmt.Sprint(i%3), 1)
			wait(appendEvery)
			if s := f.Status(); s.Bytes > 15_000 {
				t.Fatalf("%d bytes", s.Bytes)
			}
		}
		if got := names(t, dir); len(got) > 5 {
			t.Errorf("files are %q", got)
		}
		f.state.add(strings.Repeat("y", maxRecord), 1)
		wait(appendEvery)
		before := f.Status()
		if before.Bytes < maxRecord || !before.Kept || f.records != 0 {
			t.Errorf("%+v, %d records", before, f.records)
		}
		state, _, _ := load(t, image(t, dir))
		state.want(t, f.state.counts)
		// A state that does not fit at all.
		f.state.grow(maxSnapshot)
		f.state.add("z", 1)
		wait(snapshotEvery)
		f.told.want(t, "not being kept: they are in memory alone, and Weir tries again: write a snapshot of counts: it has")
		f.state.grow(0)
		wait(backoffMax)
		f.told.want(t, "being kept again")
	})
}

// TestClose without Run writes what there is, and ends; and twice is as once.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		state := newTally()
		f, err := Open(dir, state, Options{})
		if err != nil {
			t.Fatal(err)
		}
		state.add("a", 7)
		for range 2 {
			if err := f.Close(soon(t)); err != nil {
				t.Error(err)
			}
		}
		f.Run(context.Background()) // has run
		again, told, _ := load(t, dir)
		again.want(t, map[string]int64{"a": 7})
		told.want(t)

		ctx, stop := context.WithCancel(context.Background())
		state = newTally()
		f, err = Open(dir, state, Options{})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { f.Run(ctx); close(ended) }()
		state.add("a", 1)
		stop()
		<-ended
		again, _, _ = load(t, dir) // the directory is free
		again.want(t, map[string]int64{"a": 8})
		if err := f.Close(soon(t)); err != nil {
			t.Error(err)
		}
	})
}

func TestOpenErrors(t *testing.T) {
	for _, c := range []struct {
		dir   string
		state State
	}{{"", newTally()}, {t.TempDir(), nil}} {
		if _, err := Open(c.dir, c.state, Options{}); err == nil {
			t.Errorf("opened %q with %v", c.dir, c.state)
		}
	}
}
