// Package engine reads engines' /metrics.
//
// It reads two things. Scrape takes the counters of tokens and requests, which a
// ledger of usage is held against. ReadGauges takes what the engine is doing right
// now, and a Sampler does so again and again, so that a call can be set beside
// what the engine was doing when it was sent.
//
// An engine is told by the names of its metrics, and what these mean, and when
// the engine writes them, is said here, beside the names.
package engine
