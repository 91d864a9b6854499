// Package telemetry exports records as spans and metrics; all names in names.go.
//
// One Metrics lives as long as the process: Caddy makes a new registry with
// each configuration, so Metrics is registered again with each and keeps
// counting. Observe takes a finished Record once; scrapes only read.
//
// Counts and histograms are kept here; figures of queues, engines, GPUs and
// exports are read from their owners at each scrape (Live, Walls, Engines, SLO …).
// Histograms show the traces of calls whose spans were exported as exemplars. A
// Tracer exports spans, and a MetricsExport the same metrics over OTLP: neither
// ever makes a call wait for a collector.
//
// Every label comes from a bounded set (see names_labels.go), and no label
// ever carries a key, a user, a path or any text of a prompt. A figure that is
// unknown is not observed, rather than observed as 0.
package telemetry
