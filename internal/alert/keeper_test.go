package alert

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestKeeper: what a process leaves, the next one takes up, however it ends.
func TestKeeper(t *testing.T) {
	for _, kill := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			d, s := newDisk(), &scribe{name: "webhook"}
			end := func(l *life) {
				if kill {
					l.killed()
					return
				}
				l.dies(t)
			}
			l := born(t, d, Options{Receivers: []Receiver{s}})
			pass(time.Minute)
			if d.data != nil {
				t.Errorf("without alerts there is %s", d.data)
			}
			l.see(standing{page: true})
			hears(t, s, pageOn)
			l.says(t)
			end(l)
			l = born(t, d, Options{Receivers: []Receiver{s}})
			l.says(t, "alerts of the process before go on: 1")
			l.see(standing{page: true})
			hears(t, s, "")
			for range 36 { // three minutes
				l.see()
				pass(4 * time.Second)
			}
			end(l)
			l = born(t, d, Options{Receivers: []Receiver{s}})
			l.see()
			pass(2*time.Minute - 20*time.Second)
			l.see()
			hears(t, s, "")
			pass(20 * time.Second)
			if kill {
				pass(refreshEvery) // the look before the end may not have been written
			}
			l.see()
			hears(t, s, pageOff)
			end(l)
			l = born(t, d, Options{Receivers: []Receiver{s}})
			l.says(t)
			if n := len(l.State().Alerts); n != 0 {
				t.Errorf("%d alerts are left in %s", n, d.data)
			}
			l.dies(t)
		})
	}
}

// TestWrittenBeforeTold: with a disk that works, what a receiver is told of is on it by then,
// so that whoever kills the process cannot make it forget.
func TestWrittenBeforeTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		d.delay = 40 * time.Millisecond
		var late time.Duration
		var at time.Time
		s := &scribe{name: "webhook", answer: func(_ context.Context, b Batch) error {
			late = max(late, time.Since(at))
			next := New(Options{})
			next.tagger.rounds = 1
			if err := next.Restore(d.kept(), time.Now()); err != nil {
				t.Error(err)
				return nil
			}
			for _, a := range b.Alerts {
				k := key{a.Class, a.Objective, a.Model, a.Severity}
				// One that ended without a receiver to tell is not there, so look at the text.
				if !strings.Contains(string(d.kept()), a.StartsAt.Format(time.RFC3339Nano)[:19]) || a.Status == Firing && next.entries[k] == nil {
					t.Errorf("told of %s, and there is only %s", headline(a), d.kept())
				}
				if a.Status == Resolved && !strings.Contains(string(d.kept()), `"ends":`) {
					t.Errorf("told of %s, and there is only %s", headline(a), d.kept())
				}
			}
			return nil
		}}
		l := born(t, d, Options{Receivers: []Receiver{s}, Hold: time.Second})
		for i := range 20 {
			at = time.Now()
			l.see(standing{page: i%3 != 0}, standing{objective: fmt.Sprint(i % 4), page: true})
			pass(4 * time.Second)
		}
		if n := strings.Count(s.take(), "firing"); n < 10 || late > 2*d.delay {
			t.Errorf("%d beginnings, told after at most %v", n, late)
		}

		// So is that somebody new is told, to whom the end is owed then.
		l.see(standing{page: true})
		comes := &scribe{name: "comes", answer: func(context.Context, Batch) error {
			if kept := string(d.kept()); !strings.Contains(kept, `"receiver":1`) {
				t.Errorf("a new receiver is told, and there is only %s", kept)
			}
			return nil
		}}
		l.Configure(Options{Receivers: []Receiver{s, comes}})
		pass(time.Second)
		if !strings.HasPrefix(comes.take(), pageOn) {
			t.Error("a new receiver is not told what goes on")
		}
		l.dies(t)
	})
}

// TestWriteRate: writes come at most once a second, but when there are news; and none
// when nothing is new.
func TestWriteRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDisk(), &scribe{name: "alertmanager", manner: manners{again: 300 * time.Millisecond}}
		l := born(t, d, Options{Receivers: []Receiver{s}, Hold: time.Millisecond})
		for i := range 6000 {
			now := time.Now()
			l.Observe(now, statusAt(now, standing{page: i%2 == 0}))
			pass(10 * time.Millisecond)
		}
		n := len(d.times())
		if n < 55 || n > 63 {
			t.Errorf("%d writes in a minute", n)
		}
		l.Configure(Options{Hold: time.Second})
		l.see()
		pass(time.Minute)
		l.see(standing{page: true})
		n = len(d.times())
		for range 120 {
			l.see(standing{page: true})
			pass(4 * time.Second)
		}
		if more := len(d.times()) - n; more < 18 || more > 21 {
			t.Errorf("%d writes in ten minutes of the same", more)
		}
		l.see()
		pass(time.Minute)
		l.see()
		pass(time.Minute)
		n = len(d.times())
		for range 120 {
			l.see()
			pass(4 * time.Second)
		}
		if more := len(d.times()) - n; more != 0 {
			t.Errorf("%d writes in ten minutes of nothing", more)
		}
		l.dies(t)
	})
}

