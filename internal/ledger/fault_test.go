package ledger

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// faultyDisk is the operating system's disk until a fault is put into it.
type faultyDisk struct {
	osDisk
	mu    sync.Mutex
	fault error         // returned by whatever writes
	torn  bool          // half is written before the fault
	delay time.Duration // before a write
	hang  chan struct{} // writes wait until it is closed
	reads chan struct{} // reads do
}

func (d *faultyDisk) set(change func(d *faultyDisk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d)
}

// write stands in the way of everything that changes the disk.
func (d *faultyDisk) write() error {
	d.mu.Lock()
	hang, delay := d.hang, d.delay
	d.mu.Unlock()
	if hang != nil {
		<-hang
	}
	time.Sleep(delay)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fault
}

func (d *faultyDisk) Prepare(dir string) error {
	if err := d.write(); err != nil {
		return err
	}
	return d.osDisk.Prepare(dir)
}

func (d *faultyDisk) Lock(dir string) (io.Closer, error) {
	if err := d.write(); err != nil {
		return nil, err
	}
	return d.osDisk.Lock(dir)
}

func (d *faultyDisk) Create(name string) (file, error) {
	if err := d.write(); err != nil {
		return nil, err
	}
	f, err := d.osDisk.Create(name)
	if err != nil {
		return nil, err
	}
	return &faultyFile{f, d}, nil
}

func (d *faultyDisk) Open(name string) (file, error) {
	f, err := d.osDisk.Open(name)
	if err != nil {
		return nil, err
	}
	return &faultyFile{f, d}, nil
}

type faultyFile struct {
	file
	disk *faultyDisk
}

func (f *faultyFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.disk.write(); err != nil {
		if !f.disk.torn {
			return 0, err
		}
		n, _ := f.file.WriteAt(b[:len(b)/2], off)
		return n, err
	}
	return f.file.WriteAt(b, off)
}

func (f *faultyFile) ReadAt(b []byte, off int64) (int, error) {
	f.disk.mu.Lock()
	reads := f.disk.reads
	f.disk.mu.Unlock()
	if reads != nil {
		<-reads
	}
	return f.file.ReadAt(b, off)
}

// pass makes n calls, which must not wait for anything.
func pass(t *testing.T, l *Ledger, prefix string, n int) {
	t.Helper()
	began := time.Now() // of a bubble: it stands still unless somebody waits
	for i := range n {
		if err := l.Start(start(fmt.Sprint(prefix, i))); err != nil {
			t.Fatal(err)
		}
		l.End(ended(fmt.Sprint(prefix, i)))
	}
	if waited := time.Since(began); waited != 0 {
		t.Errorf("%s: %d calls waited for %v", prefix, n, waited)
	}
}

// healed waits until the ledger is well, and checks that every call that it was
// told of is there once, and in the sums.
func healed(t *testing.T, l *Ledger, want int) {
	t.Helper()
	for range 100 {
		time.Sleep(time.Second)
		synctest.Wait()
		if st := l.State(); !st.Degraded && st.Pending == 0 && st.SpillBytes < 1<<20 {
			break
		}
	}
	flush(t, l)
	st := l.State()
	if st.Degraded || st.Dropped != 0 || st.Refused != 0 || st.Pending != 0 || st.Lag != 0 {
		t.Errorf("not healed: %+v", st)
	}
	if got := rows(t, l); len(got) != want {
		t.Errorf("%d rows, want %d: %+v", len(got), want, st)
	}
	if u, err := l.Usage(soon(t), Query{}); err != nil || u[0].Calls != int64(want) {
		t.Errorf("%v %v, want %d", u, err, want)
	}
	if err := l.Close(soon(t)); err != nil {
		t.Error(err)
	}
}

// degraded checks that the state says what is wrong.
func degraded(t *testing.T, l *Ledger, reason string) {
	t.Helper()
	if st := l.State(); !st.Degraded || !strings.Contains(st.Reason, reason) || st.Since.IsZero() {
		t.Errorf("state %+v does not say %q", st, reason)
	}
}

