// Package signals remembers what engines and GPUs did beside the calls.
//
// Records hold what stood beside each call. What no call was there to see, or what is
// a counter and no state (preemptions, memory errors), a Log notes every ten
// seconds for two hours, so that a fault can be set beside the healthy time before it.
package signals
