package queue

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestNoCaps: a queue without caps never makes anybody wait.
func TestNoCaps(t *testing.T) {
	q := newQueue(t, Config{})
	slots := make([]Slot, 5000)
	for i := range slots {
		if err := q.Enter(t.Context(), &Ask{Tokens: Tokens{1 << 30, 1 << 30}}, &slots[i]); err != nil {
			t.Fatal(err)
		}
	}
	if st := q.State(); st.InFlight != 5000 || st.Waiting != 0 || st.PredictedWait.Or(-1) != 0 || st.OldestWait.IsKnown() {
		t.Errorf("state is %+v", st)
	}
	for i := range slots {
		slots[i].Release()
	}
	if st := q.State(); st.InFlight != 0 || st.Tokens != 0 {
		t.Errorf("all are back, yet %+v", st)
	}
}

func TestBounds(t *testing.T) {
	for name, c := range map[string]struct {
		cfg     Config
		waiting []Ask
		refused Ask
		reason  Reason
		limit   int64
		passes  Ask // still may wait
		retry   time.Duration
	}{
		"all": {Config{Calls: 1, MaxWaiting: 2, MaxPerClass: 5, MaxPerKey: 5}, []Ask{{Key: "a"}, {Key: "b"}}, Ask{Key: "c"}, Full, 2, Ask{}, 30 * time.Second},
		"class": {Config{Calls: 1, MaxPerClass: 2}, []Ask{{Key: "a", Class: Batch}, {Key: "b", Class: Batch}},
			Ask{Key: "c", Class: Batch}, FullClass, 2, Ask{Key: "c", Class: Interactive}, 30 * time.Second},
		"key over classes": {Config{Calls: 1, MaxPerKey: 2}, []Ask{{Key: "a", Class: Batch}, {Key: "a", Class: Interactive}},
			Ask{Key: "a", Class: Completion}, FullKey, 2, Ask{Key: "b", Class: Completion}, 30 * time.Second},
		"bytes":          {Config{Calls: 1, MaxBytes: 100}, []Ask{{Bytes: 60}}, Ask{Bytes: 41}, FullBytes, 100, Ask{Bytes: 40}, 30 * time.Second},
		"bytes overflow": {Config{Calls: 1, MaxBytes: 100}, []Ask{{Bytes: 60}}, Ask{Bytes: 1<<63 - 1}, FullBytes, 100, Ask{Bytes: -5}, 30 * time.Second},
		"no waiting":     {Config{Calls: 1, MaxWaiting: NoWaiting}, nil, Ask{}, Full, 0, Ask{}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, c.cfg)
				first := enter(t, q, Ask{Key: "first"})
				first.want(t, "admitted")
				var all []*visit
				for _, ask := range c.waiting {
					v := enter(t, q, ask)
					v.want(t, "waiting")
					all = append(all, v)
				}
				v := enter(t, q, c.refused)
				v.want(t, c.reason.String())
				var r *Rejection
				if !errors.As(v.err, &r) || r.Limit != c.limit || r.Queue != "pool" || r.RetryAfter != c.retry {
					t.Errorf("rejection is %+v", r)
				}
				if n := classState(t, q, r.Class).Rejected[c.reason]; n != 1 {
					t.Errorf("%d rejections are counted", n)
				}
				if c.reason != Full {
					v := enter(t, q, c.passes)
					v.want(t, "waiting")
					all = append(all, v)
				}
				first.slot.Release()
				for range all { // whoever is in makes room for the next
					for _, v := range all {
						if v.outcome(t) == "admitted" {
							v.slot.Release()
						}
					}
				}
				for _, v := range all {
					v.want(t, "admitted")
				}
			})
		})
	}
}

