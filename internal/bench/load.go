package bench

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/workload"
)

// None stands in a number of Load for "nothing at all", where 0 stands for the
// default.
const None = -1

// Defaults of Load, and what a matrix takes in their place.
const (
	// DefaultRepeats is the least number that has a median and a spread.
	DefaultRepeats = 3
	// DefaultPause lets the engine end what is left of a repeat, and is short
	// enough that clocks and caches stay as they were.
	DefaultPause = time.Second
	// MatrixWarmup and MatrixDiscard are for matrices, whose loads change from
	// one to the next, so that a service must find its way into each.
	MatrixWarmup  = 30
	MatrixDiscard = 0.1
	// ThermalDuration and ThermalWindow: a GPU's heat sink takes some ten minutes
	// to warm through, and five minutes hold enough calls to tell 3 % apart.
	ThermalDuration = 30 * time.Minute
	ThermalWindow   = 5 * time.Minute
	// leastWarmup calls tell the tokens of a word well enough for prompts to have
	// the length asked for.
	leastWarmup = 5
)

// Load is one load to put on an endpoint. Zero fields stand for defaults; a load
// needs Calls or Duration.
type Load struct {
	// Label names the load in results and call ids; by default it is made of the
	// arrivals, such as "concurrency 8".
	Label    string
	Arrivals workload.Arrivals
	Input    workload.Length
	Output   workload.Length
	Sharing  workload.Sharing
	// Trace is what lengths and arrivals are replayed from.
	Trace []workload.Row
	// Calls is how many measured calls a repeat sends, those to discard
	// included; 0 is no bound.
	Calls int
	// Duration is how long a repeat sends calls; 0 is no bound. Those in flight
	// at its end are waited for.
	Duration time.Duration
	// Warmup is how many calls are sent, and waited for, before each repeat; they
	// are left out of all figures. By default one for each call at a time and at
	// least 5: each connection is then open, and each batch size has been seen.
	// None sends none.
	Warmup int
	// Discard is the share of a repeat's calls that is left out too, the first
	// ones: by number or, without Calls, by time. None or 0 leaves none out.
	Discard float64
	// Repeats is 3 by default, 1 for a thermal run.
	Repeats int
	// Pause is the time between the repeats; 1 s by default, None is none.
	Pause time.Duration
	// Thermal compares the first and the last window of a long run, whose
	// Duration is 30 min by default. Window is 5 min by default.
	Thermal bool
	Window  time.Duration
}

// closed tells whether calls are sent when others end.
func (l *Load) closed() bool { return l.Arrivals.Shape == workload.Closed || l.Arrivals.Shape == "" }

// filled returns the load with its defaults, or says what is wrong with it.
func (l Load) filled() (Load, error) {
	if l.Arrivals.Shape == "" {
		l.Arrivals.Shape = workload.Closed
	}
	if l.closed() && l.Arrivals.Concurrency == 0 {
		l.Arrivals.Concurrency = 1
	}
	if l.Label == "" {
		l.Label = l.Arrivals.String()
	}
	if l.Thermal {
		l.Duration = orDefault(l.Duration, ThermalDuration)
		l.Window = orDefault(l.Window, ThermalWindow)
		l.Repeats = orDefault(l.Repeats, 1)
	}
	l.Repeats = orDefault(l.Repeats, DefaultRepeats)
	l.Pause = max(orDefault(l.Pause, DefaultPause), 0)
	l.Warmup = max(orDefault(l.Warmup, max(l.Arrivals.Concurrency, leastWarmup)), 0)
	l.Discard = max(l.Discard, 0)
	return l, l.validate()
}

// Validate tells whether the load, with its defaults, can be carried out. Runner.Run
// asks the same; this is for whoever has many loads and wants to know at once.
func (l Load) Validate() error {
	_, err := l.filled()
	return err
}

// validate checks what the plan made of the load does not.
func (l *Load) validate() error {
	switch {
	case !(l.Discard >= 0 && l.Discard < 1):
		return fmt.Errorf("a share of %v of the first calls cannot be left out; give less than 1", l.Discard)
	case l.Discard > 0 && l.Calls == 0 && l.Duration == 0:
		return errors.New("a share of the first calls can only be left out of a number of calls or a duration; give one of them")
	case l.Repeats < 1:
		return fmt.Errorf("%d repeats are not possible; give 1 or more", l.Repeats)
	case l.Thermal && l.Window <= 0:
		return errors.New("the window of a thermal run must be above 0")
	case l.Thermal && l.Duration < 2*l.Window:
		return fmt.Errorf("a thermal run of %v has no two windows of %v; make it longer, 30m or more", l.Duration, l.Window)
	}
	return l.plan(0, false).Validate()
}

// plan is what the load sends in one phase.
func (l *Load) plan(seed uint64, warmup bool) workload.Plan {
	p := workload.Plan{Arrivals: l.Arrivals, Input: l.Input, Output: l.Output, Sharing: l.Sharing, Seed: seed, Trace: l.Trace}
	if !warmup {
		p.Calls, p.Duration = l.Calls, l.Duration
		return p
	}
	p.Calls = l.Warmup
	if l.Arrivals.Shape == workload.Replay {
		// A trace may begin with hours of silence.
		p.Arrivals = workload.Arrivals{Shape: workload.Closed, Concurrency: leastWarmup}
	}
	return p
}

func orDefault[T int | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}

// slug turns a label into what may stand in a header: at most 40 of a–z, 0–9,
// point and hyphen.
func slug(label string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(label) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '.':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() == 40 {
			break
		}
	}
	return strings.TrimSuffix(b.String(), "-")
}
