package caddymodule

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/capacity"
	"github.com/weirgate/weir/internal/gateway"
	"github.com/weirgate/weir/internal/ledger"
	"github.com/weirgate/weir/slo"
)

// capacityCalls is how many calls are looked at, the latest: beyond it an estimate
// takes longer and says no more.
const capacityCalls = 10 * ledger.MaxCalls

// capacityAsk is what GET /weir/capacity was asked.
type capacityAsk struct {
	filter  gateway.Filter
	options capacity.Options
	class   string
	format  string
}

// capacityOf answers GET /weir/capacity: how much more fits, from the latest calls.
// Parameters are model, upstream, class, since, target_rate, ttft and tpot (overrides of the
// class's objectives), format=text.
func capacityOf(w http.ResponseWriter, r *http.Request) error {
	ask, err := parseCapacity(r, time.Now())
	if err != nil {
		return badRequest(err)
	}
	s := current()
	if s == nil {
		return notThere("calls", "no weir runs")
	}
	app, beside := s.besideNow()
	if err := ask.objectives(app); err != nil {
		return badRequest(err)
	}
	ask.options.Class = ask.class
	ask.options.Engines = make(map[string]capacity.Limits)
	for _, e := range beside.Engines {
		g, known := e.Gauges.Latest()
		if !known {
			continue
		}
		for _, upstream := range e.Upstreams {
			ask.options.Engines[upstream] = capacity.Limits{MaxNumSeqs: g.MaxSeqs.Count(), KVTokens: g.KVTokens.Count()}
		}
	}
	records, err := capacityRecords(r, s, ask.filter)
	if err != nil {
		return err
	}
	result, err := capacity.Estimate(records, ask.options)
	if err != nil {
		return badRequest(err)
	}
	if ask.format == "text" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		return capacity.Text(w, result)
	}
	return respond(w, result)
}

// capacityRecords returns all calls of a time without a gap: those in memory, and
// what the ledger has before them.
func capacityRecords(r *http.Request, s *shared, f gateway.Filter) ([]*call.Record, error) {
	f.Limit = capacityCalls
	records := s.gateway.Calls(f)
	l, _, err := theLedger()
	if err == nil {
		page := ledger.Filter{Model: f.Model, Class: f.Class, Since: f.Since, Limit: ledger.MaxCalls}
		for len(records) < capacityCalls {
			if n := len(records); n > 0 {
				page.Before, page.BeforeID = records[n-1].Time, records[n-1].ID
			}
			older, err := l.Calls(r.Context(), page)
			if err != nil {
				return nil, fmt.Errorf("ask the ledger for older calls: %w", err)
			}
			if len(older) == 0 {
				break
			}
			records = append(records, older...)
		}
	}
	kept := records[:0]
	for _, rec := range records {
		if !rec.Probe && (f.Upstream == "" || rec.Upstream == f.Upstream) {
			kept = append(kept, rec)
		}
	}
	return kept, nil
}

func parseCapacity(r *http.Request, now time.Time) (*capacityAsk, error) {
	ask := &capacityAsk{class: DefaultClass}
	ask.filter.Since = now.Add(-time.Hour)
	for name, values := range r.URL.Query() {
		if len(values) > 1 {
			return nil, fmt.Errorf("%s is given %d times; give it once", name, len(values))
		}
		v := values[0]
		var err error
		switch name {
		case "model":
			ask.filter.Model = v
		case "upstream":
			ask.filter.Upstream = v
		case "class":
			ask.class = v // its objectives; the load is everybody's
		case "since":
			ask.filter.Since, err = parseSince(v, now)
		case "target_rate":
			if ask.options.TargetCallsPerSecond, err = strconv.ParseFloat(v, 64); err != nil || !(ask.options.TargetCallsPerSecond > 0) {
				err = fmt.Errorf("target_rate %q is not a number of calls a second above 0", v)
			}
		case "ttft":
			ask.options.TTFT.Limit, err = limitOf(name, v)
		case "tpot":
			ask.options.TPOT.Limit, err = limitOf(name, v)
		case "format":
			ask.format = v
		default:
			err = fmt.Errorf("unknown parameter %q; use model, upstream, class, since, target_rate, ttft, tpot or format", name)
		}
		if err != nil {
			return nil, err
		}
	}
	return ask, nil
}

func limitOf(name, v string) (time.Duration, error) {
	d, err := caddy.ParseDuration(v)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%s %q is not a time such as 500ms", name, v)
	}
	return d, nil
}

// objectives takes those of the class, where the question has none of its own.
func (ask *capacityAsk) objectives(app *App) error {
	for _, class := range app.promised.Classes {
		if class.Name != ask.class {
			continue
		}
		for _, o := range class.Objectives {
			switch {
			case len(o.When) > 0:
			case o.Number == slo.TTFT && ask.options.TTFT.Limit == 0:
				ask.options.TTFT = capacity.Objective{Limit: o.Threshold, Quantile: o.Target.Share()}
			case o.Number == slo.TPOT && ask.options.TPOT.Limit == 0:
				ask.options.TPOT = capacity.Objective{Limit: o.Threshold, Quantile: o.Target.Share()}
			}
		}
	}
	if ask.options.TTFT.Limit == 0 {
		return errors.New("class " + ask.class + " has no objective for TTFT, which decides how much fits; give one with ttft=2s, or another class")
	}
	return nil
}
