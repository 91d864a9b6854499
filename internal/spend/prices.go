package spend

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
)

// PriceExample is a price file that ParsePrices reads, for help texts.
const PriceExample = `{
  "version": 1,
  "currency": "USD",
  "prices": [
    {"model": "gpt-4o", "input": 2.50, "cached_input": 1.25, "output": 10},
    {"model": "gpt-4o", "valid_from": "2026-12-01", "input": 2, "cached_input": 0.5, "output": 8},
    {"model": "claude-*", "input": 3, "cached_input": 0.30, "cache_write": 3.75, "output": 15},
    {"model": "*", "input": 0.1, "output": 0.1}
  ]
}`

const (
	priceVersion = 1
	// maxPrices bounds the entries of a file, and with maxPriceFile what reading
	// it costs. A list of every hosted model has some 2,000.
	maxPrices    = 10_000
	maxPriceFile = 4 << 20
	maxPattern   = 256
	// maxPrice is in units of the currency per million tokens; times 10⁹ it fits
	// an int64.
	maxPrice = 1_000_000_000
)

// Prices is a price list: what a million tokens of each kind cost, by model and
// from when. It never changes once it is read, and a nil *Prices has no price for
// anything. ParsePrices says what the file looks like.
type Prices struct {
	currency string
	entries  []entry // in the order in which they are preferred, see rank
}

// Rates are the prices that hold for a model in some hour, each in 10⁻⁹ of the
// currency's unit per million tokens.
type Rates struct {
	Input, CachedInput, CacheWrite, Output, Reasoning int64
}

// entry is one line of the price list.
type entry struct {
	model string
	glob  bool
	from  time.Time // zero: since ever
	rates Rates
}

// The JSON form.
type priceFile struct {
	Version  *int              `json:"version"`
	Currency string            `json:"currency"`
	Prices   []json.RawMessage `json:"prices"`
}

type priceEntry struct {
	Model       string  `json:"model"`
	ValidFrom   string  `json:"valid_from"`
	Input       *amount `json:"input"`
	CachedInput *amount `json:"cached_input"`
	CacheWrite  *amount `json:"cache_write"`
	Output      *amount `json:"output"`
	Reasoning   *amount `json:"reasoning"`
}

// amount is a price as it is written, kept exactly.
type amount int64

func (a *amount) UnmarshalJSON(b []byte) error {
	n, err := decimal(string(b), priceDecimals, maxPrice)
	if err != nil {
		return fmt.Errorf("price %.40s: %w", b, err)
	}
	*a = amount(n.Int64())
	return nil
}

// ParsePrices reads a price list. It is a JSON object with the fields version (1),
// currency (a word such as USD, once for all) and prices, a list of
//
//	model         the model as clients ask for it, or a pattern in which each * stands for
//	              any characters, none included; an empty model is matched by * alone
//	valid_from    when the price begins, a day ("2026-12-01") or an instant of RFC 3339, a
//	              full hour of UTC either way; without it the price holds since ever
//	input         price of a million input tokens that are neither of the next two
//	cached_input  of a million input tokens read from a cache; as input when left out
//	cache_write   of a million input tokens written to a cache; as input when left out
//	output        of a million output tokens that are not reasoning
//	reasoning     of a million reasoning tokens; as output when left out
//
// Prices are plain decimal numbers from 0 to 10⁹ with up to nine decimals. Of the
// entries that match a model and have begun, an exact model counts before a
// pattern, a longer pattern before a shorter one, then the one that began last,
// then the one that stands first. Whatever is not as said here is an error that
// names the entry.
func ParsePrices(b []byte) (*Prices, error) {
	var file priceFile
	if err := strict(b, &file); err != nil {
		return nil, fmt.Errorf("read the price list: %w", err)
	}
	switch {
	case file.Version == nil || *file.Version != priceVersion:
		return nil, fmt.Errorf("read the price list: its version is not %d; begin it with \"version\": %d", priceVersion, priceVersion)
	case !word(file.Currency):
		return nil, fmt.Errorf("read the price list: currency %.40q is not a word; write it like \"currency\": \"USD\"", file.Currency)
	case len(file.Prices) > maxPrices:
		return nil, fmt.Errorf("read the price list: it has %d prices, more than %d; use patterns such as gpt-4o*", len(file.Prices), maxPrices)
	}
	p := &Prices{currency: file.Currency, entries: make([]entry, 0, len(file.Prices))}
	type place struct {
		model string
		from  time.Time
	}
	seen := make(map[place]int, len(file.Prices))
	for i, b := range file.Prices {
		var raw priceEntry
		err := strict(b, &raw)
		var e entry
		if err == nil {
			e, err = raw.entry()
		}
		if err != nil {
			return nil, fmt.Errorf("read the price list: price %d (model %.80q): %w", i+1, raw.Model, err)
		}
		at := place{e.model, e.from}
		if first, twice := seen[at]; twice {
			return nil, fmt.Errorf("read the price list: price %d (model %.80q) begins when price %d does; remove one or give it another valid_from", i+1, raw.Model, first)
		}
		seen[at] = i + 1
		p.entries = append(p.entries, e)
	}
	slices.SortStableFunc(p.entries, rank)
	return p, nil
}

