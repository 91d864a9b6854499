package diagnose

import (
	"fmt"
	"math"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// staged is a pair of windows in which one thing differs.
type staged struct {
	before, after func(i int, r *call.Record) // changes of call i of either window; nil is none
	signals       func(o *CompareOptions)
	verdict       Verdict
	code          Code
	n             int // calls of each window; 0 is 120
}

// usual is call i of a window without fault: sizes vary, and one in ten ran alone.
func usual(i int, r *call.Record) {
	r.Input, r.Output = known(int64(300+10*(i%40))), known(int64(60+2*(i%40)))
	r.Phases.Prefill = lasting(time.Duration(50+(i*7)%20)*ms + time.Duration(r.Input.Or(0))*100*time.Microsecond)
	r.Phases.Decode = lasting(time.Duration(r.Output.Or(0)-1) * (15*ms + time.Duration((i*13)%10)*100*time.Microsecond))
	if i%10 == 0 {
		r.AtDispatch.Running, r.AtFirstToken.Running = known(0), known(1)
	}
}

func windowOf(n int, change func(int, *call.Record)) []*call.Record {
	return many(n, func(i int) *call.Record {
		return with(func(r *call.Record) {
			usual(i, r)
			if change != nil {
				change(i, r)
			}
		})
	})
}

func (s *staged) compare() Comparison {
	n := s.n
	if n == 0 {
		n = 120
	}
	before, after := windowOf(n, s.before), windowOf(n, s.after)
	for _, r := range after {
		r.Time = r.Time.Add(time.Minute)
		r.ID = "new-" + r.ID
	}
	var o CompareOptions
	if s.signals != nil {
		s.signals(&o)
	}
	return Compare(before, after, o)
}

// times makes a phase so many times longer.
func times(d *call.Duration, x float64) { *d = lasting(time.Duration(float64(d.Or(0)) * x)) }

// longQueue makes calls wait in the engine.
func longQueue(_ int, r *call.Record) {
	r.Phases.QueueEngine = lasting(3 * time.Second)
	r.AtDispatch.Waiting, r.AtDispatch.Running = known(30), known(8)
}

// untold makes the engine silent of queue and prefill.
func untold(_ int, r *call.Record) {
	unsplitBy(r, r.Phases.QueueEngine.Or(0)+r.Phases.Frontend.Or(0)+r.Phases.Prefill.Or(0))
}

// slowly makes tokens come so many times slower.
func slowly(x float64) func(int, *call.Record) {
	return func(_ int, r *call.Record) { times(&r.Phases.Decode, x) }
}

// both applies changes one after the other.
func both(list ...func(int, *call.Record)) func(int, *call.Record) {
	return func(i int, r *call.Record) {
		for _, f := range list {
			f(i, r)
		}
	}
}

// gpus are the figures of two GPUs, the first of which the function changes.
func gpus(f func(*GPUFigures)) []GPUFigures {
	var list []GPUFigures
	for i := range 2 {
		list = append(list, GPUFigures{Name: fmt.Sprint("GPU-", i), Utilization: figureOf(0.95), MemoryBandwidth: figureOf(0.5), Clock: figureOf(1980),
			Power: figureOf(500), PowerLimit: figureOf(700), Temperature: figureOf(60), XID: known(0), Uncorrected: known(0)})
	}
	if f != nil {
		f(&list[0])
	}
	return list
}

func onGPU(f func(*GPUFigures)) func(*CompareOptions) {
	return func(o *CompareOptions) { o.Before.GPUs, o.After.GPUs = gpus(nil), gpus(f) }
}

func heated(g *GPUFigures) { g.Clock, g.Reasons = figureOf(1830), []string{"sw_thermal", "hw_thermal"} }

func powered(g *GPUFigures) {
	g.Clock, g.Power, g.Reasons = figureOf(1830), figureOf(693), []string{"power_cap"}
}

// recordGPU is what the records say of the GPUs.
func recordGPU(ratio float64, reasons ...string) func(int, *call.Record) {
	return func(_ int, r *call.Record) { r.GPU.ClockRatio, r.GPU.Reasons = figureOf(ratio), reasons }
}

// changeCases are, for each code, windows that show it and windows that nearly do.
var changeCases = map[string]staged{
	"nothing":                {verdict: NothingFound},
	"nothing told":           {before: untold, after: untold, verdict: NothingFound},
	"few calls":              {n: 19, verdict: TooFewCalls},
	"a fifth is up from 20%": {after: slowly(1.19), verdict: NothingFound},

	"refused":       {after: func(i int, r *call.Record) { sometimes(i, r, func() { refused(r, 0) }) }, verdict: Found, code: CodeRefused},
	"gateway fault": {after: func(i int, r *call.Record) { sometimes(i, r, func() { r.Outcome = call.InternalError }) }, verdict: Found, code: CodeGatewayFault},
	"unreachable": {after: func(i int, r *call.Record) {
		sometimes(i, r, func() { unsent(r, call.UpstreamError, "connection_refused") })
	}, verdict: Found, code: CodeUpstreamUnreachable},
	"upstream failed": {after: func(i int, r *call.Record) {
		sometimes(i, r, func() { unanswered(r, call.UpstreamError, "status_500") })
	}, verdict: Found, code: CodeUpstreamFailed},
	"failed as before":  {before: failing, after: failing, verdict: NothingFound},
	"one fails":         {after: func(i int, r *call.Record) { only1(i, r) }, verdict: NothingFound},
	"XID":               {signals: onGPU(func(g *GPUFigures) { g.XID = known(79) }), verdict: Found, code: CodeHardware},
	"ECC":               {after: slowly(2), signals: onGPU(func(g *GPUFigures) { g.Uncorrected = known(3) }), verdict: Found, code: CodeHardware},
	"heat":              {after: slowly(1.08), signals: onGPU(heated), verdict: Found, code: CodeThermal},
	"heat, by records":  {after: both(slowly(1.08), recordGPU(0.9, "hw_thermal")), verdict: Found, code: CodeThermal},
	"heat, no slower":   {signals: onGPU(heated), verdict: NothingFound},
	"heat, hardly":      {after: slowly(1.3), signals: onGPU(func(g *GPUFigures) { heated(g); g.Clock = figureOf(1900) }), verdict: Found, code: CodeDecodeSlower},
	"clock, no reason":  {after: slowly(1.3), signals: onGPU(func(g *GPUFigures) { heated(g); g.Reasons = nil }), verdict: Found, code: CodeDecodeSlower},
	"power":             {after: slowly(1.08), signals: onGPU(powered), verdict: Found, code: CodePower},
	"power, not at cap": {after: slowly(1.3), signals: onGPU(func(g *GPUFigures) { powered(g); g.Power = figureOf(600) }), verdict: Found, code: CodeDecodeSlower},
	"power, draw unknown": {after: slowly(1.08), signals: onGPU(func(g *GPUFigures) { powered(g); g.Power = call.Number{} }),
		verdict: Undetermined},
	"heat and power": {after: slowly(1.08), signals: onGPU(func(g *GPUFigures) { powered(g); g.Reasons = append(g.Reasons, "hw_thermal") }), verdict: Found, code: CodeThermal},

	"slow reader":    {after: func(_ int, r *call.Record) { r.Phases.Delivery = lasting(4 * time.Second) }, verdict: Found, code: CodeSlowReader},
	"large upload":   {before: bigBody, after: both(bigBody, func(_ int, r *call.Record) { r.Phases.Upload = lasting(time.Second) }), verdict: Found, code: CodeUploadSlow},
	"stalled upload": {after: func(_ int, r *call.Record) { r.Phases.Upload = lasting(time.Second) }, verdict: Found, code: CodeUploadStalled},
	"connect":        {after: func(_ int, r *call.Record) { r.Phases.Connect = lasting(time.Second) }, verdict: Found, code: CodeReconnects},
	"round trip": {after: func(_ int, r *call.Record) {
		r.Phases.UpstreamRTT, r.UpstreamRTT = lasting(time.Second), lasting(time.Second)
	}, verdict: Found, code: CodeUpstreamRoundTrip},
	"front end":                {after: func(_ int, r *call.Record) { r.Phases.Frontend = lasting(time.Second) }, verdict: Found, code: CodeFrontend},
	"front end or way":         {after: func(_ int, r *call.Record) { r.Phases.Frontend = lasting(time.Second); noTrip(r) }, verdict: Found, code: CodeBeforeEngine},
	"unknown to the engine":    {before: both(untold, calm), after: both(untold, calm, func(_ int, r *call.Record) { times(&r.Phases.Prefill, 30) }), verdict: Found, code: CodeBeforeEngine},
	"far clients":              {after: func(_ int, r *call.Record) { r.ClientRTT = lasting(80 * ms) }, verdict: Found, code: CodeClientRoundTrip},
	"far clients, not so much": {after: func(_ int, r *call.Record) { r.ClientRTT = lasting(20 * ms) }, verdict: NothingFound},
	"tail":                     {after: func(_ int, r *call.Record) { r.Phases.Tail = lasting(5 * time.Second) }, verdict: Found, code: CodeEngineTail},

	"preempted":           {after: slowly(2), signals: func(o *CompareOptions) { o.Before.Preemptions, o.After.Preemptions = known(0), known(40) }, verdict: Found, code: CodeKVExhausted},
	"preempted as before": {after: slowly(2), signals: func(o *CompareOptions) { o.Before.Preemptions, o.After.Preemptions = known(40), known(41) }, verdict: Found, code: CodeDecodeSlower},
	"cache lost": {before: cached(0.7), after: both(cached(0.2), func(_ int, r *call.Record) { times(&r.Phases.Prefill, 3) }),
		verdict: Found, code: CodePrefixCache},
	"cache lost a little": {before: cached(0.7), after: both(cached(0.6), func(_ int, r *call.Record) { times(&r.Phases.Prefill, 1.1) }), verdict: NothingFound},
	"model load":          {after: both(longQueue, func(_ int, r *call.Record) { r.Engine.Load = lasting(2900 * ms) }), verdict: Found, code: CodeModelLoad},
	"under-used": {after: both(longQueue, func(_ int, r *call.Record) { r.GPU.Utilization = figureOf(0.4) }),
		verdict: Found, code: CodeGPUUnderUsed},
	"gateway queue":           {after: func(_ int, r *call.Record) { r.Phases.QueueGateway = lasting(2 * time.Second) }, verdict: Found, code: CodeGatewayQueue},
	"capacity":                {after: both(longQueue, cacheAt(0.96)), verdict: Found, code: CodeCapacity},
	"cap":                     {after: longQueue, signals: func(o *CompareOptions) { o.After.MaxSeqs = known(8) }, verdict: Found, code: CodeAdmissionCap},
	"cap, inferred":           {after: longQueue, verdict: Found, code: CodeAdmissionCap},
	"cap, tokens slower":      {after: both(longQueue, slowly(1.5)), verdict: Found, code: CodeQueueing},
	"below the cap":           {after: longQueue, signals: func(o *CompareOptions) { o.After.MaxSeqs = known(64) }, verdict: Found, code: CodeQueueing},
	"queue, cache not known":  {after: both(longQueue, func(_ int, r *call.Record) { r.AtDispatch.KVUse = call.Number{} }), verdict: Found, code: CodeQueueing},
	"queue, nothing read":     {after: both(longQueue, ungauged), verdict: Found, code: CodeQueueing},
	"queue, nobody tells":     {before: both(untold, ungauged), after: both(longQueue, untold, ungauged), verdict: Undetermined},
	"queue, by gauges":        {before: untold, after: both(longQueue, untold, busyEngine), verdict: Found, code: CodeAdmissionCap},
	"saturation":              {before: spaced(4), after: both(crowded, overwhelmed), verdict: Found, code: CodeSaturation},
	"mix":                     {before: sized(100, 900), after: sized(700, 900), verdict: NotAFault, code: CodeTrafficMix},
	"mix beyond compare":      {before: sized(100, 400), after: sized(2000, 4000), verdict: NotAFault, code: CodeTrafficMix},
	"longer answers":          {after: func(_ int, r *call.Record) { times(&r.Phases.Decode, 3); r.Output = known(3*r.Output.Or(0) - 2) }, verdict: Undetermined},
	"more answers of length":  {before: answered(50, 400), after: answered(300, 400), verdict: NotAFault, code: CodeTrafficMix},
	"prompts beyond tokens":   {before: both(crowded, spaced(3)), after: both(crowded, func(_ int, r *call.Record) { times(&r.Phases.Prefill, 3) }), verdict: Found, code: CodePrefillCompute},
	"alone and slow":          {after: func(_ int, r *call.Record) { times(&r.Phases.Prefill, 3) }, verdict: Found, code: CodeModelSlow},
	"crowded and slow":        {before: crowded, after: both(crowded, func(_ int, r *call.Record) { times(&r.Phases.Prefill, 3) }), verdict: Undetermined},
	"same batch, slower":      {after: slowly(1.5), verdict: Found, code: CodeDecodeSlower},
	"larger batch, no slope":  {before: both(spaced(4), evenly), after: both(evenly, slowly(1.5)), verdict: Undetermined},
	"larger batch, bandwidth": {before: both(spaced(4), evenly), after: both(evenly, slowly(1.5), func(_ int, r *call.Record) { r.GPU.MemoryBandwidth = figureOf(0.9) }), verdict: Found, code: CodeDecodeBandwidth},
}

// sometimes changes one call in four.
func sometimes(i int, _ *call.Record, f func()) {
	if i%4 == 1 {
		f()
	}
}

func failing(i int, r *call.Record) {
	sometimes(i, r, func() { unanswered(r, call.UpstreamError, "status_500") })
}

func only1(i int, r *call.Record) {
	if i == 50 {
		unanswered(r, call.UpstreamError, "status_500")
	}
}

func bigBody(_ int, r *call.Record) { r.BytesIn = known(1 << 20) }

func noTrip(r *call.Record) {
	r.UpstreamRTT, r.Phases.UpstreamRTT, r.PhaseSources.UpstreamRTT = call.Duration{}, call.Duration{}, ""
}

// calm is an engine that knows of no more calls than it did.
func calm(_ int, r *call.Record) {
	r.AtDispatch.Running, r.AtDispatch.Waiting = known(14), known(0)
	r.Phases.Delivery, r.Phases.Tail = lasting(0), lasting(0)
}

// overwhelmed makes calls come quicker than they are written.
func overwhelmed(i int, r *call.Record) {
	times(&r.Phases.Prefill, 10)
	r.Phases.Decode = lasting(r.Phases.Decode.Or(0) + time.Duration(i)*300*ms)
}

func busyEngine(_ int, r *call.Record) {
	r.AtDispatch.Running, r.AtDispatch.Waiting = known(8), known(40)
}

func cached(share float64) func(int, *call.Record) {
	return func(_ int, r *call.Record) { r.Cached = known(int64(share * float64(r.Input.Or(0)))) }
}

func cacheAt(use float64) func(int, *call.Record) {
	return func(_ int, r *call.Record) { r.AtDispatch.KVUse = figureOf(use) }
}

func ungauged(_ int, r *call.Record) {
	r.AtDispatch, r.AtFirstToken = call.EngineLoad{}, call.EngineLoad{}
}

// crowded makes every call run beside as many as are under way.
func crowded(_ int, r *call.Record) {
	r.AtDispatch.Running, r.AtFirstToken.Running = known(60), known(60)
}

// spaced makes calls come so many times farther apart.
func spaced(x int) func(int, *call.Record) {
	return func(i int, r *call.Record) { r.Time = r.Time.Add(time.Duration(i*(x-1)) * 100 * ms) }
}

// evenly makes all calls alike, so that batches do not vary.
func evenly(_ int, r *call.Record) {
	r.Input, r.Output = known(500), known(101)
	r.Phases.Prefill, r.Phases.Decode = lasting(100*ms), lasting(1500*ms)
}

// sized gives prompts a size and the time that goes with it; nothing runs alone.
func sized(from, to int) func(int, *call.Record) {
	return func(i int, r *call.Record) {
		n := from + (i*37)%(to-from+1)
		r.Input, r.BytesIn = known(int64(n)), known(int64(6*n))
		r.Phases.Prefill = lasting(20*ms + time.Duration(n)*200*time.Microsecond)
	}
}

// answered gives answers a length and the time that goes with it.
func answered(from, to int) func(int, *call.Record) {
	return func(i int, r *call.Record) {
		n := from + (i*37)%(to-from+1)
		r.Output, r.Phases.Decode = known(int64(n)), lasting(time.Duration(n-1)*15*ms)
		r.Time = r.Time.Add(time.Duration(math.Sqrt(float64(i))) * ms)
	}
}
