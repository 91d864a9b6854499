package telemetry

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weirgate/weir/slo"
)

var sloNow = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// objectives is a state in which everything of one class is known.
func objectives() SLOState {
	ttftP99 := slo.Objective{Name: "ttft_p99", Number: slo.TTFT, Target: 990_000, Threshold: 2 * time.Second}
	success := slo.Objective{Name: "success", Number: slo.Success, Target: 999_000}
	standing := func(model string, o slo.Objective, state slo.State) slo.ObjectiveStatus {
		return slo.ObjectiveStatus{
			Class: "interactive", Model: model, Objective: o, State: state,
			Budget: slo.Budget{Calls: 400, Consumed: new(0.25), ConsumedForecast: new(0.125)},
			Burn:   []slo.Burn{{Window: 5 * time.Minute, Rate: new(2.5)}, {Window: 3 * 24 * time.Hour}},
		}
	}
	all := standing(slo.AllModels, ttftP99, slo.StatePage)
	all.Awaiting, all.OldestReceived = 3, sloNow.Add(-1500*time.Millisecond)
	none := standing("llama", success, slo.StateOK)
	none.Budget, none.Burn = slo.Budget{}, nil
	return SLOState{
		Classes: []slo.Class{{Name: "interactive", Objectives: []slo.Objective{ttftP99, success}}},
		Totals: slices.Values([]slo.Total{
			{Class: "interactive", Model: "llama", Objective: "ttft_p99", Good: 90, Bad: 10, Unknown: 5, Outside: 7},
			{Class: "interactive", Model: slo.AllModels, Objective: "ttft_p99", Good: 90, Bad: 10, Unknown: 5, Outside: 7},
		}),
		Status: &slo.Status{At: sloNow, Since: sloNow.Add(-time.Hour),
			Objectives: []slo.ObjectiveStatus{all, standing("llama", ttftP99, slo.StateTicket), none}},
		Alerts:        map[string]int64{"page": 2, "ticket": 0},
		Notifications: []NotificationState{{"alertmanager", "sent", 40}, {"alertmanager", "failed", 2}},
	}
}

func TestSLO(t *testing.T) {
	m := New()
	if f := gather(t, m)["weir_slo_calls_total"]; f != nil {
		t.Errorf("objectives without a source: %v", f)
	}
	m.SLO(objectives)
	all := gather(t, m)
	objective := []string{"class", "interactive", "objective", "ttft_p99"}
	of := func(labels ...string) []string { return append(slices.Clone(objective), labels...) }
	for verdict, want := range map[string]float64{"good": 90, "bad": 10, "unknown": 5, "outside": 7} {
		if got := find(t, all, "weir_slo_calls_total", of("model", "llama", "verdict", verdict)...); got == nil || got.GetCounter().GetValue() != want {
			t.Errorf("%s calls are %v, want %v", verdict, got, want)
		}
	}
	if got := len(all["weir_slo_calls_total"].GetMetric()); got != 4 {
		t.Errorf("%d series of calls, want the 4 of one model: the sum over models would be counted twice", got)
	}
	for _, c := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"weir_slo_target_ratio", objective, 0.99},
		{"weir_slo_threshold_seconds", objective, 2},
		{"weir_slo_target_ratio", []string{"objective", "success"}, 0.999},
		{"weir_slo_budget_consumed_ratio", of("model", "", "basis", "so_far"), 0.25},
		{"weir_slo_budget_consumed_ratio", of("model", "llama", "basis", "forecast"), 0.125},
		{"weir_slo_period_calls", of("model", "llama"), 400},
		{"weir_slo_burn_rate", of("model", "", "window", "5m"), 2.5},
		{"weir_slo_state", of("model", "", "state", "page"), 1},
		{"weir_slo_state", of("model", "", "state", "ticket"), 0},
		{"weir_slo_state", of("model", "llama", "state", "ticket"), 1},
		{"weir_slo_awaiting", []string{"class", "interactive"}, 3},
		{"weir_slo_oldest_awaiting_seconds", []string{"class", "interactive"}, 1.5},
		{"weir_slo_data_since_timestamp_seconds", nil, float64(sloNow.Unix() - 3600)},
		{"weir_alerts_active", []string{"severity", "page"}, 2},
		{"weir_alerts_active", []string{"severity", "ticket"}, 0},
	} {
		if got := find(t, all, c.name, c.labels...); got == nil || got.GetGauge().GetValue() != c.want {
			t.Errorf("%s%v is %v, want %v", c.name, c.labels, got, c.want)
		}
	}
	if got := find(t, all, "weir_alert_notifications_total", "receiver", "alertmanager", "result", "failed"); got.GetCounter().GetValue() != 2 {
		t.Errorf("notifications that failed: %v", got)
	}
	// What is unknown is absent: a window without calls, a budget without an N, a time that is no time.
	for name, want := range map[string]int{"weir_slo_burn_rate": 2, "weir_slo_budget_consumed_ratio": 4, "weir_slo_threshold_seconds": 1, "weir_slo_state": 18} {
		if got := len(all[name].GetMetric()); got != want {
			t.Errorf("%d series of %s, want %d", got, name, want)
		}
	}
	m.SLO(nil)
	if f := gather(t, m)["weir_slo_calls_total"]; f != nil {
		t.Errorf("objectives after their source was taken away: %v", f)
	}
}

