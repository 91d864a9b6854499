// Package call holds the facts of one call: request, usage, instants, phases, outcome and the Record made of them.
//
// It computes nothing from the wire and knows no protocol: dialects and the
// meter fill its types, the gateway seals them into one Record, and every
// consumer reads that Record. A Record never changes once it has left the
// gateway.
package call