// TestMaxWait: the queue's clock is its own, and ends with admission.
func TestMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, Config{Calls: 1, MaxWait: 10 * time.Second})
		first := enter(t, q, Ask{})
		time.Sleep(time.Second)
		late, next := enter(t, q, Ask{}), enter(t, q, Ask{Deadline: time.Now().Add(time.Hour)})
		time.Sleep(10*time.Second - 1)
		late.want(t, "waiting")
		first.slot.Release() // late is due before next
		late.want(t, "admitted")
		time.Sleep(2)
		next.want(t, "waited")
		var r *Rejection
		if errors.As(next.err, &r); r.Limit != int64(10*time.Second) || r.RetryAfter != 10*time.Second {
			t.Errorf("rejection is %+v", r)
		}
		time.Sleep(24 * time.Hour) // execution has no clock here
		if st := q.State(); st.InFlight != 1 {
			t.Errorf("a long call lost its slot: %+v", st)
		}
		late.slot.Release()
		w := classState(t, q, Interactive).Waits
		if w.Count != 2 || w.Sum != 10*time.Second-1 || w.Buckets[0] != 1 || w.Buckets[11] != 1 {
			t.Errorf("waits are %+v", w)
		}
	})
}

// TestTimerCrossesConfigure: a timer that ran out when more time had just been
// given does not end the wait.
func TestTimerCrossesConfigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, Config{Calls: 1, MaxWait: 10 * time.Second})
		first, v := enter(t, q, Ask{}), enter(t, q, Ask{})
		time.Sleep(5 * time.Second)
		v.slot.timer.Reset(0) // as if it had run out when Configure gave it more
		v.want(t, "waiting")
		time.Sleep(5*time.Second - 1)
		v.want(t, "waiting")
		time.Sleep(1)
		v.want(t, "waited")
		first.slot.Release()
	})
}

// TestWakesExactly: each release wakes as many as fit, and none that does not.
func TestWakesExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, Config{Calls: 8, Tokens: 100, MaxPerKey: 100})
		in := func(n int64) Ask { return Ask{Tokens: Tokens{Input: n}} }
		a, b := enter(t, q, in(60)), enter(t, q, in(40))
		var vs []*visit
		for _, n := range []int64{10, 20, 25, 10, 91, 5, 300, 1} {
			vs = append(vs, enter(t, q, in(n)))
		}
		admitted := func() (pattern string) {
			for _, v := range vs {
				if v.outcome(t) == "admitted" {
					pattern += "x"
				} else {
					pattern += "-"
				}
			}
			check(t, q)
			return pattern
		}
		step := func(want string, release ...*visit) {
			t.Helper()
			for _, v := range release {
				v.slot.Release()
			}
			if got := admitted(); got != want {
				t.Fatalf("admitted are %s, want %s", got, want)
			}
		}
		step("--------")
		step("xx------", b)                   // 60+10+20; 25 does not fit, and 10 and 5 may not pass it
		step("xxxx----", a)                   // 10+20+25+10; 91 waits for room
		step("xxxx----", vs[0], vs[1], vs[2]) // 10
		step("xxxxxx--", vs[3])               // 91+5
		step("xxxxxx--", vs[5])               // 91; 300 waits until it is alone
		step("xxxxxxx-", vs[4])               // 300 alone; 1 finds no room
		step("xxxxxxxx", vs[6])
		vs[7].slot.Release()
	})
}

// TestChosenLeaves: when the call that held up the others goes, they come in.
func TestChosenLeaves(t *testing.T) {
	for _, how := range []string{"left", "waited"} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, Config{Calls: 4, Tokens: 100, MaxWait: 10 * time.Second})
			first := enter(t, q, Ask{Tokens: Tokens{Input: 60}})
			big := enter(t, q, Ask{Key: "big", Tokens: Tokens{Input: 60}})
			time.Sleep(time.Second)
			var small []*visit
			for i := range 4 {
				small = append(small, enter(t, q, Ask{Key: fmt.Sprint(i), Tokens: Tokens{Input: 10}}))
				small[i].want(t, "waiting")
			}
			if how == "left" {
				big.cancel()
			} else {
				time.Sleep(9 * time.Second)
			}
			big.want(t, how)
			for i, v := range small {
				if i < 3 {
					v.want(t, "admitted")
				} else {
					v.want(t, "waiting") // four calls are in flight
				}
			}
			first.slot.Release()
			for _, v := range small {
				v.want(t, "admitted")
				v.slot.Release()
			}
		})
	}
}

