package alert

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/slo"
)

// TestBlame: an alert says which phase is to blame, from its beginning to its end.
func TestBlame(t *testing.T) {
	s := &scribe{name: "webhook"}
	var asked []string
	o := Options{Receivers: []Receiver{s}, Blame: func(class, model, objective string, number slo.Number, now time.Time) Blame {
		asked = append(asked, fmt.Sprintf("%s/%s/%s %v %s", class, objective, model, number, now.UTC().Format(time.TimeOnly)))
		time.Sleep(300 * time.Millisecond)
		return Blame{Phase: "queue_engine", Text: "calls wait in the engine.", Share: call.Figure(0.83), Evidence: []string{"waiting grew from 0 to 31", "KV at 71 %"}}
	}}
	within(t, o, func(t *testing.T, r *rig) {
		began := time.Now()
		r.see(standing{model: "llama", page: true}, standing{model: "llama", page: true, objective: "e2e"})
		hears(t, s, "")
		pass(300 * time.Millisecond)
		hears(t, s, "page firing interactive/e2e/llama")
		pass(300 * time.Millisecond)
		hears(t, s, "page firing interactive/ttft_p99/llama")
		at := began.UTC().Format(time.TimeOnly)
		if want := []string{"interactive/e2e/llama ttft " + at, "interactive/ttft_p99/llama ttft " + at}; !slices.Equal(asked, want) {
			t.Errorf("asked %q, want %q", asked, want)
		}
		r.see()
		pass(5 * time.Minute)
		r.see()
		for _, a := range s.alerts {
			n := a.Annotations
			if n["phase"] != "queue_engine" || n["blame"] != "calls wait in the engine (phase queue_engine, share 83 %)" || n["evidence"] != "waiting grew from 0 to 31\nKV at 71 %" ||
				!strings.Contains(n["description"], "Evidence: waiting grew from 0 to 31; KV at 71 %.") {
				t.Errorf("%s says %q", headline(a), n)
			}
		}
		if len(s.alerts) != 4 || len(asked) != 2 {
			t.Errorf("%d alerts, asked %d times", len(s.alerts), len(asked))
		}
	})
}

// TestSlowBlame: an alert waits two seconds at most, and takes the answer up when it comes.
func TestSlowBlame(t *testing.T) {
	once, again := &scribe{name: "webhook"}, &scribe{name: "alertmanager", manner: manners{again: time.Minute}}
	var busy atomic.Int32
	o := Options{Receivers: []Receiver{once, again}, Blame: func(_, model, _ string, _ slo.Number, _ time.Time) Blame {
		if busy.Add(1) > 1 {
			t.Error("asked for two at once")
		}
		defer busy.Add(-1)
		time.Sleep(15 * time.Second)
		return Blame{Phase: "decode", Text: "of " + model}
	}}
	within(t, o, func(t *testing.T, r *rig) {
		r.see(standing{model: "a", page: true}, standing{model: "b", page: true})
		pass(blameTime - 1)
		hears(t, once, "")
		pass(1)
		hears(t, once, "page firing interactive/ttft_p99/a, page firing interactive/ttft_p99/b")
		if a := once.alerts[0]; a.Annotations["phase"] != "" || a.Annotations["blame"] != "" {
			t.Errorf("the alert says %q", a.Annotations)
		}
		pass(time.Minute)
		if n := len(again.alerts); n != 4 || again.alerts[3].Annotations["blame"] != "of b (phase decode)" || again.alerts[2].Annotations["blame"] != "of a (phase decode)" {
			t.Errorf("the reminder of %d says %q", n, again.alerts[n-1].Annotations)
		}
		hears(t, once, "") // it knows of the alert, and the blame alone is no news
		if b := r.State().Alerts[0].Blame; b == nil || b.Text != "of a" {
			t.Errorf("shown is %+v", b)
		}
	})
}

// TestBlameOfAnotherBeginning: an answer that comes when the alert has ended and begun anew is
// not that of the new one.
func TestBlameOfAnotherBeginning(t *testing.T) {
	var line switchable
	line.set(errDead) // so that the end is owed, and the alert kept
	s := &scribe{name: "webhook", answer: line.answer}
	n := 0
	o := Options{Receivers: []Receiver{s}, Hold: time.Second, Blame: func(string, string, string, slo.Number, time.Time) Blame {
		n++
		b := Blame{Phase: "decode", Text: fmt.Sprint("answer ", n)}
		time.Sleep(10 * time.Second)
		return b
	}}
	within(t, o, func(t *testing.T, r *rig) {
		r.see(standing{page: true})
		pass(4 * time.Second)
		r.see()
		pass(time.Second)
		r.see()
		r.see(standing{page: true})
		pass(5 * time.Second)
		if b := r.State().Alerts[0].Blame; b != nil {
			t.Errorf("the second beginning shows %+v", b)
		}
		pass(10 * time.Second)
		if b := r.State().Alerts[0].Blame; b == nil || b.Text != "answer 2" {
			t.Errorf("the second beginning shows %+v", b)
		}
		line.set(nil)
		pass(lastPause)
		hears(t, s, "page firing interactive/ttft_p99")
	})
}

