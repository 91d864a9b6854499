package bench

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirgate/weir/internal/endpoint"
)

// Config is what all loads of a test have in common.
type Config struct {
	// Caller sends the calls. It is made with the header X-Weir-Run set to Run.
	Caller endpoint.Caller
	// Run names the test, at most 64 of A–Z, a–z, 0–9, point, hyphen and
	// underscore. Call ids begin with it.
	Run string
	// Ask is what each call asks for; prompt and length come from the load. For
	// figures that can be compared: temperature 0, and IgnoreEOS where the engine
	// knows it.
	Ask endpoint.Ask
	// Objectives make goodput; the zero value has none.
	Objectives Objectives
	// Profile is Weir by default.
	Profile Profile
	// Seed decides lengths and arrivals, and together with Run the prompts: if two
	// runs sent the same ones, the second would find those of the first in the
	// engine's prefix cache.
	Seed uint64
	// Sink gets each call's sample when it has ended, warm-up included, from one
	// goroutine; it owns the sample's Gaps. A slow sink slows the load test. Nil
	// drops them.
	Sink func(Sample)
	// Progress is called from that same goroutine, at most 4 times a second. Nil
	// is nobody.
	Progress func(Progress)
	// Now is the clock, time.Now by default. Its times need a monotonic reading.
	Now func() time.Time
}

// Progress says how far a load is.
type Progress struct {
	Load            string
	Repeat, Repeats int
	// Warmup is whether what is sent now is left out.
	Warmup bool
	// Calls and Duration are what this part of the repeat is to send; 0 is no bound.
	Calls    int
	Duration time.Duration
	// Elapsed is the time since its first call.
	Elapsed time.Duration
	// Ended calls include Failed ones; InFlight are under way.
	Ended, Failed, InFlight int
	// OutputTokens are those reported so far.
	OutputTokens int64
}

// maxRun bounds Config.Run, so that ids stay below 128 bytes.
const maxRun = 64

func (c *Config) validate() error {
	switch {
	case c.Caller == nil:
		return errors.New("a load test needs a caller")
	case c.Run == "" || len(c.Run) > maxRun:
		return fmt.Errorf("a run needs a name of 1 to %d characters", maxRun)
	case c.Profile.definition() == nil:
		return fmt.Errorf("unknown metrics profile %q", c.Profile)
	case c.Ask.Model == "":
		return errors.New("a load test needs a model")
	}
	for _, r := range c.Run {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_') {
			return fmt.Errorf("the run's name %q goes out in a header; use letters, digits, point, hyphen and underscore", c.Run)
		}
	}
	return nil
}

func (c *Config) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}
