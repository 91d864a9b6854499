//go:build !race

package slo

// underRace is whether the race detector makes all slower.
const underRace = false
