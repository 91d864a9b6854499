//go:build unix

package ledger

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// BenchmarkUsage reports over a ledger of 5 million calls of 30 days, 50 keys
// and 3 models: each hour has calls of every key and model.
func BenchmarkUsage(b *testing.B) {
	rows := 5_000_000
	if testing.Short() {
		rows = 500_000
	}
	r := filled(b, rows, fmt.Sprintf(`DROP INDEX calls_by_time;
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO calls (seq, id, attempt, time_ns, key, model, class, dialect, path, stream, upstream, status, outcome,
			input_tokens, output_tokens, cached_tokens, usage_source, estimated_input_tokens, estimated_output_tokens, attempts, ttft_ms, e2e_ms)
		SELECT i, format('q7f3k2ab%%013d', i), 0, 1790000000000000000 + i * (30 * 86400000000000 / %d), 'key' || (i %% 50), 'model' || (i / 50 %% 3),
			'interactive', 'openai_chat', '/v1/chat/completions', 1, 'u:1', 200, iif(i %% 20, 'completed', 'client_gone'),
			iif(i %% 20, i %% 4000, NULL), iif(i %% 20, i %% 900, NULL), 0, iif(i %% 20, 'reported', 'none'), 100, 100, 1, 100.5, 2000.25
		FROM n`, rows, rows))
	days := []Grouping{ByKey, ByModel, ByDay}
	for _, c := range []struct {
		name string
		Query
	}{
		{"all", Query{}},
		{"key", Query{By: []Grouping{ByKey}}},
		{"key,model,day", Query{By: days}},
		{"in Berlin", Query{By: days, Zone: zone(b, "Europe/Berlin")}},
		{"in Los Angeles", Query{By: days, Zone: zone(b, "America/Los_Angeles")}}, // 7 hours of each day are another's
		{"in Kolkata", Query{By: days, Zone: zone(b, "Asia/Kolkata")}},
		{"in Shanghai", Query{By: days, Zone: zone(b, "Asia/Shanghai")}},
		{"in Auckland", Query{By: days, Zone: zone(b, "Pacific/Auckland")}}, // 12: the most there can be
		{"day in Auckland", Query{By: []Grouping{ByDay}, Zone: zone(b, "Pacific/Auckland")}},
		{"model,month", Query{By: []Grouping{ByModel, ByMonth}, Zone: zone(b, "Europe/Berlin")}},
		{"one key by hour", Query{By: []Grouping{ByHour}, Keys: []string{"key7"}}},
		{"hour", Query{By: []Grouping{ByHour}}}, // reads every sum there is
		{"last day by key", Query{By: []Grouping{ByKey}, Since: time.Unix(1790000000, 0).AddDate(0, 0, 29)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			n, cpu := 0, cpuTime()
			for b.Loop() {
				u, err := r.Usage(context.Background(), c.Query)
				if err != nil {
					b.Fatal(err)
				}
				n = len(u)
			}
			b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(n), "lines")
			b.ReportMetric(float64(rows), "calls")
		})
	}
}
