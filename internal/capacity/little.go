package capacity

import (
	"fmt"
	"math"

	"github.com/weirgate/weir/internal/call"
)

// Headrooms for ConcurrencyFactor and for replicas: the share that is added to what
// is needed on average, so that a burst finds room.
const (
	MinHeadroom     = 0.3
	MaxHeadroom     = 0.5
	DefaultHeadroom = MinHeadroom
)

// Little returns how many calls are in flight on average, by Little's law: the
// arrival rate in calls a second times what the mean call takes in seconds, which is
// the mean TTFT and the mean number of output tokens times the mean TPOT
// (J. D. C. Little, A proof for the queuing formula L = λW, Operations Research 9,
// 1961).
//
// TTFT and TPOT are those that were measured. An objective does not belong here: it
// says what calls may take, not what they do take. The result is NaN where an
// argument is negative or no finite number.
func Little(callsPerSecond, ttftSeconds, outputTokens, tpotSeconds float64) float64 {
	if !figures(callsPerSecond, ttftSeconds, outputTokens, tpotSeconds) {
		return math.NaN()
	}
	return callsPerSecond * (ttftSeconds + outputTokens*tpotSeconds)
}

// ConcurrencyFactor returns how many calls may wait for their first token at once
// without harm: rate × TTFT p95 × (1 + headroom), calls a second times seconds. The
// headroom is a share from MinHeadroom to MaxHeadroom; 0 is DefaultHeadroom.
func ConcurrencyFactor(callsPerSecond, ttftP95Seconds, headroom float64) (float64, error) {
	if headroom == 0 {
		headroom = DefaultHeadroom
	}
	if !(headroom >= MinHeadroom && headroom <= MaxHeadroom) {
		return 0, fmt.Errorf("compute concurrency factor: headroom is %v: give a share from %v to %v", headroom, MinHeadroom, MaxHeadroom)
	}
	if !figures(callsPerSecond, ttftP95Seconds) {
		return 0, fmt.Errorf("compute concurrency factor: rate %v calls/s, TTFT p95 %v s: give finite numbers that are not negative", callsPerSecond, ttftP95Seconds)
	}
	return callsPerSecond * ttftP95Seconds * (1 + headroom), nil
}

func figures(all ...float64) bool {
	for _, x := range all {
		if !(x >= 0) || math.IsInf(x, 1) {
			return false
		}
	}
	return true
}

// LittleAlarm is the difference between Little's law and the count beyond which the
// figures contradict each other.
const LittleAlarm = 0.05

// Balance holds Little's law against the gateway's own count of calls in flight.
type Balance struct {
	// Law is rate × (mean TTFT + mean output × mean TPOT), calls in flight. The first token,
	// which the TTFT holds already, is not counted among the output: with short answers it
	// alone would make the alarm.
	Law call.Number `json:"by_littles_law_calls,omitzero"`
	// Counted is the mean by time of the calls between received and ended.
	Counted call.Number `json:"counted_calls,omitzero"`
	// Difference is (Law − Counted)/Counted, a share.
	Difference call.Number `json:"difference,omitzero"`
	// Alarm is whether the difference is more than LittleAlarm either way: then some
	// figure is not what it is taken for.
	Alarm bool `json:"alarm"`
	// Why says what an alarm, or the absence of a figure, comes from.
	Why string `json:"why,omitempty"`
}

// weigh compares the law with the count.
func (b *Balance) weigh() {
	law, known := b.Law.Get()
	counted, too := b.Counted.Get()
	if !known || !too || !(counted > 0) {
		return
	}
	d := (law - counted) / counted
	b.Difference = call.Figure(d)
	b.Alarm = math.Abs(d) > LittleAlarm
}
