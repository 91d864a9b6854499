package spend

import (
	"slices"
	"time"

	"github.com/weirgate/weir/internal/ledger"
)

// maxSpentModels bounds the models that one account tells apart. Names that no
// upstream serves use no tokens and are not kept.
const maxSpentModels = 256

// spent is the tokens of one account in one period. The account's lock guards it.
type spent struct {
	tokens int64

	// The rest is kept for budgets in money only.
	models   map[string]*modelSpent
	other    int64   // tokens of models beyond maxSpentModels
	prices   *Prices // that money and unpriced were worked out with
	money    Money
	unpriced int64 // tokens without a price
}

// modelSpent is the tokens of one model by hour, hours in order.
type modelSpent struct {
	rates timeline
	hours []hourSpent
}

type hourSpent struct {
	hour int64 // since 1970, UTC
	sums ledger.Sums
}

// add counts tokens, and what they cost by prices, which must be those that s was
// worked out with.
func (s *spent) add(inMoney bool, prices *Prices, model string, at time.Time, used ledger.Sums) {
	s.tokens += Tokens(used)
	if !inMoney {
		return
	}
	m := s.models[model]
	if m == nil {
		if len(s.models) >= maxSpentModels {
			s.other += Tokens(used)
			s.unpriced += Tokens(used)
			return
		}
		if s.models == nil {
			s.models = make(map[string]*modelSpent)
		}
		m = &modelSpent{rates: prices.timeline(model)}
		s.models[model] = m
	}
	hour := at.Unix() / 3600
	i := len(m.hours)
	for i > 0 && m.hours[i-1].hour > hour { // calls end in another order than they begin, but nearly in it
		i--
	}
	if i > 0 && m.hours[i-1].hour == hour {
		m.hours[i-1].sums = plus(m.hours[i-1].sums, used)
	} else {
		m.hours = slices.Insert(m.hours, i, hourSpent{hour, used})
	}
	s.cost(m, hour, used)
}

// cost adds what tokens of one hour cost.
func (s *spent) cost(m *modelSpent, hour int64, used ledger.Sums) {
	if rates, known := m.rates.at(time.Unix(hour*3600, 0)); known {
		s.money = s.money.Plus(rates.Cost(used))
	} else {
		s.unpriced += Tokens(used)
	}
}

// price works out the costs anew with a price list.
func (s *spent) price(prices *Prices) {
	s.prices, s.money, s.unpriced = prices, Money{}, s.other
	for name, m := range s.models {
		m.rates = prices.timeline(name)
		for _, h := range m.hours {
			s.cost(m, h.hour, h.sums)
		}
	}
}

// merge adds what another holds. The costs are left to price.
func (s *spent) merge(inMoney bool, o *spent) {
	if !inMoney {
		s.tokens += o.tokens
		return
	}
	for name, m := range o.models {
		for _, h := range m.hours {
			s.add(true, s.prices, name, time.Unix(h.hour*3600, 0), h.sums)
		}
	}
	s.tokens += o.other
	s.other += o.other
}
