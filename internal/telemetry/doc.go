// Package telemetry exports records as spans and metrics; all names in names.go.
//
// One Metrics lives as long as the process: Caddy makes a new registry with
// each configuration, so Metrics is registered again with each and keeps
// counting. Observe takes a finished Record once; scrapes only read.
//
// Every label comes from a bounded set (see Labels in names.go), and no label
// ever carries a key, a user, a path or any text of a prompt. A figure that is
// unknown is not observed, rather than observed as 0.
package telemetry
