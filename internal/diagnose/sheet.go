package diagnose

import (
	"slices"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// sheet collects what the rules find in one call. It is filled and emptied for
// each call of a window without allocating.
type sheet struct {
	hits  []hit
	facts []fact
}

// hit is one rule that applies.
type hit struct {
	code   Code
	source call.Source
	wall   wall // of a refusal
	// of is the whole that time is a part of, whole how long that is. A condition has
	// no time: of is "" then, and whole the time of the call.
	of          Whole
	time, whole time.Duration
	facts       int // where its facts begin
}

// fact is evidence of a hit, not yet in words.
type fact struct {
	figure  *figure
	value   float64
	name    string // for figures that are told apart by one
	against bool
}

// figure is a kind of evidence.
type figure struct {
	name  string // see Evidence.Figure
	unit  Unit
	label string // in words; what the fact's own name is put in place of %
	why   string // what it says for or against the finding; "" when that is plain
	bare  bool   // the label says it all: there is no value
}

func (s *sheet) reset() { s.hits, s.facts = s.hits[:0], s.facts[:0] }

// span begins a hit that explains a part of a whole.
func (s *sheet) span(code Code, source call.Source, d time.Duration, of Whole, whole time.Duration) {
	s.hits = append(s.hits, hit{code: code, source: source, of: of, time: d, whole: whole, facts: len(s.facts)})
}

// condition begins a hit that is no span of time.
func (s *sheet) condition(code Code, l *look) {
	s.hits = append(s.hits, hit{code: code, source: call.Measured, whole: l.elapsed, facts: len(s.facts)})
}

// pro and con add evidence to the hit begun last.
func (s *sheet) pro(f *figure, v float64) { s.facts = append(s.facts, fact{figure: f, value: v}) }
func (s *sheet) con(f *figure, v float64) {
	s.facts = append(s.facts, fact{figure: f, value: v, against: true})
}

// named adds evidence that has a name and no value.
func (s *sheet) named(f *figure, name string) {
	s.facts = append(s.facts, fact{figure: f, name: name})
}

// found tells whether there is a hit of a code already.
func (s *sheet) found(code Code) bool {
	return slices.ContainsFunc(s.hits, func(h hit) bool { return h.code == code })
}

// of returns the facts of hit i.
func (s *sheet) of(i int) []fact {
	end := len(s.facts)
	if i+1 < len(s.hits) {
		end = s.hits[i+1].facts
	}
	return s.facts[s.hits[i].facts:end]
}

// rules are all of them. Their order decides nothing but that of equals.
var rules = [...]func(*look, *sheet){failures, queues, cacheFull, prefills, frontends, tails, uploads, connects, roundTrips, readers, clocks, underUsed, unsplit}

// fill applies all rules to a call.
func (s *sheet) fill(l *look) {
	s.reset()
	for _, rule := range rules {
		rule(l, s)
	}
}
