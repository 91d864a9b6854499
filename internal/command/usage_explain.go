package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/engine"
	"github.com/weirgate/weir/internal/ledger"
)

// comparison is an engine's counters and the ledger's sums, and why they differ.
type comparison struct {
	Engine    engine.Kind `json:"engine"`
	Since     time.Time   `json:"since,omitzero"` // of the ledger's sums, or of the snapshot; absent: all
	Until     time.Time   `json:"until"`
	Tolerance int64       `json:"tolerance"`
	Prompt    side        `json:"prompt"`
	Generated side        `json:"generated"`

	// Requests is what the engine ended, absent where it does not say.
	Requests  engine.Figure `json:"engine_requests,omitzero"`
	Calls     int64         `json:"calls"` // of the ledger, those left out that a limit refused
	Completed int64         `json:"completed"`
	NoUsage   int64         `json:"no_usage"`
	// Restarted: the engine began anew since the snapshot, so that what it counted
	// before is lost.
	Restarted bool     `json:"restarted,omitempty"`
	Exact     bool     `json:"exact"` // no difference at all
	Explained bool     `json:"explained"`
	Notes     []string `json:"notes"`

	cachedByLedger bool // side.Cached is the ledger's figure, not the engine's
}

// side is one kind of tokens. Difference is Engine + Cached − Reported, and the
// fields after it add up to it.
type side struct {
	Engine int64 `json:"engine"` // as the engine counted
	// Cached is prompt tokens that the engine took from its cache and left out of
	// Engine.
	Cached   int64 `json:"cached"`
	Reported int64 `json:"reported"` // in the ledger, as upstreams reported

	Difference int64 `json:"difference"`
	// Estimated is what the ledger's estimates cover, for calls whose usage was
	// not reported.
	Estimated int64 `json:"estimated"`
	// Missed is what those calls used beyond the estimates.
	Missed int64 `json:"missed_by_estimates"`
	// BrokenOff is (below 0) what upstreams reported of calls that broke off and
	// an engine that counts finished calls left out.
	BrokenOff int64 `json:"broken_off"`
	// Rounding is what the engine's rounded figures leave open.
	Rounding    int64 `json:"rounding"`
	Unexplained int64 `json:"unexplained"`
}

// since compares what both sides grew by.
func since(before, after *snapshot) (*comparison, error) {
	b, a := before.Engine, after.Engine
	l := less(after.Ledger, before.Ledger)
	if l.Calls < 0 || l.Reported.Input < 0 || l.Reported.Output < 0 {
		return nil, fmt.Errorf("the ledger holds less than at the snapshot of %s: is it another file? Take a new snapshot with --save", before.Taken.Format(time.RFC3339))
	}
	grown := a
	grown.Prompt, grown.Generated = a.Prompt.Minus(b.Prompt), a.Generated.Minus(b.Generated)
	grown.Cached, grown.Requests, grown.Aborted = a.Cached.Minus(b.Cached), a.Requests.Minus(b.Requests), a.Aborted.Minus(b.Aborted)
	restarted := !a.Start.IsZero() && !b.Start.IsZero() && !a.Start.Equal(b.Start) || a.Process != "" && b.Process != "" && a.Process != b.Process ||
		grown.Prompt.N < -grown.Prompt.Within || grown.Generated.N < -grown.Generated.Within || grown.Requests.N < 0
	if restarted {
		grown = a // all since the restart; what came before it is lost
	}
	c := explain(grown, l)
	if b.InFlight.N > 0 {
		c.Notes = append(c.Notes, "At the snapshot: "+inFlight(b))
	}
	if restarted {
		c.Restarted, c.Exact, c.Explained = true, false, false
		c.Notes = append(c.Notes, "The engine was restarted since the snapshot: what it counted before is lost, and its figures here are those since. Take a new snapshot with --save.")
	}
	return c, nil
}

