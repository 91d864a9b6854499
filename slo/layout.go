package slo

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// column is what calls are counted for: an objective without its target. Objectives
// that differ by their targets alone share one.
type column struct {
	key       string
	number    Number
	threshold time.Duration
	fallback  Number // equals number where there is none
	when      []Condition
	// awaited is whether a call can be judged before it ends; plain whether it is judged
	// by its value at the end, and by nothing else.
	awaited, plain bool
}

// definition is a class as its calls are judged. It does not change; a reload makes another.
type definition struct {
	class   Class
	cols    []column
	column  []int // of each objective
	timed   []int // columns about times
	awaited []int // those of them that can be judged before the end
	success []int
	goodput []int
	numbers []Number // timed numbers that objectives are about, for display
	// dueToken is the least threshold that a streamed call may miss, and dueEnd
	// one that is not; upstream is whether one counts from when the call was sent.
	dueToken, dueEnd time.Duration
	upstream         bool
	layout           *layout
}

// kinds is how many counts a column has: good, bad and unknown.
const kinds = 3

// layout is what the counts of a class are about, in the order in which they are kept: for
// each key good, bad and unknown; with an envelope, calls received, those with
// known input, those with known output, and for each term those within.
type layout struct {
	keys     []string
	envelope Envelope
	counts   int // kinds · len(keys)
	cols     int // with what the envelope needs
}

func newLayout(keys []string, e Envelope) *layout {
	l := &layout{keys: keys, envelope: e, counts: kinds * len(keys)}
	if l.cols = l.counts; l.qualified() {
		l.cols += 3 + len(e.Terms)
	}
	return l
}

// qualified tells whether minutes can be outside.
func (l *layout) qualified() bool {
	return l.envelope.CallsPerMinute > 0 || len(l.envelope.Terms) > 0
}

func (l *layout) sameEnvelope(o *layout) bool {
	return l.envelope.CallsPerMinute == o.envelope.CallsPerMinute && slices.Equal(l.envelope.Terms, o.envelope.Terms)
}

// from returns for each column of l which one of o it is, -1 for none. Counts of an
// envelope are kept only for the same one.
func (l *layout) from(o *layout) []int {
	m := make([]int, l.cols)
	for i := range m {
		m[i] = -1
	}
	for i, key := range l.keys {
		if j := slices.Index(o.keys, key); j >= 0 {
			for k := range kinds {
				m[kinds*i+k] = kinds*j + k
			}
		}
	}
	if l.sameEnvelope(o) {
		for i := l.counts; i < l.cols; i++ {
			m[i] = o.counts + i - l.counts
		}
	}
	return m
}

// Where an envelope's counts are, behind those of the objectives.
const (
	tallyReceived = iota
	tallyInput
	tallyOutput
	tallyTerms
)

// outside tells whether a minute is outside the envelope, by its counts. A minute of which nothing
// is known is inside.
func (l *layout) outside(g *grid, row int) bool {
	e := &l.envelope
	if e.CallsPerMinute > 0 && g.get(row, l.counts+tallyReceived) > e.CallsPerMinute {
		return true
	}
	for i := range e.Terms {
		known := g.get(row, l.counts+tallyOf(e.Terms[i].Quantity))
		within := g.get(row, l.counts+tallyTerms+i)
		if within*million < known*int64(e.Terms[i].Target) {
			return true
		}
	}
	return false
}

func tallyOf(q Quantity) int {
	if q == InputTokens {
		return tallyInput
	}
	return tallyOutput
}

func newDefinition(class Class) *definition {
	d := &definition{class: class, column: make([]int, len(class.Objectives)), dueToken: math.MaxInt64, dueEnd: math.MaxInt64}
	var others []string
	for _, o := range class.Objectives {
		if o.Number != Goodput {
			others = append(others, keyOf(o))
		}
	}
	slices.Sort(others)
	for i, o := range class.Objectives {
		key := keyOf(o)
		if o.Number == Goodput {
			sum := sha256.Sum256([]byte(strings.Join(slices.Compact(others), "\n")))
			key += goodputOf + hex.EncodeToString(sum[:8])
		}
		c := slices.IndexFunc(d.cols, func(c column) bool { return c.key == key })
		if c < 0 {
			c = len(d.cols)
			d.cols = append(d.cols, newColumn(o, key))
		}
		d.column[i] = c
	}
	keys := make([]string, len(d.cols))
	for i, c := range d.cols {
		keys[i] = c.key
		switch {
		case c.number == Goodput:
			d.goodput = append(d.goodput, i)
		case c.number == Success:
			d.success = append(d.success, i)
		default:
			d.timed = append(d.timed, i)
			if c.awaited {
				d.await(i)
			}
			if !slices.Contains(d.numbers, c.number) {
				d.numbers = append(d.numbers, c.number)
			}
		}
	}
	d.layout = newLayout(keys, class.Valid)
	return d
}

// await adds a column to those that can be judged before the end.
func (d *definition) await(i int) {
	d.awaited = append(d.awaited, i)
	switch c := &d.cols[i]; c.number {
	case E2E:
		d.dueEnd, d.dueToken = min(d.dueEnd, c.threshold), min(d.dueToken, c.threshold)
	case TTFT, TTFTVisible:
		d.dueToken = min(d.dueToken, c.threshold)
	case TTFTUpstream:
		d.upstream = true
	}
}

// goodputOf stands in a goodput's key before what stands for all other objectives of the
// class: with other objectives it is another promise.
const goodputOf = " of "

func newColumn(o Objective, key string) column {
	c := column{key: key, number: o.Number, threshold: o.Threshold, fallback: o.Number, when: o.When}
	if o.hasFallback() {
		c.fallback = o.Fallback
	}
	switch o.Number {
	case TTFT, TTFTUpstream, TTFTVisible, E2E, Queue:
		c.awaited = len(o.When) == 0
	case Success, Goodput:
	default:
		c.plain = len(o.When) == 0 && c.fallback == c.number
	}
	return c
}

// keyOf writes an objective without its name and target, so that the same key
// means the same counts.
func keyOf(o Objective) string {
	var b strings.Builder
	b.WriteString(o.Number.String())
	if o.Number.Timed() {
		fmt.Fprintf(&b, " <= %s", spanText(o.Threshold))
		if o.hasFallback() {
			b.WriteString(" else " + o.Fallback.String())
		}
	}
	when := slices.SortedFunc(slices.Values(o.When), func(a, b Condition) int { return strings.Compare(string(a.Quantity), string(b.Quantity)) })
	for _, c := range when {
		fmt.Fprintf(&b, " when %s <= %d", c.Quantity, c.AtMost)
	}
	return b.String()
}

// column returns the index of a key, -1 if there is none.
func (l *layout) index(key string) int { return slices.Index(l.keys, key) }