// TestTagsInTime: tags are made when a receiver is configured, and not when there are news
// that wait to be written.
func TestTagsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := born(t, newDisk(), Options{Receivers: []Receiver{&scribe{name: "a"}}})
		pass(writeEvery)
		l.Configure(Options{Receivers: []Receiver{&scribe{name: "b"}, &scribe{name: "c"}}})
		pass(writeEvery)
		l.mu.Lock()
		if tags := l.tagger.tags; len(tags) != 2 || tags["b"] == "" || tags["b"] == tags["c"] {
			t.Errorf("tags are %v", tags)
		}
		l.mu.Unlock()
		l.dies(t)
	})
}

// keptNoMore is a process that has told of a page, and keeps alerts no more.
func keptNoMore(t *testing.T) (*disk, *scribe, *life) {
	t.Helper()
	d, s := newDisk(), &scribe{name: "webhook"}
	l := born(t, d, Options{Receivers: []Receiver{s}})
	l.see(standing{page: true})
	hears(t, s, pageOn)
	if err := l.keeper.CloseForGood(soon(t)); err != nil {
		t.Fatal(err)
	}
	return d, s, l
}

// TestCloseForGood: where alerts are kept no more, the next process ends what it finds, and
// takes up what holds anew; and this one goes on, and may keep them again.
func TestCloseForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s, l := keptNoMore(t)
		over := d.kept()
		l.see(standing{page: true})
		hears(t, s, "")

		other := newDisk()
		other.data = over
		next := &scribe{name: "webhook"}
		n := born(t, other, Options{Receivers: []Receiver{next}})
		n.see(standing{page: true})
		if heard := next.take(); heard != pageOff+", "+pageOn && heard != pageOn {
			t.Errorf("the next process tells %q", heard)
		}
		n.dies(t)

		for range 2 { // of which the second one finds nothing new
			l.keeper = l.Keep(handle{d, &l.dead}, l.told.add)
			pass(0)
			hears(t, s, "")
			pass(refreshEvery)
			if strings.Contains(string(d.kept()), `"ends":`) {
				t.Errorf("kept again, there is %s", d.kept())
			}
			if err := l.keeper.CloseForGood(soon(t)); err != nil {
				t.Fatal(err)
			}
		}
		l.keeper = l.Keep(handle{d, &l.dead}, l.told.add)
		pass(refreshEvery)
		if string(d.kept()) == string(over) || len(l.State().Alerts) != 1 {
			t.Errorf("kept again, there are %d alerts, and %s", len(l.State().Alerts), d.kept())
		}
		l.see()
		pass(5 * time.Minute)
		l.see()
		hears(t, s, pageOff)
		l.dies(t)
		l.says(t)
	})
}

// TestKeptByAnother: what another process left where this one had kept its alerts before
// is taken up, beside its own.
func TestKeptByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s, l := keptNoMore(t)
		l.see(standing{page: true})

		d.set(func(d *disk) { d.data = nil }) // it begins without those
		theirs := &scribe{name: "webhook"}
		n := born(t, d, Options{Receivers: []Receiver{theirs}})
		n.see(standing{objective: "a", page: true}, standing{objective: "b", page: true})
		theirs.take()
		n.dies(t)

		l.keeper = l.Keep(handle{d, &l.dead}, l.told.add)
		pass(refreshEvery)
		l.see(standing{page: true})
		if body := openKept(t, d.kept()); len(body.Alerts) != 3 || len(l.State().Alerts) != 3 {
			t.Errorf("there are %d alerts here, and on the disk %s", len(l.State().Alerts), d.kept())
		}
		pass(5 * time.Minute)
		l.see(standing{page: true})
		if heard := s.take(); strings.Count(heard, "resolved") != 2 || strings.Contains(heard, "firing") {
			t.Errorf("of what the other left is told %q", heard)
		}
		l.dies(t)
	})
}

// TestKeeperFromManyGoroutines: all at once, for the race detector.
func TestKeeperFromManyGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &scribe{name: "a", manner: manners{again: time.Minute}}, &scribe{name: "b"}
		d := newDisk()
		d.delay = 10 * time.Millisecond
		l := born(t, d, Options{Receivers: []Receiver{a}})
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for n := range 100 {
					time.Sleep(700 * time.Millisecond)
					l.Observe(time.Now(), statusAt(time.Now(), standing{page: (n/20+i)%2 == 0}, standing{model: "x", ticket: n%7 == 0}))
					switch (n + i) % 10 {
					case 1:
						l.Configure(Options{Receivers: []Receiver{a, b}[:n/10%2+1], Hold: time.Second})
					case 2:
						l.Snapshot()
					case 3:
						if err := l.Restore(l.Snapshot(), time.Now()); err != nil {
							t.Error(err)
						}
					case 4:
						d.set(func(d *disk) { d.fault["store"] = []error{nil, syscall.EIO}[n%2] })
					}
				}
			})
		}
		wg.Wait()
		d.set(func(d *disk) { clear(d.fault) })
		l.dies(t)
		if a.take() == "" || len(openKept(t, d.kept()).Alerts) != len(l.State().Alerts) {
			t.Error("nothing was heard, or kept")
		}
	})
}
