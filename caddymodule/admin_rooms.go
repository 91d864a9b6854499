package caddymodule

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/ledger"
	"github.com/weirgate/weir/internal/limit"
	"github.com/weirgate/weir/internal/queue"
	"github.com/weirgate/weir/internal/spend"
)

// respond writes what the admin endpoint says.
func respond(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(v)
}

func badRequest(err error) error { return caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: err} }

func notThere(what, how string) error {
	return caddy.APIError{HTTPStatus: http.StatusNotFound, Err: fmt.Errorf("this configuration has no %s; %s", what, how)}
}

// theRunning returns the app of the configuration that runs; nil before one does.
func (r *rooms) theRunning() *App {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holds
}

// poolState is one pool as /weir/limits shows it.
type poolState struct {
	limit.Snapshot
	Queue *queueView `json:"queue,omitempty"`
}

// queueView is a queue as /weir/limits shows it.
type queueView struct {
	Waiting        int           `json:"waiting"`
	WaitingBytes   int64         `json:"waiting_bytes"`
	InFlight       int64         `json:"in_flight"`
	TokensInFlight int64         `json:"tokens_in_flight"`
	OldestWait     call.Duration `json:"oldest_wait_ms,omitzero"`
	PredictedWait  call.Duration `json:"predicted_wait_ms,omitzero"` // an estimate
	Classes        []classView   `json:"classes"`
}

type classView struct {
	Class    string           `json:"class"`
	Weight   int              `json:"weight"`
	Waiting  int              `json:"waiting"`
	InFlight int              `json:"in_flight"`
	Admitted int64            `json:"admitted"`
	Left     int64            `json:"left"`
	Rejected map[string]int64 `json:"rejected,omitempty"`
}

func viewOf(s queue.State) *queueView {
	v := &queueView{Waiting: s.Waiting, WaitingBytes: s.Bytes, InFlight: s.InFlight, TokensInFlight: s.Tokens,
		OldestWait: s.OldestWait, PredictedWait: s.PredictedWait, Classes: []classView{}}
	for i := range s.Classes {
		c := &s.Classes[i]
		one := classView{Class: c.Name, Weight: c.Weight, Waiting: c.Waiting, InFlight: c.InFlight, Admitted: c.Waits.Count, Left: c.Left}
		for reason, n := range c.Rejected {
			if n > 0 {
				if one.Rejected == nil {
					one.Rejected = make(map[string]int64)
				}
				one.Rejected[queue.Reason(reason).String()] = n
			}
		}
		v.Classes = append(v.Classes, one)
	}
	return v
}

// limits answers GET /weir/limits, and POST, which switches pools to measuring
// only and back while they run.
func limits(w http.ResponseWriter, r *http.Request) error {
	s := current()
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost:
		if err := switchLimits(s, r); err != nil {
			return badRequest(err)
		}
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		return caddy.APIError{HTTPStatus: http.StatusMethodNotAllowed, Err: fmt.Errorf("%s is not allowed; use GET or POST", r.Method)}
	}
	state := struct {
		Pools []poolState `json:"pools"`
	}{Pools: []poolState{}}
	if s != nil {
		state.Pools = s.rooms.poolStates()
	}
	return respond(w, state)
}

// shownBuckets is how many buckets of a pool /weir/limits shows: the fullest.
const shownBuckets = 1000

func (r *rooms) poolStates() []poolState {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]poolState, 0, len(r.pools))
	for name, p := range r.inForce {
		one := poolState{Snapshot: p.limits.Snapshot(shownBuckets)}
		if r.holds.wanted[name].queues() {
			one.Queue = viewOf(p.queue.State())
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b poolState) int { return strings.Compare(a.Pool, b.Pool) })
	return all
}

// switchLimits reads {"measure_only": true, "pool": "default"}; without a pool it
// is for all of them.
func switchLimits(s *shared, r *http.Request) error {
	var ask struct {
		MeasureOnly *bool   `json:"measure_only"`
		Pool        *string `json:"pool"`
	}
	d := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 4<<10))
	d.DisallowUnknownFields()
	if err := d.Decode(&ask); err != nil {
		return fmt.Errorf(`read the request: %w; send {"measure_only": true}, with a "pool" for one of them`, err)
	}
	if ask.MeasureOnly == nil {
		return errors.New(`measure_only is missing; send {"measure_only": true} or false`)
	}
	if s == nil {
		return errors.New("no weir runs")
	}
	s.rooms.mu.Lock()
	defer s.rooms.mu.Unlock()
	if ask.Pool != nil {
		p := s.rooms.pools[*ask.Pool]
		if p == nil {
			return fmt.Errorf("there is no pool %q; GET /weir/limits lists them", *ask.Pool)
		}
		p.limits.SetOverride(*ask.MeasureOnly)
		return nil
	}
	s.rooms.measureOnly = *ask.MeasureOnly
	for _, p := range s.rooms.pools {
		p.limits.SetOverride(*ask.MeasureOnly)
	}
	return nil
}

