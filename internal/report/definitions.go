package report

import "github.com/weirgate/weir/internal/bench"

// definitions say what the figures mean by the profile they follow, in the
// profile's own words.
func definitions(p bench.Profile, streamed bool) bullets {
	b := bullets(p.Says())
	if len(b) == 0 {
		b = bullets{"The figures follow the definitions of the profile " + named(string(p)) + "."}
	}
	if !streamed {
		b = append(b, "The answers were not streamed, so of these only E2E and the percentiles apply.")
	}
	return append(b,
		"TPM: input and output tokens per minute. Success: share of all calls. In flight: calls at a time, its mean by time.",
		"A dash ("+unknown+") stands for a figure that is not known or not defined, never for 0.")
}
