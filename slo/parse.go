package slo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxLine bounds what is read as one objective or envelope, in bytes.
const maxLine = 500

const (
	timedExample    = "write it like: ttft p99 <= 2s"
	shareExample    = "write it like: success 99.9%"
	whenExample     = "write it like: when input_tokens <= 8000, output_tokens <= 500"
	envelopeExample = "write it like: input_tokens p95 <= 8000, output_tokens p95 <= 500, rate <= 2/s"
)

// ParseObjective reads an objective from one line:
//
//	ttft p99 <= 2s
//	success 99.9%
//	prefill p99 <= 10s else ttft_upstream
//	ttft p95 <= 1.5s when input_tokens <= 8000, output_tokens <= 500
//
// After the number comes the target, a percentile for times and a percentage for success and
// goodput. Times go on with "<=" or "≤" and the threshold, which is read by
// time.ParseDuration, with d for days of 24 hours before it. "else" names the number that is
// judged where the first is unknown, "when" the calls that the objective is about: up to so
// many tokens, in digits or like 8k and 1.5M.
//
// The name stays empty. Errors say what is wrong and show how it is written.
func ParseObjective(text string) (Objective, error) {
	w, err := splitWords(text)
	if err == nil && len(w) == 0 {
		err = errors.New("it is empty; " + timedExample)
	}
	if err != nil {
		return Objective{}, fmt.Errorf("objective: %w", err)
	}
	var o Objective
	if o.Number, err = ParseNumber(w.next()); err != nil {
		// What does not begin like an objective may be anything, and is not repeated whole.
		return Objective{}, fmt.Errorf("objective: %w; %s", err, timedExample)
	}
	if err := o.parseRest(w); err != nil {
		return Objective{}, fmt.Errorf("objective %.80q: %w", text, err)
	}
	return o, nil
}

// parseRest reads what comes after the number.
func (o *Objective) parseRest(w words) (err error) {
	if o.Fallback = o.Number; o.Number.Timed() {
		err = o.parseTimed(&w)
	} else {
		err = o.parseShare(&w)
	}
	if err == nil && w.skip("when") {
		o.When, err = parseConditions(&w)
	}
	switch {
	case err != nil:
		return err
	case len(w) > 0:
		return fmt.Errorf("%.20q does not belong there; after the promise may come else and a number, and then when and conditions", w[0])
	}
	return o.validate()
}

// parseTimed reads what comes after the number of a time.
func (o *Objective) parseTimed(w *words) (err error) {
	target := w.next()
	switch {
	case target == "" || target == "<=":
		return fmt.Errorf("it has no target; %s", timedExample)
	case strings.HasSuffix(target, "%"):
		return fmt.Errorf("%.20q is not how a time has its target; use a percentile such as p99; %s", target, timedExample)
	}
	if o.Target, err = ParseTarget(target); err != nil {
		return err
	}
	if !w.skip("<=") {
		return fmt.Errorf("<= is missing after %s; %s", o.Target, timedExample)
	}
	if o.Threshold, err = parseSpan(w.next()); err != nil {
		return fmt.Errorf("threshold: %w", err)
	}
	if w.skip("else") {
		if o.Fallback, err = ParseNumber(w.next()); err != nil {
			return fmt.Errorf("else: %w", err)
		}
		if o.Fallback == o.Number {
			return fmt.Errorf("else %s names the number itself; leave it out, or name another", o.Fallback)
		}
	}
	return nil
}

// parseShare reads what comes after success and goodput.
func (o *Objective) parseShare(w *words) (err error) {
	target := w.next()
	switch {
	case target == "":
		return fmt.Errorf("it has no target; %s", shareExample)
	case w.skip("%"):
		target += "%"
	case strings.HasPrefix(target, "p"):
		return fmt.Errorf("%.20q is not how %s has its target; use a percentage such as 99.9%%; %s", target, o.Number, shareExample)
	}
	if o.Target, err = ParseTarget(target); err != nil {
		return err
	}
	if w.skip("<=") {
		return fmt.Errorf("%s is no time and has no threshold; %s", o.Number, shareExample)
	}
	if w.skip("else") {
		return fmt.Errorf("%s is always known and takes no else; %s", o.Number, shareExample)
	}
	return nil
}

