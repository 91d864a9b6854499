package capacity

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// liveNumber writes a number with three significant digits, or all of those before the point.
func liveNumber(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "unknown"
	case v == 0:
		return "0"
	case math.Abs(v) >= 1000:
		return strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	}
	place := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(v))))
	return strconv.FormatFloat(math.Round(v*place)/place, 'f', -1, 64)
}

// liveFigure writes a figure with its unit; unknown without.
func liveFigure(n call.Number, unit string) string {
	v, known := n.Get()
	if !known {
		return "unknown"
	}
	return liveNumber(v) + unit
}

// liveSpan writes a time as people do.
func liveSpan(d call.Duration) string {
	v, known := d.Get()
	switch {
	case !known:
		return "unknown"
	case v >= time.Second || v <= -time.Second:
		return liveNumber(v.Seconds()) + " s"
	case v >= time.Millisecond || v <= -time.Millisecond || v == 0:
		return liveNumber(float64(v)/1e6) + " ms"
	}
	return liveNumber(float64(v)/1e3) + " µs"
}

func liveCalls(n int) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprintf("%d calls", n)
}
