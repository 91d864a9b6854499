package diagnose

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

func TestCall(t *testing.T) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			wantCodes(t, Call(with(c.change)), c.want...)
		})
	}
	wantCodes(t, Call(nil))
	wantCodes(t, Call(new(call.Record)))
}

// TestCodes: every code is described, once, and shown by a case.
func TestCodes(t *testing.T) {
	shown := map[string]bool{}
	for _, c := range cases {
		for _, code := range c.want {
			shown[code] = true
		}
	}
	for i, m := range Codes() {
		if m.Says == "" || m.Layer == "" || m.subject == "" || places[m.Code] != i {
			t.Errorf("%s is not described whole, or twice", m.Code)
		}
		if !shown[string(m.Code)] && !shown[string(m.Code)+"?"] {
			t.Errorf("no case shows %s", m.Code)
		}
	}
}

// TestEvidence: what findings say, in words and figures.
func TestEvidence(t *testing.T) {
	for name, c := range map[string]struct {
		code     Code
		summary  string
		pro, con []string // one text that has to be there, each
		next     string   // a part of it
	}{
		"engine queue": {CodeEngineQueue, "The engine's queue took 3.9 s of 4.03 s TTFT (97 %).",
			[]string{"waiting in the engine when it was sent: 12 calls", "running in the engine when it was sent: 6 calls"}, nil, "--max-num-seqs"},
		"engine queue, possibly": {CodeEngineQueue, "The engine's queue may have taken up to 4 s of 4 s TTFT (>99 %); nothing tells it from prefill.",
			[]string{"waiting in the engine when it was sent: 12 calls"}, []string{"time to the first token that cannot be split: 4 s, prefill lies within"}, "--max-num-seqs"},
		"engine queue, inferred": {CodeEngineQueue, "The engine's queue took 4 s of 4.13 s TTFT (97 %).",
			nil, []string{"waiting in the engine when it was sent: 0 calls, so a queue would have to have formed after that reading",
				"prefill as the engine reports it: 120 ms, the queue is inferred from it, and HTTP and tokenizing lie within"}, "See why calls wait"},
		"both queues": {CodeEngineQueue, "The engine's queue took 2 s of 5.13 s TTFT (39 %).",
			nil, []string{"the gateway's own queue before that: 3 s, not counted here"}, ""},
		"GPU idle while the gateway queues": {CodeGatewayQueue, "The gateway's own queue took 4 s of 4.13 s TTFT (97 %).",
			[]string{"waiting in the engine when it was sent: 0 calls, so nothing queued there", "GPUs busy while it ran: 30 %"}, nil, "The GPUs had room"},
		"KV cache full": {CodeKVCacheFull, "The KV cache was full and calls waited (KV cache in use when it was sent: 97 %; waiting in the engine when it was sent: 3 calls).",
			[]string{"the engine's queue: 4 s"}, nil, "--gpu-memory-utilization"},
		"model load": {CodeModelLoad, "Loading the model took 8 s of 9.13 s TTFT (88 %).",
			[]string{"the engine's queue, loading included: 9 s"}, nil, "keep_alive"},
		"prefill slow, alone": {CodePrefillSlow, "Prefill took 3 s of 3.01 s TTFT (>99 %).",
			[]string{"prompt computed: 500 tokens", "prefill per computed token: 6 ms", "running in the engine when it was sent: 1 call, so it is not for want of capacity"},
			[]string{"a CPU, or a GPU much too small for the model, is this slow by its nature"}, "more replicas do not help"},
		"prefill slow, cached not known": {CodePrefillSlow, "Prefill took 3 s of 3.01 s TTFT (>99 %).",
			[]string{"prompt computed at most: 500 tokens, what was cached is not known"}, nil, ""},
		"prefill slow, by a bound": {CodePrefillSlow, "Prefill took at least 2.3 s of 3 s TTFT (77 %).",
			nil, []string{"the engine's queue at most, by its gauges: 700 ms, taken off; HTTP and tokenizing may lie within the rest"}, ""},
		"prefill slow, others came": {CodePrefillLong, "Prefill took 3 s of 3.01 s TTFT (>99 %).",
			[]string{"running at its first token, itself included: 3 calls, others came and shared the steps"}, nil, "Others ran beside it"},
		"prefill slow, crowd not known": {CodePrefillLong, "Prefill took 3 s of 3.01 s TTFT (>99 %).",
			nil, []string{"how many ran beside it is not known: a crowded batch looks the same as a slow model"}, "without other work"},
		"prefill long, for a long prompt": {CodePrefillLong, "Prefill took 3 s of 3.01 s TTFT (>99 %).",
			[]string{"prompt computed: 60,000 tokens", "prefill per computed token: 50 µs"}, nil, "The prompts are long"},
		"prefill slow, tokens not known": {CodePrefillLong, "Prefill took 3 s of 3.01 s TTFT (>99 %).", nil, nil, "ask for usage"},
		"slow reader": {CodeSlowReader, "Writes blocked by the client took 2 s of 4.13 s in all (48 %).",
			[]string{"answer: 20 kB", "round trip to the client: 2 ms, so it is not for distance"}, nil, "not at fault"},
		"reconnects": {CodeReconnects, "Reaching the upstream took 2 s of 2.13 s TTFT (94 %).",
			[]string{"attempts: 3, those before the last lie within this time"}, []string{"round trip to the upstream: 1 ms, so it is not for distance"}, "Earlier attempts failed"},
		"connect, a large body": {CodeReconnects, "Reaching the upstream took 2 s of 2.13 s TTFT (94 %).",
			nil, []string{"attempts: 1, so it is not for retries", "request body: 8 MB, writing it upstream lies within this time"}, "Large bodies"},
		"KV cache nearly full": {CodeEngineQueue, "The engine's queue took 4 s of 4.13 s TTFT (97 %).",
			[]string{"KV cache in use when it was sent: 94 %"}, nil, "The KV cache is the limit"},
		"upload of a large body": {CodeUploadSlow, "Receiving the request took 4 s of 4.13 s TTFT (97 %).",
			[]string{"request body: 5 MB", "it came with: 1.25 MB/s"}, nil, "send less"},
		"clock held down by heat": {CodeClockThrottled, "GPU clocks were held down (lowest clock of a GPU at work, of its maximum: 92 %; held down by hw_thermal).",
			[]string{"held down by hw_thermal"}, []string{"samples of the GPUs: 3, the lowest counts: it may have been brief"}, "cooling"},
		"clock far below the power limit": {CodeClockThrottled, "GPU clocks were held down (lowest clock of a GPU at work, of its maximum: 70 %; held down by power_cap).",
			nil, nil, "power drawn"},
		"client far": {CodeClientRoundTrip, "The round trip to the client took 300 ms of 431 ms to the first token at the client (70 %).", nil, nil, "nearer to the clients"},
		"engine queue, nothing waited": {CodeUnattributed, "4 s of 4 s TTFT cannot be told apart (queue, prefill or the way there) (>99 %).",
			nil, []string{"waiting in the engine when it was sent: 0 calls, which speaks against a queue"}, "--enable-per-request-metrics"},
		"gateway queue, refused at last": {CodeRefused, "Refused by the gateway's queue (queue waited; it had waited in the gateway's queue: 30 s).", nil, nil, "raise the limits"},
		"upstream sheds":                 {CodeUpstreamFailed, "The upstream failed (status_429; the upstream said that it is overloaded or limits its callers).", nil, nil, "add replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			f := find(t, Call(with(cases[name].change)), c.code)
			if f.Summary != c.summary {
				t.Errorf("summary %q", f.Summary)
			}
			if !strings.Contains(f.Next, c.next) {
				t.Errorf("next %q, want %q in it", f.Next, c.next)
			}
			for _, want := range []struct {
				texts []string
				among []Evidence
			}{{c.pro, f.For}, {c.con, f.Against}} {
				for _, text := range want.texts {
					if !slices.ContainsFunc(want.among, func(e Evidence) bool { return e.Text == text }) {
						t.Errorf("no %q among %+v", text, want.among)
					}
				}
			}
			if f.Layer == "" || f.Calls != 1 || f.Examples != nil || len(f.For)+len(f.Against) == 0 {
				t.Errorf("incomplete: %+v", f)
			}
		})
	}
}

