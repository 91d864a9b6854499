package alert

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlowDisk: one that is slow, hangs or fails holds up one telling by a quarter of a
// second, and then none; Observe, State and Run never; and people are told once, and
// once when it is over.
func TestSlowDisk(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil, mend func(d *disk)
		says        []string
		wait        time.Duration // of the first telling
	}{
		"hangs": {func(d *disk) { d.hang = make(chan struct{}) }, func(d *disk) { close(d.hang); d.hang = nil },
			[]string{"not being kept: after a restart those that hold would be told again, and the end of others would not; Weir tries again: the disk of alerts.json has not answered for 10s; look whether it hangs", "being kept again, after "}, writeTime},
		"is slow": {func(d *disk) { d.delay = 5 * time.Second }, func(d *disk) { d.delay = 0 }, nil, writeTime},
		"is full": {func(d *disk) { d.fault["store"] = syscall.ENOSPC }, func(d *disk) { clear(d.fault) },
			[]string{"not being kept: after a restart those that hold would be told again, and the end of others would not; Weir tries again: no space left", "being kept again, after "}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, s := newDisk(), &scribe{name: "webhook"}
				l := born(t, d, Options{Receivers: []Receiver{s}})
				pass(time.Minute)
				l.see(standing{objective: "before", page: true})
				hears(t, s, "page firing interactive/before")
				d.set(tt.spoil)
				for i := range 5 {
					began := time.Now()
					var all []standing
					for n := range i + 1 {
						all = append(all, standing{objective: fmt.Sprint("e", n), page: true})
					}
					l.Observe(began, statusAt(began, all...))
					l.State()
					if took := time.Since(began); took != 0 {
						t.Errorf("Observe and State took %v", took)
					}
					if i == 0 && tt.wait > 0 {
						pass(tt.wait - 1)
						hears(t, s, "")
						pass(1)
					} else {
						pass(0)
					}
					hears(t, s, fmt.Sprintf("page firing interactive/e%d", i))
					pass(5 * time.Second)
				}
				pass(time.Minute)
				if st := l.keeper.Status(); len(tt.says) > 0 && (st.Kept || st.Error == "" || !strings.Contains(tt.says[0], st.Error[:13]) || time.Since(st.Since) < time.Minute) {
					t.Errorf("with such a disk: %+v", st)
				}
				d.set(tt.mend)
				pass(time.Minute)
				if st := l.keeper.Status(); !st.Kept || st.Error != "" || st.Path != "alerts.json" || len(tt.says) > 0 && time.Since(st.Since) > time.Minute {
					t.Errorf("with a disk that works again: %+v", st)
				}
				l.see()
				l.says(t, tt.says...)
				if body := openKept(t, d.kept()); len(body.Alerts) != 6 {
					t.Errorf("there are %d alerts", len(body.Alerts))
				}
				// And what there is to tell waits for it again.
				d.set(func(d *disk) { d.delay = 100 * time.Millisecond })
				l.Observe(time.Now(), statusAt(time.Now(), standing{objective: "after", page: true}))
				pass(100*time.Millisecond - 1)
				hears(t, s, "")
				pass(1)
				hears(t, s, "page firing interactive/after")
				d.set(func(d *disk) { d.delay = 0 })
				l.dies(t)
			})
		})
	}
}

// TestDiskAtTheEnd: a disk that hangs holds up the end as long as it is given, and an error
// says that something was lost.
func TestDiskAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDisk(), &scribe{name: "webhook"}
		l := born(t, d, Options{Receivers: []Receiver{s}})
		l.see(standing{page: true})
		d.set(func(d *disk) { d.hang = make(chan struct{}) })
		l.see(standing{page: true, ticket: true, consumed: 0.9})
		l.cancel()
		<-l.ended
		if heard := s.take(); heard != pageOn+", freeze firing interactive/ttft_p99" {
			t.Errorf("heard %s", heard)
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := l.keeper.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "close the alerts in alerts.json: ") || time.Since(began) != 2*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		d.set(func(d *disk) { close(d.hang); d.hang = nil; d.fault["store"] = syscall.EIO })
		if err := l.keeper.Close(soon(t)); !errors.Is(err, syscall.EIO) {
			t.Errorf("with a disk that fails: %v", err)
		}
	})
}

