package caddymodule

import (
	"slices"
	"testing"

	"github.com/weirgate/weir/internal/queue"
	"github.com/weirgate/weir/internal/telemetry"
)

// TestWaitEdges: the queue counts waits by the edges that the metric shows.
func TestWaitEdges(t *testing.T) {
	if !slices.Equal(queue.WaitEdges[:], telemetry.WaitEdges) {
		t.Errorf("the queue counts by %v, the metric shows %v", queue.WaitEdges, telemetry.WaitEdges)
	}
}
