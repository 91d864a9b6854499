package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/gateway"
	"github.com/weirgate/weir/internal/ledger"
)

func init() { caddy.RegisterModule(Admin{}) }

// Admin serves /weir/ on Caddy's admin endpoint:
//
//	GET  /weir/calls   the latest calls, newest first, and those of the ledger
//	GET  /weir/usage   usage by key, model, time, with costs, from the ledger
//	GET  /weir/limits  how limits and queues stand
//	POST /weir/limits  {"measure_only": true} keeps limits from refusing anything
//	GET  /weir/keys    what is known of the callers, without their keys
//	GET  /weir/ledger  how the ledger stands
//	GET  /weir/diagnose  what stands out in the latest calls, or in one, with evidence
//	GET  /weir/slo     how all objectives stand, and which alerts are on; below it config and snapshot
//	GET  /weir/capacity how much more fits, from the latest calls
//	GET  /weir/probes  how the synthetic calls went
//	GET  /weir/engines what the engines' gauges show
//	GET  /weir/gpus    what the GPUs do
//	GET  /weir/traces  how the export of spans stands, and the joining of engines' spans
//	GET  /weir/live    200 while the process lives
//	GET  /weir/ready   200 while new calls are taken, else 503
type Admin struct{}

// CaddyModule implements caddy.Module.
func (Admin) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "admin.api.weir", New: func() caddy.Module { return new(Admin) }}
}

// Routes implements caddy.AdminRouter.
func (Admin) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{
		{Pattern: "/weir/calls", Handler: caddy.AdminHandlerFunc(get(calls))},
		{Pattern: "/weir/usage", Handler: caddy.AdminHandlerFunc(get(usageReport))},
		{Pattern: "/weir/limits", Handler: caddy.AdminHandlerFunc(limits)},
		{Pattern: "/weir/keys", Handler: caddy.AdminHandlerFunc(get(keysState))},
		{Pattern: "/weir/ledger", Handler: caddy.AdminHandlerFunc(get(ledgerState))},
		{Pattern: "/weir/diagnose", Handler: caddy.AdminHandlerFunc(get(diagnosis))},
		{Pattern: "/weir/engines", Handler: caddy.AdminHandlerFunc(get(enginesState))},
		{Pattern: "/weir/gpus", Handler: caddy.AdminHandlerFunc(get(gpusState))},
		{Pattern: "/weir/traces", Handler: caddy.AdminHandlerFunc(get(tracesState))},
		{Pattern: "/weir/slo", Handler: caddy.AdminHandlerFunc(get(sloState))},
		{Pattern: "/weir/slo/config", Handler: caddy.AdminHandlerFunc(get(sloConfig))},
		{Pattern: "/weir/slo/snapshot", Handler: caddy.AdminHandlerFunc(get(sloSnapshot))},
		{Pattern: "/weir/capacity", Handler: caddy.AdminHandlerFunc(get(capacityOf))},
		{Pattern: "/weir/probes", Handler: caddy.AdminHandlerFunc(get(probesState))},
		{Pattern: "/weir/live", Handler: caddy.AdminHandlerFunc(get(func(w http.ResponseWriter, _ *http.Request) error {
			answerProbe(w, true)
			return nil
		}))},
		{Pattern: "/weir/ready", Handler: caddy.AdminHandlerFunc(get(func(w http.ResponseWriter, _ *http.Request) error {
			answerProbe(w, ready())
			return nil
		}))},
	}
}

func get(handle caddy.AdminHandlerFunc) caddy.AdminHandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			return caddy.APIError{HTTPStatus: http.StatusMethodNotAllowed, Err: fmt.Errorf("%s is not allowed; use GET", r.Method)}
		}
		return handle(w, r)
	}
}

// calls answers GET /weir/calls.
func calls(w http.ResponseWriter, r *http.Request) error {
	filter, err := parseFilter(r, time.Now())
	if err != nil {
		return caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: err}
	}
	state := struct {
		Calls []*call.Record `json:"calls"`
		// LedgerError says why calls that are no longer in memory are missing.
		LedgerError string `json:"ledger_error,omitempty"`
	}{Calls: []*call.Record{}}
	if s := current(); s != nil {
		state.Calls = s.gateway.Calls(filter)
		older, err := olderCalls(r.Context(), filter, state.Calls)
		if err != nil {
			state.LedgerError = err.Error()
		}
		state.Calls = append(state.Calls, older...)
	}
	return respond(w, state)
}

