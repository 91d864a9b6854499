package telemetry

import (
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/weirgate/weir/internal/call"
)

// estimated returns a record of a call whose usage was never reported, which a
// limit in shadow mode would have refused and the upstream did.
func estimated() *call.Record {
	return &call.Record{
		Identity: call.Identity{Model: "llama", Class: "batch", Dialect: "openai_chat", ClientRetries: 2},
		Result:   call.Result{Outcome: call.UpstreamError, Status: 429},
		Tokens:   call.Tokens{UsageSource: call.UsageNone},
		Admission: call.Admission{EstimatedInput: call.Known(40), EstimatedOutput: call.Known(7),
			WouldRefuse: "key tokens_per_minute"},
	}
}

// walls is a state in which everything is there.
func walls() WallState {
	return WallState{
		Limits:      []LimitState{{"default", "key", "tokens_per_minute", "team-a", 200_000, 250_000}},
		MeasureOnly: map[string]bool{"default": true},
		Queues: []QueueState{{Pool: "default", Tokens: 900, Classes: []QueueClass{{
			Class: "interactive", Waiting: 3, InFlight: 8, Left: 2,
			Waits: []uint64{5, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}, WaitSum: 150 * time.Second,
		}}}},
		Budgets:    []BudgetState{{"team-a", 0.75}},
		Ledger:     &LedgerState{Degraded: true, Rows: 10, Uncovered: 1, Dropped: 2, SpillBytes: 4096, Lag: 1500 * time.Millisecond},
		FileErrors: map[string]bool{"keys": true, "prices": false},
	}
}

func TestWalls(t *testing.T) {
	m := New()
	m.Walls(walls)
	observe(m, estimated())
	observe(m, &call.Record{Result: call.Result{Outcome: call.Refused, Status: 429}, Admission: call.Admission{RefusedBy: "pool concurrency"}})
	m.Barred("path")
	all := gather(t, m)
	one := func(name string, labels map[string]string) *dto.Metric {
		t.Helper()
		for _, s := range all[name].GetMetric() {
			matched := 0
			for _, l := range s.GetLabel() {
				if labels[l.GetName()] == l.GetValue() {
					matched++
				}
			}
			if matched == len(labels) {
				return s
			}
		}
		t.Fatalf("%s %v: no such series", name, labels)
		return nil
	}
	subject := map[string]string{"pool": "default", "scope": "key", "dimension": "tokens_per_minute", "subject": "team-a"}
	class := map[string]string{"pool": "default", "class": "interactive"}
	for name, c := range map[string]struct{ got, want float64 }{
		"limit":           {one("weir_limit", subject).GetGauge().GetValue(), 200_000},
		"used, in debt":   {one("weir_limit_used", subject).GetGauge().GetValue(), 250_000},
		"measure only":    {one("weir_limits_measure_only", nil).GetGauge().GetValue(), 1},
		"waiting":         {one("weir_queue_waiting", class).GetGauge().GetValue(), 3},
		"in flight":       {one("weir_queue_in_flight", class).GetGauge().GetValue(), 8},
		"left":            {one("weir_queue_left_total", class).GetCounter().GetValue(), 2},
		"budget":          {one("weir_budget_used_ratio", nil).GetGauge().GetValue(), 0.75},
		"degraded":        {one("weir_ledger_degraded", nil).GetGauge().GetValue(), 1},
		"lag":             {one("weir_ledger_lag_seconds", nil).GetGauge().GetValue(), 1.5},
		"keys broken":     {one("weir_file_error", map[string]string{"file": "keys"}).GetGauge().GetValue(), 1},
		"prices good":     {one("weir_file_error", map[string]string{"file": "prices"}).GetGauge().GetValue(), 0},
		"refused by us":   {one("weir_refusals_total", map[string]string{"by": "pool concurrency"}).GetCounter().GetValue(), 1},
		"barred":          {one("weir_refusals_total", map[string]string{"by": "path"}).GetCounter().GetValue(), 1},
		"shadow":          {one("weir_would_refuse_total", map[string]string{"by": "key tokens_per_minute"}).GetCounter().GetValue(), 1},
		"upstream's own":  {one("weir_upstream_limited_total", nil).GetCounter().GetValue(), 1},
		"client retries":  {one("weir_client_retries_total", nil).GetCounter().GetValue(), 1},
		"estimated input": {one("weir_estimated_tokens_total", map[string]string{"kind": "input"}).GetCounter().GetValue(), 40},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	waits := one("weir_queue_wait_seconds", class).GetHistogram()
	if waits.GetSampleCount() != 8 || waits.GetSampleSum() != 150 || waits.GetBucket()[1].GetCumulativeCount() != 6 {
		t.Errorf("waits: %v", waits)
	}
	m.Walls(nil)
	if got := gather(t, m); got["weir_limit"] != nil || got["weir_ledger_degraded"] != nil {
		t.Error("figures of walls that are gone")
	}
}

// TestWallsTakeAnyName: a name that Prometheus would reject must not cost the scrape.
func TestWallsTakeAnyName(t *testing.T) {
	m := New()
	m.Walls(func() WallState {
		return WallState{Limits: []LimitState{{"p", "model", "concurrency", "\xff\xfe", 1, 0}, {"p", "model", "concurrency", "\xff", 1, 0}}, Budgets: []BudgetState{{"\xff", 1}}}
	})
	gather(t, m)
}