// TestHungDisk: a call waits for the breaker's time and not a nanosecond more;
// those after it do not wait at all.
func TestHungDisk(t *testing.T) {
	for _, closed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			d := new(faultyDisk)
			l := open(t, Options{disk: d, Breaker: 10 * time.Millisecond, FailClosed: closed, Log: quiet})
			pass(t, l, "before", 10)
			hang := make(chan struct{})
			d.set(func(d *faultyDisk) { d.hang = hang })

			began := time.Now()
			returned := make(chan error, 2)
			go func() { returned <- l.Start(start("during")) }()
			synctest.Wait()
			time.Sleep(4 * time.Millisecond) // another comes while the first waits
			go func() { l.End(ended("during")); returned <- nil }()
			time.Sleep(6*time.Millisecond - 1)
			synctest.Wait()
			if len(returned) != 0 {
				t.Fatal("a call did not wait for the disk")
			}
			time.Sleep(1)
			synctest.Wait()
			if len(returned) != 2 || time.Since(began) != 10*time.Millisecond {
				t.Fatalf("%d calls returned after %v", len(returned), time.Since(began))
			}
			if err := errors.Join(<-returned, <-returned); (err != nil) != closed {
				t.Errorf("fail closed %v: error %v", closed, err)
			}
			degraded(t, l, "did not answer within 10ms")
			if closed {
				if err := l.Start(start("refused")); !errors.Is(err, errNotWritten) {
					t.Error(err)
				}
				l.End(ended("refused"))
			} else {
				pass(t, l, "after", 1000)
			}
			if st := l.State(); st.Uncovered != map[bool]uint64{true: 4, false: 2002}[closed] {
				t.Errorf("%+v", st)
			}
			close(hang)
			d.set(func(d *faultyDisk) { d.hang = nil })
			healed(t, l, map[bool]int{true: 12, false: 1011}[closed])
		})
	}
}

// TestSlowDisk: a disk that takes longer than the breaker allows is not waited
// for, and not taken for well after each write that comes through.
func TestSlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(faultyDisk)
		l := open(t, Options{disk: d, Breaker: 10 * time.Millisecond})
		d.set(func(d *faultyDisk) { d.delay = 50 * time.Millisecond })
		began := time.Now()
		for i := range 1000 {
			l.Start(start(fmt.Sprint(i)))
			l.End(ended(fmt.Sprint(i)))
			time.Sleep(time.Millisecond)
		}
		if waited := time.Since(began) - time.Second; waited > 10*time.Millisecond {
			t.Errorf("1000 calls waited for %v", waited)
		}
		degraded(t, l, "did not answer")
		d.set(func(d *faultyDisk) { d.delay = 0 })
		healed(t, l, 1000)
	})
}

// TestFailingDisk: writes that fail, whole or torn, lose nothing and hold up nobody.
func TestFailingDisk(t *testing.T) {
	for _, fault := range []error{syscall.ENOSPC, syscall.EROFS, syscall.EIO} {
		for _, torn := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				d := new(faultyDisk)
				l := open(t, Options{disk: d, Breaker: 10 * time.Millisecond})
				pass(t, l, "before", 100)
				d.set(func(d *faultyDisk) { d.fault, d.torn = fault, torn })
				pass(t, l, "during", many)
				time.Sleep(10 * time.Second)
				pass(t, l, "still", many)
				degraded(t, l, fault.Error())
				d.set(func(d *faultyDisk) { d.fault, d.torn = nil, false })
				healed(t, l, 2*many+100)
			})
		}
	}
}

// TestDiskFailsFromTheStart: Open does not fail, nor wait.
func TestDiskFailsFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &faultyDisk{fault: syscall.EROFS}
		l := open(t, Options{disk: d, Breaker: 10 * time.Millisecond})
		degraded(t, l, "read-only")
		pass(t, l, "during", 100)
		d.set(func(d *faultyDisk) { d.fault = nil })
		healed(t, l, 100)
	})
	synctest.Test(t, func(t *testing.T) {
		d := &faultyDisk{hang: make(chan struct{})}
		began := time.Now()
		l := open(t, Options{disk: d, Breaker: 10 * time.Millisecond})
		if waited := time.Since(began); waited != openWait {
			t.Errorf("Open waited for %v", waited)
		}
		l.End(ended("first")) // waits for the breaker
		pass(t, l, "during", 100)
		degraded(t, l, "did not answer")
		close(d.hang)
		healed(t, l, 101)
	})
}

// TestMemoryIsBounded: what a dead disk does not take is kept up to a limit.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &faultyDisk{fault: syscall.EIO}
		l := open(t, Options{disk: d})
		const n = 4000
		for i := range n {
			rec := ended(fmt.Sprint(i))
			rec.Path = strings.Repeat("p", maxText)
			rec.Error, rec.RequestID, rec.ResponseID, rec.ResponseModel, rec.Run = rec.Path, rec.Path, rec.Path, rec.Path, rec.Path
			l.End(rec)
		}
		st := l.State()
		if st.SpillBytes > maxPending || st.Dropped == 0 || st.Uncovered+st.Dropped != n {
			t.Errorf("%+v", st)
		}
		degraded(t, l, "full")
		d.set(func(d *faultyDisk) { d.fault = nil })
		time.Sleep(2 * backoffMax)
		flush(t, l)
		if got := int(l.State().Rows); got != n-int(st.Dropped) {
			t.Errorf("%d rows are there, %d were lost, of %d", got, st.Dropped, n)
		}
		pass(t, l, "after", 1)
		if st := l.State(); st.Degraded {
			t.Errorf("%+v", st)
		}
		l.Close(soon(t))
	})
}

