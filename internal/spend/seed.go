package spend

import (
	"context"
	"fmt"
	"time"

	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/ledger"
)

const (
	// seedTries is how often the ledger is asked anew about an account to which
	// something was added in the meantime.
	seedTries = 3
	// seedKeys is how many keys one question is about: in a month each may have
	// a row for each hour and model.
	seedKeys = 64
)

// flusher is a ledger that can write what it was given before it is asked.
type flusher interface {
	Flush(context.Context) error
}

// Seed takes what the keys have spent in their current periods before this
// process counted it from the ledger, and forgets keys that are not among those
// given or have no budget any more. It takes its time: call it in the background,
// at the start and, since it asks nothing for accounts that are seeded, with each
// look for changed keys. After an error it may be called again; until then
// State.Seeded stays false.
//
// A call must have been given to the ledger before it is given to Add. What was
// added before the ledger is asked is then in its answer (if the ledger has a
// method Flush, it is called to make sure), and what is added later comes on top.
// Whether a call that ends while the ledger answers is in the answer cannot be
// told; so the question is put again, and only a key that is busy in all of three
// rounds may have the last round's calls counted twice, until its period ends.
func (b *Budgets) Seed(ctx context.Context, r ledger.Reporter, all []*keys.Key, now time.Time) error {
	b.prune(all)
	for try := range seedTries {
		pending := b.pending(all, now)
		if len(pending) == 0 {
			return nil
		}
		err := seed(ctx, r, pending, try == seedTries-1)
		for _, p := range pending {
			p.settle(nil, p.ask, false) // of no effect where it was settled
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// prune forgets the accounts of keys that have no budget any more.
func (b *Budgets) prune(all []*keys.Key) {
	keep := make(map[string]bool, len(all))
	for _, key := range all {
		if key.Budget != nil {
			keep[key.Alias] = true
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for alias := range b.accounts {
		if !keep[alias] {
			delete(b.accounts, alias)
		}
	}
}

// asked is an account that the ledger is asked about.
type asked struct {
	*account
	alias string
	ask   *spent // the account's recent, which tells this question from a later one
	start time.Time
	money bool
}

// pending returns the accounts that are not seeded, and begins to collect what is
// added to them.
func (b *Budgets) pending(all []*keys.Key, now time.Time) []asked {
	var pending []asked
	for _, key := range all {
		if key.Budget == nil {
			continue
		}
		a := b.account(key)
		a.mu.Lock()
		if a.turn(key.Budget, now); !a.seeded {
			a.recent = new(spent)
			pending = append(pending, asked{a, key.Alias, a.recent, a.start, a.inMoney})
		}
		a.mu.Unlock()
	}
	return pending
}

// seed asks about accounts and settles those to which nothing was added; last
// settles all.
func seed(ctx context.Context, r ledger.Reporter, pending []asked, last bool) error {
	if f, ok := r.(flusher); ok {
		if err := f.Flush(ctx); err != nil {
			return fmt.Errorf("have the ledger written before budgets are seeded: %w", err)
		}
	}
	type question struct {
		start time.Time
		money bool
	}
	groups := make(map[question][]asked)
	for _, p := range pending {
		q := question{p.start, p.money}
		groups[q] = append(groups[q], p)
	}
	for q, group := range groups {
		for len(group) > 0 {
			some := group[:min(len(group), seedKeys)]
			group = group[len(some):]
			rows, err := r.Usage(ctx, seedQuery(some, q.start, q.money))
			if err != nil {
				return fmt.Errorf("seed budgets from the ledger: %w", err)
			}
			byKey := make(map[string]*spent, len(some))
			for _, row := range rows {
				s := byKey[row.Key]
				if s == nil {
					s = new(spent)
					byKey[row.Key] = s
				}
				if used := plus(row.Reported, row.Estimated); used != (ledger.Sums{}) {
					s.add(q.money, nil, row.Model, row.From, used)
				}
			}
			for _, p := range some {
				before := byKey[p.alias]
				if before == nil {
					before = new(spent)
				}
				p.settle(before, p.ask, last)
			}
		}
	}
	return nil
}

func seedQuery(some []asked, start time.Time, money bool) ledger.Query {
	q := ledger.Query{By: []ledger.Grouping{ledger.ByKey}, Since: start}
	if money {
		q.By = append(q.By, ledger.ByModel, ledger.ByHour)
	}
	for _, p := range some {
		q.Keys = append(q.Keys, p.alias)
	}
	return q
}

// settle ends a question: before is the ledger's answer, nil for none. It is taken
// if nothing was added in the meantime, or if it must be.
func (a *account) settle(before, ask *spent, must bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.recent != ask || ask == nil {
		return // settled, or of a period or a budget that has ended
	}
	a.recent = nil
	if before == nil || ask.tokens != 0 && !must {
		return
	}
	a.seeded = true
	before.merge(a.inMoney, ask)
	if a.spent.tokens > before.tokens {
		return // the ledger lacks calls that were seen here: the larger of two lower bounds is nearer
	}
	a.spent = *before // its costs follow when they are asked for: it has no price list yet
}
