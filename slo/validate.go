package slo

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Bounds of a configuration. All that a Tracker keeps is per class and objective, so these
// bound its memory.
const (
	MaxClasses    = 50
	MaxObjectives = 16 // of a class
	MaxTerms      = 8  // of an envelope
	MaxBurnRules  = 8
	// MaxName is the longest name of a class or an objective, in bytes.
	MaxName = 64
	// MaxThreshold is the longest threshold: no call takes longer.
	MaxThreshold = 24 * time.Hour
	// MaxWindow is the longest window of a burn rule: so long whole minutes are kept.
	MaxWindow = 3 * 24 * time.Hour
	// MaxTokens is the largest number of tokens in conditions and envelopes.
	MaxTokens = 1_000_000_000
	// MaxCallsPerMinute is the highest rate of an envelope.
	MaxCallsPerMinute = 1_000_000_000
	// maxCount bounds MinBad and MinCalls.
	maxCount = 1_000_000_000_000
)

// Validate returns nil for a configuration that a Tracker can judge by, and else what is
// wrong with it first and what to do. It wants everything filled in, as Complete does.
func (c Config) Validate() error {
	if n := len(c.Classes); n > MaxClasses {
		return fmt.Errorf("%d classes are too many; have at most %d", n, MaxClasses)
	}
	seen := make(map[string]bool, len(c.Classes))
	for i, class := range c.Classes {
		switch {
		case !isName(class.Name):
			return fmt.Errorf("class %d: %w", i+1, badName(class.Name))
		case seen[class.Name]:
			return fmt.Errorf("class %s is there twice; give one another name, or put all objectives into one", class.Name)
		}
		seen[class.Name] = true
		if err := class.validate(); err != nil {
			return fmt.Errorf("class %s: %w", class.Name, err)
		}
	}
	if err := c.Period.validate(); err != nil {
		return fmt.Errorf("period: %w", err)
	}
	if err := c.validateBurn(); err != nil {
		return err
	}
	switch {
	case !(c.Warn > 0 && c.Warn <= 1):
		return fmt.Errorf("warn at %v of the budget: it is a share above 0 and up to 1, such as %v", c.Warn, DefaultWarn)
	case !(c.Freeze > 0 && c.Freeze <= 1):
		return fmt.Errorf("freeze at %v of the budget: it is a share above 0 and up to 1, such as %v", c.Freeze, DefaultFreeze)
	case c.Warn > c.Freeze:
		return fmt.Errorf("warn at %v comes after freeze at %v of the budget; lower the first or raise the second", c.Warn, c.Freeze)
	case c.MinBad < 1 || c.MinBad > maxCount:
		return fmt.Errorf("%d bad calls at least for a burn rule: use 1 or more; %d is the default", c.MinBad, DefaultMinBad)
	case c.MinCalls < 1 || c.MinCalls > maxCount:
		return fmt.Errorf("%d calls at least for a freeze: use 1 or more; %d is the default", c.MinCalls, DefaultMinCalls)
	}
	return nil
}

// validate checks all of a class but its name.
func (c Class) validate() error {
	switch n := len(c.Objectives); {
	case n == 0:
		return errors.New("it has no objectives; add one, such as ttft p99 <= 2s, or leave the class out")
	case n > MaxObjectives:
		return fmt.Errorf("%d objectives are too many; have at most %d", n, MaxObjectives)
	}
	others := 0
	for i, o := range c.Objectives {
		if !isName(o.Name) {
			return fmt.Errorf("objective %q: %w", o.Text(), badName(o.Name))
		}
		if err := o.validate(); err != nil {
			return fmt.Errorf("objective %s: %w", o.Name, err)
		}
		for _, p := range c.Objectives[:i] {
			switch {
			case p.Name == o.Name:
				return fmt.Errorf("two objectives have the name %s; rename one", o.Name)
			case p.aboutTheSame(o) && p.Target == o.Target && p.Threshold == o.Threshold:
				return fmt.Errorf("the objective %q is there twice; remove one", o.Text())
			}
		}
		if o.Number != Goodput {
			others++
		}
	}
	if others == 0 {
		return errors.New("goodput asks whether all other objectives hold, and there is none; add one, such as ttft p99 <= 2s")
	}
	if err := c.Valid.validate(); err != nil {
		return fmt.Errorf("envelope: %w", err)
	}
	return nil
}

// validate checks all of an objective but its name.
func (o Objective) validate() error {
	switch {
	case int(o.Number) >= Numbers:
		return fmt.Errorf("there is no number %d", uint8(o.Number))
	case !o.Target.valid():
		return fmt.Errorf("a target of %d millionths is none: use 1 to 999999, such as 990000 for p99", int32(o.Target))
	case !o.Number.Timed() && o.Threshold != 0:
		return fmt.Errorf("%s is no time and has no threshold; leave out %s", o.Number, o.Threshold)
	case o.Number.Timed() && o.Threshold <= 0:
		return fmt.Errorf("a threshold of %s can never hold; use a time above 0, such as 2s", o.Threshold)
	case o.Threshold > MaxThreshold:
		return fmt.Errorf("a threshold of %s is longer than any call; use at most 24h", spanText(o.Threshold))
	}
	if err := o.validateFallback(); err != nil {
		return err
	}
	for i, c := range o.When {
		if !slices.Contains(quantities, c.Quantity) {
			return fmt.Errorf("when: %w", unknownQuantity(string(c.Quantity)))
		}
		if err := validateTokens(c.AtMost); err != nil {
			return fmt.Errorf("when: %s: %w", c.Quantity, err)
		}
		if slices.ContainsFunc(o.When[:i], func(d Condition) bool { return d.Quantity == c.Quantity }) {
			return fmt.Errorf("when: %s is there twice; leave the lower limit", c.Quantity)
		}
	}
	return nil
}

