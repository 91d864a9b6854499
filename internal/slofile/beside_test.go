package slofile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const alerts = "alerts.json"

func (r *rig) wantBeside(t *testing.T, want string) {
	t.Helper()
	if got, err := r.Beside(alerts).Load(); err != nil || string(got) != want || (got == nil) != (want == "") {
		t.Errorf("there is %q, %v, want %q", got, err, want)
	}
}

// TestBeside: a small file is there for the next process, for its user alone, and the counts
// beside it are what they were.
func TestBeside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "counts")
	f := start(t, dir, Options{})
	b := f.Beside(alerts)
	if b.Name() != filepath.Join(dir, alerts) {
		t.Errorf("it is %s", b.Name())
	}
	f.wantBeside(t, "")
	f.state.add("a", 5)
	for _, text := range []string{"one", "two, which is longer", "3"} {
		if err := b.Store([]byte(text)); err != nil {
			t.Fatal(err)
		}
		f.wantBeside(t, text)
	}
	if info, err := os.Stat(b.Name()); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	f.close(t)
	for _, err := range []error{b.Store([]byte("late")), func() error { _, err := b.Load(); return err }(), func() error { _, err := b.SetAside(); return err }()} {
		if !errors.Is(err, ErrNotHeld) || !strings.Contains(err.Error(), dir) {
			t.Errorf("after Close: %v", err)
		}
	}

	next := start(t, dir, Options{})
	next.state.want(t, map[string]int64{"a": 5})
	next.wantBeside(t, "3")
	aside, err := next.Beside(alerts).SetAside()
	if err != nil || aside != filepath.Join(dir, "unreadable.alerts.json") {
		t.Errorf("set aside as %s, %v", aside, err)
	}
	if text, err := os.ReadFile(aside); err != nil || string(text) != "3" {
		t.Errorf("aside is %q, %v", text, err)
	}
	next.wantBeside(t, "")
	if _, err := next.Beside(alerts).SetAside(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("set aside what is not there: %v", err)
	}
	if err := os.WriteFile(b.Name(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := next.Beside(alerts).Load(); got == nil || len(got) != 0 || err != nil {
		t.Errorf("an empty file is %#v, %v", got, err)
	}
	if err := os.Truncate(b.Name(), 2*maxBeside); err != nil {
		t.Fatal(err)
	}
	if got, err := next.Beside(alerts).Load(); len(got) != maxBeside+1 || err != nil {
		t.Errorf("of a large file %d bytes are read, %v", len(got), err)
	}
	if err := next.Beside(alerts).Store(make([]byte, maxBeside+1)); err == nil {
		t.Error("a file is written that is not read")
	}
	next.close(t)
	next.told.want(t)
}

// TestBesideOthers: what is another process's is neither read nor written, until it is this
// one's; and what was this process's is not any more when somebody has removed the lock.
func TestBesideOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		first, second := start(t, dir, Options{}), start(t, dir, Options{})
		if err := first.Beside(alerts).Store([]byte("first")); err != nil {
			t.Fatal(err)
		}
		if _, err := second.Beside(alerts).Load(); !errors.Is(err, ErrNotHeld) {
			t.Errorf("read what is another's: %v", err)
		}
		if err := second.Beside(alerts).Store([]byte("second")); !errors.Is(err, ErrNotHeld) {
			t.Errorf("wrote over what is another's: %v", err)
		}
		first.wantBeside(t, "first")
		first.close(t)
		wait(backoffMax)
		second.wantBeside(t, "first")
		if err := second.Beside(alerts).Store([]byte("second")); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, lockName)); err != nil {
			t.Fatal(err)
		}
		if err := second.Beside(alerts).Store([]byte("stolen")); !errors.Is(err, ErrNotHeld) || !strings.Contains(err.Error(), "its lock was removed") {
			t.Errorf("wrote without the lock: %v", err)
		}
		second.state.add("a", 1)
		wait(backoffMax) // it takes the lock anew
		second.wantBeside(t, "second")
		second.close(t)
	})
}

