package spend

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirgate/weir/internal/ledger"
)

// row is one call in a fake ledger.
type row struct {
	at                          time.Time
	key, model, class, upstream string
	reported, estimated         ledger.Sums
	refused, noUsage            bool
	source                      string
}

// fake is a ledger that adds its rows up at each question.
type fake struct {
	rows      []row
	questions []ledger.Query
	// before is called at each question, before it is answered.
	before func()
	err    error
}

func (f *fake) Usage(_ context.Context, q ledger.Query) ([]ledger.Usage, error) {
	f.questions = append(f.questions, q)
	if f.before != nil {
		f.before()
	}
	if f.err != nil {
		return nil, f.err
	}
	since, until := q.Since.Truncate(time.Hour), q.Until.Truncate(time.Hour)
	zone := q.Zone
	if zone == nil {
		zone = time.UTC
	}
	at := make(map[string]int)
	var usage []ledger.Usage
	for _, r := range f.rows {
		if !q.Since.IsZero() && r.at.Before(since) || !q.Until.IsZero() && !r.at.Before(until) ||
			len(q.Keys) > 0 && !slices.Contains(q.Keys, r.key) || len(q.Models) > 0 && !slices.Contains(q.Models, r.model) {
			continue
		}
		var u ledger.Usage
		for _, by := range q.By {
			y, m, d := r.at.In(zone).Date()
			switch by {
			case ledger.ByKey:
				u.Key = r.key
			case ledger.ByModel:
				u.Model = r.model
			case ledger.ByClass:
				u.Class = r.class
			case ledger.ByUpstream:
				u.Upstream = r.upstream
			case ledger.ByHour:
				u.From = r.at.Truncate(time.Hour).In(zone)
			case ledger.ByDay:
				u.From = time.Date(y, m, d, 0, 0, 0, 0, zone)
			case ledger.ByMonth:
				u.From = time.Date(y, m, 1, 0, 0, 0, 0, zone)
			}
		}
		id := fmt.Sprint(u.Key, "\x00", u.Model, "\x00", u.Class, "\x00", u.Upstream, "\x00", u.From.Unix())
		i, known := at[id]
		if !known {
			i = len(usage)
			at[id] = i
			u.BySource = map[string]int64{}
			usage = append(usage, u)
		}
		s := &usage[i]
		s.Calls++
		switch {
		case r.refused:
			s.Refused++
		case r.noUsage:
			s.NoUsage++
		default:
			s.Completed++
		}
		s.Reported, s.Estimated = plus(s.Reported, r.reported), plus(s.Estimated, r.estimated)
		if r.source != "" {
			s.BySource[r.source] += Tokens(r.reported) + Tokens(r.estimated)
		}
	}
	if len(q.By) == 0 && len(usage) == 0 {
		usage = append(usage, ledger.Usage{})
	}
	// The order of a ledger's answer is its own affair.
	rand.Shuffle(len(usage), func(i, j int) { usage[i], usage[j] = usage[j], usage[i] })
	return usage, nil
}

// randomRows makes calls of these models within a span of time.
func randomRows(rng *rand.Rand, n int, models []string, from time.Time, span time.Duration) []row {
	rows := make([]row, n)
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	for i := range rows {
		r := row{at: from.Add(rand64(rng, span)), key: pick("a", "b", "c"), model: pick(models...), class: pick("interactive", "batch"),
			upstream: pick("one:1", "two:2"), source: "reported"}
		s := ledger.Sums{Input: rng.Int64N(200_000), Output: rng.Int64N(20_000)}
		s.Cached, s.Reasoning = rng.Int64N(s.Input+1), rng.Int64N(s.Output+1)
		s.CacheWrite = rng.Int64N(s.Input - s.Cached + 1)
		switch rng.IntN(8) {
		case 0:
			r.estimated, r.source = ledger.Sums{Input: s.Input, Output: s.Output}, "estimated"
		case 1:
			r.refused, r.source = true, ""
		case 2:
			r.noUsage, r.source = true, ""
		case 3:
			s.Cached = s.Input * 2 // an upstream that contradicts itself
			fallthrough
		default:
			r.reported = s
		}
		rows[i] = r
	}
	return rows
}

func rand64(rng *rand.Rand, span time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(span)))
}
