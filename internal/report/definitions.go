package report

import "github.com/weirgate/weir/internal/bench"

// definitions say what the figures mean by the profile they follow, in the
// profile's own words, and where open loops are shown what their rates mean.
func definitions(p bench.Profile, streamed, open bool) bullets {
	b := bullets(p.Says())
	if len(b) == 0 {
		b = bullets{"The figures follow the definitions of the profile " + named(string(p)) + "."}
	}
	if !streamed {
		b = append(b, "The answers were not streamed, so of these only E2E and the percentiles apply.")
	}
	if open {
		b = append(b,
			"Offered: calls that fell due per second of sending, as drawn; chance makes that of Poisson arrivals more or less than the rate asked for. Sent: the same by when they went out.",
			"Achieved: offered, times the share answered of what was due, both counted from when the first calls could have ended to the last due one; unknown when calls take longer than half of that time.",
			"Succeeded: calls that succeeded per second of the whole repeat, from the first send to the last end, so that it holds the time in which calls only end.")
	}
	return append(b,
		"TPM: input and output tokens per minute. Success: share of all calls. In flight: calls at a time, its mean by time.",
		"A dash ("+unknown+") stands for a figure that is not known or not defined, never for 0.")
}
