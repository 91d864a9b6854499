package capacity

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// Options of Estimate. The zero value has no objective, so that everything is refused.
type Options struct {
	// TTFT is the objective that decides; without one nothing is estimated.
	TTFT Objective
	// TPOT is a second objective, if there is one.
	TPOT Objective
	// Class is whose calls the objectives are for; "" is all. The engine has the load of all
	// calls either way, and serves them in the order in which they come.
	Class string
	// Engines tells the limits of the engine behind an upstream (host:port as in the
	// records); "" is for all upstreams that are not named.
	Engines map[string]Limits
	// TargetCallsPerSecond asks how many replicas a rate needs; 0 does not ask.
	TargetCallsPerSecond float64
	// Headroom is the share by which replicas are to be able to carry more than the present
	// rate, MinHeadroom to MaxHeadroom; 0 is DefaultHeadroom.
	Headroom float64
	// SharedEngine tells that the models of one upstream run in one engine, as LoRA
	// adapters do. Else each model of an upstream is taken to have an engine of its own.
	SharedEngine bool
	// Seed decides everything random: the same records and seed give the same result.
	Seed uint64
	// Rounds is how often the records are drawn anew for the interval; 0 is 60, 20 to 1000.
	Rounds int
}

// Objective says that a share of calls keeps a time: quantile ≤ Limit.
type Objective struct {
	Limit time.Duration // 0 is no objective
	// Quantile lies above 0 and below 1; 0 is 0.99 for TTFT and 0.95 for TPOT.
	Quantile float64
}

// Limits are what an engine admits. What is unknown makes the estimate a lower bound.
type Limits struct {
	// MaxNumSeqs is how many sequences run at once (vLLM's max_num_seqs, llama.cpp's
	// slots), or how many calls the gateway lets through at once if that is less.
	MaxNumSeqs call.Count
	// KVTokens is how many tokens the KV cache holds: blocks × block size.
	KVTokens call.Count
	// BatchTokens is how many tokens a step computes (vLLM's max_num_batched_tokens);
	// where it is unknown AssumedBatchTokens stands in.
	BatchTokens call.Count
	// GPUs is how many GPUs one replica takes.
	GPUs call.Count
}

const (
	// Watermark is the share of an objective that is to be used at most.
	Watermark = 0.8
	// Derate is taken off the knee: what is sustainable is less than what is possible.
	Derate = 0.1
	// Reach is how far beyond the highest load seen an estimate may lie, as a factor.
	Reach = 1.3
	// AssumedBatchTokens is vLLM's default of max_num_batched_tokens on most hardware.
	AssumedBatchTokens = 2048
	// MinCalls is how many calls with a first token an upstream needs: of fewer than 299
	// nothing can be said of a p99 at 95 % confidence, for 0.99²⁹⁹ is 5 %.
	MinCalls = 299

	defaultRounds = 60
	minRounds     = 20
	maxRounds     = 1000
)

func (o Options) withDefaults() (Options, error) {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, j := range []struct {
		name string
		o    *Objective
		def  float64
	}{{"TTFT", &o.TTFT, 0.99}, {"TPOT", &o.TPOT, 0.95}} {
		if j.o.Quantile == 0 {
			j.o.Quantile = j.def
		}
		if !(j.o.Quantile > 0 && j.o.Quantile < 1) {
			wrong("%s quantile is %v: give one above 0 and below 1, such as %v", j.name, j.o.Quantile, j.def)
		}
		if j.o.Limit < 0 {
			wrong("%s objective is %v: give a positive time, or 0 for none", j.name, j.o.Limit)
		}
	}
	if o.Headroom == 0 {
		o.Headroom = DefaultHeadroom
	}
	if !(o.Headroom >= MinHeadroom && o.Headroom <= MaxHeadroom) {
		wrong("headroom is %v: give a share from %v to %v", o.Headroom, MinHeadroom, MaxHeadroom)
	}
	if !(o.TargetCallsPerSecond >= 0) || math.IsInf(o.TargetCallsPerSecond, 1) {
		wrong("target rate is %v calls/s: give a positive number, or 0 for none", o.TargetCallsPerSecond)
	}
	if o.Rounds == 0 {
		o.Rounds = defaultRounds
	}
	if o.Rounds < minRounds || o.Rounds > maxRounds {
		wrong("rounds are %d: give %d to %d, or 0 for %d", o.Rounds, minRounds, maxRounds, defaultRounds)
	}
	for at, l := range o.Engines {
		for _, f := range []struct {
			name string
			n    call.Count
		}{{"max_num_seqs", l.MaxNumSeqs}, {"KV tokens", l.KVTokens}, {"batch tokens", l.BatchTokens}, {"GPUs", l.GPUs}} {
			if n, known := f.n.Get(); known && (n < 1 || n > 1<<40) {
				wrong("%s of %q is %d: give at least 1, or leave it out where it is unknown", f.name, at, n)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return o, fmt.Errorf("estimate capacity: %w", err)
	}
	return o, nil
}

// limits are those of an upstream.
func (o *Options) limits(upstream string) Limits {
	if l, named := o.Engines[upstream]; named {
		return l
	}
	return o.Engines[""]
}
