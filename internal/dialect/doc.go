// Package dialect reads one API's requests and response events.
//
// A Dialect is a table: the paths it is served under, the keys of its request
// body, the places in its answers where something is to be read, and two small
// functions that say what those places mean. Each lies in the file named after
// it, which is all that has to be written for a new one. Fields that servers of
// one API add or rename are read wherever they appear; no code asks which
// server it talks to.
//
// A Look reads a request body, a Response one answer, both piece by piece and
// in bounded memory. Neither changes a byte, waits, or starts a goroutine.
package dialect