func (o Objective) validateFallback() error {
	switch f := o.Fallback; {
	case f == o.Number:
		return nil
	case !o.Number.Timed():
		return fmt.Errorf("%s is always known; its fallback is itself", o.Number)
	case f == TTFT:
		return fmt.Errorf("ttft cannot stand in for %s: it is known wherever ttft_upstream is, and has the gateway's own queue in it; use ttft_upstream or none", o.Number)
	case !f.contains(o.Number):
		return fmt.Errorf("%s cannot stand in for %s: a call could be good by it and bad in truth; use a number that contains it, such as ttft_upstream for prefill, or none", f, o.Number)
	}
	return nil
}

func validateTokens(n int64) error {
	if n < 1 || n > MaxTokens {
		return fmt.Errorf("%d tokens: use 1 to %d", n, MaxTokens)
	}
	return nil
}

func (e Envelope) validate() error {
	if n := len(e.Terms); n > MaxTerms {
		return fmt.Errorf("%d percentiles are too many; have at most %d", n, MaxTerms)
	}
	for i, t := range e.Terms {
		if !slices.Contains(quantities, t.Quantity) {
			return unknownQuantity(string(t.Quantity))
		}
		if !t.Target.valid() {
			return fmt.Errorf("%s: a target of %d millionths is none: use 1 to 999999, such as 950000 for p95", t.Quantity, int32(t.Target))
		}
		if err := validateTokens(t.AtMost); err != nil {
			return fmt.Errorf("%s: %w", t.Quantity, err)
		}
		if slices.ContainsFunc(e.Terms[:i], func(u Term) bool { return u.Quantity == t.Quantity && u.Target == t.Target }) {
			return fmt.Errorf("%s %s is there twice; leave the lower limit", t.Quantity, t.Target)
		}
	}
	if e.CallsPerMinute < 0 || e.CallsPerMinute > MaxCallsPerMinute {
		return fmt.Errorf("%d calls a minute: use 1 to %d, or 0 for any", e.CallsPerMinute, MaxCallsPerMinute)
	}
	return nil
}

// validateBurn checks the rules, and that each can fire for every objective. Rules that
// equal a default one are not configured but customary, and are scaled instead.
func (c Config) validateBurn() error {
	if n := len(c.Burn); n > MaxBurnRules {
		return fmt.Errorf("%d burn rules are too many; have at most %d", n, MaxBurnRules)
	}
	for i, r := range c.Burn {
		if err := r.validate(); err != nil {
			return fmt.Errorf("burn rule %s: %w", r, err)
		}
		for _, s := range c.Burn[:i] {
			if s.Long == r.Long && s.Short == r.Short && s.Page == r.Page {
				return fmt.Errorf("burn rule %s: its windows are there twice; leave the lower factor", r)
			}
		}
		if r.isDefault() {
			continue
		}
		for _, class := range c.Classes {
			for _, o := range class.Objectives {
				if FactorFor(r, o.Target) == r.Factor {
					continue
				}
				return fmt.Errorf("burn rule %s: class %s: objective %s: %s burns at most %s, when all calls are bad, so a factor above %s waits for nine bad calls in ten or for ever; use at most %s, or raise the target",
					r, class.Name, o.Name, o.targetText(), shortFloat(o.Target.MaxBurn()), shortFloat(usableShare*o.Target.MaxBurn()), floorFloat(usableShare*o.Target.MaxBurn()))
			}
		}
	}
	return nil
}

func (r BurnRule) validate() error {
	switch {
	case r.Short < time.Minute || r.Short%time.Minute != 0 || r.Long%time.Minute != 0:
		return errors.New("windows are whole minutes, such as 5m and 1h, since calls are counted by the minute")
	case r.Short >= r.Long:
		return errors.New("the short window comes second and is shorter than the long one, as in 1h and 5m")
	case r.Long > MaxWindow:
		return fmt.Errorf("a window is at most %s long: beyond, calls are counted by the hour", spanText(MaxWindow))
	case !(r.Factor > 0) || math.IsInf(r.Factor, 0):
		return errors.New("the factor is above 0: 1 burns all of the budget in just the period")
	}
	return nil
}

func (p Period) validate() error {
	switch {
	case p.Rolling != 0 && p.Zone != nil:
		return errors.New("a rolling one has no time zone; leave one of them out")
	case p.Rolling == 0:
		return nil
	case p.Rolling < minRolling || p.Rolling > maxRolling:
		return fmt.Errorf("rolling %s is not between 1d and 31d; use rolling 30d or calendar_month", spanText(p.Rolling))
	case p.Rolling%time.Hour != 0:
		return fmt.Errorf("rolling %s is not a number of whole hours, which is how calls are counted beyond 3d; use rolling 30d", spanText(p.Rolling))
	}
	return nil
}

// isName tells whether a name can be a label wherever it goes.
func isName(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9':
		case c == '.' || c == '-' || c == '_':
		default:
			return false
		}
	}
	return name != "" && len(name) <= MaxName
}

func badName(name string) error {
	if name == "" {
		return errors.New("it has no name; give it one")
	}
	return fmt.Errorf("%.20q is not a name of 1 to %d of A–Z, a–z, 0–9, point, hyphen and underscore", name, MaxName)
}
