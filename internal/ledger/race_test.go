//go:build race

package ledger

// underRace divides the work of the larger tests: the database engine is some
// thirty times slower under the race detector.
const underRace = 10
