//go:build !race

package otlpin

const million = 1_000_000
