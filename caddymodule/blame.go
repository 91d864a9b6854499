package caddymodule

import (
	"time"

	"github.com/weirgate/weir/internal/alert"
	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/diagnose"
	"github.com/weirgate/weir/internal/gateway"
	"github.com/weirgate/weir/internal/gpu"
	"github.com/weirgate/weir/internal/signals"
	"github.com/weirgate/weir/slo"
)

const (
	// faultSpan is how far back an alert looks for what is wrong: the short window of
	// the fastest burn rule.
	faultSpan = 5 * time.Minute
	// healthySpan is how long the time before is that it is held against.
	healthySpan = time.Hour
)

// blame says which phase made calls bad when an alert began: what a comparison with
// the time before names as the fault, else the phase in which calls that missed the objective
// lost their time.
func (a *App) blame(class, model, objective string, _ slo.Number, now time.Time) alert.Blame {
	filter := gateway.Filter{Class: class, Model: model}
	if model == slo.OtherModel {
		filter.Model = "" // records have the names that were asked for
	}
	c := a.shared.compare(filter, now.Add(-faultSpan-healthySpan), now.Add(-faultSpan), now)
	if len(c.Findings) > 0 && c.Fault() {
		return blameOf(&c.Findings[0])
	}
	o := a.promised.Objective(class, objective)
	if o == nil {
		return alert.Blame{}
	}
	filter.Since = now.Add(-faultSpan)
	o, bad, good := a.missed(o, class, a.shared.gateway.Sample(filter, now))
	if len(good) == 0 { // all are bad: the time before is what they are held against
		filter.Since = now.Add(-faultSpan - healthySpan)
		good = a.shared.gateway.Sample(filter, now.Add(-faultSpan))
	}
	b := diagnose.Blame(bad, good, o.Number.String())
	if !b.Determined {
		return alert.Blame{Phase: "undetermined", Text: b.Text}
	}
	return alert.Blame{Phase: b.Phase, Text: b.Text, Share: b.Share}
}

// missed divides calls by whether they kept an objective. For goodput it takes the
// objective of the class that most calls missed.
func (a *App) missed(o *slo.Objective, class string, records []*call.Record) (of *slo.Objective, bad, good []*call.Record) {
	if o.Number == slo.Goodput {
		of = o
		for i := range a.promised.Classes {
			for j := range a.promised.Classes[i].Objectives {
				single := &a.promised.Classes[i].Objectives[j]
				if a.promised.Classes[i].Name != class || single.Number == slo.Goodput {
					continue
				}
				if _, b, g := a.missed(single, class, records); len(b) > len(bad) {
					of, bad, good = single, b, g
				}
			}
		}
		return of, bad, good
	}
	for _, rec := range records {
		switch gateway.Kept(rec, o) {
		case slo.Bad:
			bad = append(bad, rec)
		case slo.Good:
			good = append(good, rec)
		}
	}
	return o, bad, good
}

func blameOf(f *diagnose.Finding) alert.Blame {
	b := alert.Blame{Phase: string(f.Code), Text: f.Summary, Share: f.Share}
	for _, e := range f.For {
		b.Evidence = append(b.Evidence, e.Text)
	}
	for _, e := range f.Against {
		b.Evidence = append(b.Evidence, "against it: "+e.Text)
	}
	return b
}

// compare sets the calls received in [middle, to) beside those in [from, middle).
func (s *shared) compare(f gateway.Filter, from, middle, to time.Time) diagnose.Comparison {
	f.Since = from
	before := s.gateway.Sample(f, middle)
	f.Since = middle
	after := s.gateway.Sample(f, to)
	return diagnose.Compare(before, after, diagnose.CompareOptions{
		Before: s.rooms.signals.Between(from, middle), After: s.rooms.signals.Between(middle, to),
	})
}

// note keeps what engines and GPUs show, now and then.
func (a *App) note(now time.Time) {
	if !a.shared.rooms.signals.Due(now) || a.shared.rooms.theRunning() != a {
		return
	}
	_, b := a.shared.besideNow()
	var engines []signals.Engine
	for _, e := range b.Engines {
		g, known := e.Gauges.Latest()
		if !known {
			continue
		}
		upstream := ""
		if len(e.Upstreams) > 0 {
			upstream = e.Upstreams[0]
		}
		engines = append(engines, signals.Engine{Upstream: upstream, Gauges: g})
	}
	var gpus []gpu.Reading
	if b.GPUs != nil {
		gpus = b.GPUs.Latest()
	}
	a.shared.rooms.signals.Note(now, a.shared.withEngines(), engines, gpus)
}

// withEngines is how many calls have left the gateway's queues and not ended.
func (s *shared) withEngines() int64 {
	n := s.gateway.Live().InFlight
	s.rooms.mu.Lock()
	defer s.rooms.mu.Unlock()
	for _, p := range s.rooms.inForce {
		n -= int64(p.queue.State().Waiting)
	}
	return max(0, n)
}