// less is what a ledger's sums grew by.
func less(a, b ledger.Usage) ledger.Usage {
	minus := func(a, b ledger.Sums) ledger.Sums {
		return ledger.Sums{Input: a.Input - b.Input, Cached: a.Cached - b.Cached, CacheWrite: a.CacheWrite - b.CacheWrite,
			Output: a.Output - b.Output, Reasoning: a.Reasoning - b.Reasoning}
	}
	l := ledger.Usage{Calls: a.Calls - b.Calls, Completed: a.Completed - b.Completed, Refused: a.Refused - b.Refused, NoUsage: a.NoUsage - b.NoUsage,
		Reported: minus(a.Reported, b.Reported), Estimated: minus(a.Estimated, b.Estimated), BySource: make(map[string]int64, len(a.BySource))}
	for source, tokens := range a.BySource {
		l.BySource[source] = tokens - b.BySource[source]
	}
	return l
}

// explain compares what an engine counted with what the ledger holds.
func explain(e engine.Counters, l ledger.Usage) *comparison {
	c := &comparison{Notes: []string{}, Engine: e.Kind, Requests: e.Requests, Calls: l.Calls - l.Refused, Completed: l.Completed, NoUsage: l.NoUsage}
	prompt := e.Prompt
	if e.Kind.CachedApart() {
		if c.cachedByLedger = !e.Cached.Known; c.cachedByLedger {
			c.Prompt.Cached = l.Reported.Cached
		} else {
			c.Prompt.Cached = e.Cached.N
			prompt.Within += e.Cached.Within
		}
	}
	// Calls that broke off, or whose usage nobody reported, may have used more than
	// was estimated. That they are all there is to it can be said where the engine
	// ended no more requests than the ledger has calls: then none came around the
	// gateway. An engine that does not count requests leaves that open, and so says
	// a note.
	cut := l.NoUsage > 0 || l.Estimated != (ledger.Sums{}) || l.BySource[string(call.UsagePartial)] > 0
	open := cut && (!e.Requests.Known || e.Requests.N <= c.Calls)
	broken := l.BySource[string(call.UsagePartial)]
	if e.Kind.CountsAborted() {
		broken = 0
	}
	c.Prompt.explain(prompt, l.Reported.Input, l.Estimated.Input, broken, open)
	c.Generated.explain(e.Generated, l.Reported.Output, l.Estimated.Output, broken, open)
	c.Exact = c.Prompt.Difference == 0 && c.Generated.Difference == 0
	c.Explained = c.Prompt.Unexplained == 0 && c.Generated.Unexplained == 0
	c.note(e, l)
	if !e.Requests.Known && (c.Prompt.Missed > 0 || c.Generated.Missed > 0) {
		c.Notes = append(c.Notes, "The engine does not count requests: what calls that broke off used beyond their estimates cannot be told from calls around the gateway.")
	}
	return c
}

// explain splits the difference. estimated is what the ledger estimates for calls
// without reported usage, which may have used all of it or nothing; broken is the
// most that the engine may have left out; open lets those calls have used more.
func (s *side) explain(counted engine.Figure, reported, estimated, broken int64, open bool) {
	s.Engine, s.Reported = counted.N, reported
	s.Difference = s.Engine + s.Cached - reported
	rest := s.Difference
	take := func(n int64) int64 {
		rest -= n
		return n
	}
	if rest > 0 {
		s.Estimated = take(min(rest, estimated))
	} else {
		s.BrokenOff = take(max(rest, -broken))
	}
	s.Rounding = take(max(-counted.Within, min(rest, counted.Within)))
	if rest > 0 && open {
		s.Missed = take(rest)
	}
	s.Unexplained = rest
}

