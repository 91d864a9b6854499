package bench

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/endpoint"
)

// Values are the figures of one call by the definitions of a profile. What a
// profile does not have, or could not tell of this call, is unknown.
type Values struct {
	TTFT, TPOT, ITL, E2E call.Duration
	// Gaps are in milliseconds; GapsOf says between what, and is "" without any.
	Gaps   []float32
	GapsOf GapsOf
}

// definition is what a profile is made of: one small type each.
type definition interface {
	// read turns a reply into figures. It is a pure function.
	read(*endpoint.Reply) Values
	// says states the definitions, then where they differ from ours.
	says() []string
	// steps is whether percentiles take a value that occurred, in place of
	// interpolating between two.
	steps() bool
}

var definitions = map[Profile]definition{
	Weir:        weirProfile{},
	VLLMBench:   vllmProfile{},
	SGLangBench: sglangProfile{},
	GuideLLM:    guideProfile{},
	AIPerf:      aiperfProfile{},
	GenAIBench:  genaiProfile{},
}

// Profiles returns all profiles, ours first.
func Profiles() []Profile {
	return []Profile{Weir, VLLMBench, SGLangBench, GuideLLM, AIPerf, GenAIBench}
}

// ParseProfile reads the name of a profile; "" is Weir.
func ParseProfile(name string) (Profile, error) {
	if name == "" {
		return Weir, nil
	}
	p := Profile(strings.ToLower(strings.TrimSpace(name)))
	if _, ok := definitions[p]; ok {
		return p, nil
	}
	var all []string
	for _, p := range Profiles() {
		all = append(all, string(p))
	}
	return "", fmt.Errorf("unknown metrics profile %q; use one of %s", name, strings.Join(all, ", "))
}

// Says returns the profile's definitions for people, a sentence each, with what
// differs from ours. It is nil for a profile that does not exist.
func (p Profile) Says() []string {
	if d := p.definition(); d != nil {
		return d.says()
	}
	return nil
}

// Read returns the figures of a call by the profile's definitions. Those of a
// profile that does not exist are all unknown. It is a pure function; the slice
// of gaps is new.
func (p Profile) Read(r *endpoint.Reply) Values {
	d := p.definition()
	if d == nil {
		return Values{}
	}
	v := d.read(r)
	switch {
	case r.Dropped == 0:
	case d == weirProfile{}: // the rest is from the record, which has seen all
		v.ITL, v.Gaps, v.GapsOf = call.Duration{}, nil, ""
	default:
		return Values{} // events are missing
	}
	return v
}

// definition returns what p is made of; "" is Weir, nil what does not exist.
func (p Profile) definition() definition {
	if p == "" {
		p = Weir
	}
	return definitions[p]
}

// output returns the reported number of output tokens, reasoning included.
func output(r *endpoint.Reply) (int64, bool) { return r.Record.Output.Get() }

// first returns when the first event with any of marks came, and with all of need.
func first(events []endpoint.Event, marks, need endpoint.Mark) call.Duration {
	for i := range events {
		if m := events[i].Mark; m&marks != 0 && m&need == need {
			return call.Lasting(events[i].At)
		}
	}
	return call.Duration{}
}

// last is first from the other end.
func last(events []endpoint.Event, marks, need endpoint.Mark) call.Duration {
	for i := len(events) - 1; i >= 0; i-- {
		if m := events[i].Mark; m&marks != 0 && m&need == need {
			return call.Lasting(events[i].At)
		}
	}
	return call.Duration{}
}

// per returns (to − from) / n; unknown where an instant is, or where n is not positive.
func per(from, to call.Duration, n int64) call.Duration {
	d, ok := to.Minus(from).Get()
	if !ok || n < 1 {
		return call.Duration{}
	}
	return call.Milliseconds(float64(d) / float64(time.Millisecond) / float64(n))
}

// ended is the end of the whole answer.
func ended(r *endpoint.Reply) call.Duration { return call.Lasting(r.End) }

func milliseconds(d time.Duration) float32 {
	return float32(float64(d) / float64(time.Millisecond))
}