// TestDiskAtTheBeginning: what cannot be read is tried again, and nothing is written before.
func TestDiskAtTheBeginning(t *testing.T) {
	setUp := func(t *testing.T) (*disk, *scribe) {
		d, s := newDisk(), &scribe{name: "webhook"}
		l := born(t, d, Options{Receivers: []Receiver{s}})
		l.see(standing{page: true})
		hears(t, s, pageOn)
		l.dies(t)
		return d, s
	}
	t.Run("it fails for a while", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, s := setUp(t)
			kept := string(d.kept())
			d.fault["load"] = syscall.EIO
			began := time.Now()
			l := born(t, d, Options{Receivers: []Receiver{s}})
			if took := time.Since(began); took != 0 {
				t.Errorf("Keep took %v", took)
			}
			l.says(t, "not being kept")
			l.see()
			pass(10 * time.Second)
			if string(d.kept()) != kept {
				t.Error("what could not be read was written over")
			}
			d.set(func(d *disk) { clear(d.fault) })
			pass(retryEvery)
			l.says(t, "being kept again", "go on: 1")
			l.see()
			pass(5 * time.Minute)
			l.see()
			hears(t, s, pageOff)
			l.dies(t)
		})
	})
	t.Run("it fails for ever", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, s := setUp(t)
			kept := string(d.kept())
			d.fault["load"], d.fault["aside"] = syscall.EIO, syscall.EROFS
			l := born(t, d, Options{Receivers: []Receiver{s}})
			pass(10 * retryEvery)
			l.says(t, "not being kept")
			if string(d.kept()) != kept {
				t.Error("what could not be read was written over")
			}
			d.set(func(d *disk) { delete(d.fault, "aside") })
			pass(retryEvery)
			l.says(t, "lie in unreadable.alerts.json now", "being kept again")
			l.see(standing{page: true})
			hears(t, s, pageOn)
			if string(d.aside) != kept || string(d.kept()) == kept || d.kept() == nil {
				t.Errorf("aside is %s", d.aside)
			}
			l.dies(t)
		})
	})
	t.Run("it hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, s := setUp(t)
			d.hang = make(chan struct{})
			began := time.Now()
			l := born(t, d, Options{Receivers: []Receiver{s}})
			if took := time.Since(began); took != takeUpWait {
				t.Errorf("Keep took %v", took)
			}
			began = time.Now()
			l.Observe(time.Now(), statusAt(time.Now(), standing{page: true, consumed: 0.9}))
			pass(0)
			hears(t, s, pageOn+", freeze firing interactive/ttft_p99")
			pass(time.Minute)
			l.says(t, "has not answered for 10s")
			d.set(func(d *disk) { close(d.hang); d.hang = nil })
			pass(time.Second)
			l.says(t, "being kept again", "go on: 3")
			l.see(standing{page: true, consumed: 0.9})
			hears(t, s, "")
			l.dies(t)
		})
	})
	t.Run("it is another process's for a while", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, s := setUp(t)
			kept := string(d.kept())
			d.fault["load"] = fmt.Errorf("%w: no", ErrNotYet)
			l := born(t, d, Options{Receivers: []Receiver{s}})
			pass(time.Hour)
			l.says(t, "not being kept")
			if string(d.kept()) != kept || d.aside != nil {
				t.Error("another process's alerts were touched")
			}
			err := l.keeper.Close(soon(t))
			if !errors.Is(err, ErrNotYet) || string(d.kept()) != kept {
				t.Errorf("closed with %v", err)
			}
			l.cancel()
			<-l.ended
		})
	})
	t.Run("it is damaged", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, s := setUp(t)
			d.data = d.data[:100]
			l := born(t, d, Options{Receivers: []Receiver{s}})
			l.says(t, "the alerts in alerts.json cannot be used, and lie in unreadable.alerts.json now: take up the alerts of an earlier process: it is cut or damaged")
			l.see(standing{page: true})
			hears(t, s, pageOn)
			l.dies(t)
			l = born(t, d, Options{Receivers: []Receiver{s}})
			l.says(t, "go on: 1")
			l.dies(t)
			if len(d.aside) != 100 {
				t.Errorf("aside is %s", d.aside)
			}
		})
	})
}

// TestComingAndGoing: people are told of a disk that comes and goes at most every five
// minutes, and nothing that fails half is believed to be there, or not to be.
func TestComingAndGoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDisk(), &scribe{name: "webhook"}
		l := born(t, d, Options{Receivers: []Receiver{s}, Hold: time.Millisecond})
		for i := range 60 {
			bad := i%2 == 0
			d.set(func(d *disk) {
				d.torn = i%4 == 0
				clear(d.fault)
				if bad {
					d.fault["store"] = syscall.EIO
				}
			})
			l.see(standing{page: i%3 == 0})
			pass(9 * time.Second)
			if bad {
				continue
			}
			want := string(openKept(t, l.Snapshot()).Salt)
			if kept := d.kept(); kept != nil && (openKept(t, kept).Salt != want || len(openKept(t, kept).Alerts) != len(l.State().Alerts)) {
				t.Fatalf("round %d: %d alerts, and there is %s", i, len(l.State().Alerts), kept)
			}
		}
		if lines := strings.Split(l.told.take(), "\n"); len(lines) < 2 || len(lines) > 6 || len(lines)%2 != 0 {
			t.Errorf("people were told %q", lines)
		}
		l.dies(t)
	})
}

// TestTornStore: what failed and is there nevertheless is not believed to be absent.
func TestTornStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		l := born(t, d, Options{Hold: time.Second})
		d.torn, d.fault["store"] = true, syscall.EIO
		l.see(standing{page: true})
		if body := openKept(t, d.kept()); len(body.Alerts) != 1 {
			t.Fatalf("there are %d alerts", len(body.Alerts))
		}
		l.see()
		l.see()
		if n := len(l.State().Alerts); n != 0 {
			t.Fatalf("%d alerts go on", n)
		}
		d.set(func(d *disk) { clear(d.fault) })
		pass(retryEvery)
		if body := openKept(t, d.kept()); len(body.Alerts) != 0 {
			t.Errorf("there are %d alerts", len(body.Alerts))
		}
		l.says(t, "not being kept", "being kept again")
		l.dies(t)
	})
}
