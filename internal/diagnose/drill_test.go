package diagnose_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/diagnose"
	"github.com/weirgate/weir/internal/sim"
)

const ms = time.Millisecond

var drills = []drill{
	{name: "healthy", engine: sim.Config{PerRequestMetrics: true}, gauges: true,
		calls: 60, every: 250 * ms, words: 50, tokens: 40, verdict: "nothing_found"},
	{name: "healthy, stock engine", engine: sim.Config{PrefillBase: 20 * ms},
		calls: 60, every: 250 * ms, words: 50, tokens: 40, verdict: "nothing_found"},
	{name: "healthy, not streamed", engine: sim.Config{PerRequestMetrics: true},
		calls: 60, every: 250 * ms, words: 50, tokens: 40, whole: true, verdict: "nothing_found"},
	{name: "healthy, busy", engine: sim.Config{PerRequestMetrics: true, NoPrefixCache: true, PrefillBase: 10 * ms}, gauges: true,
		calls: 200, every: 50 * ms, words: 50, tokens: 40, verdict: "nothing_found"},
	{name: "queue overload", engine: sim.Config{Slots: 4, PerRequestMetrics: true, NoPrefixCache: true}, gauges: true,
		calls: 120, every: 100 * ms, words: 50, tokens: 60, want: []string{"engine_queue"}, verdict: "found"},
	{name: "queue overload, llama.cpp", engine: sim.Config{Slots: 4, Quirks: sim.LlamaCPP, NoPrefixCache: true}, gauges: true,
		calls: 120, every: 100 * ms, words: 50, tokens: 60, want: []string{"engine_queue"}, verdict: "found"},
	{name: "queue overload, not streamed", engine: sim.Config{Slots: 4, PerRequestMetrics: true, NoPrefixCache: true},
		calls: 120, every: 100 * ms, words: 50, tokens: 60, whole: true, want: []string{"engine_queue"}, verdict: "found"},
	{name: "queue overload, stock, gauges", engine: sim.Config{Slots: 4, NoPrefixCache: true}, gauges: true,
		calls: 120, every: 100 * ms, words: 50, tokens: 60, want: []string{"engine_queue?"}, window: "engine_queue", verdict: "found"},
	{name: "healthy, busy, stock, gauges", engine: sim.Config{NoPrefixCache: true, PrefillBase: 10 * ms}, gauges: true,
		calls: 200, every: 50 * ms, words: 50, tokens: 40, verdict: "nothing_found"},
	{name: "queue overload, stock", engine: sim.Config{Slots: 4, NoPrefixCache: true},
		calls: 120, every: 100 * ms, words: 50, tokens: 60, want: []string{"unattributed?"}, verdict: "undetermined"},
	{name: "KV cache full", engine: sim.Config{ModelLen: 640, KVBlocks: 40, PerRequestMetrics: true, NoPrefixCache: true}, gauges: true,
		calls: 120, every: 100 * ms, words: 140, tokens: 20, want: []string{"engine_queue"}, may: []string{"kv_cache_full"}, verdict: "found"},
	{name: "gateway queue", engine: sim.Config{PerRequestMetrics: true, NoPrefixCache: true}, gauges: true, slots: 2,
		calls: 120, every: 100 * ms, words: 50, tokens: 40, want: []string{"gateway_queue"}, verdict: "found"},
	{name: "slow prefill", engine: sim.Config{PrefillPerToken: 8 * ms, PerRequestMetrics: true, NoPrefixCache: true}, gauges: true,
		calls: 40, every: 4 * time.Second, words: 200, tokens: 20, want: []string{"prefill_slow"}, verdict: "found"},
	{name: "slow prefill, stock, gauges", engine: sim.Config{PrefillPerToken: 15 * ms, NoPrefixCache: true}, gauges: true,
		calls: 40, every: 5 * time.Second, words: 200, tokens: 20, want: []string{"prefill_slow"}, may: []string{"prefill_long", "unattributed?"}, verdict: "found"},
	{name: "slow prefill, no gauges", engine: sim.Config{PrefillPerToken: 8 * ms, PerRequestMetrics: true, NoPrefixCache: true},
		calls: 40, every: 4 * time.Second, words: 200, tokens: 20, want: []string{"prefill_long"}, verdict: "found"},
	{name: "slow prefill, stock", engine: sim.Config{PrefillPerToken: 8 * ms, NoPrefixCache: true},
		calls: 40, every: 4 * time.Second, words: 200, tokens: 20, want: []string{"unattributed?"}, verdict: "undetermined"},
	{name: "slow front end", engine: sim.Config{FrontendTime: 300 * ms, PerRequestMetrics: true}, gauges: true,
		calls: 60, every: 250 * ms, words: 50, tokens: 40, want: []string{"frontend_overhead"}, verdict: "found"},
	{name: "slow reader", engine: sim.Config{PerRequestMetrics: true}, gauges: true, read: 60 * ms,
		calls: 60, every: 250 * ms, words: 50, tokens: 40, want: []string{"slow_reader"}, verdict: "found"},
	{name: "slow sender", engine: sim.Config{PerRequestMetrics: true}, gauges: true, send: time.Second,
		calls: 60, every: 250 * ms, words: 50, tokens: 40, want: []string{"upload_stalled"}, verdict: "found"},
	{name: "slow upload", engine: sim.Config{PerRequestMetrics: true, PrefillPerToken: 10 * time.Microsecond}, send: 4 * time.Second,
		calls: 30, every: 500 * ms, words: 14_000, tokens: 10, want: []string{"upload_slow"}, verdict: "found"},
	{name: "engine falls silent", engine: sim.Config{PerRequestMetrics: true, Fault: "hang:5"}, patience: 20 * time.Second,
		calls: 30, every: 250 * ms, words: 50, tokens: 40, want: []string{"engine_tail"}, verdict: "found"},
	{name: "engine says nothing", engine: sim.Config{Fault: "hang"}, wire: true, patience: 20 * time.Second,
		calls: 30, every: 250 * ms, words: 50, tokens: 40, want: []string{"unattributed?"}, verdict: "undetermined"},
	{name: "engine errs", engine: sim.Config{Fault: "status:500"},
		calls: 30, every: 250 * ms, words: 50, tokens: 40, want: []string{"upstream_failed"}, verdict: "found"},
	{name: "slow to connect", engine: sim.Config{PerRequestMetrics: true}, wire: true, dial: time.Second,
		calls: 30, every: 250 * ms, words: 50, tokens: 40, want: []string{"upstream_reconnects"}, verdict: "found"},
	{name: "healthy, over a wire", engine: sim.Config{PerRequestMetrics: true}, wire: true, gauges: true,
		calls: 30, every: 250 * ms, words: 50, tokens: 40, verdict: "nothing_found"},
	{name: "engine is down", wire: true, dial: refused,
		calls: 30, every: 250 * ms, words: 50, tokens: 40, want: []string{"upstream_unreachable"}, verdict: "found"},
}

