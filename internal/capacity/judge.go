package capacity

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/stats"
)

// refuse gives up, with the reason and what to do. It returns false.
func (u *Upstream) refuse(reason, advice string) bool {
	u.Label, u.Bound = Refused, ""
	u.Reasons = append(u.Reasons, reason)
	u.Advice = append(u.Advice, advice)
	return false
}

// remark notes what the figures rest on.
func (u *Upstream) remark(g *liveGroup, all []*liveGroup, e *liveEstimate, o *Options) {
	note := func(format string, args ...any) { u.Notes = append(u.Notes, fmt.Sprintf(format, args...)) }
	if g.odd > 0 {
		note("Records left out, for their figures cannot be true: %d.", g.odd)
	}
	if g.failed > 0 {
		note("%s failed without having kept the engine busy as far as can be told, and count for nothing.", liveCalls(g.failed))
	}
	if g.wordless > 0 {
		note("%s completed without output tokens that can be counted, such as embeddings, and count for nothing.", liveCalls(g.wordless))
	}
	var others []string
	for _, h := range all {
		if h != g && h.upstream == g.upstream {
			others = append(others, h.model)
		}
	}
	if n := len(others); n > 0 {
		if n > 3 {
			others = append(others[:3], fmt.Sprintf("%d more", n-3))
		}
		note("This upstream serves other models too (%s), which are taken to have engines of their own; where they share one, as LoRA adapters do, ask for a shared engine.", strings.Join(others, ", "))
	}
	if o.SharedEngine && len(g.names) > 1 {
		note("%d models are taken to share one engine.", len(g.names))
	}
	cached, whole, unknown, queued := 0, 0, 0, 0
	for i := range e.calls {
		c := &e.calls[i]
		switch {
		case c.guessed:
			whole++
		case !c.cacheKnown:
			unknown++
		case c.uncached < 0.9*c.input:
			cached++
		}
		if c.queued > 0.01 {
			queued++
		}
	}
	n := len(e.calls)
	if whole*20 > n {
		note("%d %% of the calls were not streamed; their first token is taken to come as late as that of the others.", 100*whole/n)
	}
	if unknown*20 > n {
		note("%d %% of the calls do not tell how much of their prompt was cached: all of it is taken to be computed.", 100*unknown/n)
	}
	if cached*5 > n && math.IsNaN(e.load.kvScale) {
		note("%d %% of the calls had part of their prompt from the cache; each is taken to hold it alone, though calls with the same beginning share it.", 100*cached/n)
	}
	if queued*20 > n {
		note("%d %% of the calls waited in the gateway's own queue: where it lets fewer calls through at once than the engine takes, that is the limit to give.", 100*queued/n)
	}
	if e.load.crowd {
		note("More calls are in flight here than the engine's gauges show: what stands behind this upstream may be more than one engine, and the limits are of one.")
	}
}

const (
	// leastVariation is how far apart the 5th and the 95th percentile of the batch have to be, as
	// a factor, to tell what a sequence costs from what a step costs; and at least one sequence.
	leastVariation = 1.3
	// leastShare is the least part of an engine's load from which its costs can be read.
	leastShare = 0.25
)

// enough tells whether there is an objective, and enough calls and variation.
func (u *Upstream) enough(e *liveEstimate, o *Options) bool {
	if o.TTFT.Limit <= 0 {
		return u.refuse("There is no TTFT objective, so that nothing says how slow is too slow.", "Give the TTFT objective of the class.")
	}
	streamed, tokens, judged := 0, 0, 0
	for i := range e.calls {
		if c := &e.calls[i]; !c.guessed && !math.IsNaN(c.first) {
			streamed++
			if c.whole() {
				tokens++
			}
			if c.judged {
				judged++
			}
		}
	}
	n := len(e.calls)
	switch {
	case n < MinCalls:
		return u.refuse(fmt.Sprintf("%s are too few: %d are needed.", liveCalls(n), MinCalls), "Look at a longer time, or wait for more calls.")
	case streamed < MinCalls:
		return u.refuse(fmt.Sprintf("Of %s %d were streamed and have a first token; %d are needed.", liveCalls(n), streamed, MinCalls),
			"Only streams tell when the first token comes: let clients stream.")
	case judged < MinCalls:
		return u.refuse(fmt.Sprintf("Of %s with a first token %d are of class %s; %d are needed.", liveCalls(streamed), judged, o.Class, MinCalls),
			"Look at a longer time, or at another class.")
	case tokens*2 < streamed:
		return u.refuse(fmt.Sprintf("Of %s that were streamed %d tell their tokens: fewer than half.", liveCalls(streamed), tokens),
			"Let clients ask for usage (stream_options.include_usage), set usage_policy inject_and_strip, or the engine's flag that sends usage always.")
	case len(e.tpots) < MinCalls:
		return u.refuse(fmt.Sprintf("%s have a time per output token; %d are needed.", liveCalls(len(e.tpots)), MinCalls),
			"Answers of one token say nothing of decoding: look at a longer time.")
	case e.load.share < leastShare:
		return u.refuse(fmt.Sprintf("The engine's gauges show that only %.0f %% of its load comes through here.", 100*e.load.share),
			"Send the engine's other calls through the gateway too, so that it sees what they cost.")
	}
	batches := make([]float64, 0, len(e.tpots))
	for _, i := range e.tpots {
		batches = append(batches, e.calls[i].batch)
	}
	slices.Sort(batches)
	low, high := stats.Quantile(batches, 0.05), stats.Quantile(batches, 0.95)
	if high-low < 1 || high < leastVariation*low {
		return u.refuse(fmt.Sprintf("The load hardly varied: in nine calls of ten, between %s and %s sequences decoded together.", liveNumber(low), liveNumber(high)),
			"Look at a time that has quiet and busy hours, or run weir bench with a ladder of rates.")
	}
	return true
}

