// Package keys knows callers: ids, aliases, limits, expiry.
//
// A caller is known by the API key of its request, and the key is a secret of
// the caller's. It is read from the request, turned into an id, and forgotten;
// only the id reaches logs, metrics, spans, the ledger and error texts.
//
// A Store holds the keys of a file such as keys.json (its format is documented at
// File), which has the hashes of keys and never a key. Lookup finds the caller
// of a key on the hot path, Reload and Watch take up a changed file, and Edit
// changes the file so that neither a reader nor another editor ever sees half
// of a change.
package keys
