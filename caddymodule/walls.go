package caddymodule

import (
	"time"

	"github.com/weirgate/weir/internal/queue"
	"github.com/weirgate/weir/internal/telemetry"
)

// walls asks the rooms for what their figures show.
func (s *shared) walls() telemetry.WallState {
	r := s.rooms
	state := telemetry.WallState{MeasureOnly: make(map[string]bool), FileErrors: make(map[string]bool)}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.holds
	if now == nil {
		return telemetry.WallState{}
	}
	for name, p := range r.inForce {
		limits := p.limits.Snapshot(telemetry.SubjectCap)
		state.MeasureOnly[name] = limits.MeasureOnly
		for _, u := range limits.Uses {
			state.Limits = append(state.Limits, telemetry.LimitState{
				Pool: name, Scope: u.Scope.String(), Dimension: u.Dimension.String(), Subject: u.Subject, Limit: u.Limit, Used: u.Used,
			})
		}
		if now.wanted[name].queues() {
			state.Queues = append(state.Queues, queueState(name, p.queue.State()))
		}
	}
	if now.keys != nil {
		state.FileErrors["keys"] = now.keys.State().Error != ""
		at := time.Now()
		for _, k := range now.keys.All() {
			if b := r.budgets.Check(k, at); b.Limited && len(state.Budgets) < telemetry.SubjectCap {
				state.Budgets = append(state.Budgets, telemetry.BudgetState{Key: k.Alias, Used: b.Fraction})
			}
		}
	}
	if now.prices != nil {
		state.FileErrors["prices"] = now.prices.Err() != nil
	}
	if l := now.ledger.Load(); l != nil {
		at := l.State()
		state.Ledger = &telemetry.LedgerState{
			Degraded: at.Degraded, Rows: uint64(at.Rows), Uncovered: at.Uncovered, Dropped: at.Dropped, SpillBytes: at.SpillBytes, Lag: at.Lag,
		}
	}
	return state
}

func queueState(name string, q queue.State) telemetry.QueueState {
	s := telemetry.QueueState{Pool: name, Tokens: q.Tokens}
	for i := range q.Classes {
		c := &q.Classes[i]
		waits := make([]uint64, len(c.Waits.Buckets))
		for j, n := range c.Waits.Buckets {
			waits[j] = uint64(n)
		}
		s.Classes = append(s.Classes, telemetry.QueueClass{
			Class: c.Name, Waiting: int64(c.Waiting), InFlight: int64(c.InFlight), Left: c.Left, Waits: waits, WaitSum: c.Waits.Sum,
		})
	}
	return s
}
