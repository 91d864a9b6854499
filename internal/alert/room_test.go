package alert

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func models(n int, s standing) (all []standing) {
	for i := range n {
		s.model = fmt.Sprintf("m%04d", i)
		all = append(all, s)
	}
	return all
}

// TestBound: a bounded number of alerts is kept, those that matter most, and the rest is
// counted.
func TestBound(t *testing.T) {
	t.Run("told alerts stay, and a page over all models has its place", func(t *testing.T) {
		s := &scribe{name: "webhook"}
		within(t, Options{Receivers: []Receiver{s}}, func(t *testing.T, r *rig) {
			many := models(maxModels+50, standing{ticket: true})
			r.see(many...)
			if st := r.State(); len(st.Alerts) != maxModels || st.LeftOut != 50 {
				t.Fatalf("kept %d, left out %d", len(st.Alerts), st.LeftOut)
			}
			if heard := strings.Count(s.take(), "firing"); heard != maxModels {
				t.Errorf("%d were told", heard)
			}
			r.see(append(many, standing{page: true})...)
			hears(t, s, "page firing interactive/ttft_p99")
			if st := r.State(); len(st.Alerts) != maxModels+1 || st.LeftOut != 50 {
				t.Errorf("kept %d, left out %d", len(st.Alerts), st.LeftOut)
			}
		})
	})
	t.Run("all places are taken", func(t *testing.T) {
		s := &scribe{name: "webhook"}
		within(t, Options{Receivers: []Receiver{s}}, func(t *testing.T, r *rig) {
			many := models(maxModels, standing{ticket: true})
			for i := range maxAlerts {
				many = append(many, standing{objective: fmt.Sprint(i), ticket: true})
			}
			r.see(many...)
			// Those about all models come first, and leave no place for others.
			if st := r.State(); len(st.Alerts) != maxAlerts || st.LeftOut != maxModels || st.Alerts[maxAlerts-1].Model != "" {
				t.Errorf("kept %d, left out %d", len(st.Alerts), st.LeftOut)
			}
		})
	})
	t.Run("what is over all models comes first", func(t *testing.T) {
		s := &scribe{name: "webhook"}
		within(t, Options{Receivers: []Receiver{s}}, func(t *testing.T, r *rig) {
			r.see(append(models(maxModels+50, standing{page: true}), standing{page: true})...)
			hears(t, s, "page firing interactive/ttft_p99")
			if st := r.State(); len(st.Alerts) != maxModels+1 || st.LeftOut != 50 {
				t.Errorf("kept %d, left out %d", len(st.Alerts), st.LeftOut)
			}
		})
	})
	t.Run("what nobody was told of makes place", func(t *testing.T) {
		s := &scribe{name: "webhook"}
		within(t, Options{Receivers: []Receiver{s}}, func(t *testing.T, r *rig) {
			many := append(models(maxModels, standing{ticket: true}), standing{ticket: true})
			r.see(many...)
			hears(t, s, "ticket firing interactive/ttft_p99")
			r.see(append(many, standing{objective: "tpot", page: true}, standing{objective: "e2e", model: "x", page: true}, standing{objective: "e2e", model: "y", consumed: 0.5})...)
			hears(t, s, "page firing interactive/tpot, page firing interactive/e2e/x")
			if st := r.State(); len(st.Alerts) != maxModels+2 || st.LeftOut != 2 {
				t.Errorf("kept %d, left out %d", len(st.Alerts), st.LeftOut)
			}
		})
	})
	t.Run("what ended makes place", func(t *testing.T) {
		var line switchable
		line.set(errDead)
		s := &scribe{name: "webhook", answer: line.answer}
		within(t, Options{Receivers: []Receiver{s}}, func(t *testing.T, r *rig) {
			r.see(models(maxModels, standing{objective: "old", page: true})...)
			r.see()
			pass(5 * time.Minute)
			r.see()
			if st := r.State(); len(st.Alerts) != maxModels || st.Receivers[0].Pending != maxModels {
				t.Fatalf("kept %d, state %+v", len(st.Alerts), st.Receivers)
			}
			r.see(models(300, standing{ticket: true})...)
			st := r.State()
			if len(st.Alerts) != maxModels || st.LeftOut != 0 || st.Receivers[0].Dropped != 300 || st.Receivers[0].Pending != maxModels {
				t.Errorf("kept %d, left out %d, state %+v", len(st.Alerts), st.LeftOut, st.Receivers)
			}
			line.set(nil)
			pass(lastPause)
			heard := s.take()
			if on, off := strings.Count(heard, "firing"), strings.Count(heard, "resolved"); on != 300 || off != maxModels-300 {
				t.Errorf("heard of %d beginnings and %d ends", on, off)
			}
		})
	})
}
