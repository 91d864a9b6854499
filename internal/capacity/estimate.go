package capacity

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/stats"
)

// Estimate says how much more fits, from records of real calls in any order. Records
// that are nil count for nothing, and none is changed. All calls that the engines had in
// that time should be among them; what others sent there is seen only where the engine's
// gauges stand in the records.
//
// An error tells that the options make no sense. That the records cannot carry an
// estimate is no error: the result says so, with the reason.
//
// It takes about a third of a second of processor time for an upstream with a thousand
// calls and two seconds with a hundred thousand; see BenchmarkEstimate.
func Estimate(records []*call.Record, o Options) (Result, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Result{}, err
	}
	groups, from, to, n := liveGroups(records, &o)
	r := Result{From: from, To: to, Calls: n, Class: o.Class, TTFTQuantile: o.TTFT.Quantile, TPOTQuantile: o.TPOT.Quantile,
		Watermark: Watermark, Derate: Derate, Upstreams: []Upstream{}, Fleets: []Fleet{}}
	if o.TTFT.Limit > 0 {
		r.TTFTObjective = call.Lasting(o.TTFT.Limit)
	}
	if o.TPOT.Limit > 0 {
		r.TPOTObjective = call.Lasting(o.TPOT.Limit)
	}
	for _, g := range groups {
		r.Upstreams = append(r.Upstreams, liveUpstream(g, groups, &o))
	}
	r.Fleets = liveFleets(r.Upstreams, &o)
	return r, nil
}

// liveSetting is what an estimate is held to.
type liveSetting struct {
	o          *Options
	given      Limits
	stepTokens float64
	model      liveModel
}

// liveUpstream estimates one upstream.
func liveUpstream(g *liveGroup, all []*liveGroup, o *Options) Upstream {
	u := Upstream{Upstream: g.upstream, Model: g.model, Calls: len(g.calls), Label: Refused}
	s := liveSetting{o: o, given: o.limits(g.upstream)}
	s.stepTokens = float64(s.given.BatchTokens.Or(AssumedBatchTokens))
	e := &liveEstimate{calls: g.calls}
	e.load = liveMeasure(g.calls, float64(s.given.KVTokens.Or(0)), s.stepTokens)
	e.arrivals = liveArrive(g.calls)
	u.Usable = e.fill()
	if len(g.calls) > 1 {
		u.Rate, u.Present, u.Highest = call.Figure(e.arrivals.rate), call.Figure(e.arrivals.present), call.Figure(e.arrivals.highest)
		u.HighestCalls = e.arrivals.over
	}
	u.Limits.GPUs = s.given.GPUs
	u.balance(e)
	u.remark(g, all, e, o)
	if !u.enough(e, o) || !u.fit(e, &s) {
		return u
	}
	u.search(e, &s)
	return u
}

// fit fits the costs and sets the replay's engine up.
func (u *Upstream) fit(e *liveEstimate, s *liveSetting) bool {
	e.prefills = livePick(e.calls, float64(s.given.MaxNumSeqs.Or(0)))
	e.tpots, e.prefills.calls = liveThin(e.tpots), liveThin(e.prefills.calls)
	if len(e.prefills.calls) < fitCalls {
		return u.refuse(fmt.Sprintf("Only %d calls tell what a prompt costs: the others waited, and nothing says for how long.", len(e.prefills.calls)),
			"Let the engine report its own queue and prefill times (vLLM: --enable-per-request-metrics), or look at a time that has quiet hours.")
	}
	cost, ok := liveFitCost(e.calls, e.load, e.tpots, e.prefills, s.stepTokens, nil, &e.work)
	if !ok || !(cost.alpha > 0) {
		return u.refuse("The times of the calls do not follow the model: no cost of a step fits them.", "Look at a shorter time, in which the engine was not changed.")
	}
	if e.prefills.source == "engine" {
		fronts := make([]float64, 0, len(e.prefills.calls))
		for _, i := range e.prefills.calls {
			fronts = append(fronts, e.calls[i].front)
		}
		cost.front, _ = stats.Median(fronts)
	}
	u.Fit = e.describe(&cost)
	u.Fit.Drift = call.Figure(e.drift(s.stepTokens))
	u.limits(e, s, cost)
	return true
}

// limits sets the replay's engine up. Where a limit is unknown, no more fits than was seen at once.
func (u *Upstream) limits(e *liveEstimate, s *liveSetting, cost liveCost) {
	engine := liveEngine{cost: cost, tokens: s.stepTokens, kv: math.Inf(1), kvScale: 1}
	if !math.IsNaN(e.load.kvScale) {
		engine.kvScale = e.load.kvScale
	}
	free := engine
	source := func(given call.Count, otherwise string) string {
		if given.IsKnown() {
			return "given"
		}
		return otherwise
	}
	l := &u.Limits
	l.StepTokens = UsedLimit{call.Known(int64(s.stepTokens)), source(s.given.BatchTokens, "assumed")}
	l.MaxNumSeqs = UsedLimit{call.Known(s.given.MaxNumSeqs.Or(int64(math.Ceil(e.load.decoding.most() / e.load.share)))), source(s.given.MaxNumSeqs, "seen")}
	l.KVTokens = UsedLimit{call.Known(s.given.KVTokens.Or(int64(e.load.kvMost / e.load.share))), source(s.given.KVTokens, "seen")}
	engine.slots = int(min(l.MaxNumSeqs.Value.Or(0), math.MaxInt32))
	engine.kv = float64(l.KVTokens.Value.Or(0))
	s.model = liveModel{engine: engine, goal: s.goal()}
	if u.Bound = About; s.given.MaxNumSeqs.IsKnown() && s.given.KVTokens.IsKnown() {
		return
	}
	u.Bound = AtLeast
	if s.given.MaxNumSeqs.IsKnown() {
		free.slots = engine.slots
	}
	if s.given.KVTokens.IsKnown() {
		free.kv = engine.kv
	}
	s.model.free = &free
}

