package otlpin

const (
	maxCalls   = 256 // tickets of one trace, remembered ones included
	maxLinks   = 64  // spans of a trace whose parents are remembered, the latest
	maxPending = 8   // spans of a trace whose call is not known yet
	maxDepth   = 16  // generations between an engine's span and the call
)

// trace is one trace with tracked calls, kept small: most have one call, and no
// span ever comes. Guarded by Joiner.mu.
type trace struct {
	id     TraceID
	joiner *Joiner
	only   Ticket // the first call, kept in place
	// tracked counts the calls that were ever tracked while the trace was known, open
	// those that are not closed yet.
	tracked, open int32
	*details      // of most traces noDetails; see detail
}

// details are what a trace knows beside its first call.
type details struct {
	tickets []*Ticket // all that are remembered, nil while there is but one
	links   []link    // a ring once there is no more room
	oldest  int       // its next place to write
	pending []pending
}

// noDetails is shared, and never written to.
var noDetails details

// detail returns details that may be written to.
func (tr *trace) detail() *details {
	if tr.details == &noDetails {
		tr.details = new(details)
	}
	return tr.details
}

// pending is a span whose call is not known yet.
type pending struct {
	*seen
	missing SpanID // the ancestor whose parent is not known
}

// link is a span and its parent.
type link struct {
	span, parent SpanID
	engine       bool // it bore figures
}

// all are the tickets that are remembered.
func (tr *trace) all(yield func(*Ticket) bool) {
	if tr.tickets == nil {
		yield(&tr.only)
		return
	}
	for _, t := range tr.tickets {
		if !yield(t) {
			return
		}
	}
}

// ticketOf finds the call with this CLIENT span.
func (tr *trace) ticketOf(span SpanID) *Ticket {
	for t := range tr.all {
		if t.span == span {
			return t
		}
	}
	return nil
}

func (tr *trace) linkOf(span SpanID) *link {
	for i := range tr.links {
		if tr.links[i].span == span {
			return &tr.links[i]
		}
	}
	return nil
}

// remember keeps who the span's parent is, and tells whether the span, with its
// figures, was already here.
func (tr *trace) remember(s *seen, j *Joiner) (duplicate bool) {
	l := link{span: s.SpanID, parent: s.ParentID, engine: s.engine()}
	if old := tr.linkOf(s.SpanID); old != nil {
		duplicate = old.engine
		old.engine = old.engine || l.engine
		return duplicate
	}
	switch {
	case len(tr.links) < maxLinks && j.links < maxAllLinks:
		d := tr.detail()
		d.links = append(d.links, l)
		j.links++
	case len(tr.links) > 0:
		tr.links[tr.oldest%len(tr.links)] = l
		tr.oldest = (tr.oldest + 1) % len(tr.links)
	}
	return false
}

// owner follows the ancestors of a span, from its parent on, to a call. Where that
// fails, missing is the ancestor whose own parent would have to be known; zero if
// none can help.
func (tr *trace) owner(parent SpanID) (owner *Ticket, missing SpanID) {
	for range maxDepth {
		if parent == (SpanID{}) {
			return nil, SpanID{}
		}
		if t := tr.ticketOf(parent); t != nil {
			return t, SpanID{}
		}
		l := tr.linkOf(parent)
		if l == nil {
			return nil, parent
		}
		parent = l.parent
	}
	return nil, SpanID{}
}

// descends tells whether ancestor is span itself or one of its known ancestors.
func (tr *trace) descends(span, ancestor SpanID) bool {
	for range maxDepth {
		if span == ancestor {
			return true
		}
		l := tr.linkOf(span)
		if l == nil {
			return false
		}
		span = l.parent
	}
	return false
}

// give hands a span to the call that it belongs to. One whose call cannot be told
// waits, as long as a call does, for spans that show its ancestors.
func (tr *trace) give(s *seen, j *Joiner) {
	switch owner, missing := tr.owner(s.ParentID); {
	case owner != nil:
		owner.add(s, ByParent)
	case tr.tracked == 1:
		tr.only.add(s, ByTrace)
	case tr.open > 0 && missing != (SpanID{}) && len(tr.pending) < maxPending && j.keep():
		d := tr.detail()
		d.pending = append(d.pending, pending{s, missing})
	case !s.stage:
		j.count.Ambiguous++
	}
}

// settle looks again at what was waiting to know the parent of span: pending spans, and calls
// whose request and its wait in the queue it may connect.
func (tr *trace) settle(span SpanID) {
	kept := tr.pending[:0]
	for _, p := range tr.pending {
		var owner *Ticket
		if p.missing == span {
			owner, p.missing = tr.owner(p.ParentID)
		}
		if owner != nil {
			tr.joiner.kept-- // add keeps it anew
			owner.add(p.seen, ByParent)
		} else {
			kept = append(kept, p)
		}
	}
	if len(kept) < len(tr.pending) {
		clear(tr.pending[len(kept):])
		tr.pending = kept
	}
	for t := range tr.all {
		if t.stages != nil {
			t.check()
		}
	}
}

// requestsPending counts the spans of whole requests whose call is not known.
func (tr *trace) requestsPending() (n int) {
	for _, s := range tr.pending {
		if !s.stage {
			n++
		}
	}
	return n
}