// TestStuckBlame: one that never returns costs two seconds and one goroutine.
func TestStuckBlame(t *testing.T) {
	s := &scribe{name: "webhook"}
	var free chan struct{}
	o := Options{Receivers: []Receiver{s}, Blame: func(string, string, string, slo.Number, time.Time) Blame { <-free; return Blame{} }}
	within(t, o, func(t *testing.T, r *rig) {
		free = make(chan struct{})
		r.see(standing{page: true})
		pass(blameTime)
		hears(t, s, "page firing interactive/ttft_p99")
		pass(time.Hour)
		r.see(standing{page: true}, standing{objective: "e2e", page: true})
		pass(blameTime)
		hears(t, s, "page firing interactive/e2e")
		began := time.Now()
		r.see(standing{page: true}, standing{objective: "tpot", page: true})
		r.cancel()
		hears(t, s, "page firing interactive/tpot") // at the end nothing waits for it
		if took := time.Since(began); took != drainTime+time.Second {
			t.Errorf("Run ended after %v", took)
		}
		close(free)
		pass(0)
	})
}

// TestBlamePanics: the alert goes out without.
func TestBlamePanics(t *testing.T) {
	s := &scribe{name: "webhook"}
	o := Options{Receivers: []Receiver{s}, Blame: func(string, string, string, slo.Number, time.Time) Blame { panic("here") }}
	within(t, o, func(t *testing.T, r *rig) {
		r.see(standing{page: true}, standing{objective: "e2e", page: true})
		hears(t, s, "page firing interactive/e2e, page firing interactive/ttft_p99")
	})
}

// TestBlameOrder: what is told first is asked for first, and what is inhibited when it is told.
func TestBlameOrder(t *testing.T) {
	var asked []string
	o := Options{Blame: func(class, model, objective string, _ slo.Number, _ time.Time) Blame {
		asked = append(asked, strings.Trim(objective+"/"+model, "/"))
		return Blame{}
	}}
	within(t, o, func(t *testing.T, r *rig) {
		r.see(standing{page: true}, standing{model: "a", page: true}, standing{objective: "e2e", model: "a", ticket: true}, standing{objective: "tpot", model: "a", page: true})
		if want := []string{"ttft_p99", "tpot/a", "e2e/a"}; !slices.Equal(asked, want) {
			t.Errorf("asked for %q, want %q", asked, want)
		}
		r.see(standing{model: "a", page: true})
		pass(5 * time.Minute)
		r.see(standing{model: "a", page: true})
		if got := asked[len(asked)-1]; len(asked) != 4 || got != "ttft_p99/a" {
			t.Errorf("asked for %q", asked)
		}
		if b := r.State().Alerts[0].Blame; b != nil {
			t.Errorf("a blame that says nothing is shown: %+v", b)
		}
	})
}

// TestBlameConfiguredAway: what waits for it goes out.
func TestBlameConfiguredAway(t *testing.T) {
	s := &scribe{name: "webhook"}
	var free chan struct{}
	o := Options{Receivers: []Receiver{s}, Blame: func(string, string, string, slo.Number, time.Time) Blame { <-free; return Blame{Phase: "decode"} }}
	within(t, o, func(t *testing.T, r *rig) {
		free = make(chan struct{})
		r.see(standing{page: true}, standing{objective: "e2e", page: true}, standing{objective: "tpot", page: true})
		r.Configure(Options{Receivers: []Receiver{s}})
		close(free)
		pass(0)
		hears(t, s, "page firing interactive/e2e, page firing interactive/tpot, page firing interactive/ttft_p99")
	})
}

// TestBlameBounds: what it says is bounded, and one line each.
func TestBlameBounds(t *testing.T) {
	long := strings.Repeat("ä\n", 5000)
	b := tidyBlame(Blame{Phase: long, Text: long, Evidence: slices.Repeat([]string{long}, 50)})
	for _, text := range append(b.Evidence, b.Phase, b.Text) {
		if len(text) > maxSentence || strings.Contains(text, "\n") || strings.ToValidUTF8(text, "?") != text {
			t.Errorf("%d bytes: %q", len(text), text)
		}
	}
	if len(b.Evidence) != maxEvidence || len(b.Phase) > maxPhase {
		t.Errorf("%d pieces of evidence, phase of %d bytes", len(b.Evidence), len(b.Phase))
	}
}
