// Package capacity says how much more fits; pure functions.
//
// Estimate works from the records of real calls, without a load test. For each
// upstream it fits what a step of the engine costs to what calls took, replays the
// recorded calls through a small model of continuous batching at higher and higher
// rates, and finds the rate at which the time to the first token reaches 80 % of its
// objective (the watermark). What the records cannot carry is refused with the
// reason, never guessed.
//
// The model is this. An engine works in steps. A step gives each decoding sequence
// its next token, which costs α + β·batch, and computes prompts of waiting calls as
// far as slots, token budget and KV cache last, which costs a base for the step and
// something for each token that is not cached; of that time decoding sequences feel
// the share γ. Whoever does not fit waits in order of arrival; when the cache is
// full the youngest sequence gives up its place and is computed again.
//
// Little's law and the concurrency factor check the figures from another side. A Plan
// needs no calls: it works from the figures of a model and of its hardware alone.
package capacity
