// Package engine reads engines' /metrics.
package engine
