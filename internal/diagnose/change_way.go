package diagnose

import (
	"time"

	"github.com/weirgate/weir/internal/call"
)

// blocked finds clients that take answers slower than they did.
func blocked(p *pair) (found []*Finding) {
	for _, m := range [...]measure{ofE2E, ofTPOT, ofTTFT} {
		d, share := p.share(m, delivery)
		if p.trends[m] != up || share < Dominant || d <= 0 {
			continue
		}
		f := p.claim(CodeSlowReader, call.Measured, m, d)
		before, after := p.means(m, delivery)
		f.pro("phases.delivery_ms", InMilliseconds, call.Figure(milliseconds(after)), "writes blocked by clients: %s → %s", span(before), span(after))
		if was, is := p.means(m, decode); m != ofTTFT && is > 0 {
			f.pro("phases.decode_ms", InMilliseconds, call.Figure(milliseconds(is)), "writing without that: %s → %s", span(was), span(is))
		}
		p.trip(f)
		p.sides(f, false)
		f.Summary = "Writes to clients were blocked for " + span(d) + " more: " + p.took(m) + f.ofChange() + "."
		f.Next = "The clients, or the way to them, take answers slower than they are written: look at their programs, machines and links. The engine is not at fault."
		return append(found, f)
	}
	return nil
}

// trip adds whether the round trip to clients is longer.
func (p *pair) trip(f *Finding) {
	c := p.figure("client_rtt_ms")
	if rose(c.before, c.after, milliseconds(TripFelt)) {
		f.against("the way may be at fault, and not the clients", c)
	} else if c.before.IsKnown() {
		f.evidence("so it is not for distance", c)
	}
}

// onTheWay finds time that is lost before the engine has the request, or in its
// front end.
func onTheWay(p *pair) []*Finding {
	m := p.first()
	if p.trends[m] != up {
		return nil
	}
	// What nobody splits may lie on the way too, if the engine does not know of
	// the calls.
	hidden := p.unsplit(m) && p.a.Residual.Or(0) > Residual && p.b.Residual.Or(0) <= Residual
	d, share := p.share(m, upload, connect, upstreamRTT, frontend)
	if !hidden {
		for _, ph := range [...]phase{upload, connect, upstreamRTT} {
			if one, share := p.share(m, ph); share >= Dominant && float64(one) >= QueueShare*float64(d) {
				return []*Finding{p.oneWay(m, ph, one)}
			}
		}
		if share >= Dominant {
			return []*Finding{p.frontOrWay(m, d)}
		}
		return nil
	}
	unsplit, _ := p.share(m, prefill, engine)
	if both, share := p.share(m, upload, connect, upstreamRTT, frontend, prefill, engine); share < Dominant || both <= 0 {
		return nil
	}
	// As much of the calls' time is unknown to the engine as of the calls.
	unknown := time.Duration(p.a.Residual.Or(0) * float64(p.a.E2E.Or(0)))
	f := p.claim(CodeBeforeEngine, call.Inferred, m, d+min(max(unsplit, 0), max(unknown-d, 0)))
	p.unknownToEngine(f)
	p.phases(f, m, upload, connect, upstreamRTT, frontend)
	f.con("phases.prefill_ms", NoUnit, call.Number{}, "the engine tells neither queue nor prefill of these calls")
	if !p.b.Residual.IsKnown() {
		f.con("residual", NoUnit, call.Number{}, "too few calls were in flight before to say of how many it did not know then")
	}
	p.sides(f, false)
	f.Summary = "Calls are held up on the way to the engine or in its front end: " + p.took(m) + "; of the calls in flight here the engine does not know of " + percent(p.a.Residual.Or(0)) + "."
	f.Next = nextBeforeEngine(p)
	return []*Finding{f}
}

// phases adds those that have grown.
func (p *pair) phases(f *Finding, m measure, list ...phase) {
	for _, ph := range list {
		if before, after := p.means(m, ph); after > before {
			f.pro("phases."+phaseNames[ph]+"_ms", InMilliseconds, call.Figure(milliseconds(after)), "%s: %s → %s", phaseNames[ph], span(before), span(after))
		}
	}
}

// unsplit tells whether what comes before the first token is not split now.
func (p *pair) unsplit(m measure) bool {
	s := &p.sums[1][m]
	return s.source(prefill) == call.Unattributed || s.source(engine) == call.Unattributed
}

