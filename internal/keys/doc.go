// Package keys knows callers: ids, aliases, limits, expiry.
//
// A caller is known by the API key of its request, and the key is a secret of
// the caller's. It is read from the request, turned into an id, and forgotten;
// only the id reaches logs, metrics, spans, the ledger and error texts.
package keys
