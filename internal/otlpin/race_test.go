//go:build race

package otlpin

// million is fewer under the race detector, which makes each step cost a hundred times as
// much and looks at what runs at once, not at how much is kept.
const million = 30_000
