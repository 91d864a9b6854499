package slo

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// TestValidate breaks one thing at a time in a configuration that is right.
func TestValidate(t *testing.T) {
	first := func(c *Config) *Objective { return &c.Classes[0].Objectives[0] }
	burn := func(long, short time.Duration, factor float64) func(*Config) {
		return func(c *Config) { c.Burn = []BurnRule{{Long: long, Short: short, Factor: factor}} }
	}
	when := func(all ...Condition) func(*Config) { return func(c *Config) { first(c).When = all } }
	terms := func(all ...Term) func(*Config) { return func(c *Config) { c.Classes[0].Valid.Terms = all } }
	for _, tt := range []struct {
		want  string
		spoil func(*Config)
	}{
		{"51 classes are too many; have at most 50", func(c *Config) { c.Classes = make([]Class, 51) }},
		{"class 2: it has no name; give it one", func(c *Config) { c.Classes[1].Name = "" }},
		{`class 1: "gold class" is not a name of 1 to 64`, func(c *Config) { c.Classes[0].Name = "gold class" }},
		{`is not a name of 1 to 64`, func(c *Config) { c.Classes[0].Name = strings.Repeat("g", 65) }},
		{`class 1: "größe" is not a name`, func(c *Config) { c.Classes[0].Name = "größe" }},
		{"class gold is there twice; give one another name", func(c *Config) { c.Classes[1].Name = "gold" }},
		{"class gold: it has no objectives; add one, such as ttft p99 <= 2s", func(c *Config) { c.Classes[0].Objectives = nil }},
		{"class gold: 17 objectives are too many; have at most 16", func(c *Config) { c.Classes[0].Objectives = make([]Objective, 17) }},
		{"class gold: goodput asks whether all other objectives hold, and there is none", func(c *Config) { c.Classes[0].Objectives = c.Classes[0].Objectives[6:] }},
		{`class gold: objective "ttft p99 <= 2s": it has no name`, func(c *Config) { first(c).Name = "" }},
		{`is not a name`, func(c *Config) { first(c).Name = "ttft/p99" }},
		{"class gold: two objectives have the name tpot_p95; rename one", func(c *Config) { first(c).Name = "tpot_p95" }},
		{`class gold: the objective "ttft p99 <= 2s" is there twice; remove one`, func(c *Config) {
			c.Classes[0].Objectives[1] = *first(c)
			c.Classes[0].Objectives[1].Name = "again"
		}},
		{"class gold: objective ttft_p99: there is no number 77", func(c *Config) { first(c).Number = 77 }},
		{"a target of 0 millionths is none: use 1 to 999999", func(c *Config) { first(c).Target = 0 }},
		{"a target of -1 millionths is none", func(c *Config) { first(c).Target = -1 }},
		{"a target of 1000000 millionths is none", func(c *Config) { first(c).Target = million }},
		{"a threshold of 0s can never hold; use a time above 0", func(c *Config) { first(c).Threshold = 0 }},
		{"a threshold of -1s can never hold", func(c *Config) { first(c).Threshold = -time.Second }},
		{"a threshold of 24h0m0.000000001s is longer than any call", func(c *Config) { first(c).Threshold = MaxThreshold + 1 }},
		{"objective success: success is no time and has no threshold; leave out 1s", func(c *Config) { c.Classes[0].Objectives[5].Threshold = time.Second }},
		{"goodput is no time and has no threshold", func(c *Config) { c.Classes[0].Objectives[6].Threshold = time.Second }},
		{"ttft cannot stand in for tpot", func(c *Config) { c.Classes[0].Objectives[1].Fallback = TTFT }},
		{"queue cannot stand in for ttft: a call could be good by it and bad in truth", func(c *Config) { first(c).Fallback = Queue }},
		{"success is always known; its fallback is itself", func(c *Config) { c.Classes[0].Objectives[5].Fallback = E2E }},
		{`when: unknown quantity "images"; use input_tokens or output_tokens`, when(Condition{"images", 5})},
		{"when: input_tokens: 0 tokens: use 1 to 1000000000", when(Condition{InputTokens, 0})},
		{"when: output_tokens: -5 tokens: use 1 to", when(Condition{OutputTokens, -5})},
		{"1000000001 tokens: use 1 to", when(Condition{OutputTokens, MaxTokens + 1})},
		{"when: input_tokens is there twice; leave the lower limit", when(Condition{InputTokens, 5}, Condition{OutputTokens, 5}, Condition{InputTokens, 6})},
		{"class gold: envelope: 9 percentiles are too many; have at most 8", terms(make([]Term, 9)...)},
		{`envelope: unknown quantity ""; use input_tokens`, terms(Term{"", 950_000, 5})},
		{"envelope: input_tokens: a target of 0 millionths is none", terms(Term{InputTokens, 0, 5})},
		{"envelope: input_tokens: a target of 1000000 millionths is none", terms(Term{InputTokens, million, 5})},
		{"envelope: input_tokens: 0 tokens: use 1", terms(Term{InputTokens, 950_000, 0})},
		{"envelope: input_tokens p95 is there twice", terms(Term{InputTokens, 950_000, 5}, Term{InputTokens, 950_000, 6})},
		{"envelope: -1 calls a minute: use 1 to 1000000000, or 0 for any", func(c *Config) { c.Classes[0].Valid.CallsPerMinute = -1 }},
		{"1000000001 calls a minute", func(c *Config) { c.Classes[0].Valid.CallsPerMinute = MaxCallsPerMinute + 1 }},
		{"period: a rolling one has no time zone", func(c *Config) { c.Period.Zone = time.UTC }},
		{"period: rolling 23h is not between 1d and 31d", func(c *Config) { c.Period.Rolling = 23 * time.Hour }},
		{"period: rolling 32d is not between 1d and 31d", func(c *Config) { c.Period.Rolling = 32 * 24 * time.Hour }},
		{"period: rolling -1h is not between 1d and 31d", func(c *Config) { c.Period.Rolling = -time.Hour }},
		{"period: rolling 24h30m is not a number of whole hours", func(c *Config) { c.Period.Rolling = 24*time.Hour + 30*time.Minute }},
		{"9 burn rules are too many; have at most 8", func(c *Config) { c.Burn = make([]BurnRule, 9) }},
		{"burn rule 1h/0s x 2 ticket: windows are whole minutes", burn(time.Hour, 0, 2)},
		{"burn rule 1h/-5m x 2 ticket: windows are whole minutes", burn(time.Hour, -5*time.Minute, 2)},
		{"burn rule 1h/1m30s x 2 ticket: windows are whole minutes", burn(time.Hour, 90*time.Second, 2)},
		{"burn rule 1h0m1s/5m x 2 ticket: windows are whole minutes", burn(time.Hour+time.Second, 5*time.Minute, 2)},
		{"burn rule 5m/1h x 2 ticket: the short window comes second", burn(5*time.Minute, time.Hour, 2)},
		{"burn rule 1h/1h x 2 ticket: the short window comes second", burn(time.Hour, time.Hour, 2)},
		{"burn rule 72h1m/1h x 2 ticket: a window is at most 3d long", burn(72*time.Hour+time.Minute, time.Hour, 2)},
		{"burn rule 1h/5m x 0 ticket: the factor is above 0", burn(time.Hour, 5*time.Minute, 0)},
		{"burn rule 1h/5m x -1 ticket: the factor is above 0", burn(time.Hour, 5*time.Minute, -1)},
		{"burn rule 1h/5m x NaN ticket: the factor is above 0", burn(time.Hour, 5*time.Minute, math.NaN())},
		{"burn rule 1h/5m x +Inf ticket: the factor is above 0", burn(time.Hour, 5*time.Minute, math.Inf(1))},
		{"burn rule 1h/5m x 3 ticket: its windows are there twice; leave the lower factor", func(c *Config) {
			c.Burn = []BurnRule{{Long: time.Hour, Short: 5 * time.Minute, Factor: 2}, {Long: time.Hour, Short: 5 * time.Minute, Factor: 3}}
		}},
		{"burn rule 1h/5m x 25 ticket: class gold: objective tpot_p95: p95 burns at most 20, when all calls are bad, so a factor above 18 waits for nine bad calls in ten or for ever; use at most 18, or raise the target",
			burn(time.Hour, 5*time.Minute, 25)},
		{"p95 burns at most 20", burn(time.Hour, 5*time.Minute, 18.01)},
		{"objective goodput: 93.333% burns at most 15, when all calls are bad, so a factor above 13.5 waits", func(c *Config) {
			burn(time.Hour, 5*time.Minute, 14.4)(c) // a ticket, so it is not a default one
			c.Classes[0].Objectives[6].Target = 933_330
		}},
		{"warn at 0 of the budget: it is a share above 0 and up to 1, such as 0.5", func(c *Config) { c.Warn = 0 }},
		{"warn at 1.1 of the budget", func(c *Config) { c.Warn = 1.1 }},
		{"warn at NaN of the budget", func(c *Config) { c.Warn = math.NaN() }},
		{"freeze at -0.5 of the budget: it is a share above 0 and up to 1, such as 0.8", func(c *Config) { c.Freeze = -0.5 }},
		{"freeze at 80 of the budget", func(c *Config) { c.Freeze = 80 }},
		{"warn at 0.9 comes after freeze at 0.8 of the budget; lower the first or raise the second", func(c *Config) { c.Warn = 0.9 }},
		{"-1 bad calls at least for a burn rule: use 1 or more; 5 is the default", func(c *Config) { c.MinBad = -1 }},
		{"0 bad calls", func(c *Config) { c.MinBad = 0 }},
		{"1000000000001 bad calls", func(c *Config) { c.MinBad = maxCount + 1 }},
		{"-1 calls at least for a freeze: use 1 or more; 59 is the default", func(c *Config) { c.MinCalls = -1 }},
		{"1000000000001 calls", func(c *Config) { c.MinCalls = maxCount + 1 }},
	} {
		gold := classOf(t, "ttft p99 <= 2s", "tpot p95 <= 40ms", "e2e p95 <= 5s", "queue p99 <= 1s", "network p99 <= 20ms", "success 99.9%", "goodput 95%")
		c, _ := complete(t, Config{Classes: []Class{gold, {Name: "silver", Objectives: parseAll(t, "success 99%")}}})
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		tt.spoil(&c)
		err := c.Validate()
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v; want %q", err, tt.want)
		}
	}
}

