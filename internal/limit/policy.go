package limit

import (
	"errors"
	"fmt"
	"math"

	"github.com/weirgate/weir/internal/call"
)

const (
	// MaxLimit is the largest limit and the largest cost of one call. It keeps sums
	// clear of overflow, and a float64 exact to a thousandth of a token.
	MaxLimit = min(1_000_000_000_000, math.MaxInt/4)

	// DefaultMaxBuckets is how many buckets a pool keeps for keys and models that no
	// rule names. With all six limits on each key they take 18 MB, with a single one 67 MB,
	// because there are more keys then.
	DefaultMaxBuckets = 100_000
)

// Rule limits one scope. Of several rules of one scope that fit a call, each
// dimension comes from the most specific one that names it: key and model, then key,
// then model, then neither.
type Rule struct {
	Scope Scope `json:"scope"`
	// Key and Model are the only ones that the rule is for. With "" each key, or each
	// model, has its own bucket of this size.
	Key   string `json:"key,omitempty"`
	Model string `json:"model,omitempty"`

	Limits call.Limits `json:"limits,omitzero"`
	Burst  Burst       `json:"burst,omitzero"`
}

// Burst is what the rates of a rule can hold at most, in requests or tokens. What
// is unknown is one minute's limit.
type Burst struct {
	Requests     call.Count `json:"requests,omitzero"`
	Tokens       call.Count `json:"tokens,omitzero"`
	InputTokens  call.Count `json:"input_tokens,omitzero"`
	OutputTokens call.Count `json:"output_tokens,omitzero"`
}

// Policy is all that a configuration says about limits. The zero value limits nothing.
type Policy struct {
	Mode  Mode   `json:"mode"`
	Rules []Rule `json:"rules,omitempty"`
	// Replicas is the number of gateways that do not share their limits: each gets that
	// part of every limit, a known limit above 0 never less than 1. 0 is 1.
	Replicas int `json:"replicas,omitempty"`
	// MaxBuckets bounds the buckets of keys and models that no rule names. 0 is
	// DefaultMaxBuckets.
	MaxBuckets int `json:"max_buckets,omitempty"`
}

// Validate tells what is wrong with the policy, all of it at once.
func (p Policy) Validate() error {
	var errs []error
	if p.Mode > Enforce {
		errs = append(errs, fmt.Errorf("mode %d does not exist", p.Mode))
	}
	if p.Replicas < 0 {
		errs = append(errs, fmt.Errorf("replicas %d: want 1 or more", p.Replicas))
	}
	if p.MaxBuckets < 0 {
		errs = append(errs, fmt.Errorf("max_buckets %d: want 1 or more, or 0 for %d", p.MaxBuckets, DefaultMaxBuckets))
	}
	type target struct {
		scope Scope
		names
	}
	seen := make(map[target]bool)
	for i := range p.Rules {
		r := &p.Rules[i]
		for _, err := range r.validate() {
			errs = append(errs, fmt.Errorf("rule %d (%s): %w", i+1, r.Scope, err))
		}
		t := target{r.Scope, names{r.Key, r.Model}}
		if seen[t] {
			errs = append(errs, fmt.Errorf("rule %d (%s): there is a rule for the same calls before it: put both into one", i+1, r.Scope))
		}
		seen[t] = true
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("check limits: %w", err)
	}
	return nil
}

func (r *Rule) validate() (errs []error) {
	if r.Scope >= numScopes {
		return []error{fmt.Errorf("scope %d does not exist", r.Scope)}
	}
	if r.Key != "" && r.Scope != PerKey && r.Scope != PerKeyModel {
		errs = append(errs, fmt.Errorf("key %q has no meaning here: use scope %s or %s", r.Key, PerKey, PerKeyModel))
	}
	if r.Model != "" && r.Scope != PerModel && r.Scope != PerKeyModel {
		errs = append(errs, fmt.Errorf("model %q has no meaning here: use scope %s or %s", r.Model, PerModel, PerKeyModel))
	}
	if r.Limits.IsZero() {
		errs = append(errs, errors.New("limits nothing: name at least one limit, or take the rule away"))
	}
	limits, bursts := limitsOf(&r.Limits), burstsOf(&r.Burst)
	for d, limit := range limits {
		n, known := limit.Get()
		if known && (n < 0 || n > MaxLimit) {
			errs = append(errs, fmt.Errorf("%s %d: want 0 to %d", Dimension(d), n, int64(MaxLimit)))
		}
		if d >= numRates {
			continue
		}
		switch burst, set := bursts[d].Get(); {
		case set && !known:
			errs = append(errs, fmt.Errorf("burst of %s without a limit: name the limit too", Dimension(d)))
		case set && (burst < 1 || burst > MaxLimit):
			errs = append(errs, fmt.Errorf("burst %d of %s: want 1 to %d; a limit of 0 admits nothing", burst, Dimension(d), int64(MaxLimit)))
		}
	}
	return errs
}

// limitsOf returns limits in the order of the dimensions.
func limitsOf(l *call.Limits) [numDimensions]call.Count {
	return [...]call.Count{
		Requests:       l.RequestsPerMinute,
		Tokens:         l.TokensPerMinute,
		InputTokens:    l.InputTokensPerMinute,
		OutputTokens:   l.OutputTokensPerMinute,
		Concurrency:    l.Concurrency,
		TokensInFlight: l.TokensInFlight,
	}
}

// burstsOf returns bursts in the order of the dimensions.
func burstsOf(b *Burst) [numRates]call.Count {
	return [...]call.Count{
		Requests:     b.Requests,
		Tokens:       b.Tokens,
		InputTokens:  b.InputTokens,
		OutputTokens: b.OutputTokens,
	}
}