// parseConditions reads what comes after when.
func parseConditions(w *words) (all []Condition, err error) {
	for {
		var c Condition
		if c.Quantity, err = parseQuantity(w.next()); err != nil {
			return nil, fmt.Errorf("when: %w; %s", err, whenExample)
		}
		if !w.skip("<=") {
			return nil, fmt.Errorf("when: <= is missing after %s; %s", c.Quantity, whenExample)
		}
		if c.AtMost, err = parseTokens(w.next()); err != nil {
			return nil, fmt.Errorf("when: %s: %w; %s", c.Quantity, err, whenExample)
		}
		all = append(all, c)
		if !w.skip(",") {
			return all, nil
		}
	}
}

// ParseEnvelope reads in which minutes objectives hold, from one line:
//
//	input_tokens p95 <= 8000, output_tokens p95 <= 500, rate <= 2/s
//
// Each part may be left out, and a quantity may have several percentiles. Rates are calls
// received per s, min or h, and must come to whole calls a minute. Errors say what is wrong
// and show how it is written.
func ParseEnvelope(text string) (Envelope, error) {
	e, err := parseEnvelope(text)
	if err != nil {
		return Envelope{}, fmt.Errorf("envelope: %w", err)
	}
	return e, nil
}

func parseEnvelope(text string) (e Envelope, err error) {
	w, err := splitWords(text)
	if err != nil {
		return e, err
	}
	for {
		switch name := w.next(); name {
		case "":
			return e, errors.New("a part is missing; " + envelopeExample)
		case "rate":
			if e.CallsPerMinute != 0 {
				return e, errors.New("it has two rates; leave one")
			}
			if !w.skip("<=") {
				return e, errors.New("<= is missing after rate; " + envelopeExample)
			}
			if e.CallsPerMinute, err = parseRate(w.next()); err != nil {
				return e, fmt.Errorf("rate: %w", err)
			}
		default:
			t, err := parseTerm(name, &w)
			if err != nil {
				return e, fmt.Errorf("%w; %s", err, envelopeExample)
			}
			e.Terms = append(e.Terms, t)
		}
		if len(w) == 0 {
			return e, e.validate()
		}
		if !w.skip(",") {
			return e, fmt.Errorf("a comma is missing before %.20q; %s", w[0], envelopeExample)
		}
	}
}

// parseTerm reads one percentile of a quantity.
func parseTerm(name string, w *words) (t Term, err error) {
	if t.Quantity, err = parseQuantity(name); err != nil {
		return t, fmt.Errorf("%w, or rate", err)
	}
	target := w.next()
	if !strings.HasPrefix(target, "p") {
		return t, fmt.Errorf("%s needs a percentile such as p95", t.Quantity)
	}
	if t.Target, err = ParseTarget(target); err != nil {
		return t, err
	}
	if !w.skip("<=") {
		return t, fmt.Errorf("<= is missing after %s %s", t.Quantity, t.Target)
	}
	if t.AtMost, err = parseTokens(w.next()); err != nil {
		return t, fmt.Errorf("%s: %w", t.Quantity, err)
	}
	return t, nil
}

func parseQuantity(name string) (Quantity, error) {
	if q := Quantity(name); slices.Contains(quantities, q) {
		return q, nil
	}
	return "", unknownQuantity(name)
}

func unknownQuantity(name string) error {
	return fmt.Errorf("unknown quantity %.20q; use %s or %s", name, InputTokens, OutputTokens)
}

// quantities lists those that there are.
var quantities = []Quantity{InputTokens, OutputTokens}

