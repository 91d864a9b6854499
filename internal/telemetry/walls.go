package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirgate/weir/internal/call"
)

// WallState is how limits, queues, budgets and the ledger stand at one moment.
// The zero value has none of them.
type WallState struct {
	Limits      []LimitState // the most used, at most SubjectCap for each pool
	MeasureOnly map[string]bool
	Queues      []QueueState
	Budgets     []BudgetState // at most SubjectCap
	Ledger      *LedgerState  // nil without a ledger
	// FileErrors tells by file (keys, prices) whether it cannot be used.
	FileErrors map[string]bool
}

// LimitState is one limit and what is used of it.
type LimitState struct {
	Pool, Scope, Dimension, Subject string
	Limit, Used                     int64
}

// QueueState is one pool's queue.
type QueueState struct {
	Pool    string
	Tokens  int64
	Classes []QueueClass
}

// QueueClass is one class of a queue.
type QueueClass struct {
	Class             string
	Waiting, InFlight int64
	Left              int64
	// Waits counts the calls admitted by how long they waited: one figure for
	// each of WaitEdges, inclusive and not cumulative, and the last for what is
	// above them all. WaitSum is the sum of all waits.
	Waits   []uint64
	WaitSum time.Duration
}

// BudgetState is one key's budget.
type BudgetState struct {
	Key  string
	Used float64
}

// LedgerState is how the ledger stands.
type LedgerState struct {
	Degraded                 bool
	Rows, Uncovered, Dropped uint64
	SpillBytes               int64
	Lag                      time.Duration
}

// Walls sets where figures of limits, queues, budgets and the ledger come from,
// as Live does for calls.
func (m *Metrics) Walls(state func() WallState) {
	if m != nil {
		m.walls.set(state)
	}
}

// countAdmission counts what keys, limits and queue made of a call.
func (m *Metrics) countAdmission(rec *call.Record) {
	if rec.RefusedBy != "" {
		m.refusals.add(rec.RefusedBy, 1)
	}
	if rec.WouldRefuse != "" {
		m.wouldRefuse.add(rec.WouldRefuse, 1)
	}
	if rec.Status == 429 && rec.Outcome != call.Refused {
		m.limited.add(1)
	}
	if rec.ClientRetries > 0 {
		m.retries.add(1)
	}
	if rec.UsageSource == call.UsageNone && rec.Outcome != call.Refused {
		m.estimated.add(kinds[kindInput], rec.EstimatedInput.Or(0))
		m.estimated.add(kinds[kindOutput], rec.EstimatedOutput.Or(0))
	}
}

func (s sending) walls(w WallState) {
	for _, l := range w.Limits {
		s.figure(limitValue, float64(l.Limit), l.Pool, l.Scope, l.Dimension, l.Subject)
		s.figure(limitUsed, float64(l.Used), l.Pool, l.Scope, l.Dimension, l.Subject)
	}
	for pool, on := range w.MeasureOnly {
		s.figure(limitsMeasureOnly, flag(on), pool)
	}
	for _, q := range w.Queues {
		s.figure(queueTokens, float64(q.Tokens), q.Pool)
		for i := range q.Classes {
			class := &q.Classes[i]
			s.figure(queueWaiting, float64(class.Waiting), q.Pool, class.Class)
			s.figure(queueInFlight, float64(class.InFlight), q.Pool, class.Class)
			s.figure(queueLeft, float64(class.Left), q.Pool, class.Class)
			s.ch <- s.waits(q.Pool, class)
		}
	}
	for _, b := range w.Budgets {
		s.figure(budgetUsed, b.Used, b.Key)
	}
	for file, broken := range w.FileErrors {
		s.figure(fileError, flag(broken), file)
	}
	if l := w.Ledger; l != nil {
		s.figure(ledgerDegraded, flag(l.Degraded))
		s.figure(ledgerRows, float64(l.Rows))
		s.figure(ledgerUncovered, float64(l.Uncovered))
		s.figure(ledgerDropped, float64(l.Dropped))
		s.figure(ledgerSpill, float64(l.SpillBytes))
		s.figure(ledgerLag, l.Lag.Seconds())
	}
}

// waits is a class's histogram of waits.
func (c *collector) waits(pool string, class *QueueClass) prometheus.Metric {
	buckets := make(map[float64]uint64, len(WaitEdges))
	var n uint64
	for i, count := range class.Waits {
		n += count
		if i < len(WaitEdges) {
			buckets[WaitEdges[i].Seconds()] = n
		}
	}
	return prometheus.MustNewConstHistogram(c.families[queueWait].desc, n, class.WaitSum.Seconds(), buckets, pool, class.Class)
}
