package alert

import (
	"testing"
	"time"
)

// TestInhibition: who is told of what when several things are true at once.
func TestInhibition(t *testing.T) {
	const all, a, b = "interactive/ttft_p99", "interactive/ttft_p99/a", "interactive/ttft_p99/b"
	for name, tt := range map[string]struct {
		stand        []standing
		hears, shows string
	}{
		"all models say it for each": {[]standing{{page: true}, {model: "a", page: true}, {model: "b", page: true}},
			"page firing " + all, "page firing " + all + ", [page firing " + a + "], [page firing " + b + "]"},
		"in any order": {[]standing{{model: "a", page: true}, {page: true}},
			"page firing " + all, "page firing " + all + ", [page firing " + a + "]"},
		"one model is worse than the sum": {[]standing{{ticket: true}, {model: "a", page: true}, {model: "b", ticket: true}},
			"ticket firing " + all + ", page firing " + a, "ticket firing " + all + ", page firing " + a + ", [ticket firing " + b + "]"},
		"a page says what a ticket and a warning would": {[]standing{{page: true, ticket: true, consumed: 0.6}},
			"page firing " + all, "page firing " + all + ", [ticket firing " + all + "], [warning firing " + all + "]"},
		"a freeze is said beside a page": {[]standing{{page: true, consumed: 0.9}},
			"page firing " + all + ", freeze firing " + all, "page firing " + all + ", freeze firing " + all + ", [warning firing " + all + "]"},
		"a ticket and a warning are two things": {[]standing{{ticket: true, consumed: 0.6}},
			"ticket firing " + all + ", warning firing " + all, "ticket firing " + all + ", warning firing " + all},
		"another objective and another class": {[]standing{{page: true}, {objective: "tpot_p95", model: "a", page: true}, {class: "batch", model: "a", page: true}},
			"page firing " + all + ", page firing batch/ttft_p99/a, page firing interactive/tpot_p95/a",
			"page firing " + all + ", page firing batch/ttft_p99/a, page firing interactive/tpot_p95/a"},
		"an exhausted budget of all silences a model's": {[]standing{{consumed: 1}, {model: "a", consumed: 0.9, ticket: true}},
			"exhausted firing " + all, "exhausted firing " + all + ", [freeze firing " + all + "], [warning firing " + all + "], [freeze firing " + a + "], [ticket firing " + a + "], [warning firing " + a + "]"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scribe{name: "webhook"}
			within(t, Options{Receivers: []Receiver{s}}, func(t *testing.T, r *rig) {
				r.see(tt.stand...)
				hears(t, s, tt.hears)
				if got := r.shows(); got != tt.shows {
					t.Errorf("shown are %q, want %q", got, tt.shows)
				}
			})
		})
	}
}

// TestInhibitionEnds: what was not told is told when nothing else says it any more, and
// what was not told has no end to tell.
func TestInhibitionEnds(t *testing.T) {
	s := &scribe{name: "webhook"}
	within(t, Options{Receivers: []Receiver{s}}, func(t *testing.T, r *rig) {
		model := standing{model: "a", page: true}
		r.see(standing{page: true}, model, standing{model: "b", page: true})
		hears(t, s, "page firing interactive/ttft_p99")
		r.see(standing{}, model)
		pass(5 * time.Minute)
		r.see(standing{}, model)
		hears(t, s, "page firing interactive/ttft_p99/a, page resolved interactive/ttft_p99")
		if got := r.shows(); got != "page firing interactive/ttft_p99/a" {
			t.Errorf("shown are %s", got)
		}
	})
}

// TestInhibitedUntilClear: what was not told while it held is not told while it is only kept
// for a while.
func TestInhibitedUntilClear(t *testing.T) {
	s := &scribe{name: "webhook"}
	within(t, Options{Receivers: []Receiver{s}}, func(t *testing.T, r *rig) {
		r.see(standing{page: true, ticket: true})
		r.see(standing{})
		pass(5 * time.Minute)
		r.see(standing{})
		hears(t, s, "page firing interactive/ttft_p99, page resolved interactive/ttft_p99")
		if got := r.shows(); got != "ticket firing interactive/ttft_p99" {
			t.Errorf("shown are %s", got)
		}
		r.see(standing{ticket: true})
		hears(t, s, "ticket firing interactive/ttft_p99")
	})
}

// TestInhibitedBeforeItWasTold: what a receiver that was away need not hear any more is not
// owed to it.
func TestInhibitedBeforeItWasTold(t *testing.T) {
	var line switchable
	line.set(errDead)
	s := &scribe{name: "webhook", answer: line.answer}
	within(t, Options{Receivers: []Receiver{s}}, func(t *testing.T, r *rig) {
		r.see(standing{model: "a", page: true})
		if st := r.State(); st.Receivers[0].Pending != 1 || len(st.Alerts[0].Pending) != 1 {
			t.Errorf("the state is %+v", st)
		}
		r.see(standing{page: true}, standing{model: "a", page: true})
		if st := r.State(); st.Receivers[0].Pending != 1 || len(st.Alerts[0].Pending) != 1 || len(st.Alerts[1].Pending) != 0 {
			t.Errorf("the state is %+v", st)
		}
		line.set(nil)
		pass(lastPause)
		hears(t, s, "page firing interactive/ttft_p99")
	})
}

// TestInhibitedLater: who knows of an alert hears of its end, whatever began meanwhile; and
// Alertmanager, where it would end by itself, goes on hearing of it.
func TestInhibitedLater(t *testing.T) {
	once, again := &scribe{name: "webhook"}, &scribe{name: "alertmanager", manner: manners{again: time.Minute}}
	within(t, Options{Receivers: []Receiver{once, again}}, func(t *testing.T, r *rig) {
		const model, all = "page firing interactive/ttft_p99/a", "page firing interactive/ttft_p99"
		r.see(standing{model: "a", page: true})
		hears(t, once, model)
		hears(t, again, model)
		r.see(standing{model: "a", page: true}, standing{page: true})
		hears(t, once, all)
		again.take()
		if got := r.shows(); got != all+", ["+model+"]" {
			t.Errorf("shown are %s", got)
		}
		pass(3 * time.Minute)
		hears(t, once, "")
		if got := again.take(); got != all+", "+model+", "+all+", "+model+", "+all+", "+model {
			t.Errorf("within three minutes alertmanager heard %q", got)
		}
		r.see(standing{page: true})
		pass(5 * time.Minute)
		r.see(standing{page: true})
		hears(t, once, "page resolved interactive/ttft_p99/a")
	})
}