// goal is the watermark of the objectives.
func (s *liveSetting) goal() liveGoal {
	g := liveGoal{ttft: Watermark * s.o.TTFT.Limit.Seconds(), ttftShare: 1 - s.o.TTFT.Quantile}
	if s.o.TPOT.Limit > 0 {
		g.tpot, g.tpotShare = Watermark*s.o.TPOT.Limit.Seconds(), 1-s.o.TPOT.Quantile
	}
	return g
}

// describe writes the fit down.
func (e *liveEstimate) describe(c *liveCost) *Fit {
	f := &Fit{Alpha: liveSeconds(c.alpha), Beta: liveSeconds(c.beta), Gamma: c.gamma, Base: liveSeconds(c.base), PerToken: c.perToken * 1e6, Front: liveSeconds(c.front),
		Prefill: e.prefills.source, Batch: "calls", Share: e.load.share, Calls: len(e.tpots), PrefillCalls: len(e.prefills.calls)}
	if e.load.gauged {
		f.Batch = "gauges"
	}
	batches, offs := make([]float64, 0, len(e.tpots)), make([]float64, 0, len(e.tpots))
	for _, i := range e.tpots {
		k := &e.calls[i]
		batches = append(batches, k.batch)
		offs = append(offs, math.Abs(k.tpot-c.foretell(k))/k.tpot)
	}
	slices.Sort(batches)
	slices.Sort(offs)
	f.BatchLow, f.BatchHigh = stats.Quantile(batches, 0.05), stats.Quantile(batches, 0.95)
	f.Residual, f.ResidualP95 = stats.Quantile(offs, 0.5), stats.Quantile(offs, 0.95)
	return f
}

// search finds the knee and its interval.
func (u *Upstream) search(e *liveEstimate, s *liveSetting) {
	rng := rand.New(rand.NewPCG(s.o.Seed, 0x6b6e6565))
	items := e.draw(nil, replayCalls, nil, rng)
	// What is replayed is the whole engine, and of its load our share comes through here.
	share := e.load.share
	highest := e.arrivals.highest / share
	knee, ok := s.model.around(&e.replay, items, highest, Reach, kneeError)
	switch {
	case e.replay.exhausted:
		u.refuse("The calls cannot be replayed: with these limits prompts take hundreds of steps each.", "Look at the limits of the engine as given, and at the token counts that it reports.")
		return
	case !ok && knee < highest:
		u.hopeless(e, s, items, highest/100)
		return
	case !ok || knee > Reach*highest:
		u.beyond(e.arrivals.highest)
		return
	}
	sd := e.spread(s.model, knee, s.stepTokens, s.o.Seed, s.o.Rounds)
	// What the model is off adds to what chance does. Without drift the fit says nothing of it.
	off := max(modelError, math.Abs(u.Fit.Drift.Or(modelError)))
	width := 1.96 * math.Hypot(sd, off)
	if !(width <= math.Log(2)) {
		u.refuse(fmt.Sprintf("The estimate is too uncertain to be of use: the knee may be at %s calls/s, or at half of that, or twice.", liveNumber(knee*share)),
			"Look at a longer time, with more varied load.")
		return
	}
	u.Binds = s.model.binds(&e.replay, items, knee*1.05)
	low, high := knee*math.Exp(-width), knee*math.Exp(width)
	if u.Bound == AtLeast {
		knee = low // what is claimed holds with the interval's confidence
	} else {
		u.KneeHigh = call.Figure(high * share)
	}
	u.Knee, u.KneeLow = call.Figure(knee*share), call.Figure(low*share)
	u.label(e, s, knee*share)
	u.atKnee(e, s, items, knee)
}

// atKnee replays once more at the knee (calls a second of the whole engine), and says what
// holds there.
func (u *Upstream) atKnee(e *liveEstimate, s *liveSetting, items []liveItem, knee float64) {
	out := e.replay.run(items, &s.model.engine, &s.model.goal, knee, true)
	slices.Sort(out.ttfts)
	slices.Sort(out.tpots)
	u.KneeConcurrency = call.Figure(out.inFlight * e.load.share)
	u.KneeTTFT = liveSeconds(stats.Quantile(out.ttfts, s.o.TTFT.Quantile))
	u.KneeTPOT = liveSeconds(stats.Quantile(out.tpots, s.o.TPOT.Quantile))

	rate := knee * e.load.share * (1 - Derate)
	var input, output float64
	for i := range e.mix {
		input += e.mix[i].input
		output += e.mix[i].output
	}
	n := float64(len(e.mix))
	u.Sustainable = call.Figure(rate)
	u.SustainableInput, u.SustainableOutput = call.Figure(rate*input/n), call.Figure(rate*output/n)
	u.Headroom = call.Figure(1 - e.arrivals.present/rate)
}

func liveSeconds(s float64) call.Duration { return call.Milliseconds(s * 1000) }
