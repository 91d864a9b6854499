//go:build !race

package diagnose_test

// seeds are how often each change is staged, with other arrivals and sizes.
const seeds = 3