// TestBesideFaults: whatever fails, what is there is what was there, or what is new; an
// error says what failed; nothing piles up; and the counts do not suffer.
func TestBesideFaults(t *testing.T) {
	for _, op := range []string{"create", "write", "sync", "close", "rename", "remove", "syncdir", ""} {
		for _, torn := range []bool{false, true} {
			dir, d := t.TempDir(), newFaultyDisk()
			d.torn = torn
			f := start(t, dir, Options{disk: d, every: time.Hour})
			b := f.Beside(alerts)
			if err := b.Store([]byte("what was there")); err != nil {
				t.Fatal(err)
			}
			d.set(func(d *faultyDisk) { d.fault[op] = syscall.ENOSPC })
			err := b.Store([]byte("new"))
			if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), alerts) {
				t.Errorf("%q: %v", op, err)
			}
			d.set(func(d *faultyDisk) { clear(d.fault) })
			if got, err := b.Load(); err != nil || string(got) != "what was there" && (string(got) != "new" || op != "syncdir") {
				t.Errorf("%q: there is %q, %v", op, got, err)
			}
			if err := b.Store([]byte("new")); err != nil {
				t.Errorf("%q: afterwards: %v", op, err)
			}
			f.wantBeside(t, "new")
			if got := names(t, dir); slices.ContainsFunc(got, func(name string) bool { return strings.HasPrefix(name, alerts+".") }) {
				t.Errorf("%q: there are %q", op, got)
			}
			f.close(t)
		}
	}
}

// TestBesideReadFault: a file that cannot be read is no file that is not there.
func TestBesideReadFault(t *testing.T) {
	d := newFaultyDisk()
	f := start(t, t.TempDir(), Options{disk: d})
	d.set(func(d *faultyDisk) { d.fault["read"] = syscall.EIO })
	if got, err := f.Beside(alerts).Load(); !errors.Is(err, syscall.EIO) || got != nil || errors.Is(err, ErrNotHeld) {
		t.Errorf("read %q, %v", got, err)
	}
	d.set(func(d *faultyDisk) { clear(d.fault); d.fault["rename"] = syscall.EROFS })
	if _, err := f.Beside(alerts).SetAside(); !errors.Is(err, syscall.EROFS) {
		t.Errorf("set aside: %v", err)
	}
	d.set(func(d *faultyDisk) { clear(d.fault) })
	f.close(t)
}

// stuck is a disk on which one file hangs.
type stuck struct {
	osDisk
	free chan struct{}
}

func (d stuck) Create(name string) (file, error) {
	if strings.Contains(name, alerts) {
		<-d.free
	}
	return d.osDisk.Create(name)
}

// TestBesideHangs: where writing beside hangs, the counts are written, Close does not wait
// for it, and nobody else gets the directory before it is over.
func TestBesideHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, d := t.TempDir(), stuck{free: make(chan struct{})}
		f := start(t, dir, Options{disk: d})
		done := make(chan error)
		go func() { done <- f.Beside(alerts).Store([]byte("at last")) }()
		synctest.Wait()
		f.state.add("a", 3)
		began := time.Now()
		f.close(t)
		if took := time.Since(began); took != 0 {
			t.Errorf("Close took %v", took)
		}
		if err := f.Beside(alerts).Store([]byte("too late")); !errors.Is(err, ErrNotHeld) {
			t.Errorf("after Close: %v", err)
		}
		next := start(t, dir, Options{})
		next.told.want(t, "in use by another process")
		if _, err := next.Beside(alerts).Load(); !errors.Is(err, ErrNotHeld) {
			t.Errorf("while the other one writes: %v", err)
		}
		close(d.free)
		if err := <-done; err != nil {
			t.Errorf("what hung: %v", err)
		}
		wait(backoffMax)
		next.wantBeside(t, "at last")
		next.state.want(t, map[string]int64{"a": 3})
		next.told.want(t, "being kept again")
		next.close(t)
	})
}
