package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/weirgate/weir/internal/ledger"
	"github.com/weirgate/weir/internal/quantity"
	"github.com/weirgate/weir/internal/workload"
)

// trace is what is replayed; nil is nothing.
func (b *benchmark) trace(ctx context.Context, duration time.Duration) ([]workload.Row, error) {
	switch {
	case b.replay != "" && b.replayLedger != "":
		return nil, errors.New("--replay and --replay-ledger exclude each other")
	case b.replayLedger != "":
		return b.ledgerTrace(ctx, duration)
	case b.replay == "":
		return nil, nil
	}
	f, err := os.Open(b.replay)
	if err != nil {
		return nil, fmt.Errorf("--replay: %w", err)
	}
	defer f.Close()
	rows, err := workload.ReadTrace(f)
	if err != nil {
		return nil, fmt.Errorf("--replay %s: %w", b.replay, err)
	}
	return rows, nil
}

// ledgerTrace is what the calls in a ledger were like.
func (b *benchmark) ledgerTrace(ctx context.Context, duration time.Duration) ([]workload.Row, error) {
	from, err := b.replayFrom()
	if err != nil {
		return nil, fmt.Errorf("--since: %w", err)
	}
	r, err := ledger.OpenReader(b.replayLedger)
	if err != nil {
		return nil, fmt.Errorf("--replay-ledger: %w", err)
	}
	defer r.Close()
	filter := ledger.Filter{Since: from, Limit: ledger.MaxCalls}
	if duration > 0 {
		filter.Before = from.Add(duration)
	}
	var rows []workload.Row
	for {
		calls, err := r.Calls(ctx, filter) // the newest first
		if err != nil {
			return nil, fmt.Errorf("--replay-ledger: %w", err)
		}
		for _, c := range calls {
			rows = append(rows, workload.Row{At: c.Time.Sub(from), Input: int(c.Input.Or(0)), Output: int(c.Output.Or(0))})
		}
		if len(rows) > workload.MaxRows {
			return nil, fmt.Errorf("--replay-ledger %s has more than %d calls since %s: choose a later --since, or a shorter --duration", b.replayLedger, workload.MaxRows, from.Format(time.RFC3339))
		}
		if len(calls) < filter.Limit {
			break
		}
		filter.BeforeID = calls[len(calls)-1].ID
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("--replay-ledger %s has no calls since %s; choose another --since", b.replayLedger, from.Format(time.RFC3339))
	}
	slices.SortStableFunc(rows, func(a, b workload.Row) int { return cmp.Compare(a.At, b.At) })
	first := rows[0].At
	for i := range rows {
		rows[i].At -= first
	}
	return rows, nil
}

// replayFrom is where the replay of a ledger begins: so long ago, or an instant.
func (b *benchmark) replayFrom() (time.Time, error) {
	if age, err := quantity.ParseDuration(b.since); err == nil {
		return b.now.Add(-age), nil
	}
	t, err := time.Parse(time.RFC3339, b.since)
	if err != nil {
		return t, fmt.Errorf("%q is neither a span like 1h nor an instant like 2026-11-01T09:00:00Z", b.since)
	}
	return t, nil
}
