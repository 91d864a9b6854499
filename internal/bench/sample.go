package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/workload"
)

// send sends one call and hands its result on. It returns events, whose memory
// the next call may use.
func (p *phase) send(ctx context.Context, one prepared, held bool, events []endpoint.Event) []endpoint.Event {
	index := p.from + one.item.Index
	id := fmt.Sprintf("%s-%d", p.name, index)
	with := p.inFlight.Add(1)
	at := p.cfg.now()
	reply := p.cfg.Caller.Call(ctx, p.cfg.Ask.API, one.body, id, events)
	p.inFlight.Add(-1)
	if reply.Start.IsZero() {
		reply.Start = at
	}
	if reply.Failed == endpoint.FailedCancelled && ctx.Err() != nil {
		return reply.Events // it says nothing of the endpoint
	}
	p.results <- p.result(&reply, one.item, index, id, int(with), held)
	return reply.Events
}

// result turns a reply into a sample and what figures need of it.
func (p *phase) result(r *endpoint.Reply, item workload.Item, index int, id string, inFlight int, held bool) result {
	v := p.cfg.Profile.Read(r)
	sent := r.Start.Sub(p.begin)
	s := Sample{
		Run: p.cfg.Run, Load: p.load.Label, Repeat: p.repeat, Index: index, ID: id,
		Start: r.Start, At: call.Lasting(sent), InFlight: inFlight,
		Outcome: r.Record.Outcome, Failed: r.Failed, Status: r.Status,
		InputAsked: item.Input, OutputAsked: item.Output,
		Input: r.Record.Input, Cached: r.Record.Cached, Output: r.Record.Output, Reasoning: r.Record.Reasoning, UsageSource: r.Record.UsageSource,
		TTFT: v.TTFT, TPOT: v.TPOT, ITL: v.ITL, E2E: v.E2E, Gaps: v.Gaps, GapsOf: v.GapsOf,
		Tail: tail(&r.Record), Connected: r.Connected,
	}
	q := point{index: int32(index), held: held, failed: r.Failed, sent: sent, end: sent + r.End,
		ttft: spanOf(v.TTFT), tpot: spanOf(v.TPOT), itl: spanOf(v.ITL), e2e: spanOf(v.E2E),
		whole: spanOf(r.Record.E2E), tail: spanOf(s.Tail), input: tokensOf(s.Input), output: tokensOf(s.Output)}
	if !p.closed() {
		q.timed, q.due, q.late = true, item.Due, max(sent-item.Due, 0)
		s.Late = call.Lasting(q.late)
	}
	q.discarded = p.discards(item, q.sent)
	s.Warmup = p.warmup || q.discarded
	if p.cfg.Profile != Weir && p.cfg.Profile != "" {
		s.ours = &Values{TTFT: r.Record.TTFT, TPOT: r.Record.TPOT, E2E: r.Record.E2E}
	}
	return result{sample: s, point: q, words: item.Words, reason: r.Err}
}

// discards tells whether a call is one of the first that are left out.
func (p *phase) discards(item workload.Item, sent time.Duration) bool {
	if p.load.Discard == 0 || p.warmup {
		return false
	}
	if p.load.Calls > 0 {
		return float64(item.Index) < p.load.Discard*float64(p.load.Calls)
	}
	if !p.load.closed() {
		sent = item.Due
	}
	return float64(sent) < p.load.Discard*float64(p.load.Duration)
}

// tail is what E2E ≈ TTFT + (n − 1)·TPOT leaves over, by our definitions.
func tail(r *call.Record) call.Duration {
	ttft, ok1 := r.TTFT.Get()
	tpot, ok2 := r.TPOT.Get()
	e2e, ok3 := r.E2E.Get()
	n, ok4 := r.Output.Get()
	if !ok1 || !ok2 || !ok3 || !ok4 || n < 2 {
		return call.Duration{}
	}
	return call.Lasting(e2e - ttft - time.Duration(n-1)*tpot)
}