// TestDrills: each staged fault is found in at least nine of ten of its calls, no call is
// said to have another, and the window comes to the right verdict. The confusion
// matrix is printed with -v.
func TestDrills(t *testing.T) {
	counts := make([]map[string]int, len(drills))
	records := make([][]*call.Record, len(drills))
	var columns []string
	for i := range drills {
		d := &drills[i]
		counts[i] = map[string]int{}
		t.Run(d.name, func(t *testing.T) {
			records[i] = d.run(t)
			for _, rec := range records[i] {
				found := diagnose.Call(rec)
				if len(found) == 0 {
					counts[i]["-"]++
				}
				for _, f := range found {
					code := code(f)
					if counts[i][code]++; !slices.Contains(columns, code) {
						columns = append(columns, code)
					}
					if !slices.Contains(d.want, code) && !slices.Contains(d.may, code) {
						t.Errorf("call %s: %s", rec.ID, f.Summary)
					}
				}
			}
			for _, want := range d.want {
				if n := counts[i][want]; 10*n < 9*d.calls {
					t.Errorf("%d of %d calls show %s", n, d.calls, want)
				}
			}
			r := diagnose.Window(records[i], diagnose.Options{})
			if string(r.Verdict) != d.verdict || r.Calls != d.calls || r.Odd != 0 {
				t.Errorf("verdict %s on %d calls: %q", r.Verdict, r.Calls, r.Reasons)
			}
			if d.window == "" && len(d.want) > 0 {
				d.window = d.want[0]
			}
			if d.window != "" && (len(r.Findings) == 0 || code(r.Findings[0]) != d.window) {
				t.Errorf("the first finding of the window is not %s: %q", d.window, r.Reasons)
			}
		})
	}
	slices.Sort(columns)
	columns = append(columns, "-")
	t.Log(matrix(columns, counts))
}

// code writes a finding's code, with a question mark when it is only possible.
func code(f diagnose.Finding) string {
	if f.Source == call.Unattributed {
		return string(f.Code) + "?"
	}
	return string(f.Code)
}

// matrix writes what was staged by what was found, in calls.
func matrix(columns []string, counts []map[string]int) string {
	var b strings.Builder
	b.WriteString("calls by what was staged (rows) and found (columns); ? is only possible\n")
	for i, c := range columns {
		fmt.Fprintf(&b, "  %c %s\n", 'A'+i, c)
	}
	fmt.Fprintf(&b, "%-32s", "")
	for i := range columns {
		fmt.Fprintf(&b, "%5c", 'A'+i)
	}
	for i := range drills {
		fmt.Fprintf(&b, "\n%-32s", drills[i].name)
		for _, c := range columns {
			if n := counts[i][c]; n > 0 {
				fmt.Fprintf(&b, "%5d", n)
			} else {
				fmt.Fprintf(&b, "%5s", ".")
			}
		}
	}
	return b.String()
}