// TestNobodyAwaits: that no call waits is a figure; the age of none is not.
func TestNobodyAwaits(t *testing.T) {
	m := New()
	state := objectives()
	state.Status.Objectives[0].Awaiting, state.Status.Objectives[0].OldestReceived = 0, time.Time{}
	m.SLO(func() SLOState { return state })
	all := gather(t, m)
	if got := find(t, all, "weir_slo_awaiting", "class", "interactive"); got == nil || got.GetGauge().GetValue() != 0 {
		t.Errorf("awaiting: %v, want 0", got)
	}
	if f := all["weir_slo_oldest_awaiting_seconds"]; f != nil {
		t.Errorf("an age of none: %v", f)
	}
	// A clock that was set back makes no age negative.
	state.Status.Objectives[0].Awaiting, state.Status.Objectives[0].OldestReceived = 1, sloNow.Add(time.Hour)
	if got := find(t, gather(t, m), "weir_slo_oldest_awaiting_seconds").GetGauge().GetValue(); got != 0 {
		t.Errorf("age %v, want 0", got)
	}
}

// TestSLOTakesAnyState: no state costs the scrape, labels are bounded, counts add
// up to what there is, and no counter ever falls.
func TestSLOTakesAnyState(t *testing.T) {
	const models, classes, names = 300, 80, 4
	var totals []slo.Total
	st := &slo.Status{At: sloNow}
	for i := range models * classes {
		class, model := fmt.Sprint("c", i%classes), fmt.Sprint("m", i/classes)
		if i%97 == 0 {
			class, model = "\xff", "\xfe"
		}
		for n := range names {
			name := fmt.Sprint("o", n)
			totals = append(totals, slo.Total{Class: class, Model: model, Objective: name, Good: 3, Bad: 2, Unknown: 1, Outside: 1})
			st.Objectives = append(st.Objectives, slo.ObjectiveStatus{Class: class, Model: model, Objective: slo.Objective{Name: name}, State: "odd",
				Burn: []slo.Burn{{Window: time.Duration(i) * time.Minute, Rate: new(math.Inf(1))}, {Window: time.Duration(i) * time.Minute, Rate: new(1.0)}}})
		}
	}
	for n := range 1000 { // one class with more objectives than there may be
		totals = append(totals, slo.Total{Class: "c0", Model: "m0", Objective: fmt.Sprint("many", n), Good: 1, Bad: 1, Unknown: 1, Outside: 1})
	}
	shown := 0
	alerts := map[string]int64{"\xff": 1}
	var sent []NotificationState
	for i := range 100 {
		alerts[fmt.Sprint(i)] = 1
		sent = append(sent, NotificationState{fmt.Sprint(i), fmt.Sprint(i), 1}, NotificationState{"one", "sent", 1})
	}
	m := New()
	m.SLO(func() SLOState {
		return SLOState{Totals: slices.Values(totals[:shown]), Status: st, Alerts: alerts, Notifications: sent,
			Classes: []slo.Class{{}, {Name: "\xff", Objectives: make([]slo.Objective, 2)}, {Name: "c0", Objectives: []slo.Objective{{Name: "twice"}, {Name: "twice"}}}}}
	})
	before := map[string]float64{}
	for _, shown = range []int{100, 3000, len(totals)} {
		all := gather(t, m)
		for name, most := range map[string]int{
			"weir_slo_calls_total": (ObjectiveSeriesCap + (slo.MaxClasses+1)*(ObjectiveCap+1)) * len(verdicts),
			"weir_slo_state":       ObjectiveSeriesCap * len(slo.States), "weir_slo_burn_rate": ObjectiveSeriesCap * WindowCap,
			"weir_alerts_active": severityCap, "weir_alert_notifications_total": ReceiverCap * resultCap,
		} {
			if got := len(all[name].GetMetric()); got == 0 || got > most {
				t.Errorf("%d series of %s, want some and at most %d", got, name, most)
			}
		}
		var want float64
		for _, total := range totals[:shown] {
			want += float64(total.Good + total.Bad + total.Unknown + total.Outside)
		}
		if got := total(all, "weir_slo_calls_total"); got != want {
			t.Errorf("counts add up to %v, want %v", got, want)
		}
		for _, s := range all["weir_slo_calls_total"].GetMetric() {
			id := fmt.Sprint(s.GetLabel())
			if s.GetCounter().GetValue() < before[id] {
				t.Fatalf("%s fell from %v to %v", id, before[id], s.GetCounter().GetValue())
			}
			before[id] = s.GetCounter().GetValue()
		}
		windows := map[string]bool{}
		for _, s := range all["weir_slo_burn_rate"].GetMetric() {
			for _, l := range s.GetLabel() {
				if l.GetName() == "window" {
					windows[l.GetValue()] = true
				}
			}
		}
		if len(windows) > WindowCap {
			t.Errorf("%d windows, want at most %d", len(windows), WindowCap)
		}
	}
}

func TestWindowLabel(t *testing.T) {
	for d, want := range map[time.Duration]string{
		5 * time.Minute: "5m", time.Hour: "1h", 6 * time.Hour: "6h", 72 * time.Hour: "3d", 90 * time.Second: "90s", 90 * time.Minute: "90m",
		200 * time.Millisecond: "200ms", time.Microsecond: "1µs", 0: "0s",
	} {
		if got := windowLabel(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
