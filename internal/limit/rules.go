package limit

import "github.com/weirgate/weir/internal/call"

// size is one effective limit: divided by the replicas, with its burst. The zero
// value does not apply.
type size struct {
	applies bool
	limit   int64 // per minute for a rate; as shown to people
	burst   int64 // what a rate's bucket holds; the limit itself for a cap
	// perSecond is the exact rate. It is not limit/60, for a limit that does not divide
	// by the replicas is shown rounded down.
	perSecond float64
}

// sizes are the effective limits of one subject.
type sizes [numDimensions]size

// names are the key and the model that a rule or a bucket is for.
type names struct{ key, model string }

// ruleset holds the rules of one scope.
type ruleset struct {
	rules  map[names]sizes
	keys   map[string]bool // named by a rule
	models map[string]bool // named by a rule
}

// newRulesets sorts valid rules by scope.
func newRulesets(rules []Rule, replicas int64) (sets [numScopes]ruleset) {
	for i := range sets {
		sets[i] = ruleset{make(map[names]sizes), make(map[string]bool), make(map[string]bool)}
	}
	for i := range rules {
		r := &rules[i]
		set := &sets[r.Scope]
		set.rules[names{r.Key, r.Model}] = newSizes(&r.Limits, &r.Burst, replicas)
		if r.Key != "" {
			set.keys[r.Key] = true
		}
		if r.Model != "" {
			set.models[r.Model] = true
		}
	}
	return sets
}

func newSizes(l *call.Limits, b *Burst, replicas int64) (z sizes) {
	limits, bursts := limitsOf(l), burstsOf(b)
	for d := range z {
		limit, known := limits[d].Get()
		if !known {
			continue
		}
		limit = min(max(limit, 0), MaxLimit) // a key's own limits come unchecked
		burst := limit
		if d < numRates && limit > 0 {
			burst = bursts[d].Or(limit)
		}
		z[d] = size{
			applies:   true,
			limit:     share(limit, replicas),
			burst:     share(burst, replicas),
			perSecond: float64(limit) / float64(60*replicas),
		}
	}
	return z
}

// share returns one gateway's part of n. What admits something still does: with a
// part of 0 no gateway would admit anything.
func share(n, replicas int64) int64 {
	if n <= 0 {
		return 0
	}
	return max(n/replicas, 1)
}

// over lays the limits of the more specific over z.
func (z *sizes) over(more sizes) {
	for d := range more {
		if more[d].applies {
			z[d] = more[d]
		}
	}
}

// count returns how many limits apply.
func (z *sizes) count() (n int) {
	for d := range z {
		if z[d].applies {
			n++
		}
	}
	return n
}

// effective returns the limits of a subject. A key's own replace those dimensions of
// the rules for keys that they name, and with them the burst.
func (p *Pool) effective(id subject, own call.Limits) sizes {
	rules := p.rules[id.scope].rules
	z := rules[names{}]
	if id.scope != PerPool && len(rules) > 0 {
		// A lookup for a name that the scope has not finds the same rule once more.
		z.over(rules[names{"", id.model}])
		z.over(rules[names{id.key, ""}])
		z.over(rules[names{id.key, id.model}])
	}
	if !own.IsZero() {
		z.over(newSizes(&own, &Burst{}, p.replicas))
	}
	return z
}
