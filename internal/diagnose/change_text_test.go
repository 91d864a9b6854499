package diagnose

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weirgate/weir/internal/call"
)

// TestComparisonText: what people read, whole.
func TestComparisonText(t *testing.T) {
	s := changeCases["capacity"]
	s.before, s.after = both(named3), both(s.after, named3)
	var out bytes.Buffer
	if err := TextComparison(&out, s.compare()); err != nil {
		t.Fatal(err)
	}
	const want = `Comparison of 120 calls from 2026-08-01 03:01:00 to 03:01:17 UTC
  with 120 calls from 2026-08-01 03:00:00 to 03:00:14 UTC

FOUND
  The time to the first token waits in the engine, whose KV cache is full, 3 s
  more: TTFT 120 ms → 3.12 s: 100 % of the change.

  on average            TTFT               TPOT                E2E
  before              120 ms            15.5 ms             1.64 s
  now                 3.12 s            15.5 ms             4.63 s
  queue_engine          +3 s  100 %                           +3 s  100 %
  change                +3 s              +0 ms               +3 s
  mix alone            +0 ms  100 %       +0 ms  100 %       +0 ms  100 %
  equal size            +3 s  100 %       +0 ms  100 %        +3 s  100 %
  equal uncached        +3 s  100 %       +0 ms  100 %        +3 s  100 %
  equal batch              ?    0 %           ?    0 %           ?    0 %
  (mix alone: what the sizes of the calls would have changed; equal: the change
  on cells of equal model, input and output, then of equal uncached input too,
  then of equal batch, with the share of the calls that have equals; ? is too
  few to tell)

                                                           before          now
  calls a second                                               10           10
  tokens written a second                                     899          899
  prompt tokens computed a second                           4,950        4,950
  prompt, mean                                         495 tokens   495 tokens
  prompt, p95                                          671 tokens   671 tokens
  prompt tokens from the cache                                0 %          0 %
  answer, mean                                          99 tokens    99 tokens
  calls in flight                                            13.8         32.3
  calls written side by side                                 4.74         4.74
  running in the engine                                       5.4            8
  waiting in the engine                                         0           30
  KV cache in use                                            40 %         96 %
  queue share of the time to the first token                  4 %         96 %
  calls in flight here, unknown to the engine                 0 %          0 %
  GPUs busy                                                  93 %         93 %
  memory bandwidth in use                                    50 %         50 %
  round trip to clients                                      2 ms         2 ms
  round trip to the upstream                                 1 ms         1 ms

1. capacity, layer engine_queue, reported by the engine
   The time to the first token waits in the engine, whose KV cache is full, 3 s
   more: TTFT 120 ms → 3.12 s: 100 % of the change.
   + in queues: 5 ms → 3 s
   + queue share of the time to the first token: 4 % → 96 %
   + KV cache in use: 40 % → 96 %
   + KV cache above 90 % since 03:00:59, 3.38 s before the first slow TTFT was
     seen
   + waiting in the engine: 0 → 30
   + running in the engine: 5.4 → 8
   + calls waiting since 03:00:59, 3.38 s before the first slow TTFT was seen
   Next: Add replicas, or shed load; a larger KV cache helps as well (vLLM:
   --gpu-memory-utilization, a smaller --max-model-len, an fp8 KV cache).
`
	if out.String() != want {
		t.Errorf("got\n%s", &out)
	}
}

// TestComparisonTextFits: no line is wider than the page, or has what a terminal
// would obey.
func TestComparisonTextFits(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	check := func(c Comparison) {
		t.Helper()
		var out bytes.Buffer
		if err := TextComparison(&out, c); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			if utf8.RuneCountInString(line) > columns || strings.ContainsAny(line, "\x00\x1b\r\u202e\u009b") {
				t.Fatalf("%d columns: %q", utf8.RuneCountInString(line), line)
			}
		}
	}
	for range 20 {
		windows := [2][]*call.Record{}
		for i := range windows {
			windows[i] = many(20+rng.IntN(60), func(j int) *call.Record {
				r := anyRecord(rng)
				r.Upstream, r.Key, r.Error, r.Model = fmt.Sprint("a\x1b[2J:", j%2), "key\r\nFOUND", "e\u202e\x9b1m", strings.Repeat("long", 30)
				return r
			})
		}
		check(Compare(windows[0], windows[1], CompareOptions{After: Signals{GPUs: []GPUFigures{{Name: "g\x1b\n", XID: known(79), Reasons: []string{"\r"}}}}}))
	}
	for _, s := range changeCases {
		check(s.compare())
	}
}

