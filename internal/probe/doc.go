// Package probe makes a synthetic call of fixed shape again and again.
//
// A probe says whether a call can be made when nobody makes one, and what it takes
// from outside: it goes the way of every client, through the listener, the gateway
// and the engine, and is measured at the client's end by the same definitions. It is one
// small call at a time, its prompt begins with a number of its own so that a
// prefix cache does not answer for the engine, and it never overlaps the next.
package probe