// note says in words what the figures do not.
func (c *comparison) note(e engine.Counters, l ledger.Usage) {
	note := func(format string, args ...any) { c.Notes = append(c.Notes, fmt.Sprintf(format, args...)) }
	if c.Exact {
		note("The engine and the ledger agree exactly.")
	}
	if e.InFlight.N > 0 {
		note("%s", inFlight(e))
	}
	if unused := l.Estimated.Input - c.Prompt.Estimated + l.Estimated.Output - c.Generated.Estimated; unused > 0 {
		note("The ledger estimates %s tokens more than the engine counted for calls whose usage was not reported: they broke off before they used them, or the estimates are high.", thousands(unused))
	}
	if l.NoUsage > 0 {
		note("Calls of whose usage nothing is known, not even an estimate: %s. A part of the difference may be theirs.", thousands(l.NoUsage))
	}
	if c.cachedByLedger && l.Reported.Cached == 0 && c.Prompt.Difference < 0 {
		note("llama.cpp counts prompt tokens without those that its cache gave, and nothing reported how many those were: the difference may be theirs.")
	}
	if e.Requests.Known && e.Requests.N > c.Calls {
		note("Requests that the engine ended: %s, calls in the ledger: %s. The %s more: probes of the gateway, requests around it, or calls that asked for several choices.",
			thousands(e.Requests.N), thousands(c.Calls), thousands(e.Requests.N-c.Calls))
	}
	for _, s := range []struct {
		kind string
		n    int64
	}{{"prompt", c.Prompt.Unexplained}, {"generated", c.Generated.Unexplained}} {
		switch {
		case s.n > 0:
			note("The engine counted %s %s tokens that the ledger does not explain: probes of the gateway, which are in no bill (GET /weir/probes counts their tokens), requests that came around it, or calls still under way. What is known to be theirs, --tolerance allows for.", thousands(s.n), s.kind)
		case s.n < 0:
			note("The ledger holds %s %s tokens more than the engine counted: the counters began after some of the calls, or more than one engine answers under this upstream.", thousands(-s.n), s.kind)
		}
	}
}

func inFlight(e engine.Counters) string {
	return fmt.Sprintf("Requests under way in the engine: %s. It has counted a part of their tokens at most, and the ledger none. Compare while none is.", thousands(e.InFlight.N))
}

// verdict is an error when more than the tolerance is unexplained.
func (c *comparison) verdict() error {
	prompt, generated := max(c.Prompt.Unexplained, -c.Prompt.Unexplained), max(c.Generated.Unexplained, -c.Generated.Unexplained)
	switch {
	case c.Restarted:
		return errors.New("the engine was restarted since the snapshot: nothing can be compared; take a new one with --save")
	case prompt > c.Tolerance || generated > c.Tolerance:
		return fmt.Errorf("%s prompt and %s generated tokens remain unexplained; the tolerance is %s", thousands(prompt), thousands(generated), thousands(c.Tolerance))
	}
	return nil
}

func (c *comparison) json(w io.Writer) error { return writeJSON(w, c) }

// table writes the comparison for people.
func (c *comparison) table(w io.Writer) error {
	out := bufio.NewWriter(w)
	from := "all of the ledger"
	if !c.Since.IsZero() {
		from = "since " + c.Since.Format(time.RFC3339)
	}
	fmt.Fprintf(out, "Engine %s, %s until %s\n\n", c.Engine, from, c.Until.Format(time.RFC3339))
	rows := [][]string{{"", "PROMPT", "GENERATED"}}
	row := func(always bool, what string, of func(side) int64) {
		if p, g := of(c.Prompt), of(c.Generated); always || p != 0 || g != 0 {
			rows = append(rows, []string{what, thousands(p), thousands(g)})
		}
	}
	row(true, "engine counted", func(s side) int64 { return s.Engine })
	cached := "and took from its cache, counted apart"
	if c.cachedByLedger {
		cached = "and took from its cache, as the ledger knows"
	}
	row(false, cached, func(s side) int64 { return s.Cached })
	row(true, "ledger, as reported", func(s side) int64 { return s.Reported })
	row(true, "difference", func(s side) int64 { return s.Difference })
	row(false, "  calls without reported usage, as estimated", func(s side) int64 { return s.Estimated })
	row(false, "  what they used beyond the estimates", func(s side) int64 { return s.Missed })
	row(false, "  calls that broke off, not counted by the engine", func(s side) int64 { return s.BrokenOff })
	row(false, "  rounding of the engine's figures", func(s side) int64 { return s.Rounding })
	row(true, "  unexplained", func(s side) int64 { return s.Unexplained })
	writeAligned(out, rows, func(i int) bool { return i == 0 })

	fmt.Fprintf(out, "\nCalls in the ledger: %s, of which %s completed.", thousands(c.Calls), thousands(c.Completed))
	if c.Requests.Known {
		fmt.Fprintf(out, " Requests that the engine ended: %s.", thousands(c.Requests.N))
	}
	fmt.Fprintln(out)
	for _, n := range c.Notes {
		fmt.Fprintf(out, "%s\n", n)
	}
	return out.Flush()
}
