// Package queue orders the calls that wait for a slot.
package queue
