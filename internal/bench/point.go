package bench

import (
	"math"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/endpoint"
)

// point is what figures need of one call, small enough to keep millions.
type point struct {
	index     int32
	discarded bool // of the repeat's first calls, sent but not measured
	held      bool // waited for the bound on calls in flight
	timed     bool // had a due time
	failed    endpoint.Kind
	// Since the beginning of the repeat.
	sent, end, due       time.Duration
	late                 time.Duration
	ttft, tpot, itl, e2e span
	whole, tail          span  // E2E and what the identity leaves, by our definitions
	input, output        int32 // tokens, −1 unknown
}

// span is a duration that may be unknown, in half the room of a call.Duration.
type span int64

const unknown span = math.MinInt64

func spanOf(d call.Duration) span {
	if v, ok := d.Get(); ok {
		return span(v)
	}
	return unknown
}

// milliseconds returns the span, and whether it is known.
func (s span) milliseconds() (float64, bool) {
	return float64(s) / float64(time.Millisecond), s != unknown
}

func tokensOf(c call.Count) int32 {
	n, ok := c.Get()
	if !ok || n < 0 || n > math.MaxInt32 {
		return -1
	}
	return int32(n)
}

func (p *point) ok() bool { return p.failed == "" }

// reported tells whether both figures of usage are known.
func (p *point) reported() bool { return p.input >= 0 && p.output >= 0 }

func (p *point) tokens() int64 { return int64(p.input) + int64(p.output) }
