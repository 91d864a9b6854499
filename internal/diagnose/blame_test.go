package diagnose

import (
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// TestBlame: which phase calls that missed an objective lost their time in.
func TestBlame(t *testing.T) {
	queue := func(_ int, r *call.Record) { r.Phases.QueueEngine = lasting(time.Second) }
	for name, c := range map[string]struct {
		bad, kept []*call.Record
		objective string
		want      Blamed
	}{
		"queue": {windowOf(5, func(_ int, r *call.Record) { // TTFT is 1126 ms of 120 ms prefill
			r.Phases.Prefill, r.Phases.QueueEngine = lasting(120*ms), lasting(time.Second)
		}), windowOf(40, nil), "ttft", Blamed{Phase: "queue_engine", Layer: EngineQueue, Share: figureOf(1000. / 1126), Source: call.FromEngine, Calls: 5, Determined: true,
			Text: "Phase queue_engine is 89 % of TTFT (1 s, 5 ms in calls that kept it), reported by the engine."}},
		"queue, nothing to compare with": {windowOf(5, func(_ int, r *call.Record) {
			r.Phases.Prefill, r.Phases.QueueEngine = lasting(120*ms), lasting(time.Second)
		}), nil, "ttft", Blamed{Phase: "queue_engine", Layer: EngineQueue, Share: figureOf(1000. / 1126), Source: call.FromEngine, Calls: 5, Determined: true,
			Text: "Phase queue_engine is 89 % of TTFT (1 s), reported by the engine."}},
		"nobody splits": {windowOf(5, func(_ int, r *call.Record) { unsplitBy(r, 997*ms) }), nil, "ttft",
			Blamed{Phase: "prefill", Layer: Unknown, Share: figureOf(0.997), Source: call.Unattributed, Calls: 5,
				Text: "Undetermined: prefill is >99 % of TTFT (997 ms), which nobody splits; the engine's queue may hide in it."}},
		"no phase has most": {windowOf(20, func(_ int, r *call.Record) {
			r.Phases = call.Phases{Upload: lasting(300 * ms), Connect: lasting(310 * ms), QueueEngine: lasting(290 * ms), Prefill: lasting(100 * ms), Decode: lasting(0), Tail: lasting(0)}
		}), nil, "ttft", Blamed{Phase: "connect", Layer: Network, Share: figureOf(0.31), Source: call.Measured, Calls: 20,
			Text: "Undetermined: no phase has most of it; the largest is that connect is 31 % of TTFT (310 ms)."}},
		"tokens": {windowOf(5, func(_ int, r *call.Record) {
			r.Output, r.Phases.Decode, r.Phases.Delivery = known(101), lasting(5*time.Second), lasting(0)
		}), nil, "tpot", Blamed{Phase: "decode", Layer: Model, Share: figureOf(1), Source: call.Measured, Calls: 5, Determined: true,
			Text: "Phase decode is 100 % of TPOT (50 ms), measured."}},
		"the gateway's queue": {windowOf(5, func(i int, r *call.Record) { queue(i, r); r.Phases.QueueGateway = lasting(4 * time.Second) }), windowOf(40, nil), "queue",
			Blamed{Phase: "queue_gateway", Layer: Gateway, Source: call.Measured, Calls: 5, Determined: true, Text: "Phase queue_gateway is 79 % of TTFT (4 s, 0 ms in calls that kept it), measured."}},
		"a slow reader": {windowOf(5, func(_ int, r *call.Record) { r.Phases.Delivery = lasting(20 * time.Second) }), windowOf(40, nil), "e2e",
			Blamed{Phase: "delivery", Layer: Client, Source: call.Measured, Calls: 5, Determined: true, Text: "Phase delivery is 95 % of E2E (20 s, 1 ms in calls that kept it), measured."}},
		"broken off before a token": {windowOf(5, func(_ int, r *call.Record) {
			unsent(r, call.Timeout, "dial_timeout")
			r.Phases.Connect = lasting(9 * time.Second)
		}), windowOf(40, nil), "ttft", Blamed{Phase: "connect", Layer: Network, Source: call.Measured, Calls: 5, Determined: true,
			Text: "Phase connect is >99 % of TTFT (9 s, 1 ms in calls that kept it), measured."}},
		"timed out while it was written": {windowOf(5, func(_ int, r *call.Record) { r.Outcome = call.Timeout; r.Phases.Decode = lasting(60 * time.Second) }), windowOf(40, nil), "e2e",
			Blamed{Phase: "decode", Layer: Model, Source: call.Measured, Calls: 5, Determined: true, Text: "Phase decode is >99 % of E2E (60 s, 1.51 s in calls that kept it), measured."}},
		"network": {windowOf(5, func(_ int, r *call.Record) { r.ClientRTT = lasting(90 * ms) }), nil, "network",
			Blamed{Phase: "client_rtt", Layer: Network, Share: figureOf(1), Source: call.Measured, Calls: 5, Determined: true, Text: "The round trip to clients is 90 ms, measured: the way between user and gateway."}},
		"failures": {windowOf(4, func(i int, r *call.Record) {
			if unanswered(r, call.UpstreamError, "status_500"); i == 0 {
				unsent(r, call.UpstreamError, "connection_refused")
			}
		}), nil, "success", Blamed{Phase: "upstream_failed", Layer: Unknown, Share: figureOf(0.75), Source: call.Measured, Calls: 4, Determined: true,
			Text: "The upstream failed in 3 of 4 calls (upstream_failed)."}},
		"no failures":       {windowOf(4, nil), nil, "success", Blamed{Calls: 4, Text: "Undetermined: the records of 4 calls do not tell what broke the calls off."}},
		"nothing":           {nil, windowOf(40, nil), "ttft", Blamed{Text: "Undetermined: no call that missed it has ended yet."}},
		"no round trip":     {windowOf(4, func(_ int, r *call.Record) { r.ClientRTT = call.Duration{} }), nil, "network", Blamed{Calls: 4, Text: "Undetermined: the records of 4 calls do not tell the round trip to clients."}},
		"not a token again": {windowOf(4, func(_ int, r *call.Record) { r.Output = known(1) }), nil, "tpot", Blamed{Calls: 4, Text: "Undetermined: the records of 4 calls do not tell where the time went."}},
		"quicker":           {windowOf(9, nil), windowOf(40, func(_ int, r *call.Record) { times(&r.Phases.Prefill, 2) }), "prefill", Blamed{Calls: 9, Text: "Undetermined: the records of 9 calls do not tell which phase grew: none did."}},
	} {
		got := Blame(c.bad, c.kept, c.objective)
		if !c.want.Share.IsKnown() {
			got.Share = call.Number{}
		}
		if got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, c.want)
		}
	}
}