// hopeless says that the objective cannot be kept at any rate, such as that of so many calls a second.
func (u *Upstream) hopeless(e *liveEstimate, s *liveSetting, items []liveItem, rate float64) {
	if out := s.model.replay(&e.replay, items, rate); out.missedTPOT && !out.missedTTFT {
		u.refuse("Even a call that meets nobody takes longer for a token than the watermark of TPOT: what is too slow is the model or the hardware, and more replicas do not help.",
			"Take faster hardware, more GPUs for one replica, or a smaller model; or set an objective that a single call can keep.")
		return
	}
	u.refuse("Even calls that meet nobody miss the watermark of TTFT: what is too slow is the model or the hardware, and more replicas do not help.",
		"Shorten prompts, take faster hardware or a smaller model, or set an objective that a single call can keep.")
}

// beyond says that the knee lies too far beyond what was seen, calls a second.
func (u *Upstream) beyond(highest float64) {
	u.roomy = true
	u.refuse(fmt.Sprintf("By the model the knee lies beyond %s calls/s, %s times the highest load seen (%s calls/s over %s); nothing that far off is claimed.",
		liveNumber(highest*Reach), liveNumber(Reach), liveNumber(highest), liveCalls(u.HighestCalls)),
		"There is room. To learn how much, look at a busier time, or run weir bench with a ladder of higher rates.")
}

// label says how far the knee (calls a second through here) is from what was seen.
func (u *Upstream) label(e *liveEstimate, s *liveSetting, knee float64) {
	highest := e.arrivals.highest
	if knee > highest {
		u.Label = Extrapolated
		u.Reasons = append(u.Reasons, fmt.Sprintf("The knee lies %.0f %% beyond the highest load seen, %s calls/s over %s.", 100*(knee/highest-1), liveNumber(highest), liveCalls(u.HighestCalls)))
	} else {
		u.Label = Interpolated
		reason := fmt.Sprintf("Loads of up to %s calls/s were seen, over %s.", liveNumber(highest), liveCalls(u.HighestCalls))
		missed, of := e.arrivals.missed(e.calls, 0.9*knee, s.model.goal.ttft)
		if of >= stretchCalls && float64(missed) > s.model.goal.ttftShare*float64(of) {
			u.Label = Observed
			reason = fmt.Sprintf("Of %s that came about as fast, %s %% waited longer than the watermark for their first token.", liveCalls(of), liveNumber(100*float64(missed)/float64(of)))
		}
		u.Reasons = append(u.Reasons, reason)
	}
	if u.Bound != AtLeast {
		return
	}
	var unknown, lines []string
	if u.Limits.MaxNumSeqs.Source != "given" {
		unknown, lines = append(unknown, "max_num_seqs"), append(lines, "max_num_seqs 256")
	}
	if u.Limits.KVTokens.Source != "given" {
		unknown, lines = append(unknown, "the size of the KV cache"), append(lines, "kv_tokens 131072")
	}
	u.Reasons = append(u.Reasons, fmt.Sprintf("Nobody told %s: no more is taken to fit than was seen at once, so that this is a lower bound.", strings.Join(unknown, " and ")))
	u.Advice = append(u.Advice, fmt.Sprintf("Tell it on a line of its own in the block of engine, such as: %s.", strings.Join(lines, ", and ")))
}

// balance holds Little's law against the count, over the time of which all calls are known.
func (u *Upstream) balance(e *liveEstimate) {
	from, to := liveSteady(e.calls)
	if n := len(e.calls); n == 0 || !(to-from >= (e.calls[n-1].received-e.calls[0].received)/2) || !(to > from) {
		return
	}
	var ttft, tpot, output []float64
	n := 0
	for i := range e.calls {
		c := &e.calls[i]
		if c.received < from || c.received >= to {
			continue
		}
		n++
		if !math.IsNaN(c.ttft) {
			ttft = append(ttft, c.ttft)
		}
		if !math.IsNaN(c.tpot) {
			tpot = append(tpot, c.tpot)
		}
		if !math.IsNaN(c.output) && !c.guessed {
			output = append(output, c.output)
		}
	}
	b := &Balance{Counted: call.Figure(e.load.inFlight.mean(from, to))}
	u.Balance = b
	const most = 0.95 // of the calls have to tell
	if least := most * float64(n); n == 0 || float64(len(ttft)) < least || float64(len(output)) < least || len(tpot) == 0 {
		b.Why = fmt.Sprintf("Of %s %d have a first token and %d their output tokens: too few to hold Little's law against the count.", liveCalls(n), len(ttft), len(output))
		return
	}
	rate := float64(n) / (to - from)
	meanTTFT, _ := stats.Mean(ttft)
	meanOutput, _ := stats.Mean(output)
	meanTPOT, _ := stats.Mean(tpot)
	// The first token's time is in the TTFT, and TPOT is the mean of the gaps after it.
	b.Law = call.Figure(Little(rate, meanTTFT, max(meanOutput-1, 0), meanTPOT))
	b.weigh()
	if b.Alarm {
		b.Why = "The law and the count disagree: calls that end early, answers whose pace goes with their length, slow readers, or records that are missing."
	}
	slices.Sort(ttft)
	if f, err := ConcurrencyFactor(rate, stats.Quantile(ttft, 0.95), 0); err == nil {
		u.Factor = call.Figure(f)
	}
}
