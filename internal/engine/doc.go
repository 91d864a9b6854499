// Package engine reads engines' /metrics.
//
// So far it reads the counters of tokens and requests, which a ledger of usage is
// held against. An engine is told by the names of its metrics, and what its
// counters mean is said here, beside the names.
package engine
