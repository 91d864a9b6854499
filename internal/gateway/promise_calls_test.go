package gateway

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/limit"
	"github.com/weirgate/weir/internal/queue"
	"github.com/weirgate/weir/slo"
)

// TestLower: a header may ask for less, never for more.
func TestLower(t *testing.T) {
	o := &Options{Weights: map[string]int{"interactive": 16, "completion": 4, "batch": 1, "vip": 64}}
	for _, c := range [][3]string{
		{"interactive", "batch", "batch"}, {"interactive", "completion", "completion"}, {"interactive", "vip", "interactive"},
		{"batch", "interactive", "batch"}, {"batch", "completion", "batch"}, {"vip", "interactive", "interactive"},
		{"interactive", "unheard", "interactive"}, {"interactive", "interactive", "interactive"},
		// Nobody has said what these weigh: what the default class does.
		{"unheard", "batch", "batch"}, {"unheard", "vip", "unheard"}, {"unheard", "interactive", "unheard"},
	} {
		if got := o.lower(c[0], c[1]); got != c[2] {
			t.Errorf("a call of class %s that asks for %s is in %s, want %s", c[0], c[1], got, c[2])
		}
	}
	if got := new(Options).lower("interactive", "batch"); got != "interactive" {
		t.Errorf("without weights it is in %s", got)
	}
}

// TestMarkIsGoodOnce: the mark of the gateway's own calls is of no use to whoever reads it
// afterwards.
func TestMarkIsGoodOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(new(counted))
		probes := func(word string) bool {
			r := chat("x", 1, "")
			r.Header.Set(probeHeader, word)
			c := g.Begin(r, options, &Surroundings{})
			_ = c.Serve(httptest.NewRecorder(), streams(0, 0))
			return c.Record().Probe
		}
		_, word := g.ProbeHeader()
		_, other := g.ProbeHeader()
		if word == other || !probes(word) {
			t.Fatal("a mark is not good, or not new each time")
		}
		if probes(word) {
			t.Error("a mark is good twice")
		}
		g.DropProbe(other)
		if probes(other) {
			t.Error("a mark that was dropped is good")
		}
		if probes("guessed") || len(g.probing.words) != 0 {
			t.Errorf("a guess is good, or %d marks are left", len(g.probing.words))
		}
	})
}

// TestWhoIsNotJudged: a load test, and whoever has not shown a good key, count for no
// objective, however it ends.
func TestWhoIsNotJudged(t *testing.T) {
	g, tracker := promised(t, "ttft p99 <= 2s", "success 99.9%", "goodput 95%")
	store := withKey(t, keys.Entry{Alias: "load-test", Bench: true}, aKey)
	o := &Options{Class: "interactive", Admission: &Admission{Keys: store, RequireKey: true}}
	ask := func(key string, next NextFunc) *call.Record {
		r := chatRequest(true)
		r.Header.Set("Authorization", "Bearer "+key)
		c := g.Begin(r, o, &Surroundings{})
		_ = c.Serve(httptest.NewRecorder(), next)
		return c.Record()
	}
	if rec := ask(aKey, streams(0, 0)); rec.Outcome != call.Completed || !rec.Bench {
		t.Errorf("%s, load test: %t", rec.Outcome, rec.Bench)
	}
	if rec := ask(aKey, refused()); rec.Outcome != call.UpstreamError {
		t.Errorf("%s", rec.Outcome)
	}
	if rec := ask("sk-stranger", streams(0, 0)); rec.Outcome != call.Refused {
		t.Errorf("%s", rec.Outcome)
	}
	wantSums(t, tracker, map[string]slo.Counts{"ttft_p99": {}, "success": {}, "goodput": {}})
}

// failingBooks is a ledger with a fault.
type failingBooks struct{ books }

func (*failingBooks) End(*call.Record) { panic("a fault") }

// TestFaultLetsGo: a fault that keeps the end of a call from being judged leaves no call
// behind that is awaited for ever.
func TestFaultLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, tracker := promised(t, "ttft p99 <= 2s", "success 99.9%")
		h := newHouse(t, limit.Policy{}, queue.Config{})
		o := h.options
		o.Class, o.Admission.Ledger = "interactive", new(failingBooks)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the fault was hidden")
				}
			}()
			_ = g.Begin(chatRequest(true), &o, &Surroundings{}).Serve(httptest.NewRecorder(), NextFunc(func(http.ResponseWriter, *http.Request) error {
				time.Sleep(time.Second)
				return errors.New("dial")
			}))
		}()
		time.Sleep(time.Minute)
		tracker.Tick(time.Now())
		for _, s := range tracker.Status(time.Now()).Objectives {
			if s.Awaiting != 0 || s.Total() != 0 {
				t.Errorf("%s: %d are awaited, %+v", s.Text, s.Awaiting, s.Counts)
			}
		}
		if n := g.Live().InFlight; n != 0 {
			t.Errorf("%d calls are in flight", n)
		}
	})
}

// TestLateJoinCorrectsOnce: what an engine's span tells of its queue and prefill makes good
// or bad of what was unknown, and a second word changes nothing.
func TestLateJoinCorrectsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		queue, prefill time.Duration
		want           map[string]slo.Counts
	}{
		"kept":   {100 * time.Millisecond, 200 * time.Millisecond, map[string]slo.Counts{"queue_p99": {Good: 1}, "prefill_p99": {Good: 1}, "goodput": {Good: 1}}},
		"missed": {700 * time.Millisecond, 200 * time.Millisecond, map[string]slo.Counts{"queue_p99": {Bad: 1}, "prefill_p99": {Good: 1}, "goodput": {Bad: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, tracker := promised(t, "queue p99 <= 500ms", "prefill p99 <= 500ms", "success 99.9%", "goodput 95%")
				at := g.Begin(chatRequest(true), options, &Surroundings{})
				_ = at.Serve(httptest.NewRecorder(), streams(time.Second, 30*time.Millisecond))
				unknown := slo.Counts{Unknown: 1}
				wantSums(t, tracker, map[string]slo.Counts{"queue_p99": unknown, "prefill_p99": unknown, "success": {Good: 1}, "goodput": unknown})
				rec := at.Record()
				learnt := func(queue, prefill time.Duration) *call.Record {
					a, new := rec.Learnt(call.Engine{Queue: call.Lasting(queue), Prefill: call.Lasting(prefill)})
					if !new {
						t.Fatal("nothing was learnt")
					}
					return rec.Amended(a)
				}
				at.correct(learnt(c.queue, c.prefill))
				wantSums(t, tracker, c.want)
				at.correct(learnt(time.Millisecond, 900*time.Millisecond))
				wantSums(t, tracker, c.want)
				wantSums(t, tracker, map[string]slo.Counts{"success": {Good: 1}})
			})
		})
	}
}