// oneWay is the finding of one measured phase.
func (p *pair) oneWay(m measure, ph phase, d time.Duration) *Finding {
	code, text, next := CodeReconnects, "Reaching the upstream takes ",
		"Keep connections open (keepalive, keepalive_idle_conns_per_host in reverse_proxy's transport), and look at name resolution, TLS, the link and the upstream's backlog."
	switch ph {
	case upload:
		code, text, next = CodeUploadSlow, "Receiving the request takes ", meanings[places[CodeUploadSlow]].next(nil)
		trip := p.figure("client_rtt_ms")
		if bytes, known := p.bytesIn().Get(); known && bytes < LargeBody && !rose(trip.before, trip.after, milliseconds(TripFelt)) {
			code, next = CodeUploadStalled, meanings[places[CodeUploadStalled]].next(nil)
		}
	case upstreamRTT:
		code, text, next = CodeUpstreamRoundTrip, "The round trip to the upstream takes ", meanings[places[CodeUpstreamRoundTrip]].next(nil)
	}
	f := p.claim(code, call.Measured, m, d)
	before, after := p.means(m, ph)
	f.pro("phases."+phaseNames[ph]+"_ms", InMilliseconds, call.Figure(milliseconds(after)), "%s: %s → %s", phaseNames[ph], span(before), span(after))
	if ph == upload {
		if bytes, known := p.bytesIn().Get(); known {
			f.pro("bytes_in", InBytes, call.Figure(bytes), "request body: %s on average", size(bytes))
		} else {
			f.con("bytes_in", NoUnit, call.Number{}, "the size of the bodies is not known: they may be small, and the clients slow to send")
		}
		f.evidence("", p.figures("client_rtt_ms")...)
	} else {
		f.evidence("", p.figures("upstream_rtt_ms")...)
		p.unknownToEngine(f)
	}
	p.sides(f, false)
	f.Summary = text + span(d) + " longer: " + p.took(m) + f.ofChange() + "."
	f.Next = next
	return f
}

func (p *pair) bytesIn() call.Number {
	var n numbers
	for i := range p.list[1] {
		n.count(p.list[1][i].rec.BytesIn)
	}
	return n.mean()
}

// frontOrWay is the finding of what passes before the engine's queue.
func (p *pair) frontOrWay(m measure, d time.Duration) *Finding {
	trip := p.figure("upstream_rtt_ms")
	code := CodeBeforeEngine
	front, _ := p.share(m, frontend)
	if trip.before.IsKnown() && trip.after.IsKnown() && !rose(trip.before, trip.after, 1) && 2*front >= d {
		code = CodeFrontend
	}
	f := p.claim(code, call.Inferred, m, d)
	p.phases(f, m, upload, connect, upstreamRTT, frontend)
	p.unknownToEngine(f)
	p.sides(f, false)
	if code == CodeFrontend {
		f.evidence("so it is not the way", trip)
		f.Summary = "The engine's front end (HTTP, tokenizing) takes " + span(d) + " longer: " + p.took(m) + f.ofChange() + "."
		f.Next = "Give the engine's API server more CPU or more processes" + p.scene.with(frontendFlags) + "."
		return f
	}
	if !trip.after.IsKnown() {
		f.con("upstream_rtt_ms", NoUnit, call.Number{}, "the round trip to the upstream is not known: the way and the front end look the same")
	} else {
		f.evidence("", trip)
	}
	f.Summary = "Calls take " + span(d) + " longer to get into the engine's queue, on the way or in its front end: " + p.took(m) + f.ofChange() + "."
	f.Next = nextBeforeEngine(p)
	return f
}

func nextBeforeEngine(p *pair) string {
	return "Look at the link between gateway and engine, at what lies on it, and at the engine's API servers (CPU, number of processes" + p.scene.with(frontendFlags) + "); its GPUs are not what calls wait for."
}

// unknownToEngine adds whether the engine knows of the calls in flight here.
func (p *pair) unknownToEngine(f *Finding) {
	c := p.figure("residual")
	x, known := c.after.Get()
	switch {
	case !known:
	case x > Residual:
		f.evidence("", c)
	default:
		f.against("so hardly any call is on the way at any time", c)
	}
}

// clientTrips finds that clients are farther away than they were. No time at the
// gateway holds it.
func clientTrips(p *pair) []*Finding {
	c := p.figure("client_rtt_ms")
	if !rose(c.before, c.after, milliseconds(TripFelt)) {
		return nil
	}
	f := p.condition(CodeClientRoundTrip, call.Measured)
	f.evidence("", c)
	p.sides(f, false)
	f.Summary = "The way to the clients is longer: round trip " + spanOf(c.before.Or(0)) + " → " + spanOf(c.after.Or(0)) + "; their users wait that much more for everything."
	f.Next = "See what has changed between clients and gateway: another region, a tunnel, a full link. " + meanings[places[CodeClientRoundTrip]].next(nil)
	return []*Finding{f}
}

// tailing finds streams that are not ended when their last token has come.
func tailing(p *pair) []*Finding {
	d, share := p.share(ofE2E, tail)
	if p.trends[ofE2E] != up || share < Dominant {
		return nil
	}
	f := p.claim(CodeEngineTail, call.Measured, ofE2E, d)
	before, after := p.means(ofE2E, tail)
	f.pro("phases.tail_ms", InMilliseconds, call.Figure(milliseconds(after)), "after the last token: %s → %s", span(before), span(after))
	p.sides(f, false)
	f.Summary = "Streams end " + span(d) + " later after their last token: " + p.took(ofE2E) + f.ofChange() + "."
	f.Next = meanings[places[CodeEngineTail]].next(nil)
	return []*Finding{f}
}
