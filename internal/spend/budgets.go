package spend

import (
	"sync"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/ledger"
)

// Budgets tracks what each key with a budget has spent in the current day or month
// of its budget's zone. Its methods may be called by many goroutines.
//
// Tokens are input plus output, reported or else estimated (see Used). Money is
// those tokens at the prices of the hour in which each call was received, worked
// out anew when the price list changes; for that, sums are kept by model and hour:
// 48 bytes for each hour of a period in which a key used a model, 36 KB for a model
// used in each hour of a month. A call belongs to the period in which it was
// received.
type Budgets struct {
	prices func() *Prices

	mu       sync.RWMutex // guards the map, not what it holds
	accounts map[string]*account
}

// NewBudgets returns Budgets that take the price list in force from prices, such
// as PriceFile.Prices; nil, and a function that returns nil, is no price list.
// Call Seed once afterwards, and again whenever keys have changed.
func NewBudgets(prices func() *Prices) *Budgets {
	if prices == nil {
		prices = func() *Prices { return nil }
	}
	return &Budgets{prices: prices, accounts: make(map[string]*account)}
}

// State is how a key stands with its budget. The zero value is a key without one.
type State struct {
	// Limited is whether the key has a budget at all.
	Limited bool
	// Seeded is whether what was spent before this process began is counted. As
	// long as it is not, the figures below are what this process has counted
	// itself: the least that can have been spent. A call is refused for what is
	// known to be spent and for nothing else, so that a ledger that is slow or
	// gone at the start refuses nobody.
	Seeded bool

	Tokens     int64      // spent in the period
	TokenLimit call.Count // unknown: no budget in tokens

	Money      Money // spent in the period, of what has a price
	MoneyLimit Money // zero: no budget in money
	// UnpricedTokens were used in models without a price in their hour. What they
	// cost is not known, so that with any of them Money is too low.
	UnpricedTokens int64

	// Fraction is the larger share of the limits that is spent, 1 and more when
	// a limit is reached.
	Fraction float64
	Warn     bool // the share at which a warning is due is reached
	Exceeded bool // a limit is reached: nothing more may be spent

	Starts, Resets time.Time // the period, in UTC; Resets is when the next begins
}

// Check tells how a key stands at a time. It allocates nothing for a key that it
// has seen before.
func (b *Budgets) Check(key *keys.Key, now time.Time) State {
	if key == nil || key.Budget == nil {
		return State{}
	}
	a := b.account(key)
	prices := b.prices()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turn(key.Budget, now)
	return a.state(key.Budget, prices)
}

// Add counts what a call used that was received at a time; see Used. Calls of
// keys without a budget are not counted, nor is one that was received before the
// current period.
func (b *Budgets) Add(key *keys.Key, model string, received time.Time, used ledger.Sums) {
	if key == nil || key.Budget == nil || used == (ledger.Sums{}) {
		return
	}
	a := b.account(key)
	prices := b.prices()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.budget == nil {
		a.turn(key.Budget, received)
	} else {
		a.turn(a.budget, received) // the call may have begun under a budget that has been changed
	}
	if received.Before(a.start) {
		return
	}
	a.price(prices)
	a.spent.add(a.inMoney, prices, model, received, used)
	if a.recent != nil {
		a.recent.add(a.inMoney, nil, model, received, used)
	}
}

// account returns the account of a key, and opens it at the first time.
func (b *Budgets) account(key *keys.Key) *account {
	b.mu.RLock()
	a := b.accounts[key.Alias]
	b.mu.RUnlock()
	if a != nil {
		return a
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if a = b.accounts[key.Alias]; a == nil {
		a = new(account)
		b.accounts[key.Alias] = a
	}
	return a
}

// account is what one key has spent in one period.
type account struct {
	mu sync.Mutex // guards all that follows

	// What the account was opened for. Where the key's budget is another one by
	// now, the account begins anew.
	budget  *keys.Budget // last seen; only compared
	per     keys.Period
	zone    *time.Location
	inMoney bool // the tokens are kept by model and hour

	start, end time.Time // of the period; the zero end has passed
	seeded     bool
	limit      Money // of the budget last seen
	spent      spent
	// recent is what was added since Seed began to ask the ledger; nil when it
	// does not.
	recent *spent
}

// turn makes the account that of the budget and of the period at a time. A time
// before the period, from a clock that was set back, changes nothing.
func (a *account) turn(budget *keys.Budget, now time.Time) {
	if a.budget != budget {
		inMoney := budget.Money > 0
		if a.budget == nil || a.per != budget.Per || a.inMoney != inMoney || a.zone.String() != zoneOf(budget).String() {
			a.per, a.zone, a.inMoney = budget.Per, zoneOf(budget), inMoney
			a.start, a.end = periodOf(a.per, a.zone, now)
			a.seeded, a.spent, a.recent = false, spent{}, nil
		}
		a.budget, a.limit = budget, moneyOf(budget.Money)
	}
	if !now.Before(a.end) {
		// Everything in a period that began while the account was open was added
		// to it, so that nothing of before has to be asked for.
		a.start, a.end = periodOf(a.per, a.zone, now)
		a.seeded, a.spent, a.recent = true, spent{}, nil
	}
}

func zoneOf(b *keys.Budget) *time.Location {
	if b.Zone == nil {
		return time.UTC
	}
	return b.Zone
}

// price brings the money up to date with a price list.
func (a *account) price(prices *Prices) {
	if a.inMoney && a.spent.prices != prices {
		a.spent.price(prices)
	}
}

func (a *account) state(budget *keys.Budget, prices *Prices) State {
	a.price(prices)
	s := State{Limited: true, Seeded: a.seeded, Tokens: a.spent.tokens, TokenLimit: budget.Tokens, Starts: a.start, Resets: a.end}
	if limit, set := budget.Tokens.Get(); set {
		s.share(s.Tokens >= limit, float64(s.Tokens), float64(limit))
	}
	if a.inMoney {
		s.Money, s.MoneyLimit, s.UnpricedTokens = a.spent.money, a.limit, a.spent.unpriced
		s.share(s.Money.Compare(a.limit) >= 0, s.Money.raw(), a.limit.raw())
	}
	warn := budget.Warn
	if warn <= 0 {
		warn = 0.8 // the default, where a budget does not come from a file
	}
	s.Warn = s.Fraction >= warn
	return s
}

// share takes in how much of one limit is spent.
func (s *State) share(reached bool, spent, limit float64) {
	fraction := 1.0 // of a limit of 0, which nothing fits
	if limit > 0 {
		fraction = spent / limit
	}
	s.Fraction = max(s.Fraction, fraction)
	s.Exceeded = s.Exceeded || reached
}
