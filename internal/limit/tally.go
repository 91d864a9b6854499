package limit

import "strings"

// maxTallied is how many keys without limits of their own have their refusals
// counted apart.
const maxTallied = 1000

// counts are refusals: those of Shadow, then those of Enforce.
type counts [2][numScopes][numDimensions]int64

// tally counts refusals by key. Counts only grow.
type tally struct {
	keys    map[string]*counts
	learned int // those without limits of their own
}

func newTally() tally { return tally{keys: make(map[string]*counts)} }

// of returns the counts of a key. One that has limits of its own is known to the
// configuration, and is always counted apart; the rest may be what anybody sends.
func (t *tally) of(key string, named bool) *counts {
	if c := t.keys[key]; c != nil {
		return c
	}
	if !named && key != "" {
		if t.learned < maxTallied {
			t.learned++
		} else if key = Other; t.keys[Other] != nil {
			return t.keys[Other]
		}
	}
	c := new(counts)
	t.keys[strings.Clone(key)] = c
	return c
}

// add counts one call that met a wall in mode Shadow or Enforce.
func (t *tally) add(key string, named bool, mode Mode, s Scope, d Dimension) {
	t.of(key, named)[mode-Shadow][s][d]++
}

// list returns all counts above 0.
func (t *tally) list() (all []Refused) {
	for key, c := range t.keys {
		for m := range c {
			for s := range c[m] {
				for d, n := range c[m][s] {
					if n > 0 {
						all = append(all, Refused{key, Scope(s), Dimension(d), Shadow + Mode(m), n})
					}
				}
			}
		}
	}
	return all
}
