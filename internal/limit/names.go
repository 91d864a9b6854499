package limit

import (
	"fmt"
	"slices"
	"strings"
)

// Mode says what becomes of the limits.
type Mode uint8

const (
	// Off: nothing is computed and nothing is refused. It is the zero value.
	Off Mode = iota
	// Shadow: everything is computed and counted, and nothing is refused.
	Shadow
	// Enforce: what passes a limit is refused.
	Enforce
)

// Scope says whose calls share a bucket.
type Scope uint8

const (
	PerKey      Scope = iota // the calls of one key
	PerModel                 // the calls to one model
	PerKeyModel              // the calls of one key to one model
	PerPool                  // all calls of the pool
	numScopes   = iota
)

// Dimension is what a limit limits.
type Dimension uint8

const (
	Requests     Dimension = iota // calls per minute
	Tokens                        // input and output tokens together, per minute
	InputTokens                   // input tokens per minute
	OutputTokens                  // output tokens per minute
	// Concurrency is the number of calls at once.
	Concurrency
	// TokensInFlight is the number of reserved and charged tokens of the calls at once.
	TokensInFlight
	numDimensions = iota

	// numRates: the dimensions before this one are rates, those from it on are caps.
	numRates = int(Concurrency)
)

var (
	modeNames      = []string{"off", "shadow", "enforce"}
	scopeNames     = []string{"key", "model", "key_model", "pool"}
	dimensionNames = []string{"requests_per_minute", "tokens_per_minute", "input_tokens_per_minute",
		"output_tokens_per_minute", "concurrency", "tokens_in_flight"}
)

// String returns off, shadow or enforce.
func (m Mode) String() string { return nameOf(modeNames, m) }

// String returns key, model, key_model or pool.
func (s Scope) String() string { return nameOf(scopeNames, s) }

// String returns the name of the dimension as the Caddyfile spells it.
func (d Dimension) String() string { return nameOf(dimensionNames, d) }

// MarshalText writes the name of the mode.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// MarshalText writes the name of the scope.
func (s Scope) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalText writes the name of the dimension.
func (d Dimension) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the name of a mode.
func (m *Mode) UnmarshalText(text []byte) error { return parse(m, "mode", modeNames, text) }

// UnmarshalText reads the name of a scope.
func (s *Scope) UnmarshalText(text []byte) error { return parse(s, "scope", scopeNames, text) }

// UnmarshalText reads the name of a dimension.
func (d *Dimension) UnmarshalText(text []byte) error {
	return parse(d, "dimension", dimensionNames, text)
}

func nameOf[T ~uint8](names []string, v T) string {
	if int(v) < len(names) {
		return names[v]
	}
	return "invalid"
}

func parse[T ~uint8](v *T, what string, names []string, text []byte) error {
	i := slices.Index(names, string(text))
	if i < 0 {
		return fmt.Errorf("read %s of limits: %q is none of %s", what, text, strings.Join(names, ", "))
	}
	*v = T(i)
	return nil
}