// TestLargeIsNotStarved: small calls, always from keys that were never served
// and always with an earlier deadline, do not keep a large one out.
func TestLargeIsNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, Config{Calls: 100, Tokens: 100, MaxWait: time.Minute})
		held := make(chan *visit, 10)
		for i := range 10 {
			held <- enter(t, q, Ask{Key: fmt.Sprint("first", i), Tokens: Tokens{Input: 10}})
		}
		big := enter(t, q, Ask{Key: "big", Tokens: Tokens{Input: 90}})
		for i := 0; big.outcome(t) == "waiting"; i++ {
			if i == 20 {
				t.Fatal("the large call waits for ever")
			}
			v := enter(t, q, Ask{Key: fmt.Sprint("small", i), Tokens: Tokens{Input: 10}, Deadline: time.Now().Add(time.Second)})
			v.want(t, "waiting")
			t.Cleanup(v.cancel)
			(<-held).slot.Release()
		}
		big.slot.Release()
		(<-held).slot.Release()
	})
}

func TestOrderWithinKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, Config{Calls: 1})
		cur := enter(t, q, Ask{})
		now := time.Now()
		asks := []Ask{{}, {Deadline: now.Add(5 * time.Second)}, {Deadline: now.Add(2 * time.Second)}, {}, {Deadline: now.Add(2 * time.Second)}, {Deadline: now.Add(time.Hour)}}
		var vs []*visit
		for _, ask := range asks {
			vs = append(vs, enter(t, q, ask))
		}
		for _, want := range []int{2, 4, 1, 0, 3, 5} { // an hour is later than the longest wait
			cur.slot.Release()
			vs[want].want(t, "admitted")
			cur = vs[want]
		}
		cur.slot.Release()
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, Config{Calls: 1})
		first := enter(t, q, Ask{})
		a, b := enter(t, q, Ask{Class: Batch}), enter(t, q, Ask{})
		q.Close()
		q.Close()
		a.want(t, "closed")
		b.want(t, "closed")
		enter(t, q, Ask{}).want(t, "closed")
		first.slot.Release()
		late := enter(t, q, Ask{})
		late.want(t, "closed")
		if r := late.err.(*Rejection); r.RetryAfter != time.Second || !strings.Contains(r.Error(), "closed") {
			t.Errorf("rejection is %v", r)
		}
		if n := q.State().InFlight; n != 0 {
			t.Errorf("%d in flight", n)
		}
	})
}

// TestSlotReuse: a slot serves one call after the other, and not two at once.
func TestSlotReuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, Config{Calls: 1, MaxWait: time.Second})
		var idle Slot
		idle.Release()
		idle.Settle(Tokens{Input: 5})
		first, v := enter(t, q, Ask{}), enter(t, q, Ask{})
		for _, s := range []*Slot{&first.slot, &v.slot} {
			if err := q.Enter(t.Context(), &Ask{}, s); !errors.Is(err, errSlotInUse) {
				t.Errorf("a slot in use enters: %v", err)
			}
		}
		time.Sleep(time.Second)
		v.want(t, "waited")
		for range 3 { // waits anew with the slot that was refused, then released
			again := make(chan error)
			go func() { again <- q.Enter(t.Context(), &Ask{}, &v.slot) }()
			time.Sleep(time.Second / 2)
			first.slot.Release()
			if err := <-again; err != nil {
				t.Fatal(err)
			}
			go func() { again <- q.Enter(t.Context(), &Ask{}, &first.slot) }()
			time.Sleep(time.Second / 2)
			v.slot.Release()
			if err := <-again; err != nil {
				t.Fatal(err)
			}
		}
		first.slot.Release()
	})
}

// TestOverrun: a stream that outgrows its reservation is counted with what it uses.
func TestOverrun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, Config{Tokens: 100})
		a := enter(t, q, Ask{Tokens: Tokens{Input: 10, Output: 10}})
		a.slot.Settle(Tokens{Input: 10, Output: 5})
		if n := q.State().Tokens; n != 20 {
			t.Errorf("%d tokens in flight, 20 are reserved", n)
		}
		a.slot.Settle(Tokens{Input: 10, Output: 80})
		b := enter(t, q, Ask{Tokens: Tokens{Input: 11}})
		b.want(t, "waiting")
		if n := q.State().Tokens; n != 90 {
			t.Errorf("%d tokens in flight, 90 are used", n)
		}
		a.slot.Release()
		b.want(t, "admitted")
		if n := q.State().Tokens; n != 11 {
			t.Errorf("%d tokens in flight, 11 are reserved", n)
		}
		b.slot.Release()
	})
}