// strict decodes a JSON value that must be alone and have no unknown fields.
func strict(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, end := d.Token(); !errors.Is(end, io.EOF) {
			return errors.New("something follows the closing brace")
		}
		return nil
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("byte %d: %w", syntax.Offset, err)
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("field %q cannot be a JSON %s", kind.Field, kind.Value)
	}
	return err
}

func (raw priceEntry) entry() (entry, error) {
	e := entry{model: raw.Model, glob: strings.Contains(raw.Model, "*")}
	switch {
	case raw.Model == "":
		return e, errors.New("it names no model; \"*\" stands for all")
	case len(raw.Model) > maxPattern:
		return e, fmt.Errorf("the model is longer than %d bytes", maxPattern)
	case raw.Input == nil:
		return e, errors.New("it has no input price; what is free has the price 0")
	case raw.Output == nil:
		return e, errors.New("it has no output price; what is free has the price 0")
	}
	or := func(a *amount, otherwise int64) int64 {
		if a == nil {
			return otherwise
		}
		return int64(*a)
	}
	in, out := int64(*raw.Input), int64(*raw.Output)
	e.rates = Rates{Input: in, CachedInput: or(raw.CachedInput, in), CacheWrite: or(raw.CacheWrite, in), Output: out, Reasoning: or(raw.Reasoning, out)}
	if raw.ValidFrom == "" {
		return e, nil
	}
	from, err := time.Parse(time.DateOnly, raw.ValidFrom)
	if err != nil {
		from, err = time.Parse(time.RFC3339, raw.ValidFrom)
	}
	if err != nil {
		return e, fmt.Errorf("valid_from %.40q is neither a day like 2026-12-01 nor an instant like 2026-12-01T09:00:00Z", raw.ValidFrom)
	}
	e.from = from.UTC()
	if !e.from.Equal(e.from.Truncate(time.Hour)) {
		return e, fmt.Errorf("valid_from %s is not a full hour of UTC: usage is summed by hours of UTC, so a price can only change there", raw.ValidFrom)
	}
	return e, nil
}

// word tells whether s can name a currency: one to sixteen letters and digits.
func word(s string) bool {
	return s != "" && len(s) <= 16 && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// rank orders entries so that, of those which match and have begun, the first counts.
func rank(a, b entry) int {
	switch {
	case a.glob != b.glob && b.glob:
		return -1
	case a.glob != b.glob:
		return 1
	case len(a.model) != len(b.model):
		return len(b.model) - len(a.model)
	}
	return b.from.Compare(a.from)
}

// Currency is the currency of all prices, "" for nil.
func (p *Prices) Currency() string {
	if p == nil {
		return ""
	}
	return p.currency
}

// At returns the rates of a model in the hour of UTC that holds at; false when it
// has no price then.
func (p *Prices) At(model string, at time.Time) (Rates, bool) {
	if p == nil {
		return Rates{}, false
	}
	for i := range p.entries {
		if e := &p.entries[i]; !e.from.After(at) && e.matches(model) {
			return e.rates, true
		}
	}
	return Rates{}, false
}

func (e *entry) matches(model string) bool {
	if !e.glob {
		return e.model == model
	}
	return match(e.model, model)
}

// match tells whether a pattern, in which * stands for any bytes, matches the
// whole of s. It goes back to the last star only, so that it takes at most
// len(pattern)·len(s) steps.
func match(pattern, s string) bool {
	p, i, star, from := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && pattern[p] == s[i]:
			p++
			i++
		case star >= 0:
			from++
			p, i = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