// TestSpillIsBounded: with a database that takes nothing the spill grows to its
// limit, ends have the last of it, and all that it held is there in the end.
func TestSpillIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "usage.db")
		l := open(t, Options{Path: path, MaxSpill: minSpill})
		l.End(ended("first")) // makes the database
		flush(t, l)
		unlock := lockDatabase(t, path)
		kept := 1
		const n = 7000
		for i := range n {
			l.Start(start(fmt.Sprint(i)))
			before := l.State().Dropped
			l.End(ended(fmt.Sprint(i)))
			if l.State().Dropped == before {
				kept++
			}
		}
		st := l.State()
		if st.SpillBytes > minSpill || st.SpillBytes < minSpill-1000 || kept == n+1 {
			t.Errorf("%d kept: %+v", kept, st)
		}
		degraded(t, l, "full")
		time.Sleep(time.Second)
		degraded(t, l, "lock")
		unlock()
		time.Sleep(time.Minute)
		flush(t, l)
		if got := rows(t, l); len(got) != kept {
			t.Errorf("%d rows, want %d: %+v", len(got), kept, l.State())
		}
		if st := l.State(); st.Degraded { // though nothing has come since
			t.Errorf("%+v", st)
		}
		pass(t, l, "after", 10)
		l.Close(soon(t))
	})
}

// TestSpillRemoved: somebody deletes the spill's files or all of its directory
// under a running gateway. It is noticed, and what comes then has a file again.
func TestSpillRemoved(t *testing.T) {
	for _, what := range []string{"files", "directory"} {
		synctest.Test(t, func(t *testing.T) {
			l := open(t, Options{})
			pass(t, l, "before", 10)
			flush(t, l)
			names, err := filepath.Glob(l.spill.dir + "/*.spill")
			if err != nil || len(names) != 1 {
				t.Fatal(names, err)
			}
			if what == "directory" {
				names = []string{l.spill.dir}
			}
			if err := os.RemoveAll(names[0]); err != nil {
				t.Fatal(err)
			}
			pass(t, l, "unnoticed", 1)
			time.Sleep(time.Second)
			pass(t, l, "after", 10)
			if names, _ := filepath.Glob(l.spill.dir + "/*.spill"); len(names) != 1 {
				t.Errorf("%s: the spill has no file: %+v", what, l.State())
			}
			healed(t, l, 21)
		})
	}
}

// TestHungReader: the database's side may hang as it likes; calls do not notice.
func TestHungReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &faultyDisk{reads: make(chan struct{})}
		l := open(t, Options{disk: d, Breaker: 10 * time.Millisecond})
		pass(t, l, "during", many)
		time.Sleep(time.Minute)
		if st := l.State(); st.Pending != many || st.Lag != time.Minute || st.Rows != 0 {
			t.Errorf("%+v", st)
		}
		close(d.reads)
		healed(t, l, many)
	})
}

// TestCloseOfAHungDisk: Close ends with its context and says what is the matter.
func TestCloseOfAHungDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "usage.db")
		d := new(faultyDisk)
		l := open(t, Options{Path: path, disk: d, Breaker: 10 * time.Millisecond})
		d.set(func(d *faultyDisk) { d.hang = make(chan struct{}) })
		l.End(ended("late"))
		ctx := soon(t)
		began := time.Now()
		err := l.Close(ctx)
		if err == nil || time.Since(began) != time.Minute+closeGrace {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		close(d.hang) // lets the goroutine go: it writes, and gives up the directory
		synctest.Wait()
		healed(t, open(t, Options{Path: path}), 1)
	})
}

// TestTwoLedgers: a spill belongs to one. The second says so, keeps what it can
// in memory, and takes over when the first ends.
func TestTwoLedgers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "usage.db")
		first := open(t, Options{Path: path})
		pass(t, first, "first", 10)
		second := open(t, Options{Path: path})
		degraded(t, second, "in use by another process")
		pass(t, second, "second", 10)
		pass(t, first, "more", 10)
		if err := first.Close(soon(t)); err != nil {
			t.Error(err)
		}
		healed(t, second, 30)
	})
}

// TestHungLog: a log that hangs holds up neither calls nor the ledger.
func TestHungLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		d := &faultyDisk{fault: syscall.EIO}
		l := open(t, Options{disk: d, Log: slog.New(slog.NewTextHandler(hungWriter{hang}, nil))})
		pass(t, l, "during", 100)
		for range 10 {
			d.set(func(d *faultyDisk) { d.fault = nil })
			time.Sleep(time.Minute)
			pass(t, l, "after", 1)
			d.set(func(d *faultyDisk) { d.fault = syscall.EIO })
			pass(t, l, "again", 1)
		}
		d.set(func(d *faultyDisk) { d.fault = nil })
		healed(t, l, 102)
		close(hang)
	})
}

type hungWriter struct{ hang chan struct{} }

func (w hungWriter) Write(b []byte) (int, error) {
	<-w.hang
	return len(b), nil
}
