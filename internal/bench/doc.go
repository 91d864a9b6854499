// Package bench loads an endpoint and measures it from the client's side.
//
// A Runner puts a Load on an endpoint and sums its repeats up in a Run; a ladder
// and a staircase are series of them. What a figure means is decided by a
// Profile: ours by default, or that of another tool. Compare sets the calls beside
// a gateway's records of them, Against holds a result against an earlier one, and
// Snapshot says what was measured. What is not known is absent everywhere, never 0.
package bench
