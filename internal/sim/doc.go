// Package sim imitates an engine with continuous batching, deterministically from a seed.
//
// An Engine is an http.Handler that speaks the APIs of vLLM, SGLang or
// llama.cpp's server. Behind it one scheduler works in steps, as those engines
// do: running sequences first, then waiting ones while slots, token budget and
// KV cache last. A step costs what Config says it costs and nothing else, so
// that with the clock of testing/synctest every instant is exact; on the wall
// clock the same code is an engine to try things on.
//
// What the engine did for a call (when it queued, was scheduled, wrote each
// token, how much of the prompt was cached) is kept as a Truth, so that a
// measurement can be compared with what really happened. Faults make it
// misbehave on demand.
//
// The same seed and the same arrivals give the same bytes at the same instants.
// Two things are left to chance in that: a client that leaves at the very
// instant a step ends may or may not get that step's token, and of requests
// that are equal to the last byte and arrive at the same instant nobody can
// tell which comes first.
package sim
