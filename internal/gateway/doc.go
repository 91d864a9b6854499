// Package gateway walks one call through the rooms, and runs what runs in the background.
//
// Begin recognises an inference call, Serve reads the request, hands it to the
// next handler, puts the tap between the answer and the client, and seals one
// immutable Record at the end, on every path. The package knows net/http alone;
// what only the surrounding server can tell comes through Surroundings.
package gateway
