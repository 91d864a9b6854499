package diagnose

import (
	"time"

	"github.com/weirgate/weir/internal/call"
)

// CompareOptions steer Compare. The zero value is the defaults, with nothing
// watched beside the calls.
type CompareOptions struct {
	// MinCalls is how many calls each window needs to be spoken of; 0 and less is
	// MinCalls, the constant.
	MinCalls int
	// Before and After are what was watched beside the calls of the two windows.
	Before, After Signals
}

// Comparison is what Compare, or CompareRows, says of two windows. In its
// Findings Time is the part of the change of a mean that a finding explains,
// Share that time as a share of the change that Of names, and Calls the calls of
// the later window that have it.
type Comparison struct {
	// Before and After are the figures of the healthy window and the new one, of
	// the calls that Scope leaves.
	Before Figures `json:"before"`
	After  Figures `json:"after"`
	// Odd is how many records were left out because their figures cannot be true.
	Odd int `json:"odd,omitempty"`
	// Scope is there when one upstream, model or key has changed and its siblings
	// have not: all figures are of its calls alone.
	Scope *Scope `json:"scope,omitempty"`
	// Siblings are the upstreams, models and keys by how they changed.
	Siblings []Sibling `json:"siblings,omitempty"`
	// TTFT, TPOT and E2E say how their means changed, phase by phase.
	TTFT Change `json:"ttft"`
	TPOT Change `json:"tpot"`
	E2E  Change `json:"e2e"`
	// Verdict and its Reasons, one sentence each.
	Verdict Verdict `json:"verdict"`
	// Code and Layer are those of the primary finding, which is the first of
	// Findings; "" unless the verdict is Found or NotAFault.
	Code    Code     `json:"code,omitempty"`
	Layer   Layer    `json:"layer,omitempty"`
	Reasons []string `json:"reasons"`
	// Findings are what explains the change, the primary one first.
	Findings []Finding `json:"findings"`
}

// Fault tells whether the comparison names a layer that is at fault. Traffic that
// is of another mix is none, and neither is what is undetermined.
func (c *Comparison) Fault() bool { return c.Verdict == Found }

// Scope is the part of the calls that has changed.
type Scope struct {
	Dimension string   `json:"dimension"` // upstream, model or key
	Names     []string `json:"names"`
}

// Sibling is one of several upstreams, models or keys.
type Sibling struct {
	Dimension string        `json:"dimension"`
	Name      string        `json:"name"`
	Measure   string        `json:"measure"` // ttft, tpot or e2e: the one that changed most in all
	Calls     int           `json:"calls"`   // of the new window that have it
	Before    call.Duration `json:"before_ms"`
	After     call.Duration `json:"after_ms"`
	Changed   bool          `json:"changed"` // it is slower than it was
}

// Compare says what changed from a healthy window to a new one, by how much each
// phase, and what is at fault for it. Records that are nil count for nothing, and
// the order of records does not matter. It takes time in proportion to n log n.
func Compare(before, after []*call.Record, o CompareOptions) Comparison {
	least := o.MinCalls
	if least <= 0 {
		least = MinCalls
	}
	origin := originOf(before, after)
	var c Comparison
	var odd [2]int
	var all [2][]sample
	all[0], odd[0] = samples(before, origin)
	all[1], odd[1] = samples(after, origin)
	c.Odd = odd[0] + odd[1]
	crowd(all[0], all[1])
	p := pair{sig: [2]*Signals{&o.Before, &o.After}, least: least}
	p.look(all, all, origin, nil)
	if m, risen := p.most(); risen {
		var scope *Scope
		p.siblings, scope, p.rerouted = siblingsOf(all, m)
		if scope != nil {
			list := [2][]sample{only(all[0], scope), only(all[1], scope)}
			if min(len(list[0]), len(list[1])) >= least {
				p.look(all, list, origin, scope)
				c.Scope = scope
			}
		}
	}
	c.Siblings = p.siblings
	c.Before, c.After = *p.b, *p.a
	c.TTFT, c.TPOT, c.E2E = *p.change[ofTTFT], *p.change[ofTPOT], *p.change[ofE2E]
	p.judge(&c)
	return c
}

// look fills in both windows, of the calls in list, which are those of all that
// scope leaves.
func (p *pair) look(all, list [2][]sample, origin time.Time, scope *Scope) {
	p.list, p.sums, p.scene = list, [2][measures]sumOf{}, scene{}
	var upstreams []string
	if scope != nil && scope.Dimension == named[byUpstream].figure {
		upstreams = scope.Names
	}
	var figures [2]Figures
	for i := range list {
		for j := range list[i] {
			for m := range measures {
				p.sums[i][m].add(&list[i][j], m)
			}
			if i == 1 {
				p.scene.add(list[i][j].rec)
			}
		}
		p.read = readings(all[i], origin, p.sig[i], upstreams)
		figures[i] = figuresOf(list[i], origin, &p.sums[i], p.sig[i], p.read)
	}
	p.b, p.a = &figures[0], &figures[1]
	for m := range measures {
		b, a := &p.sums[0][m], &p.sums[1][m]
		change := changeOf(b, a)
		floor := Felt
		if m == ofTPOT {
			floor = 0
		}
		p.trends[m], p.ratios[m] = trendOf(b, a, floor), by(inMS(change.Before.Mean), inMS(change.After.Mean))
		if change.Change.IsKnown() {
			for level := range levels {
				if s, ok := standard(list[0], list[1], m, level, change); ok {
					change.Mix = append(change.Mix, s)
				}
			}
		}
		p.change[m] = &change
		p.onsets[m] = onsetOf(list[0], list[1], origin, m)
	}
	p.decode, p.prompt = fitDecode(list[0], list[1]), fitPrompt(list[0], list[1])
	p.clocks = clocksOf(list, p.sig)
}

// most is the measure that has risen most, as a ratio.
func (p *pair) most() (m measure, risen bool) {
	best := 0.0
	for k := range measures {
		if r := p.ratios[k].Or(0); p.trends[k] == up && r > best {
			m, best, risen = k, r, true
		}
	}
	return m, risen
}

// measure is a time of a call that is compared.
type measure int

const (
	ofTTFT measure = iota
	ofTPOT
	ofE2E
	measures
)

var measureNames = [measures]string{"ttft", "tpot", "e2e"}

// inCapitals are the measures as people write them.
var inCapitals = [measures]string{"TTFT", "TPOT", "E2E"}

// changesOf are the wholes of which a finding of a comparison has a share.
var changesOf = [measures]Whole{OfTTFTChange, OfTPOTChange, OfE2EChange}
