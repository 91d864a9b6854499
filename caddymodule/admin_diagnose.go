package caddymodule

import (
	"net/http"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/diagnose"
	"github.com/weirgate/weir/internal/gateway"
)

// diagnosis answers GET /weir/diagnose: what stands out in the calls that the
// parameters of /weir/calls pick (all in memory unless limit says otherwise), or in
// the one that id names. format=text is for people.
func diagnosis(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	format := query.Get("format")
	query.Del("format")
	asked := *r
	address := *r.URL
	asked.URL = &address
	asked.URL.RawQuery = query.Encode()
	filter, err := parseFilter(&asked, time.Now())
	if err != nil {
		return badRequest(err)
	}
	if !query.Has("limit") {
		filter.Limit = 0
	}
	var records []*call.Record
	if s := current(); s != nil {
		records = s.gateway.Calls(filter)
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