// olderCalls returns the calls that the filter picks from the ledger, beyond
// those that are in memory.
func olderCalls(ctx context.Context, f gateway.Filter, have []*call.Record) ([]*call.Record, error) {
	missing := f.Limit - len(have)
	l, _, err := theLedger()
	if err != nil || missing <= 0 {
		return nil, nil // without a ledger memory is all there is
	}
	known := make(map[string]bool, len(have))
	for _, rec := range have {
		known[rec.ID] = true
	}
	ask := ledger.Filter{Key: f.Key, Model: f.Model, Class: f.Class, Run: f.Run, Outcome: f.Outcome, Failed: f.Failed, Since: f.Since, ID: f.ID}
	if f.Upstream != "" {
		return nil, errors.New("upstream looks at calls in memory only; ask usage.db for older ones: upstream is one of its columns")
	}
	if f.MinTTFT > 0 {
		return nil, errors.New("min_ttft_ms looks at calls in memory only; ask usage.db for older ones: ttft_ms is one of its columns")
	}
	// Calls in memory are in the ledger too, and may be asked for again.
	ask.Limit = min(f.Limit, ledger.MaxCalls)
	all, err := l.Calls(ctx, ask)
	if err != nil {
		return nil, fmt.Errorf("ask the ledger for older calls: %w", err)
	}
	var older []*call.Record
	for _, rec := range all {
		if !known[rec.ID] && len(older) < missing {
			older = append(older, rec)
		}
	}
	return older, nil
}

// defaultLimit is how many calls are shown when the query does not say.
const defaultLimit = 100

// parseFilter reads the query. An unknown parameter is an error: a misspelt
// filter must not look like an answer.
func parseFilter(r *http.Request, now time.Time) (gateway.Filter, error) {
	f := gateway.Filter{Limit: defaultLimit}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return f, fmt.Errorf("read the query: %w; escape special characters as in run=a%%20b", err)
	}
	for name, values := range query {
		if len(values) > 1 {
			return f, fmt.Errorf("%s is given %d times; give it once", name, len(values))
		}
		v := values[0]
		switch name {
		case "limit":
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 {
				return f, fmt.Errorf("limit %q is not a number above 0", v)
			}
			f.Limit = n
		case "key":
			f.Key = v
		case "model":
			f.Model = v
		case "id":
			f.ID = v
		case "run":
			f.Run = v
		case "class":
			f.Class = v
		case "upstream":
			f.Upstream = v
		case "outcome":
			if f.Outcome = call.Outcome(v); !known(f.Outcome) {
				return f, fmt.Errorf("unknown outcome %q; known are %v", v, call.Outcomes)
			}
		case "since":
			since, err := parseSince(v, now)
			if err != nil {
				return f, err
			}
			f.Since = since
		case "min_ttft_ms":
			ms, err := strconv.ParseFloat(v, 64)
			d, ok := call.Milliseconds(ms).Get()
			if err != nil || !ok || d < 0 {
				return f, fmt.Errorf("min_ttft_ms %q is not a number of milliseconds", v)
			}
			f.MinTTFT = d
		case "failed":
			failed, err := strconv.ParseBool(v)
			if err != nil {
				return f, fmt.Errorf("failed %q is not true or false", v)
			}
			f.Failed = failed
		default:
			return f, fmt.Errorf("unknown parameter %q; use limit, key, model, class, upstream, outcome, since, min_ttft_ms, id, run or failed", name)
		}
	}
	return f, nil
}

// parseSince reads a moment (RFC 3339) or an age ("15m").
func parseSince(v string, now time.Time) (time.Time, error) {
	if age, err := caddy.ParseDuration(v); err == nil {
		return now.Add(-age), nil
	}
	t, err := time.Parse(time.RFC3339Nano, v)
	if err != nil {
		return t, fmt.Errorf("since %q is neither an age such as 15m nor a time such as 2026-01-31T08:00:00Z", v)
	}
	return t, nil
}

func known(o call.Outcome) bool {
	for _, k := range call.Outcomes {
		if o == k {
			return true
		}
	}
	return false
}

// Interface guard
var _ caddy.AdminRouter = (*Admin)(nil)
