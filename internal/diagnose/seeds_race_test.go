//go:build race

package diagnose_test

// seeds are how often each change is staged: once, since the race detector makes
// drills ten times slower.
const seeds = 1
