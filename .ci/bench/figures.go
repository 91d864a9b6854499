package main

import (
	"fmt"
	"slices"
)

// part is one load and the figures read from it.
type part struct {
	name     string
	what     string
	load     func(*upstream, *gateway) (load, error) // nil: the part keeps profiles itself
	gateways func(*bench) (trio, error)              // starts its own; nil: it uses the run's
	measure  func(*bench) ([]figure, error)
}

var parts = []part{
	{name: "json", what: "JSON calls", load: newCalls, measure: measureJSON},
	{name: "token1", what: "streamed tokens, one event a write", load: newLockstep(1), measure: measureTokens(1)},
	{name: "token8", what: "streamed tokens, 8 events a write", load: newLockstep(8), measure: measureTokens(8)},
	{name: "paced", what: "300 streams, an event every 20 ms each", load: newPaced, measure: measurePaced},
	{name: "admission", what: "JSON calls with keys, limits and a ledger, over weir alone", load: newCalls, gateways: (*bench).admission, measure: measureAdmission},
	{name: "memory", what: "memory of idle streams", measure: measureMemory},
}

// figure is one measured number beside its target.
type figure struct {
	Name string  `json:"name"`
	Unit string  `json:"unit"`
	Bare float64 `json:"bare"` // median of the bare slices
	Weir float64 `json:"weir"` // median of weir's
	// Effect compares weir with bare within each round, BareAgain the one bare
	// gateway with the other: as a ratio or, if Difference, in the unit.
	Effect     spread  `json:"effect"`
	BareAgain  spread  `json:"bare_against_bare"`
	Difference bool    `json:"difference"`
	Target     string  `json:"target"`
	Limit      float64 `json:"limit"`
	Met        bool    `json:"met"`
	Rounds     int     `json:"rounds"`
}

// kind says how two slices are compared, and which way is good.
type kind int

const (
	ratioAtMost kind = iota
	ratioAtLeast
	differenceAtMost
)

// triple holds one number of each gateway, from one round.
type triple [3]float64

// each reads one number off every slice.
func each(rounds []round, value func(slice) float64) []triple {
	triples := make([]triple, len(rounds))
	for i, r := range rounds {
		for g, s := range r {
			triples[i][g] = value(s)
		}
	}
	return triples
}

// The numbers of a slice, for each.
func cpuOf(s slice) float64     { return s.cpu }
func mallocsOf(s slice) float64 { return s.mallocs }
func rateOf(s slice) float64    { return s.rate }
func p50Of(s slice) float64     { return s.p50 }
func p99Of(s slice) float64     { return s.p99 }

// compare makes a figure of one number per gateway and round.
func compare(name, unit string, triples []triple, k kind, limit float64) figure {
	var bare, weir, effect, again []float64
	for _, r := range triples {
		a, w, b := r[bareOne], r[weirOne], r[bareTwo]
		bare, weir = append(bare, a, b), append(weir, w)
		if k == differenceAtMost {
			effect, again = append(effect, w-(a+b)/2), append(again, b-a)
		} else {
			effect, again = append(effect, w/((a+b)/2)), append(again, b/a)
		}
	}
	f := figure{
		Name: name, Unit: unit, Bare: quantile(bare, 0.5), Weir: quantile(weir, 0.5),
		Effect: spreadOf(effect), BareAgain: spreadOf(again), Difference: k == differenceAtMost,
		Limit: limit, Rounds: len(triples),
	}
	switch k {
	case ratioAtMost:
		f.Target, f.Met = fmt.Sprintf("<= %gx", limit), f.Effect.Median <= limit
	case ratioAtLeast:
		f.Target, f.Met = fmt.Sprintf(">= %gx", limit), f.Effect.Median >= limit
	case differenceAtMost:
		f.Target, f.Met = fmt.Sprintf("<= +%g %s", limit, unit), f.Effect.Median <= limit
	}
	return f
}

func measureJSON(b *bench) ([]figure, error) {
	rounds, err := b.rounds(newCalls)
	if err != nil {
		return nil, err
	}
	return []figure{
		compare("JSON call, CPU", "µs", each(rounds, cpuOf), differenceAtMost, 5),
		compare("JSON calls a second", "1/s", each(rounds, rateOf), ratioAtLeast, 0.95),
		compare("JSON call, allocations", "allocs", each(rounds, mallocsOf), differenceAtMost, 15),
	}, nil
}

func measureTokens(width int) func(*bench) ([]figure, error) {
	return func(b *bench) ([]figure, error) {
		rounds, err := b.rounds(newLockstep(width))
		if err != nil {
			return nil, err
		}
		return []figure{
			compare(fmt.Sprintf("token, %d a write, CPU", width), "µs", each(rounds, cpuOf), ratioAtMost, 1.03),
		}, nil
	}
}

func measurePaced(b *bench) ([]figure, error) {
	rounds, err := b.rounds(newPaced)
	if err != nil {
		return nil, err
	}
	return []figure{
		compare("token, 300 streams x 20 ms, CPU", "µs", each(rounds, cpuOf), ratioAtMost, 1.03),
		compare("delay of a chunk, p50", "µs", each(rounds, p50Of), differenceAtMost, 10),
		compareTail("delay of a chunk, p99", each(rounds, p99Of)),
	}, nil
}

// compareTail judges a tail, which is noisy, by the machine's own noise: the
// median ratio of weir to bare, single slice to single slice, must lie within
// the 95th percentile of the ratios of bare to bare, taken both ways.
func compareTail(name string, triples []triple) figure {
	var bare, weir, effect, again []float64
	for _, r := range triples {
		a, w, b := r[bareOne], r[weirOne], r[bareTwo]
		bare, weir = append(bare, a, b), append(weir, w)
		effect = append(effect, w/a, w/b)
		again = append(again, a/b, b/a)
	}
	limit := quantile(again, 0.95)
	return figure{
		Name: name, Unit: "µs", Bare: quantile(bare, 0.5), Weir: quantile(weir, 0.5),
		Effect: spreadOf(effect), BareAgain: spreadOf(again), Rounds: len(triples),
		Target: fmt.Sprintf("<= %.3fx, p95 of bare/bare", limit), Limit: limit, Met: quantile(effect, 0.5) <= limit,
	}
}

// anyMissed tells whether one of the figures missed its target.
func anyMissed(figures []figure) bool {
	return slices.ContainsFunc(figures, func(f figure) bool { return !f.Met })
}
