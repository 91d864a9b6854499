//go:build !race

package ledger

const underRace = 1
