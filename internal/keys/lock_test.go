package keys

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// lockTries are the kinds of lock there are here.
var lockTries = map[string]func(string, time.Time) (lock, error){"flock": flock, "exclusive": exclusive}

// TestLockIsHeldByOne, whatever the others try, and is free afterwards.
func TestLockIsHeldByOne(t *testing.T) {
	for name, try := range lockTries {
		path := filepath.Join(t.TempDir(), "lock")
		held, err := try(path, time.Now())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for range 3 {
			if _, err := try(path, time.Now()); !errors.Is(err, errBusy) {
				t.Errorf("%s: a second has it, too: %v", name, err)
			}
		}
		if err := held.check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := held.release(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := entries(t, filepath.Dir(path)); got != "" {
			t.Errorf("%s: left are %s", name, got)
		}
		again, err := try(path, time.Now())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		// Somebody removes the file by hand, and another gets the lock.
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		other, err := try(path, time.Now())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if again.check() == nil || again.release() != nil || other.check() != nil || other.release() != nil {
			t.Errorf("%s: the lost lock passes for held, or the other for lost", name)
		}
	}
}

// TestLockExcludes: of many at once, one at a time is inside.
func TestLockExcludes(t *testing.T) {
	for name, try := range lockTries {
		path := filepath.Join(t.TempDir(), "lock")
		var inside, rounds atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					held, err := wait(path, time.Now(), try)
					if err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
					if n := inside.Add(1); n != 1 {
						t.Errorf("%s: %d are inside", name, n)
					}
					rounds.Add(1)
					inside.Add(-1)
					if err := held.release(); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			})
		}
		wg.Wait()
		if rounds.Load() != 160 {
			t.Errorf("%s: %d rounds", name, rounds.Load())
		}
	}
}

// TestLockPatience: who waits gives up after 10 s and says what to do.
func TestLockPatience(t *testing.T) {
	for name, try := range lockTries {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lock")
			held, err := try(path, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if name == "exclusive" { // made by the real clock, and not to be found old by this one
				if err := os.Chtimes(path, time.Now(), time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			start := time.Now()
			_, err = wait(path, start, try)
			wantError(t, name, err, "another edit is under way", "10s", "remove "+path)
			if waited := time.Since(start); waited < lockPatience || waited > lockPatience+2*lockPauseMax {
				t.Errorf("%s: gave up after %v", name, waited)
			}
			if err := held.release(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestStaleLocks: what a process left behind when it died does not stand in
// the way: a flock at once, an exclusive file after a minute.
func TestStaleLocks(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "keys.json")
	put(t, path+".lock", "")
	if err := Edit(path, noon, add(0)); err != nil {
		t.Error(err)
	}
	put(t, path+".lock-exclusive", "")
	old := time.Now().Add(-lockStale)
	if err := os.Chtimes(path+".lock-exclusive", old, old); err != nil {
		t.Fatal(err)
	}
	if err := edit(path, time.Now(), add(1), acquireExclusive); err != nil {
		t.Error(err)
	}
	if got := entries(t, dir); got != "keys.json" {
		t.Errorf("left are %s", got)
	}
}

// TestLockErrors: what is not the lock of another is told at once.
func TestLockErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "lock")
	for name, try := range lockTries {
		if held, err := wait(path, time.Now(), try); held != nil || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v, %v", name, held, err)
		}
	}
}

// TestLostLock: an edit whose lock was taken away changes nothing.
func TestLostLock(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "keys.json")
	for name, c := range map[string]struct {
		lock locker
		file string
	}{"flock": {acquire, path + ".lock"}, "exclusive": {acquireExclusive, path + ".lock-exclusive"}} {
		err := edit(path, time.Now(), func(f *File) error {
			if err := os.Remove(c.file); err != nil {
				t.Error(err)
			}
			return add(0)(f)
		}, c.lock)
		wantError(t, name, err, "nothing is changed", "try again")
		if got := entries(t, dir); got != "" {
			t.Errorf("%s: left are %s", name, got)
		}
	}
}
