package diagnose

import (
	"math"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// Row is one line of a table of load against times, as load tests and monitoring
// print them. What the table does not have is unknown.
type Row struct {
	Concurrency call.Number   `json:"concurrency,omitzero"` // calls at once
	TTFT        call.Duration `json:"ttft_ms,omitzero"`
	TPOT        call.Duration `json:"tpot_ms,omitzero"`
	Utilization call.Number   `json:"gpu_utilization,omitzero"` // 0–1
	// Throughput is output tokens, or calls, a second: the same in all rows.
	Throughput call.Number `json:"throughput,omitzero"`
	KVUse      call.Number `json:"kv_use,omitzero"` // 0–1
	Waiting    call.Number `json:"waiting,omitzero"`
}

// CompareRows reads a table by the same rules as Compare: the first row is the
// healthy one, or that of the least load, and the last what is to be explained.
// Rows have no calls, so that nothing is tested for chance and no mix is taken
// out: all rows are taken to be of the same calls.
//
// Where a table has no queue it is inferred: a prompt shares the steps of those
// that are written, so that without a queue the first token comes later by no
// more, as a ratio, than the tokens after it do. What goes beyond was spent
// waiting, which is 1 − (ratio of TPOT) / (ratio of TTFT) of TTFT.
func CompareRows(rows []Row) Comparison {
	c := Comparison{Findings: []Finding{}}
	if len(rows) < 2 {
		c.Verdict, c.Reasons = TooFewCalls, []string{"A table needs two rows to be compared."}
		return c
	}
	first, last := &rows[0], &rows[len(rows)-1]
	p := pair{b: first.figures(), a: last.figures(), rows: true, sig: [2]*Signals{{}, {}}}
	p.pairRows(ofTTFT, first.TTFT, last.TTFT)
	p.pairRows(ofTPOT, first.TPOT, last.TPOT)
	p.change[ofE2E] = &Change{}
	if t, known := p.ratios[ofTTFT].Get(); known {
		if o, too := p.ratios[ofTPOT].Get(); too && t > 0 {
			share := math.Max(1-math.Max(o, 1)/t, 0)
			p.a.Queue, p.a.QueueShare, p.a.QueueSource = call.Lasting(time.Duration(share*float64(last.TTFT.Or(0)))), call.Figure(share), call.Inferred
		}
	}
	c.Before, c.After = *p.b, *p.a
	c.TTFT, c.TPOT = *p.change[ofTTFT], *p.change[ofTPOT]
	p.judge(&c)
	return c
}

func (r *Row) figures() *Figures {
	return &Figures{TTFT: r.TTFT, TPOT: r.TPOT, InFlight: r.Concurrency, Utilization: r.Utilization, Throughput: r.Throughput, KVUse: r.KVUse, Waiting: r.Waiting}
}

// pairRows compares one column. A figure is up from Rise on.
func (p *pair) pairRows(m measure, before, after call.Duration) {
	p.change[m] = &Change{Before: Amount{Mean: before}, After: Amount{Mean: after}, Change: after.Minus(before)}
	p.ratios[m] = by(inMS(before), inMS(after))
	ratio, known := p.ratios[m].Get()
	switch {
	case !known:
	case ratio >= Rise:
		p.trends[m] = up
	case ratio*Rise <= 1:
		p.trends[m] = down
	default:
		p.trends[m] = flat
	}
}
