package capacity

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// garbage are records whose fields are known or not, and true or not, as chance will have it.
// The more is wild, the fewer of them could have been.
func garbage(rng *rand.Rand, n int, wild float64) []*call.Record {
	odd := func() bool { return rng.Float64() < wild }
	span := func(d time.Duration) call.Duration {
		switch {
		case !odd():
			return call.Lasting(d)
		case rng.IntN(3) == 0:
			return call.Lasting(time.Duration(rng.Int64() - math.MaxInt64/2))
		case rng.IntN(2) == 0:
			return call.Lasting(0)
		}
		return call.Duration{}
	}
	count := func(v int) call.Count {
		switch {
		case !odd():
			return call.Known(int64(v))
		case rng.IntN(3) == 0:
			return call.Known(rng.Int64() - math.MaxInt64/2)
		case rng.IntN(2) == 0:
			return call.Known(0)
		}
		return call.Count{}
	}
	pace := 1 + 9*rng.Float64()
	records := made(n, func(i int) float64 { return 1 + pace*float64(i)/float64(n) }, func(i int, r *call.Record) {
		r.Input, r.Output, r.Cached = count(int(r.Input.Or(0))), count(int(r.Output.Or(0))), count(rng.IntN(50))
		r.TTFT, r.TPOT, r.E2E = span(r.TTFT.Or(0)), span(r.TPOT.Or(0)), span(r.E2E.Or(0))
		p := &r.Phases
		p.Upload, p.QueueGateway, p.Connect, p.Decode = span(0), span(0), span(0), span(p.Decode.Or(0))
		if odd() {
			r.PhaseSources.Prefill = []call.Source{call.FromEngine, call.Inferred, ""}[rng.IntN(3)]
			p.Frontend = span(time.Millisecond)
		}
		if odd() {
			r.Outcome = call.Outcomes[rng.IntN(len(call.Outcomes))]
		}
		if odd() {
			r.Time = r.Time.Add(time.Duration(rng.Int64N(int64(time.Hour))) - 30*time.Minute)
		}
		if odd() {
			r.Stream = false
		}
		if odd() {
			r.AtDispatch = call.EngineLoad{Running: count(rng.IntN(9)), Waiting: count(0), KVUse: call.Figure(rng.Float64() * 2), Age: span(time.Second)}
		}
		if odd() {
			r.Upstream = fmt.Sprint("e", rng.IntN(2))
		}
	})
	for i := range records {
		if odd() && odd() {
			records[i] = nil
		}
	}
	return records
}

// FuzzEstimate: whatever the records, an estimate is an estimate or is refused with a reason, and
// can be shown.
func FuzzEstimate(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed, uint16(50*seed), byte(seed*seed), byte(seed))
	}
	f.Add(uint64(4), uint16(400), byte(1), byte(16))
	f.Fuzz(func(t *testing.T, seed uint64, n uint16, wild, kinds byte) {
		rng := rand.New(rand.NewPCG(seed, 4))
		records := garbage(rng, int(n)%500+1, float64(wild)/512)
		o := Options{TTFT: Objective{Limit: time.Duration(1+rng.IntN(3000)) * time.Millisecond}, Rounds: minRounds, Seed: seed, SharedEngine: kinds&1 > 0, TargetCallsPerSecond: 100 * rng.Float64()}
		if kinds&2 > 0 {
			o.TPOT.Limit = time.Duration(1+rng.IntN(100)) * time.Millisecond
		}
		l := Limits{}
		if kinds&4 > 0 {
			l.MaxNumSeqs = call.Known(int64(1 + rng.IntN(64)))
		}
		if kinds&8 > 0 {
			l.KVTokens = call.Known(int64(1 + rng.IntN(1<<(1+rng.IntN(20)))))
		}
		if kinds&16 > 0 {
			l.BatchTokens = call.Known(int64(1 + rng.IntN(4096)))
		}
		o.Engines = map[string]Limits{"": l}
		r, err := Estimate(records, o)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := Text(&b, r); err != nil {
			t.Fatal(err)
		}
		if err := JSON(&b, r); err != nil {
			t.Fatal(err)
		}
		for _, u := range r.Upstreams {
			knee, claimed := u.Knee.Get()
			if claimed == (u.Label == Refused) || len(u.Reasons) == 0 || u.Label == Refused && len(u.Advice) == 0 {
				t.Fatalf("%s, knee %v, reasons %q, advice %q", u.Label, u.Knee, u.Reasons, u.Advice)
			}
			if !claimed {
				continue
			}
			if low, high := u.KneeLow.Or(0), u.KneeHigh.Or(math.Inf(1)); !(knee > 0 && low > 0 && low <= knee && knee <= high) || (u.Bound == About) != u.KneeHigh.IsKnown() {
				t.Fatalf("%s: knee %v from %v to %v", u.Bound, knee, low, high)
			}
			if !(u.Sustainable.Or(0) > 0 && u.KneeConcurrency.Or(0) > 0) {
				t.Fatalf("%+v", u)
			}
		}
	})
}
