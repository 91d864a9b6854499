// Package rtt asks the kernel for the round trip of a connection.
package rtt
