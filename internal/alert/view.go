package alert

import (
	"slices"
	"time"

	"github.com/weirgate/weir/slo"
)

// view is a copy of an entry, of which text is made outside the lock.
type view struct {
	key          key
	labels       map[string]string
	fingerprint  string
	starts, ends time.Time
	clear        time.Time
	objective    slo.ObjectiveStatus
	period       slo.PeriodStatus
	inhibitedBy  *key
	blame        *Blame
}

// view copies an entry; m.mu is held.
func (e *entry) view() *view {
	return &view{e.key, e.labels, e.fingerprint, e.starts, e.ends, e.clear, e.objective, e.period, e.inhibitedBy, e.blame}
}

// keep copies what texts are made of. Nothing of the Status is held on to: it may be many
// times as large.
func keep(o *slo.ObjectiveStatus) slo.ObjectiveStatus {
	kept := slo.ObjectiveStatus{
		Objective: slo.Objective{Number: o.Objective.Number}, Text: o.Text, Counts: o.Counts,
		Firing: slices.Clone(o.Firing), Burn: slices.Clone(o.Burn),
		Budget: slo.Budget{
			Allowed: clone(o.Budget.Allowed), AllowedForecast: clone(o.Budget.AllowedForecast), Left: clone(o.Budget.Left),
			Consumed: clone(o.Budget.Consumed), ConsumedForecast: clone(o.Budget.ConsumedForecast),
		},
	}
	for i := range kept.Burn {
		kept.Burn[i].Rate = clone(kept.Burn[i].Rate)
	}
	return kept
}

func clone(x *float64) *float64 {
	if x == nil {
		return nil
	}
	y := *x
	return &y
}

func (v *view) status() Status {
	if v.ends.IsZero() {
		return Firing
	}
	return Resolved
}

// alert makes what receivers are told.
func (v *view) alert(o *Options) Alert {
	a := Alert{
		Status: v.status(), Labels: v.labels, Annotations: v.annotations(o), StartsAt: wall(v.starts),
		GeneratorURL: v.link(o, "/weir/slo", nil), Fingerprint: v.fingerprint,
		Severity: v.key.severity, Class: v.key.class, Objective: v.key.objective, Model: v.key.model,
	}
	if a.Status == Resolved {
		a.EndsAt = wall(v.ends)
	}
	return a
}
