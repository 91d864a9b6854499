package diagnose

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weirgate/weir/internal/call"
)

// TestText: what people read, whole.
func TestText(t *testing.T) {
	list := many(1000, func(i int) *call.Record {
		return with(func(r *call.Record) {
			switch {
			case i%5 < 2:
				queued(r)
				r.Upstream = "10.0.0.2:8000"
			case i%50 == 3:
				unsent(r, call.UpstreamError, "connection_refused")
			case i == 4:
				r.Phases.Delivery = lasting(2 * time.Second)
			}
		})
	})
	var out bytes.Buffer
	if err := Text(&out, Window(list, Options{})); err != nil {
		t.Fatal(err)
	}
	const want = `Diagnosis of 1,000 calls from 2026-08-01 03:00:00 to 03:01:45 UTC
  ended: completed 980, upstream_error 20
  errors: connection_refused 20

FOUND
  The engine's queue took 3.9 s of 4.03 s TTFT on average in 400 of
  1,000 calls: 93 % of all TTFT.

  on average    known by              TTFT                   E2E
                                 980 calls             980 calls
  upload        measured              1 ms    <1 %          1 ms    <1 %
  connect       measured              1 ms    <1 %          1 ms    <1 %
  upstream_rtt  measured              1 ms    <1 %          1 ms    <1 %
  queue_engine  engine              1.59 s    93 %        1.59 s    43 %
  frontend      inferred              3 ms    <1 %          3 ms    <1 %
  prefill       engine              120 ms     7 %        120 ms     3 %
  decode        measured                                     2 s    54 %
  tail          measured                                    1 ms    <1 %
  delivery      measured                                 3.04 ms    <1 %
  sum                               1.72 s                3.72 s

1. engine_queue, layer engine_queue, reported by the engine
   The engine's queue took 3.9 s of 4.03 s TTFT on average in 400 of
   1,000 calls: 93 % of all TTFT.
   + waiting in the engine when it was sent: 12 calls on average
   + running in the engine when it was sent: 6 calls on average
   + KV cache in use when it was sent: 40 % on average, so the cap on sequences
     or the GPU holds calls back, not the cache
   + upstream 10.0.0.2:8000 has 400 of these 400 calls, and 400 of all 1,000
   Next: The cache has room: if running stands at the engine's cap, raise it
   (vLLM: --max-num-seqs); if the GPUs are busy, add replicas.
   Worst: call-0000 (3.9 s of 4.03 s), call-0001 (3.9 s of 4.03 s), call-0005
   (3.9 s of 4.03 s)

2. upstream_unreachable, layer network, measured
   The upstream did not get the request in 20 of 1,000 calls
   (connection_refused).
   + connection_refused
   Next: Check that the engine listens at the upstream's address, and what lies
   between: name resolution, firewall, certificates.
   Worst: call-0003 (2 ms), call-0053 (2 ms), call-0103 (2 ms)

rare: slow_reader 1
`
	if out.String() != want {
		t.Errorf("got\n%s", &out)
	}
}

func TestTextFindings(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"healthy", "Nothing stands out in this call.\n"},
		{"tail", `1. engine_tail, layer engine_frontend, measured
   The time after the last token took 2 s of 4.13 s in all (48 %).
   Next: See in the engine's log why the stream was not ended: a stalled
   engine, a filter or a proxy that holds the end back.
`},
	} {
		var out bytes.Buffer
		if err := TextFindings(&out, Call(with(cases[c.name].change))); err != nil {
			t.Fatal(err)
		}
		if out.String() != c.want {
			t.Errorf("%s:\n%s", c.name, &out)
		}
	}
}

// TestTextFits: no line of any report is wider than the page, or has what a
// terminal would obey.
func TestTextFits(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 30 {
		r := Window(many(1+rng.IntN(60), func(int) *call.Record {
			r := anyRecord(rng)
			r.Upstream, r.Key, r.Error = "a\x1b[2J:1", "key\r\nFOUND", "e\u202e\x9b1m"
			return r
		}), Options{Examples: 10})
		var out bytes.Buffer
		if err := Text(&out, r); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			if utf8.RuneCountInString(line) > columns || strings.ContainsAny(line, "\x00\x1b\r\u202e\u009b") {
				t.Fatalf("%d columns: %q", utf8.RuneCountInString(line), line)
			}
		}
	}
}

// TestJSON: a report comes back from its JSON form as it was, and what is unknown
// is not there.
func TestJSON(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 20 {
		r := Window(many(50, func(int) *call.Record { return anyRecord(rng) }), Options{})
		var out, again bytes.Buffer
		if err := JSON(&out, r); err != nil {
			t.Fatal(err)
		}
		var back Report
		if err := json.Unmarshal(out.Bytes(), &back); err != nil {
			t.Fatal(err)
		}
		if err := JSON(&again, back); err != nil {
			t.Fatal(err)
		}
		if out.String() != again.String() || strings.Contains(out.String(), "null") {
			t.Fatalf("%s\n%s", &out, &again)
		}
	}
	b, err := json.Marshal(Window(nil, Options{}))
	const empty = `{"calls":0,"streamed":0,"outcomes":[],"ttft":{"calls":0},"e2e":{"calls":0},"verdict":"too_few_calls","reasons":["There are no calls to look at."],"findings":[]}`
	if err != nil || string(b) != empty {
		t.Errorf("%s %v", b, err)
	}
}

type fullDisk struct{}

var errFull = errors.New("disk full")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrors(t *testing.T) {
	r := Window(nil, Options{})
	for _, err := range []error{Text(fullDisk{}, r), TextFindings(fullDisk{}, nil), JSON(fullDisk{}, r)} {
		if !errors.Is(err, errFull) || !strings.HasPrefix(err.Error(), "write diagnosis: ") {
			t.Errorf("%v", err)
		}
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{span(0), "0 ms"}, {span(1500 * time.Nanosecond), "1.5 µs"}, {span(999_600), "1 ms"}, {span(3900 * ms), "3.9 s"}, {span(999_900 * time.Microsecond), "1 s"},
		{span(2 * time.Hour), "7,200 s"}, {percent(0), "0 %"}, {percent(0.004), "<1 %"}, {percent(0.996), ">99 %"}, {percent(1), "100 %"}, {percent(0.945), "95 %"},
		{size(999), "999 B"}, {size(999.7), "1 kB"}, {size(5e6), "5 MB"}, {size(7e12), "7,000 GB"}, {cardinal(1), "1 call"}, {cardinal(1234), "1,234 calls"},
		{amount(1.5, InTokens), "1.5 tokens"}, {amount(2, InPieces), "2"}, {upper("a b"), "A b"}, {upper("1"), "1"}, {upper(""), ""}, {clean("a\x1b\u2066b\x7f"), "ab"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
