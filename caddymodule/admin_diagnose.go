package caddymodule

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/diagnose"
	"github.com/weirgate/weir/internal/gateway"
)

// diagnosis answers GET /weir/diagnose: what stands out in the calls that the
// parameters of /weir/calls pick (all in memory unless limit says otherwise), or in
// the one that id names. With against=1h it sets the calls received since (5m, unless it is
// given) beside those of that time before. format=text is for people.
func diagnosis(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	format := query.Get("format")
	query.Del("format")
	against := query.Get("against")
	query.Del("against")
	now := time.Now()
	asked := *r
	address := *r.URL
	asked.URL = &address
	asked.URL.RawQuery = query.Encode()
	filter, err := parseFilter(&asked, now)
	if err != nil {
		return badRequest(err)
	}
	if !query.Has("limit") {
		filter.Limit = 0
	}
	if against != "" {
		return diagnoseChange(w, filter, against, format, now)
	}
	var records []*call.Record
	if s := current(); s != nil {
		records = slices.DeleteFunc(s.gateway.Calls(filter), func(rec *call.Record) bool { return rec.Probe && filter.ID == "" })
	}
	if filter.ID != "" {
		return diagnoseOne(w, records, filter, format)
	}
	report := diagnose.Window(records, diagnose.Options{})
	if format == "text" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		return diagnose.Text(w, report)
	}
	w.Header().Set("Content-Type", "application/json")
	return diagnose.JSON(w, report)
}

func diagnoseOne(w http.ResponseWriter, records []*call.Record, filter gateway.Filter, format string) error {
	if len(records) == 0 {
		return notThere("call with that id in memory", "it keeps the latest 1,000; /weir/calls looks into the ledger too")
	}
	findings := diagnose.Call(records[0])
	if format == "text" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		return diagnose.TextFindings(w, findings)
	}
	if findings == nil {
		findings = []diagnose.Finding{}
	}
	return respond(w, struct {
		ID       string             `json:"id"`
		Findings []diagnose.Finding `json:"findings"`
	}{records[0].ID, findings})
}

// diagnoseChange answers what changed from a time before to that of the filter.
func diagnoseChange(w http.ResponseWriter, f gateway.Filter, against, format string, now time.Time) error {
	span, err := caddy.ParseDuration(against)
	if err != nil || span <= 0 {
		return badRequest(fmt.Errorf("against %q is not a span of time such as 1h", against))
	}
	if f.ID != "" || f.Failed || f.MinTTFT > 0 || f.Outcome != "" {
		return badRequest(errors.New("against compares all calls of two times: leave out id, failed, outcome and min_ttft_ms"))
	}
	since := f.Since
	if since.IsZero() {
		since = now.Add(-faultSpan)
	}
	s := current()
	if s == nil {
		return notThere("calls", "no weir runs")
	}
	c := s.compare(f, since.Add(-span), since, now)
	if format == "text" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		return diagnose.TextComparison(w, c)
	}
	w.Header().Set("Content-Type", "application/json")
	return diagnose.JSONComparison(w, c)
}