// keysState answers GET /weir/keys: how the file of keys stands, and what is known
// of each key but the key.
func keysState(w http.ResponseWriter, _ *http.Request) error {
	s := current()
	var app *App
	if s != nil {
		app = s.rooms.theRunning()
	}
	if app == nil || app.keys == nil {
		return notThere("keys", "add the global option: weir { keys keys.json }")
	}
	type key struct {
		Alias   string      `json:"alias"`
		Owner   string      `json:"owner,omitempty"`
		Class   string      `json:"class,omitempty"`
		Models  []string    `json:"models,omitempty"`
		Limits  call.Limits `json:"limits,omitzero"`
		Expires time.Time   `json:"expires,omitzero"`
		Revoked time.Time   `json:"revoked,omitzero"`
		Bench   bool        `json:"bench,omitempty"`
		Budget  *budgetView `json:"budget,omitempty"`
	}
	state := struct {
		keys.State
		All []key `json:"all"`
	}{State: app.keys.State(), All: []key{}}
	now := time.Now()
	for _, k := range app.keys.All() {
		one := key{k.Alias, k.Owner, k.Class, k.Models, k.Limits, k.Expires, k.Revoked, k.Bench, nil}
		if b := s.rooms.budgets.Check(k, now); b.Limited {
			one.Budget = budgetOf(&b)
		}
		state.All = append(state.All, one)
	}
	return respond(w, state)
}

// budgetView is a budget as /weir/keys shows it.
type budgetView struct {
	Seeded     bool       `json:"seeded"` // what was spent before this process began is counted
	Tokens     int64      `json:"tokens"`
	TokenLimit call.Count `json:"token_limit,omitzero"`
	Money      string     `json:"money,omitempty"`
	MoneyLimit string     `json:"money_limit,omitempty"`
	Unpriced   int64      `json:"unpriced_tokens,omitempty"`
	Share      float64    `json:"used_share"` // 1 is all of it
	Warn       bool       `json:"warn"`
	Exceeded   bool       `json:"exceeded"`
	Resets     time.Time  `json:"resets"`
}

func budgetOf(b *spend.State) *budgetView {
	v := &budgetView{Seeded: b.Seeded, Tokens: b.Tokens, TokenLimit: b.TokenLimit, Unpriced: b.UnpricedTokens,
		Share: b.Fraction, Warn: b.Warn, Exceeded: b.Exceeded, Resets: b.Resets}
	if !b.MoneyLimit.IsZero() {
		v.Money, v.MoneyLimit = b.Money.String(), b.MoneyLimit.String()
	}
	return v
}

// theLedger returns the ledger of the running configuration.
func theLedger() (*ledger.Ledger, *App, error) {
	s := current()
	if s == nil {
		return nil, nil, notThere("ledger", "no weir runs")
	}
	app := s.rooms.theRunning()
	if app == nil || app.ledger.Load() == nil {
		return nil, nil, notThere("ledger", "add the global option: weir { ledger sqlite usage.db }")
	}
	return app.ledger.Load(), app, nil
}

// ledgerState answers GET /weir/ledger.
func ledgerState(w http.ResponseWriter, _ *http.Request) error {
	l, _, err := theLedger()
	if err != nil {
		return err
	}
	return respond(w, l.State())
}

// usageReport answers GET /weir/usage, whose parameters are those of weir usage.
func usageReport(w http.ResponseWriter, r *http.Request) error {
	l, app, err := theLedger()
	if err != nil {
		return err
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badRequest(fmt.Errorf("read the query: %w", err))
	}
	now := time.Now()
	ask, err := askOf(values)
	if err != nil {
		return badRequest(err)
	}
	q, err := ask.Query(now)
	if err != nil {
		return badRequest(err)
	}
	var prices *spend.Prices
	if app.prices != nil {
		prices = app.prices.Prices()
	}
	lines, err := spend.Report(r.Context(), l, q, prices, now)
	if err != nil {
		return fmt.Errorf("report usage: %w", err)
	}
	return respond(w, spend.AnswerOf(q, prices, lines))
}

// askOf reads the question of a query: by, since, until, zone, key and model, the
// lists by repetition or with commas.
func askOf(values url.Values) (spend.Ask, error) {
	ask := spend.Ask{By: []string{"key", "model"}, Since: "30d"}
	list := func(all []string) (out []string) {
		for _, v := range all {
			for _, one := range strings.Split(v, ",") {
				if one = strings.TrimSpace(one); one != "" {
					out = append(out, one)
				}
			}
		}
		return out
	}
	for name, all := range values {
		last := all[len(all)-1]
		switch name {
		case "by":
			ask.By = list(all)
		case "key":
			ask.Keys = all
		case "model":
			ask.Models = all
		case "since":
			ask.Since = last
		case "until":
			ask.Until = last
		case "zone":
			ask.Zone = last
		default:
			return ask, fmt.Errorf("unknown parameter %q; use by, since, until, zone, key or model", name)
		}
	}
	return ask, nil
}
