package queue

import (
	"math"
	"time"
)

// Tokens is what a call is expected to use, or has used. Negative numbers count as 0, and
// those above 2⁴⁰ as 2⁴⁰.
type Tokens struct {
	Input, Output int64
}

// The weights of tokens in Cost: an output token takes a pass through the
// model of its own, input tokens share one (w_p = 1 and w_q = 2, Sheng et al.,
// OSDI 2024, section 3.1).
const (
	InputWeight  = 1
	OutputWeight = 2
)

const mostTokens = 1 << 40

// Sum is the input and the output, unweighted: what Config.Tokens caps.
func (t Tokens) Sum() int64 { return within(t.Input) + within(t.Output) }

// Cost is InputWeight·input + OutputWeight·output: what fairness counts.
func (t Tokens) Cost() int64 { return InputWeight*within(t.Input) + OutputWeight*within(t.Output) }

func within(n int64) int64 { return min(max(n, 0), mostTokens) }

// price is Cost as it is charged: at least 1, so that calls whose tokens are
// unknown, or none, are shared out one by one.
func (t Tokens) price() float64 { return float64(max(t.Cost(), 1)) }

// Ask is what a call asks of a queue.
type Ask struct {
	// Key is the alias or short id of the caller, never the key itself; "" is a
	// caller too. It may be kept for a while after the call.
	Key string
	// Class is a class of Config; "" and unknown ones are DefaultClass.
	Class string
	// KeyWeight is the key's share against other keys of its class, 1/1024 … 1024.
	// 0 and what is no positive number stand for 1.
	KeyWeight float64
	// Tokens is the reservation; zero when nothing is known.
	Tokens Tokens
	// Bytes is what the call holds in memory while it waits.
	Bytes int64
	// Deadline is when the first token is due, the earliest if several
	// objectives apply. Without one (zero) a call is due when its longest wait is over.
	Deadline time.Time
	// PredictedTTFT is the time from admission to the first token, as far as
	// anybody can tell. Only shedding reads it.
	PredictedTTFT time.Duration
}

const widestWeight = 1024

func (a *Ask) weight() float64 {
	if !(a.KeyWeight > 0) || math.IsInf(a.KeyWeight, 0) {
		return 1
	}
	return min(max(a.KeyWeight, 1.0/widestWeight), widestWeight)
}
