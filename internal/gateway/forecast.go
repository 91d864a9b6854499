package gateway

import (
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// forecast follows how long admitted calls wait for their first token, as a
// mean in which each new call weighs an eighth. Its zero value predicts 0:
// nothing is known, and nobody is turned away for it.
type forecast struct{ mean atomic.Int64 }

const forecastShare = 8

func (f *forecast) ttft() time.Duration { return time.Duration(f.mean.Load()) }

// learn takes the upstream TTFT of a call that completed. A lost update between
// two calls that end at once costs one call's weight.
func (f *forecast) learn(ttft call.Duration) {
	d, known := ttft.Get()
	if !known {
		return
	}
	mean := f.mean.Load()
	if mean == 0 {
		f.mean.Store(int64(d))
		return
	}
	f.mean.Store(mean + (int64(d)-mean)/forecastShare)
}