// TestTrail: what the transport told of the attempts is evidence of reconnects.
func TestTrail(t *testing.T) {
	r := with(func(r *call.Record) {
		r.Phases.Connect, r.Replayed, r.Attempts = lasting(2*time.Second), true, 2
		r.Trail = []call.Attempt{
			{Start: lasting(ms), Connected: lasting(ms), Reused: true},
			{Start: lasting(40 * ms), Connected: lasting(1900 * ms), Sent: lasting(2 * time.Second)},
		}
	})
	f := find(t, Call(r), CodeReconnects)
	for figure, want := range map[string]float64{"attempts": 2, "new_connections": 1, "connecting_ms": 1860} {
		i := slices.IndexFunc(f.For, func(e Evidence) bool { return e.Figure == figure })
		if i < 0 || f.For[i].Value != figureOf(want) {
			t.Errorf("%s is not %v in %+v", figure, want, f.For)
		}
	}
	r.Trail = []call.Attempt{{Start: lasting(ms), Connected: lasting(1900 * ms), Reused: true}}
	if f := find(t, Call(r), CodeReconnects); !slices.ContainsFunc(f.Against, func(e Evidence) bool { return e.Figure == "new_connections" && e.Value == figureOf(0) }) {
		t.Errorf("a connection that was kept: %+v", f.Against)
	}
}

// TestClamped: figures of an engine that contradict the clock make a finding less certain.
func TestClamped(t *testing.T) {
	r := with(func(r *call.Record) { r.Phases.QueueEngine = lasting(4 * time.Second) })
	before := len(find(t, Call(r), CodeEngineQueue).Against)
	r.Degraded = []call.Degradation{call.PhaseClamped}
	if after := find(t, Call(r), CodeEngineQueue).Against; len(after) != before+1 {
		t.Errorf("against: %+v", after)
	}
}
