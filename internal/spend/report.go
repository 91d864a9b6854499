package spend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/ledger"
)

// Cost is the price of a line's tokens.
type Cost struct {
	Reported  Money `json:"reported"`  // of tokens that upstreams reported
	Estimated Money `json:"estimated"` // of tokens that stand in for what was not reported
}

// Total is both together.
func (c Cost) Total() Money { return c.Reported.Plus(c.Estimated) }

// Line is one row of a usage report with its cost.
type Line struct {
	ledger.Usage
	// Cost is nil without a price list, when nothing in the line has a price, and
	// when all that could cost something are calls of whose usage nothing is known.
	// With UnpricedTokens above 0 it is the cost of a part; with NoUsage above 0
	// the calls counted there have added nothing to it.
	Cost *Cost `json:"cost,omitempty"`
	// PricedTokens and UnpricedTokens split the line's input and output tokens,
	// reported and estimated, by whether their model had a price in their hour.
	// Both are unknown without a price list.
	PricedTokens   call.Count `json:"priced_tokens,omitzero"`
	UnpricedTokens call.Count `json:"unpriced_tokens,omitzero"`
	// UnpricedModels are the models of the unpriced tokens, sorted, maxUnpriced
	// at most.
	UnpricedModels []string `json:"unpriced_models,omitempty"`
}

// maxUnpriced bounds Line.UnpricedModels: clients invent names.
const maxUnpriced = 16

// PricedShare is the share of the line's tokens that have a price, from 0 to 1;
// false without a price list or without tokens.
func (l Line) PricedShare() (float64, bool) {
	priced, _ := l.PricedTokens.Get()
	unpriced, _ := l.UnpricedTokens.Get()
	if priced+unpriced == 0 {
		return 0, false
	}
	return float64(priced) / float64(priced+unpriced), true
}

// Tokens is input plus output.
func Tokens(s ledger.Sums) int64 { return s.Input + s.Output }

// maxSegments bounds the questions that one report asks the ledger.
const maxSegments = 1000

// Report answers a query with costs, ordered by what it was grouped by. Without
// prices (nil) the lines have no costs.
//
// Costs are computed now, with the prices of the hour in which each call was
// received. Where the price of a model that was used changes within the period,
// the ledger is asked for each stretch between the changes, and the answers are
// added up; so the cost is the same to the last digit as if each call had been
// priced by itself. Changes later than now are left out; a zero now leaves out
// none.
func Report(ctx context.Context, r ledger.Reporter, q ledger.Query, p *Prices, now time.Time) ([]Line, error) {
	if p == nil {
		rows, err := r.Usage(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("ask the ledger for usage: %w", err)
		}
		fold := newFold(q.By)
		for _, row := range rows {
			fold.add(row, nil)
		}
		return fold.lines(), nil
	}
	for range reportTries {
		lines, err := priced(ctx, r, q, p, now)
		if !errors.Is(err, errNewModel) {
			return lines, err
		}
	}
	return nil, errors.New("models keep appearing in the ledger while it is read: ask for a period that has ended, with an end")
}

// reportTries is how often a report begins anew because of errNewModel.
const reportTries = 5

// errNewModel: the first call of a model was recorded while a report was made, and
// the model's price changes where nobody looked for a change.
var errNewModel = errors.New("a new model")

// priced is one try of a report with prices.
func priced(ctx context.Context, r ledger.Reporter, q ledger.Query, p *Prices, now time.Time) ([]Line, error) {
	fold := newFold(q.By)
	lines, changes, err := priceChanges(ctx, r, q, p, now)
	if err != nil {
		return nil, err
	}
	by := slices.Clone(q.By)
	if !slices.Contains(by, ledger.ByModel) {
		by = append(by, ledger.ByModel)
	}
	for i := range len(changes) + 1 {
		part := q
		part.By = by
		if i > 0 {
			part.Since = changes[i-1]
		}
		if i < len(changes) {
			part.Until = changes[i]
		}
		rows, err := r.Usage(ctx, part)
		if err != nil {
			return nil, fmt.Errorf("ask the ledger for usage: %w", err)
		}
		for _, row := range rows {
			line, known := lines[row.Model]
			if !known { // its first call came after priceChanges looked
				line = p.timeline(row.Model)
				if len(line) > 1 || len(line) == 1 && !line[0].from.IsZero() {
					return nil, errNewModel
				}
				lines[row.Model] = line
			}
			fold.add(row, &pricing{line, part.Since})
		}
	}
	return fold.lines(), nil
}

// priceChanges returns the timelines of the models that were used in the period,
// and the hours within it at which one of them changes.
func priceChanges(ctx context.Context, r ledger.Reporter, q ledger.Query, p *Prices, now time.Time) (map[string]timeline, []time.Time, error) {
	models := q
	models.By = []ledger.Grouping{ledger.ByModel}
	rows, err := r.Usage(ctx, models)
	if err != nil {
		return nil, nil, fmt.Errorf("ask the ledger for the models used: %w", err)
	}
	since, until := q.Since.Truncate(time.Hour), q.Until.Truncate(time.Hour)
	lines := make(map[string]timeline, len(rows))
	var changes []time.Time
	for _, row := range rows {
		line := p.timeline(row.Model)
		lines[row.Model] = line
		for _, s := range line {
			if s.from.After(since) && !s.from.IsZero() && (q.Until.IsZero() || s.from.Before(until)) && (now.IsZero() || !s.from.After(now)) {
				changes = append(changes, s.from)
			}
		}
	}
	slices.SortFunc(changes, time.Time.Compare)
	changes = slices.CompactFunc(changes, time.Time.Equal)
	if len(changes) >= maxSegments {
		return nil, nil, errors.New("the prices of the models asked for change more than 1000 times in the period: ask for a shorter one or for fewer models")
	}
	return lines, changes, nil
}