// countUnits are decimal multiples, as the rest of the configuration has them.
var countUnits = map[string]int64{"k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9, "t": 1e12}

// splitUnit splits the letter off a count, and returns what it stands for.
func splitUnit(text string) (number string, unit int64) {
	if n := len(text); n > 0 {
		if unit := countUnits[strings.ToLower(text[n-1:])]; unit != 0 {
			return text[:n-1], unit
		}
	}
	return text, 1
}

// parseTokens reads a count of tokens.
func parseTokens(text string) (int64, error) {
	if text == "" || text == "," {
		return 0, errors.New("the number of tokens is missing")
	}
	number, unit := splitUnit(text)
	n, err := scaled(number, unit, 1)
	if err != nil {
		return 0, fmt.Errorf("%.20q is not a number of tokens such as 8000 or 8k: %w", text, err)
	}
	return n, nil
}

// parseRate reads a rate as calls a minute.
func parseRate(text string) (int64, error) {
	const example = "write it like 2/s, 120/min or 600/h"
	number, per, _ := strings.Cut(text, "/")
	number, mul := splitUnit(number)
	div := int64(1)
	switch per {
	case "s":
		mul *= 60
	case "min":
	case "h":
		div = 60
	default:
		return 0, fmt.Errorf("%.20q is not a rate; %s", text, example)
	}
	n, err := scaled(number, mul, div)
	switch {
	case n == 0 && (err == nil || errors.Is(err, errNotWhole)):
		return 0, fmt.Errorf("%.20q is less than one call a minute, and minutes are what is judged; allow at least 1/min", text)
	case errors.Is(err, errNotWhole):
		return 0, fmt.Errorf("%.20q is not a whole number of calls a minute: it lies between %d/min and %d/min; write one of these", text, n, n+1)
	case err != nil:
		return 0, fmt.Errorf("%.20q is not a rate: %w; %s", text, err, example)
	}
	return n, nil
}

// parseSpan reads a time of more than 0: what time.ParseDuration reads, with days of 24
// hours before it, as in 30d, 1.5d or 1d12h.
func parseSpan(text string) (time.Duration, error) {
	const example = "write it like 2s, 1.5s, 40ms or 1m"
	if text == "" {
		return 0, errors.New("the time is missing; " + example)
	}
	var days time.Duration
	rest := text
	if number, after, ok := strings.Cut(text, "d"); ok {
		n, err := scaled(number, int64(24*time.Hour), 1)
		if err != nil {
			return 0, fmt.Errorf("%.20q is not a time: before d: %w; %s", text, err, example)
		}
		days, rest = time.Duration(n), after
	}
	var d time.Duration
	if rest != "" {
		var err error
		if d, err = time.ParseDuration(rest); err != nil {
			return 0, fmt.Errorf("%.20q is not a time; %s", text, example)
		}
	}
	// Both are below 2⁶³; a sum beyond it is negative.
	if d += days; d <= 0 || strings.HasPrefix(rest, "-") {
		return 0, fmt.Errorf("%.20q is not a time above 0 that counts nanoseconds in 63 bits; %s", text, example)
	}
	return d, nil
}

// words are what is left of a line.
type words []string

// splitWords makes a line into words, in which <= and the comma stand alone.
func splitWords(text string) (words, error) {
	if len(text) > maxLine {
		return nil, fmt.Errorf("it is longer than %d bytes", maxLine)
	}
	return strings.Fields(spaced.Replace(text)), nil
}

var spaced = strings.NewReplacer("≤", " <= ", "<=", " <= ", ",", " , ")

// next takes a word; "" when there is none.
func (w *words) next() string {
	if len(*w) == 0 {
		return ""
	}
	first := (*w)[0]
	*w = (*w)[1:]
	return first
}

// skip takes the word if it is next.
func (w *words) skip(word string) bool {
	if len(*w) == 0 || (*w)[0] != word {
		return false
	}
	*w = (*w)[1:]
	return true
}
