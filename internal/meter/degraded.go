package meter

import (
	"errors"
	"slices"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/inflate"
)

// degradations collects reasons, each once, in the order in which they arose.
type degradations []call.Degradation

func (d *degradations) add(reason call.Degradation) {
	if !slices.Contains(*d, reason) {
		*d = append(*d, reason)
	}
}

// Degrade adds a reason that the gateway knows of.
func (m *Meter) Degrade(reason call.Degradation) { m.degraded.add(reason) }

// inflateFailed stops reading an answer that cannot be unpacked any further. A
// body that merely ends early is the outcome's matter, not a fault of its own.
func (m *Meter) inflateFailed(err error) {
	switch {
	case errors.Is(err, inflate.ErrTruncated):
	case errors.Is(err, inflate.ErrLimit):
		m.degraded.add(call.InflateLimit)
		m.undecodable = true
	default:
		m.degraded.add(call.InflateFailed)
		m.undecodable = true
	}
}
