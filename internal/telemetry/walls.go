package telemetry

import (
	"time"
	"unicode/utf8"

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
	switch {
	case m == nil:
	case state == nil:
		m.walls.Store(nil)
	default:
		m.walls.Store(&state)
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

func (c *collector) collectWalls(ch chan<- prometheus.Metric, s WallState) {
	send := func(row int, v float64, labels ...string) {
		kind := prometheus.GaugeValue
		if table[row].Type == Counter {
			kind = prometheus.CounterValue
		}
		for _, l := range labels {
			if !utf8.ValidString(l) {
				return // it would cost the whole scrape; the admin API shows it
			}
		}
		ch <- prometheus.MustNewConstMetric(c.families[row].desc, kind, v, labels...)
	}
	for _, l := range s.Limits {
		send(limitValue, float64(l.Limit), l.Pool, l.Scope, l.Dimension, l.Subject)
		send(limitUsed, float64(l.Used), l.Pool, l.Scope, l.Dimension, l.Subject)
	}
	for pool, on := range s.MeasureOnly {
		send(limitsMeasureOnly, flag(on), pool)
	}
	for _, q := range s.Queues {
		send(queueTokens, float64(q.Tokens), q.Pool)
		for i := range q.Classes {
			class := &q.Classes[i]
			send(queueWaiting, float64(class.Waiting), q.Pool, class.Class)
			send(queueInFlight, float64(class.InFlight), q.Pool, class.Class)
			send(queueLeft, float64(class.Left), q.Pool, class.Class)
			ch <- c.waits(q.Pool, class)
		}
	}
	for _, b := range s.Budgets {
		send(budgetUsed, b.Used, b.Key)
	}
	for file, broken := range s.FileErrors {
		send(fileError, flag(broken), file)
	}
	if l := s.Ledger; l != nil {
		send(ledgerDegraded, flag(l.Degraded))
		send(ledgerRows, float64(l.Rows))
		send(ledgerUncovered, float64(l.Uncovered))
		send(ledgerDropped, float64(l.Dropped))
		send(ledgerSpill, float64(l.SpillBytes))
		send(ledgerLag, l.Lag.Seconds())
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

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