// TestComparisonJSON: a comparison comes back from its JSON form as it was, and
// what is unknown is not there.
func TestComparisonJSON(t *testing.T) {
	for name, s := range changeCases {
		var out, again bytes.Buffer
		if err := JSONComparison(&out, s.compare()); err != nil {
			t.Fatal(err)
		}
		var back Comparison
		if err := json.Unmarshal(out.Bytes(), &back); err != nil {
			t.Fatal(err)
		}
		if err := JSONComparison(&again, back); err != nil {
			t.Fatal(err)
		}
		if out.String() != again.String() || strings.Contains(out.String(), "null") {
			t.Fatalf("%s: %s\n%s", name, &out, &again)
		}
	}
	b, err := json.Marshal(Compare(nil, nil, CompareOptions{}))
	const empty = `{"before":{"calls":0},"after":{"calls":0},"ttft":{"before":{"calls":0},"after":{"calls":0}},"tpot":{"before":{"calls":0},"after":{"calls":0}},` +
		`"e2e":{"before":{"calls":0},"after":{"calls":0}},"verdict":"too_few_calls","reasons":["The healthy window has 0 calls: too few to compare (at least 20 are needed).",` +
		`"The new window has 0 calls: too few to compare (at least 20 are needed)."],"findings":[]}`
	if err != nil || string(b) != empty {
		t.Errorf("%s %v", b, err)
	}
}

func TestComparisonWriteErrors(t *testing.T) {
	for _, err := range []error{TextComparison(fullDisk{}, Comparison{}), JSONComparison(fullDisk{}, Comparison{})} {
		if !errors.Is(err, errFull) || !strings.HasPrefix(err.Error(), "write ") {
			t.Errorf("%v", err)
		}
	}
}

// TestCompareBounds: names without end make no comparison long.
func TestCompareBounds(t *testing.T) {
	const n = 2000
	window := func(change func(int, *call.Record)) []*call.Record {
		return windowOf(n, func(i int, r *call.Record) {
			r.Upstream, r.Model, r.Key = fmt.Sprint("u", i%700), fmt.Sprint("m", i%300), fmt.Sprint("k", i%90)
			apply(change, i, r)
			for j := range 100 {
				r.GPU.Reasons = append(r.GPU.Reasons, fmt.Sprint("reason_", i, "_", j))
			}
		})
	}
	var gpus []GPUFigures
	for i := range 500 {
		gpus = append(gpus, GPUFigures{Name: fmt.Sprint("GPU-", i), XID: known(79)})
	}
	c := Compare(window(nil), window(both(slowly(2), longQueue)), CompareOptions{After: Signals{GPUs: gpus}})
	var out bytes.Buffer
	if err := JSONComparison(&out, c); err != nil {
		t.Fatal(err)
	}
	if len(c.Siblings) > maxSiblings*int(dimensions) || len(c.Findings) > 3*maxSiblings || out.Len() > 64<<10 {
		t.Errorf("%d siblings, %d findings, %d bytes of JSON", len(c.Siblings), len(c.Findings), out.Len())
	}
}

// FuzzCompare: whatever stands in records and signals, nothing panics, shares lie
// between 0 and 1, parts add up, and both forms can be written.
func FuzzCompare(f *testing.F) {
	for _, s := range changeCases {
		r := with(func(r *call.Record) { usual(1, r); apply(s.after, 1, r) })
		b, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, []byte(`{"gpus":[{"gpu":"0","sm_clock_mhz":1830,"xid":3}],"engine":[{"time":"2026-08-01T03:00:00Z","waiting":3}],"preemptions":3}`))
	}
	before := windowOf(24, nil)
	f.Fuzz(func(t *testing.T, record, signals []byte) {
		r, sig := new(call.Record), Signals{}
		if json.Unmarshal(record, r) != nil || json.Unmarshal(signals, &sig) != nil {
			return
		}
		after := []*call.Record{nil}
		for i := range 24 {
			again := *r
			again.Time = again.Time.Add(time.Duration(i) * 100 * ms)
			after = append(after, &again)
		}
		for _, c := range []Comparison{Compare(before, after, CompareOptions{After: sig}), Compare(after, before, CompareOptions{Before: sig, After: sig})} {
			for _, found := range c.Findings {
				if x, known := found.Share.Get(); known && !(x >= 0 && x <= 1) {
					t.Errorf("%s has a share of %v", found.Code, x)
				}
			}
			for _, ch := range []*Change{&c.TTFT, &c.TPOT, &c.E2E} {
				sum := time.Duration(0)
				for _, p := range ch.Parts {
					sum += p.Change.Or(0)
				}
				if sum != ch.Change.Or(0) {
					t.Errorf("parts change by %v, the whole by %v", sum, ch.Change.Or(0))
				}
			}
			if err := errors.Join(TextComparison(io.Discard, c), JSONComparison(io.Discard, c)); err != nil {
				t.Error(err)
			}
		}
		for _, objective := range []string{"ttft", "tpot", "e2e", "queue", "network", "success"} {
			if b := Blame(after, before, objective); b.Text == "" || b.Determined && b.Phase == "" {
				t.Errorf("%s: %+v", objective, b)
			}
		}
	})
}
