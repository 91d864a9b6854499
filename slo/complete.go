package slo

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// What Complete fills in.
const (
	// DefaultRolling is the length of the default period.
	DefaultRolling = 30 * 24 * time.Hour
	// DefaultWarn and DefaultFreeze are shares of the budget.
	DefaultWarn   = 0.5
	DefaultFreeze = 0.8
	// DefaultMinBad is how many bad calls the short window of a burn rule needs. With fewer,
	// chance alone would wake somebody: where as many calls are bad as the budget allows,
	// the Poisson chance of this many in a short window that is just large enough to fire
	// 14.4 is 3 in 100,000 for five, 2 in 10,000 for four, and 9 in 1,000 for two, even if
	// the long window held nothing else. With more, a service of one call a minute that
	// fails whole would not be seen in five minutes.
	DefaultMinBad = 5
	// DefaultMinCalls is the least number of calls that a period needs before a budget can
	// freeze, for whatever target: with fewer even p95 says nothing at 95 % confidence.
	// Config.CallsToFreeze has what each target needs.
	DefaultMinCalls = 59
)

// confidence is that of all intervals and counts here.
const confidence = 0.95

// Complete returns a copy in which everything that was left out is filled in, and what is
// worth telling about it. An error says what cannot be; the copy is then empty.
//
// Names are made of the number and, for times, the percentile ("ttft_p99"); where one is
// taken, it gets "_2", "_3" and so on behind it. The zero Period becomes 30 days, rolling;
// for calendar months in UTC set Zone to time.UTC. Burn becomes DefaultBurn if it is nil,
// and stays empty if it is empty but not nil. Warn, Freeze, MinBad and MinCalls of 0 become
// the defaults. A Fallback of TTFT, which is the zero value and stands in for nothing,
// becomes the number itself.
//
// To complete twice changes nothing.
func (c Config) Complete() (Config, []Warning, error) {
	c.Classes = slices.Clone(c.Classes)
	for i := range c.Classes {
		c.Classes[i] = c.Classes[i].clone()
		completeObjectives(c.Classes[i].Objectives)
	}
	if c.Period == (Period{}) {
		c.Period.Rolling = DefaultRolling
	}
	if c.Burn == nil {
		c.Burn = DefaultBurn()
	} else {
		c.Burn = append([]BurnRule{}, c.Burn...) // empty stays empty, and not nil
	}
	orDefault(&c.Warn, DefaultWarn)
	orDefault(&c.Freeze, DefaultFreeze)
	orDefault(&c.MinBad, DefaultMinBad)
	orDefault(&c.MinCalls, DefaultMinCalls)
	if err := c.Validate(); err != nil {
		return Config{}, nil, err
	}
	var all []Warning
	for _, class := range c.Classes {
		all = append(all, class.contradictions()...)
		all = append(all, scaledFactors(class, c.Burn)...)
	}
	return c, append(all, lateRules(c.Burn, c.Period)...), nil
}

func orDefault[T comparable](value *T, def T) {
	var zero T
	if *value == zero {
		*value = def
	}
}

// completeObjectives fills in names and fallbacks.
func completeObjectives(all []Objective) {
	taken := make(map[string]bool, len(all))
	for _, o := range all {
		taken[o.Name] = true
	}
	for i := range all {
		o := &all[i]
		if o.Fallback == TTFT {
			o.Fallback = o.Number
		}
		if o.Name != "" {
			continue
		}
		base := o.Number.String()
		if o.Number.Timed() {
			base += "_" + o.Target.String()
		}
		o.Name = base
		for n := 2; taken[o.Name]; n++ {
			o.Name = base + "_" + strconv.Itoa(n)
		}
		taken[o.Name] = true
	}
}

// CallsToFreeze returns how many calls the period needs before the budget of an objective
// with this target can freeze: MinCalls, and no fewer than would show the target kept at 95
// % confidence if none were bad (59 for p95, 299 for p99, 2995 for p99.9). At p99.9 one bad
// call is all the budget of 1000 calls; of 2995 it is a third.
func (c Config) CallsToFreeze(target Target) int64 {
	return max(c.MinCalls, CallsNeeded(target, confidence))
}

// WarningKind says what a Warning is about.
type WarningKind string

// The kinds of warnings.
const (
	// WarnContradiction: two objectives cannot both mean what they say.
	WarnContradiction WarningKind = "contradiction"
	// WarnLongAnswers: answers beyond some length miss E2E though they keep all the rest.
	WarnLongAnswers WarningKind = "long_answers"
	// WarnScaled: a default burn rule has a lower factor for the objective, since it could
	// never fire.
	WarnScaled WarningKind = "factor_scaled"
	// WarnLate: a burn rule fires when the budget is gone already.
	WarnLate WarningKind = "late_rule"
)

// Warning is something in a configuration that works, and may not be what was meant.
type Warning struct {
	Kind WarningKind `json:"kind"`
	// Class and Objective name what it is about; both are empty for WarnLate.
	Class     string `json:"class,omitempty"`
	Objective string `json:"objective,omitempty"`
	// Reason is a sentence without a full stop.
	Reason string `json:"reason"`
}

// String returns the reason after what it is about.
func (w Warning) String() string {
	if w.Class == "" {
		return w.Reason
	}
	return fmt.Sprintf("class %s: objective %s: %s", w.Class, w.Objective, w.Reason)
}

// scaledFactors tells which rules have another factor for which objectives.
func scaledFactors(class Class, burn []BurnRule) (all []Warning) {
	for _, o := range class.Objectives {
		for _, r := range burn {
			if factor := FactorFor(r, o.Target); factor != r.Factor {
				all = append(all, Warning{WarnScaled, class.Name, o.Name, fmt.Sprintf(
					"the burn rule %s needs more than it can burn in practice: %s burns at most %s, when all calls are bad; here the rule fires at %s",
					r, o.targetText(), shortFloat(o.Target.MaxBurn()), shortFloat(factor))})
			}
		}
	}
	return all
}

// lateRules tells which rules are of no use for so short a period.
func lateRules(burn []BurnRule, period Period) (all []Warning) {
	length := period.shortest()
	for _, r := range burn {
		if spent := BudgetSpentAtAlert(r, length); spent >= 1 {
			all = append(all, Warning{Kind: WarnLate, Reason: fmt.Sprintf(
				"the burn rule %s fires when %s%% of the budget of %s is spent; take a longer period, or rules with shorter windows",
				r, shortFloat(100*spent), period.Name())})
		}
	}
	return all
}

// targetText writes the target as the objective's text does.
func (o Objective) targetText() string {
	if o.Number.Timed() {
		return o.Target.String()
	}
	return o.Target.Percent()
}
