// Package exposition reads Prometheus' text format as strangers write it.
package exposition
