package diagnose

import (
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/call"
)

func row(concurrency, ttft, tpot, gpu, throughput float64) Row {
	known := func(v float64) call.Number {
		if v == 0 {
			return call.Number{}
		}
		return figureOf(v)
	}
	return Row{Concurrency: known(concurrency), TTFT: call.Milliseconds(ttft), TPOT: call.Milliseconds(tpot), Utilization: known(gpu), Throughput: known(throughput)}
}

// TestTables: the two tables of the field, and what differs from them in one thing.
func TestTables(t *testing.T) {
	with := func(r Row, f func(*Row)) Row { f(&r); return r }
	for name, c := range map[string]struct {
		rows    []Row
		verdict Verdict
		code    Code
	}{
		"TTFT twelvefold, TPOT twofold, GPU busy": {[]Row{row(1, 85, 18, 0.42, 0), row(8, 320, 28, 0.72, 0), row(32, 1050, 35, 0.91, 0)}, Found, CodeQueueing},
		"the same, GPU unknown":                   {[]Row{row(1, 85, 18, 0, 0), row(32, 1050, 35, 0, 0)}, Found, CodeQueueing},
		"the same, GPU with room":                 {[]Row{row(1, 85, 18, 0.42, 0), row(32, 1050, 35, 0.55, 0)}, Found, CodeGPUUnderUsed},
		"its first two rows":                      {[]Row{row(1, 85, 18, 0.42, 0), row(8, 320, 28, 0.72, 0)}, Undetermined, ""},
		"TTFT steady, TPOT doubled, output down":  {[]Row{row(0, 90, 20, 0, 1000), row(0, 92, 40, 0, 700)}, Found, CodeDecodeBandwidth},
		"the same with more calls at once":        {[]Row{row(8, 90, 20, 0.9, 1000), row(32, 92, 40, 0.97, 900)}, Found, CodeDecodeBandwidth},
		"the same with as many calls at once":     {[]Row{row(32, 90, 20, 0.9, 1000), row(32, 92, 40, 0.97, 500)}, Found, CodeDecodeSlower},
		"both up, output flat":                    {[]Row{row(8, 90, 20, 0.9, 1000), row(64, 400, 45, 0.99, 1050)}, Found, CodeSaturation},
		"KV cache full": {[]Row{row(8, 90, 20, 0.9, 1000), with(row(64, 2000, 30, 0.99, 1500), func(r *Row) {
			r.KVUse, r.Waiting = figureOf(0.97), figureOf(20)
		})}, Found, CodeCapacity},
		"nothing":   {[]Row{row(8, 90, 20, 0.9, 1000), row(8, 95, 21, 0.9, 1000)}, NothingFound, ""},
		"one row":   {[]Row{row(8, 90, 20, 0.9, 1000)}, TooFewCalls, ""},
		"empty":     {[]Row{{}, {}}, NothingFound, ""},
		"TTFT only": {[]Row{row(8, 90, 0, 0, 0), row(8, 900, 0, 0, 0)}, Undetermined, ""},
	} {
		got := CompareRows(c.rows)
		if got.Verdict != c.verdict || got.Code != c.code {
			t.Errorf("%s: %s %s %q, want %s %s", name, got.Verdict, got.Code, got.Reasons, c.verdict, c.code)
		}
		if (got.Code == "") == (got.Verdict == Found) || got.Code != "" && (got.Findings[0].Code != got.Code || got.Findings[0].Layer != got.Layer || len(got.Findings[0].For) == 0) {
			t.Errorf("%s: the primary finding is not the first: %+v", name, got.Findings)
		}
	}
}

// TestTableText: what people read of the field's table.
func TestTableText(t *testing.T) {
	var out strings.Builder
	if err := TextComparison(&out, CompareRows([]Row{row(1, 85, 18, 0.42, 0), row(8, 320, 28, 0.72, 0), row(32, 1050, 35, 0.91, 0)})); err != nil {
		t.Fatal(err)
	}
	const want = `Comparison of the last row of a table with the first

FOUND
  The time to the first token is spent in queues, 885 ms more: TTFT 85 ms →
  1.05 s: 92 % of the change.

  on average            TTFT               TPOT                E2E
  before               85 ms              18 ms                  -
  now                 1.05 s              35 ms                  -
  change             +965 ms             +17 ms                  -

                                                           before          now
  calls in flight                                               1           32
  queue share of the time to the first token                    -         84 %
  GPUs busy                                                  42 %         91 %

1. queueing, layer engine_queue, inferred
   The time to the first token is spent in queues, 885 ms more: TTFT 85 ms →
   1.05 s: 92 % of the change.
   + in queues: 885 ms
   + queue share of the time to the first token: 84 %
   + TTFT: 85 ms → 1.05 s
   + TPOT: 18 ms → 35 ms
   + GPUs busy: 42 % → 91 %
   - the use of the KV cache is not known: whether it, the cap or the GPU holds
     calls back cannot be told
   - the engine does not tell how long each call waited: it is inferred from
     the number that wait, or from TTFT and TPOT
   Next: See what holds the queue: the engine option of the global block shows
   KV cache, running and waiting; send fewer at once, or add replicas; if
   running stands at the cap and the cache has room, raise it (vLLM:
   --max-num-seqs; SGLang: --max-running-requests; llama.cpp: --parallel;
   Ollama: OLLAMA_NUM_PARALLEL; TGI: --max-batch-total-tokens).
`
	if out.String() != want {
		t.Errorf("got\n%s", &out)
	}
}
