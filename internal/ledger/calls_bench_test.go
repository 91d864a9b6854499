//go:build unix

package ledger

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// fillSQL puts so many calls of 30 days into calls: of 50 keys, one that made a
// call every ten thousandth time, and one that made one on the first day alone.
func fillSQL(rows int) string {
	return fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO calls (seq, id, attempt, time_ns, key, model, response_model, class, dialect, path, stream, upstream, response_id, trace_id, status,
			outcome, finish_reason, terminated, input_tokens, output_tokens, cached_tokens, usage_source, estimated_input_tokens, estimated_output_tokens,
			reserved_tokens, attempts, ttft_ms, ttft_upstream_ms, ttfb_ms, ttft_visible_ms, tpot_ms, e2e_ms, phase_upload_ms, phase_prefill_ms,
			phase_decode_ms, phase_sources, replayed, bytes_in, bytes_out, client_protocol, bench)
		SELECT i, format('q7f3k2ab%%013d', i), 0, 1790000000000000000 + i * (30 * 86400000000000 / %d),
			iif(i = 7, 'once', iif(i %% 10000 = 0, 'seldom', 'key' || (i %% 50))), 'model' || (i / 50 %% 3), 'model', 'interactive', 'openai_chat',
			'/v1/chat/completions', 1, 'u:1', format('chatcmpl-%%016d', i), format('%%032d', i), 200, 'completed', 'stop', 1, i %% 4000, i %% 900, 0,
			'reported', 100, 100, 2000, 1, i %% 977 / 7.0, i %% 971 / 7.0, i %% 967 / 7.0, i %% 953 / 7.0, 7.5, i %% 9973 / 7.0, 0.1, i %% 947 / 7.0,
			i %% 9967 / 7.0, 'prefill=unattributed', 0, i %% 20000, i %% 200000, 'HTTP/2.0', 0
		FROM n`, rows, rows)
}

// filled returns a reader of a ledger with so many calls, which a statement puts in: a
// row at a time would take minutes.
func filled(b *testing.B, rows int, fill string) *Reader {
	b.Helper()
	path := filepath.Join(b.TempDir(), "usage.db")
	db, err := openDatabase(context.Background(), path)
	if err != nil {
		b.Fatal(err)
	}
	if err := db.conn.Exec("PRAGMA synchronous = OFF; BEGIN;" + fill + fmt.Sprintf("; UPDATE usage_watermark SET seq = %d; COMMIT", rows)); err != nil {
		b.Fatal(err)
	}
	sumUp(b, db.conn)
	if err := db.close(); err != nil {
		b.Fatal(err)
	}
	r, err := OpenReader(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = r.Close() })
	return r
}

// BenchmarkCalls lists calls of a ledger of 2 million.
func BenchmarkCalls(b *testing.B) {
	rows := 2_000_000
	if testing.Short() {
		rows = 200_000
	}
	r := filled(b, rows, fillSQL(rows))
	noon := time.Unix(1790000000, 0).AddDate(0, 0, 15)
	for _, c := range []struct {
		name string
		f    Filter
	}{
		{"last", Filter{}},
		{"a key", Filter{Key: "key7"}},
		{"a key in an hour", Filter{Key: "key7", Since: noon, Before: noon.Add(time.Hour)}},
		{"a key of one call in ten thousand", Filter{Key: "seldom"}},
		{"a key of one call", Filter{Key: "once"}},
		{"a key of none", Filter{Key: "nobody"}},
		{"id", Filter{ID: fmt.Sprintf("q7f3k2ab%013d", rows/2)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			n, cpu := 0, cpuTime()
			for b.Loop() {
				got, err := r.Calls(context.Background(), c.f)
				if err != nil {
					b.Fatal(err)
				}
				n = len(got)
			}
			b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(n), "calls")
		})
	}
}

// BenchmarkMigrate brings a ledger of a million calls up to date from version 1.
func BenchmarkMigrate(b *testing.B) {
	rows := 1_000_000
	if testing.Short() {
		rows = 100_000
	}
	first, err := os.ReadFile("testdata/schema1.sql")
	if err != nil {
		b.Fatal(err)
	}
	cpu := time.Duration(0)
	for b.Loop() {
		b.StopTimer()
		path := filepath.Join(b.TempDir(), "usage.db")
		conn, err := sqlite3.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		err = conn.Exec(fmt.Sprintf("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; BEGIN; %s; PRAGMA application_id = %d; PRAGMA user_version = 1; %s; COMMIT",
			first, applicationID, fillSQL(rows)))
		if err != nil {
			b.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		cpu -= cpuTime()
		db, err := openDatabase(context.Background(), path)
		if err != nil {
			b.Fatal(err)
		}
		cpu += cpuTime()
		b.StopTimer()
		if err := db.close(); err != nil {
			b.Fatal(err)
		}
		os.Remove(path)
		b.StartTimer()
	}
	b.ReportMetric(float64(cpu)/float64(b.N)/float64(rows), "cpu-ns/row")
}
