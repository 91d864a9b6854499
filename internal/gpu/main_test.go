package gpu

import (
	"math"
	"os"
	"testing"
	"time"
)

// subprocess does the work of a test in a process of its own; nil where no test
// needs one.
var subprocess func(task string)

func TestMain(m *testing.M) {
	if task := os.Getenv("WEIR_GPU_TASK"); task != "" {
		subprocess(task)
		return
	}
	code := m.Run()
	if stubs != "" {
		_ = os.RemoveAll(stubs)
	}
	os.Exit(code)
}

// stubs is where the stand-ins for the driver's library are built.
var stubs string

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// near tells whether two figures are the same but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

// is tells whether n is known to be x.
func is(n Number, x float64) bool {
	got, known := n.Get()
	return known && near(got, x)
}
