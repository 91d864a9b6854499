package diagnose

import "time"

// The thresholds of comparisons.
const (
	// Rise is how many times what it was a figure has to be to count as up: a fifth
	// more is what windows of some hundred calls tell from chance, and what a
	// watermark at 80 % of an objective leaves before it is missed.
	Rise = 1.2
	// Sure is how many standard errors a difference of means has to be for not to
	// be chance: three are exceeded once in 370 times.
	Sure = 3
	// Felt is the least change of TTFT or E2E that counts: no preset objective is
	// finer than 10 ms.
	Felt = 10 * time.Millisecond
	// CacheLoss is by how much the share of prompt tokens that the prefix cache
	// gives has to fall: 20 points.
	CacheLoss = 0.2
	// ClockDrop is the share of the healthy window's SM clock that is lost from
	// which on heat or power is at fault.
	ClockDrop = 0.05
	// AtPowerLimit is the share of its limit that a GPU draws which power holds
	// down.
	AtPowerLimit = 0.98
	// Residual is the share of the calls in flight here of which the engine knows
	// nothing, from which on the way there or its front end holds them.
	Residual = 0.2
	// StepsOfPrompt is by how many decode steps the first token may come later
	// before it counts as slower than the steps explain: a prompt waits for the
	// step under way, shares the next, and waits for one more where another prompt
	// goes first.
	StepsOfPrompt = 3
	// TripFelt is by how much a round trip to clients has to be longer to count:
	// the objective of interactive calls for it.
	TripFelt = 20 * time.Millisecond

	// inARow is how many slow calls make an onset, and failures of a kind a
	// finding: one or two are there by chance all the time.
	inARow = 3
	// leastInCell is how many calls of each window a cell needs: with two no mean
	// is that of a single one.
	leastInCell = 2
	// maxSiblings is how many upstreams, models or keys are listed.
	maxSiblings = 16
)
