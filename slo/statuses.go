package slo

import (
	"cmp"
	"slices"
	"time"
)

// Status says how all objectives stand. It may be called as often as every second: with 200
// series of eight objectives it takes some tens of milliseconds, and holds up a
// call for tens of microseconds at most.
//
// Windows are whole minutes up to the one of now, which is among them. A rolling period of more than
// three days begins with a whole hour, so it is up to an hour longer than its name
// says; PeriodStatus.From has it.
func (t *Tracker) Status(now time.Time) Status {
	told := now
	now, a := t.clock.tell(now)
	status := Status{At: told, Objectives: []ObjectiveStatus{}, Lost: t.clock.lost.Load()}
	config := t.config.Load()
	if config == nil {
		return status
	}
	w := newWindows(now, config.Period, config.Burn)
	status.Period = w.period
	classes := *t.classes.Load()
	for _, k := range config.Classes {
		if c := classes[k.Name]; c != nil {
			c.status(&status, a, w, config)
		}
	}
	return status
}

// awaiting is calls that wait for their first token.
type awaiting struct {
	calls  int64
	oldest time.Time
}

func (w *awaiting) add(o awaiting) {
	if o.calls > 0 && (w.calls == 0 || o.oldest.Before(w.oldest)) {
		w.oldest = o.oldest
	}
	w.calls += o.calls
}

// awaiting returns the calls that wait for their first token, by model.
func (c *class) awaiting() map[string]awaiting {
	all := make(map[string]awaiting)
	c.scan(func(p *Pending) {
		if !p.streamed || p.token {
			return
		}
		model := p.model
		switch {
		case p.series != nil:
			model = p.series.model
		case c.series[model] == nil:
			model = OtherModel
		}
		w := all[model]
		w.add(awaiting{1, p.received})
		all[model] = w
	})
	return all
}

// status adds the class's objectives.
func (c *class) status(status *Status, a *aging, w *windows, config *Config) {
	waiting := c.awaiting()
	c.mu.Lock()
	d, l, began := c.def, c.layout, c.began
	models := make([]*series, 0, len(c.series))
	for _, s := range c.series {
		models = append(models, s)
	}
	c.mu.Unlock()
	if d == nil {
		return
	}
	slices.SortFunc(models, func(a, b *series) int {
		switch {
		case a.model == OtherModel:
			return 1
		case b.model == OtherModel:
			return -1
		}
		return cmp.Compare(a.model, b.model)
	})
	r := report{class: d.class.Name, def: d, began: began, w: w, config: config}
	sum, one := newFigures(w, l), newFigures(w, l)
	var all awaiting
	for _, n := range waiting {
		all.add(n)
	}
	first := len(status.Objectives)
	for range d.class.Objectives {
		status.Objectives = append(status.Objectives, ObjectiveStatus{})
	}
	for _, s := range models {
		c.mu.Lock()
		same := c.layout == l && !s.dead
		if same {
			s.age(a)
			one.read(s, a, w, d.numbers)
		}
		c.mu.Unlock()
		if !same {
			continue
		}
		sum.add(one, d.numbers)
		for i := range d.class.Objectives {
			if o := r.objective(s.model, i, one, waiting[s.model]); o.counted() {
				status.Objectives = append(status.Objectives, o)
			}
		}
	}
	for i := range d.class.Objectives {
		status.Objectives[first+i] = r.objective(AllModels, i, sum, all)
		if since := status.Objectives[first+i].Since; status.Since.IsZero() || since.Before(status.Since) {
			status.Since = since
		}
	}
}

// report is what the entries of one class have in common.
type report struct {
	class  string
	def    *definition
	began  []int64
	w      *windows
	config *Config
}

// objective returns the entry of an objective for a model.
func (r *report) objective(model string, i int, f *figures, waiting awaiting) ObjectiveStatus {
	objective, col := r.def.class.Objectives[i], r.def.column[i]
	o := ObjectiveStatus{
		Class: r.class, Model: model, Objective: objective, Text: objective.Text(),
		Since:  time.Unix(0, r.began[col]).In(r.w.now.Location()),
		Counts: countsOf(f.in, col), Outside: countsOf(f.out, col), OutsideMinutes: f.minutes,
	}
	if n := o.Total(); n > 0 {
		low, high := ClopperPearson(o.Good, n, confidence)
		o.Compliance, o.ComplianceLow, o.ComplianceHigh = share(o.Good, n), &low, &high
	}
	if n := o.Total() + o.Unknown; n > 0 {
		o.UnknownShare = share(o.Unknown, n)
	}
	o.Budget = r.budget(objective.Target, o.Counts, o.Since)
	o.Burn = make([]Burn, len(burnWindows))
	for j, minutes := range burnWindows {
		length := time.Duration(minutes) * time.Minute
		n := countsOf(f.windows[r.w.index(length)], col)
		o.Burn[j] = Burn{Window: length, Counts: n, Rate: burnRate(n, objective.Target)}
	}
	o.Firing = r.firing(objective.Target, col, f)
	o.State = worst(o.Budget.State, o.Firing)
	switch objective.Number {
	case TTFT, TTFTUpstream, TTFTVisible:
		o.Awaiting, o.OldestReceived = waiting.calls, waiting.oldest
	}
	if n := objective.Number; n.Timed() {
		o.Quantiles, o.Quantiles5m = quantiles(&f.hour[n]), quantiles(&f.five[n])
	}
	return o
}

// counted tells whether there is anything to say.
func (o *ObjectiveStatus) counted() bool {
	return o.Counts != Counts{} || o.Outside != Counts{} || o.Burn[len(o.Burn)-1].Counts != Counts{} || o.Awaiting > 0
}

// share returns part/whole, rounded once.
func share(part, whole int64) *float64 {
	f := float64(part) / float64(whole)
	return &f
}

// worst returns the state that follows from the budget and from what fires.
func worst(state State, firing []Firing) State {
	for _, f := range firing {
		s := StateTicket
		if f.Page {
			s = StatePage
		}
		if slices.Index(States, s) > slices.Index(States, state) {
			state = s
		}
	}
	return state
}

// firing returns the rules that hold.
func (r *report) firing(target Target, col int, f *figures) (all []Firing) {
	good, bad := f.seconds[2*col], f.seconds[2*col+1]
	fast := 0.0
	for _, rule := range r.config.Burn {
		if rule.Page {
			fast = max(fast, FactorFor(rule, target))
		}
	}
	if bad >= outageBad && bad*million >= outageShare*(good+bad) && burns(bad, good+bad, target, fast) {
		all = append(all, Firing{Outage: true, Page: true, Bad: bad, Total: good + bad})
	}
	for _, rule := range r.config.Burn {
		rule.Factor = FactorFor(rule, target)
		long, short := countsOf(f.windows[r.w.index(rule.Long)], col), countsOf(f.windows[r.w.index(rule.Short)], col)
		if short.Bad >= r.config.MinBad && burns(long.Bad, long.All(), target, rule.Factor) && burns(short.Bad, short.All(), target, rule.Factor) {
			all = append(all, Firing{Rule: rule, Page: rule.Page, Bad: short.Bad, Total: short.All()})
		}
	}
	return all
}