// TestBounds: all that is within the bounds is taken, to the last one.
func TestBounds(t *testing.T) {
	var config Config
	for i := range MaxClasses {
		c := Class{Name: fmt.Sprintf("Class-%d.%s", i, strings.Repeat("x", MaxName-10))}
		for j := range MaxObjectives {
			c.Objectives = append(c.Objectives, Objective{Number: TTFT, Target: 990_000 + Target(j), Threshold: MaxThreshold - time.Duration(j)})
		}
		for j := range MaxTerms {
			c.Valid.Terms = append(c.Valid.Terms, Term{OutputTokens, 1 + Target(j), MaxTokens})
		}
		c.Valid.CallsPerMinute = MaxCallsPerMinute
		config.Classes = append(config.Classes, c)
	}
	for i := range MaxBurnRules {
		config.Burn = append(config.Burn, BurnRule{Long: MaxWindow - time.Duration(i)*time.Minute, Short: time.Minute, Factor: 90})
	}
	config.MinBad, config.MinCalls, config.Warn, config.Freeze, config.Period.Rolling = maxCount, maxCount, 1, 1, maxRolling
	c, _ := complete(t, config)
	if len(c.Classes) != MaxClasses || len(c.Classes[0].Objectives[0].Name) > MaxName {
		t.Errorf("%d classes", len(c.Classes))
	}
}

// TestCompleteRefuses: on an error nothing is returned that could be used.
func TestCompleteRefuses(t *testing.T) {
	c, warnings, err := Config{Classes: []Class{{Name: "gold"}}}.Complete()
	if err == nil || c.Classes != nil || c.Burn != nil || warnings != nil {
		t.Errorf("%+v, %v, %v", c, warnings, err)
	}
	// The same factor that is scaled as a default is refused in another rule.
	config := Config{Classes: []Class{classOf(t, "ttft p90 <= 2s")}, Burn: []BurnRule{{Long: 2 * time.Hour, Short: 5 * time.Minute, Factor: 14.4, Page: true}}}
	if _, _, err := config.Complete(); err == nil || !strings.Contains(err.Error(), "p90 burns at most 10") {
		t.Errorf("%v", err)
	}
}