// pricing is how a row of one model is priced: by the rates that hold from the
// beginning of its stretch, within which they do not change.
type pricing struct {
	timeline
	since time.Time
}

// fold adds rows up by what was asked to be grouped by.
type fold struct {
	by     []ledger.Grouping
	byRow  map[group]int // index into folded
	folded []Line
}

// group is what tells rows of a report apart.
type group struct {
	key, model, class, upstream string
	from                        int64 // Unix seconds of the hour, day or month
}

func newFold(by []ledger.Grouping) *fold {
	return &fold{by: by, byRow: make(map[group]int)}
}

// add takes a row; price is nil without a price list.
func (f *fold) add(row ledger.Usage, price *pricing) {
	model := row.Model
	if !slices.Contains(f.by, ledger.ByModel) {
		row.Model = ""
	}
	g := group{key: row.Key, model: row.Model, class: row.Class, upstream: row.Upstream}
	if !row.From.IsZero() {
		g.from = row.From.Unix()
	}
	i, known := f.byRow[g]
	if !known {
		i = len(f.folded)
		f.byRow[g] = i
		f.folded = append(f.folded, Line{Usage: ledger.Usage{Key: row.Key, Model: row.Model, Class: row.Class, Upstream: row.Upstream, From: row.From}})
	}
	one := Line{Usage: row}
	if price != nil {
		one.price(model, price)
	}
	f.folded[i].add(one)
}

// price computes the cost of a line of one model whose price does not change.
func (l *Line) price(model string, p *pricing) {
	tokens := Tokens(l.Reported) + Tokens(l.Estimated)
	l.PricedTokens, l.UnpricedTokens = call.Known(0), call.Known(0)
	rates, known := p.at(p.since)
	if !known {
		if l.UnpricedTokens = call.Known(tokens); tokens > 0 {
			l.UnpricedModels = []string{model}
		}
		return
	}
	l.PricedTokens = call.Known(tokens)
	l.Cost = &Cost{Reported: rates.Cost(l.Reported), Estimated: rates.Cost(l.Estimated)}
}

// add adds what another line counts. The names of l stay.
func (l *Line) add(o Line) {
	l.Calls += o.Calls
	l.Completed += o.Completed
	l.Refused += o.Refused
	l.NoUsage += o.NoUsage
	l.Reported = plus(l.Reported, o.Reported)
	l.Estimated = plus(l.Estimated, o.Estimated)
	if len(o.BySource) > 0 && l.BySource == nil {
		l.BySource = make(map[string]int64, len(o.BySource))
	}
	for source, tokens := range o.BySource {
		l.BySource[source] += tokens
	}
	if o.Cost != nil {
		if l.Cost == nil {
			l.Cost = new(Cost)
		}
		l.Cost.Reported = l.Cost.Reported.Plus(o.Cost.Reported)
		l.Cost.Estimated = l.Cost.Estimated.Plus(o.Cost.Estimated)
	}
	l.PricedTokens = l.PricedTokens.Plus(o.PricedTokens)
	l.UnpricedTokens = l.UnpricedTokens.Plus(o.UnpricedTokens)
	for _, model := range o.UnpricedModels {
		if at, found := slices.BinarySearch(l.UnpricedModels, model); !found && len(l.UnpricedModels) < maxUnpriced {
			l.UnpricedModels = slices.Insert(l.UnpricedModels, at, model)
		}
	}
}

func plus(a, b ledger.Sums) ledger.Sums {
	return ledger.Sums{Input: a.Input + b.Input, Cached: a.Cached + b.Cached, CacheWrite: a.CacheWrite + b.CacheWrite,
		Output: a.Output + b.Output, Reasoning: a.Reasoning + b.Reasoning}
}

// Total adds lines up: all their counts and costs, without names.
func Total(lines []Line) Line {
	var total Line
	for _, l := range lines {
		total.add(l)
	}
	total.complete()
	return total
}

// complete ends the making of a line.
func (l *Line) complete() {
	if l.NoUsage > 0 && l.Reported == (ledger.Sums{}) && l.Estimated == (ledger.Sums{}) {
		l.Cost = nil // not 0: nothing is known that could be priced
	}
}

// lines returns what was folded, ordered by the groupings as they were asked for.
// Without groupings there is always one line.
func (f *fold) lines() []Line {
	if len(f.by) == 0 && len(f.folded) == 0 {
		return make([]Line, 1)
	}
	for i := range f.folded {
		f.folded[i].complete()
	}
	slices.SortStableFunc(f.folded, func(a, b Line) int {
		for _, by := range f.by {
			if c := compare(by, &a.Usage, &b.Usage); c != 0 {
				return c
			}
		}
		return 0
	})
	return f.folded
}

func compare(by ledger.Grouping, a, b *ledger.Usage) int {
	switch by {
	case ledger.ByKey:
		return strings.Compare(a.Key, b.Key)
	case ledger.ByModel:
		return strings.Compare(a.Model, b.Model)
	case ledger.ByClass:
		return strings.Compare(a.Class, b.Class)
	case ledger.ByUpstream:
		return strings.Compare(a.Upstream, b.Upstream)
	}
	return cmp.Compare(a.From.Unix(), b.From.Unix())
}
