package telemetry

import (
	"iter"
	"strconv"
	"time"

	"github.com/weirgate/weir/slo"
)

// SLOState is how objectives and alerts stand at one moment. The zero value has
// none of them.
type SLOState struct {
	// Classes are the objectives as configured.
	Classes []slo.Class
	// Totals yields the calls counted since the process started, by class, model and
	// objective; nil has none. They only grow while the process lives, and sums over
	// all models (slo.AllModels) are left out.
	Totals iter.Seq[slo.Total]
	// Status is how the objectives stand; nil has none.
	Status *slo.Status
	// Alerts is how many stand, by severity.
	Alerts map[string]int64
	// Notifications are the alerts that people were told of, or not.
	Notifications []NotificationState
}

// NotificationState counts what became of the notifications of one receiver.
type NotificationState struct {
	Receiver string // as the configuration names it
	Result   string // a short code: sent, failed, dropped …
	Count    uint64 // since the process started
}

// The values of labels that are fixed sets, and the caps of those that other
// packages fix.
var (
	verdicts = [...]string{"good", "bad", "unknown", "outside"}
	bases    = [...]string{"so_far", "forecast"}
)

const (
	severityCap = 8
	resultCap   = 8
)

// SLO sets where figures of objectives and alerts come from, as Live does for
// calls.
func (m *Metrics) SLO(state func() SLOState) {
	if m != nil {
		m.slo.set(state)
	}
}

func (s sending) slo(state *SLOState) {
	s.targets(state.Classes)
	if state.Totals != nil {
		s.totals(state.Totals)
	}
	if state.Status != nil {
		s.status(state.Status)
	}
	s.alerts(state)
}

// targets shows what is promised.
func (s sending) targets(classes []slo.Class) {
	shown := newShown[objectiveKey](ObjectiveSeriesCap)
	for i := range classes {
		class := s.objectives.classes.label(classes[i].Name, true)
		for _, o := range classes[i].Objectives {
			name := s.objectives.names.label(o.Name, true)
			if class == Other || name == Other || !shown.add(objectiveKey{class: class, objective: name}) {
				continue
			}
			s.figure(sloTarget, o.Target.Share(), class, name)
			if o.Number.Timed() {
				s.figure(sloThreshold, o.Threshold.Seconds(), class, name)
			}
		}
	}
}

// totals shows the counts. What has lost its labels to a cap is added up, so that
// the sums over models stay whole.
func (s sending) totals(all iter.Seq[slo.Total]) {
	sums := make(map[objectiveKey]*[len(verdicts)]int64)
	for t := range all {
		if t.Model == slo.AllModels {
			continue
		}
		key := s.objectives.counted(t.Class, t.Model, t.Objective)
		sum := sums[key]
		if sum == nil {
			sum = new([len(verdicts)]int64)
			sums[key] = sum
		}
		for i, n := range [...]int64{t.Good, t.Bad, t.Unknown, t.Outside} {
			sum[i] += n
		}
	}
	for key, sum := range sums {
		for i, n := range sum {
			s.figure(sloCalls, float64(n), key.class, key.model, key.objective, verdicts[i])
		}
	}
}

// awaiting is the calls of one class that await their first token.
type awaiting struct {
	n      int64
	oldest time.Time // zero when there is none
}

// status shows how objectives stand. Ratios cannot be added up: what has no label
// of its own is not shown.
func (s sending) status(st *slo.Status) {
	if !st.Since.IsZero() {
		s.figure(sloSince, float64(st.Since.UnixMilli())/1000)
	}
	shown := newShown[objectiveKey](ObjectiveSeriesCap)
	windows := newShown[time.Duration](WindowCap)
	waiting := make(map[string]awaiting)
	for i := range st.Objectives {
		o := &st.Objectives[i]
		key, whole := s.objectives.shown(o.Class, o.Model, o.Objective.Name)
		if !whole || !shown.add(key) {
			continue
		}
		s.objective(key, o, windows)
		if o.Model == slo.AllModels && firstToken(o.Objective.Number) {
			w := waiting[key.class]
			w.n = max(w.n, o.Awaiting)
			if at := o.OldestReceived; !at.IsZero() && (w.oldest.IsZero() || at.Before(w.oldest)) {
				w.oldest = at
			}
			waiting[key.class] = w
		}
	}
	for class, w := range waiting {
		s.figure(sloAwaiting, float64(w.n), class)
		if w.n > 0 && !w.oldest.IsZero() {
			s.figure(sloOldest, max(st.At.Sub(w.oldest), 0).Seconds(), class)
		}
	}
}

// firstToken tells whether an objective is about the first token, so that it knows what
// awaits it.
func firstToken(n slo.Number) bool {
	return n == slo.TTFT || n == slo.TTFTUpstream || n == slo.TTFTVisible
}

func (s sending) objective(key objectiveKey, o *slo.ObjectiveStatus, windows *shown[time.Duration]) {
	for i, x := range [len(bases)]*float64{o.Budget.Consumed, o.Budget.ConsumedForecast} {
		if x != nil {
			s.figure(sloBudget, *x, key.class, key.model, key.objective, bases[i])
		}
	}
	s.figure(sloPeriodCalls, float64(o.Budget.Calls), key.class, key.model, key.objective)
	burns := newShown[time.Duration](WindowCap)
	for _, b := range o.Burn {
		if _, known := windows.seen[b.Window]; !known && !windows.add(b.Window) {
			continue
		}
		if b.Rate != nil && burns.add(b.Window) {
			s.figure(sloBurn, *b.Rate, key.class, key.model, key.objective, windowLabel(b.Window))
		}
	}
	for _, state := range slo.States {
		s.figure(sloState, flag(o.State == state), key.class, key.model, key.objective, string(state))
	}
}

func (s sending) alerts(state *SLOState) {
	severities := newShown[string](severityCap)
	for severity, n := range state.Alerts {
		if severities.add(severity) {
			s.figure(alertsActive, float64(n), severity)
		}
	}
	receivers, results := newShown[string](ReceiverCap), newShown[string](resultCap)
	sent := newShown[[2]string](ReceiverCap * resultCap)
	for _, n := range state.Notifications {
		receivers.add(n.Receiver)
		results.add(n.Result)
		_, receiver := receivers.seen[n.Receiver]
		_, result := results.seen[n.Result]
		if receiver && result && sent.add([2]string{n.Receiver, n.Result}) {
			s.figure(alertsSent, float64(n.Count), n.Receiver, n.Result)
		}
	}
}

// windowLabel writes a length in its largest whole unit, as Prometheus does.
func windowLabel(d time.Duration) string {
	for _, u := range [...]struct {
		name string
		d    time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}} {
		if d > 0 && d%u.d == 0 {
			return strconv.FormatInt(int64(d/u.d), 10) + u.name
		}
	}
	return d.String()
}
