package queue

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestConfigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Calls: 2, MaxWait: 10 * time.Second, Classes: map[string]Class{"own": {Weight: 2}}}
		q := newQueue(t, cfg)
		var vs []*visit
		for range 6 {
			vs = append(vs, enter(t, q, Ask{Class: "own"}))
		}
		set := func(change func(*Config)) {
			t.Helper()
			change(&cfg)
			if err := q.Configure(cfg); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			check(t, q)
		}
		vs[2].want(t, "waiting")
		set(func(c *Config) { c.Calls = 4 }) // up: two more come in at once
		vs[3].want(t, "admitted")
		vs[4].want(t, "waiting")
		set(func(c *Config) { c.Calls = 1 }) // down: those in flight stay counted
		for i, v := range vs[:3] {
			v.slot.Release()
			vs[4].want(t, "waiting")
			if n := q.State().InFlight; n != int64(3-i) {
				t.Fatalf("%d in flight", n)
			}
		}
		if err := q.Configure(Config{Calls: -1}); err == nil || q.State().InFlight != 1 {
			t.Errorf("a bad configuration is taken: %v", err)
		}
		set(func(c *Config) { c.MaxWaiting = 1 }) // who waits above it stays
		vs[5].want(t, "waiting")
		enter(t, q, Ask{}).want(t, "full")
		set(func(c *Config) { c.Classes, c.MaxWaiting, c.MaxPerKey = nil, 10, 10 }) // a class that is gone keeps its calls
		if st := classState(t, q, "own"); st.Waiting != 2 || st.InFlight != 1 || st.Weight != 2 {
			t.Errorf("the class that is gone: %+v", st)
		}
		stray := enter(t, q, Ask{Class: "own"})
		if n := classState(t, q, DefaultClass).Waiting; n != 1 {
			t.Errorf("%d calls of a class that is gone wait in %s", n, DefaultClass)
		}
		set(func(c *Config) { c.MaxWait = 2 * time.Second })
		time.Sleep(2 * time.Second)
		for _, v := range []*visit{vs[4], vs[5], stray} {
			v.want(t, "waited")
		}
		vs[3].slot.Release()
		if n := len(q.State().Classes); n != 3 {
			t.Errorf("%d classes are left", n)
		}
		set(func(c *Config) { c.Calls, c.Tokens = 0, 10 }) // other caps at once
		a := enter(t, q, Ask{Tokens: Tokens{Input: 10}})
		b := enter(t, q, Ask{Tokens: Tokens{Input: 10}})
		b.want(t, "waiting")
		set(func(c *Config) { c.Tokens = 0 })
		b.want(t, "admitted")
		a.slot.Release()
		b.slot.Release()
	})
}

// TestClassComesBack: a class that is configured again while its last calls
// are there is the same class.
func TestClassComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		with := Config{Calls: 1, Classes: map[string]Class{"own": {Weight: 2}}}
		q := newQueue(t, with)
		a, b := enter(t, q, Ask{Class: "own"}), enter(t, q, Ask{Class: "own"})
		for _, cfg := range []Config{{Calls: 1}, with} {
			if err := q.Configure(cfg); err != nil {
				t.Fatal(err)
			}
		}
		a.slot.Release()
		b.want(t, "admitted")
		b.slot.Release()
		if st := classState(t, q, "own"); st.Waits.Count != 2 || st.InFlight != 0 {
			t.Errorf("the class is %+v", st)
		}
		if err := q.Configure(Config{}); err != nil || len(q.State().Classes) != 3 {
			t.Errorf("an empty class stays: %v", err)
		}
	})
}
