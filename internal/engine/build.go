package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// builder makes Gauges of the families on a page.
type builder struct {
	families map[string]*dto.MetricFamily
	names    gaugeNames
	rounded  bool
	g        Gauges
	ranks    map[place]*Rank
	order    []place // of ranks, as they were met
}

func newBuilder(families map[string]*dto.MetricFamily, kind Kind) *builder {
	return &builder{families: families, names: gauges[kind], rounded: kind == LlamaCPP && printsSixDigits(families),
		g: Gauges{Kind: kind}, ranks: make(map[place]*Rank, 1)}
}

func (b *builder) build() Gauges {
	g, n := &b.g, b.names
	g.Running = b.perRank(n.running, func(r *Rank) *Figure { return &r.Running })
	g.Waiting = b.perRank(n.waiting, func(r *Rank) *Figure { return &r.Waiting })
	b.kvUse()
	g.MaxSeqs = b.perRank(n.maxSeqs, func(r *Rank) *Figure { return &r.MaxSeqs })
	if g.Kind == VLLM {
		b.cacheConfig()
	} else {
		g.KVTokens = b.perRank(n.kvTokens, func(r *Rank) *Figure { return &r.KVTokens })
	}
	g.Swapped = b.sum(n.swapped)
	g.Preemptions = b.sum(n.preemptions)
	g.PrefixQueries, g.PrefixHits = b.sum(n.prefixQueries), b.sum(n.prefixHits)
	g.Prompt, g.Generated = b.sum(n.prompt), b.sum(n.generated)
	for _, name := range []string{startTime, strings.TrimSuffix(n.prompt, "_total") + "_created"} {
		if g.Start = instant(b.families[name]); !g.Start.IsZero() {
			break
		}
	}
	b.listRanks()
	return *g
}

// odd notes a figure that cannot be true.
func (b *builder) odd(text string) {
	if len(b.g.Odd) < MaxOdd {
		b.g.Odd = append(b.g.Odd, shorten(text, 2*maxText))
	}
}

// points are those of a metric, nil if it is not there or cannot be true.
func (b *builder) points(name string) []point {
	family := b.families[name]
	if family == nil {
		return nil
	}
	points, err := gather(family, b.g.Kind)
	if err != nil {
		b.odd(err.Error())
		return nil
	}
	return points
}

// sum adds all points of a metric; one that is no count leaves the sum unknown.
func (b *builder) sum(name string) Figure {
	return b.add(name, b.points(name), func(place, Figure) {})
}

// perRank does so too and keeps each rank's own part.
func (b *builder) perRank(name string, field func(*Rank) *Figure) Figure {
	bad := map[place]bool{}
	points := b.points(name)
	for _, p := range points {
		if _, ok := count(p.value, b.rounded); !ok {
			bad[p.place] = true
		}
	}
	return b.add(name, points, func(at place, f Figure) {
		switch own := field(b.rank(at)); {
		case bad[at]:
		case own.Known:
			*own = own.Plus(f)
		default:
			*own = f
		}
	})
}

// add sums counts up and hands each to keep.
func (b *builder) add(name string, points []point, keep func(place, Figure)) Figure {
	if len(points) == 0 {
		return Figure{}
	}
	sum, whole := exactly(0), true
	for _, p := range points {
		f, ok := count(p.value, b.rounded)
		if !ok || sum.N+f.N > largest {
			b.odd(fmt.Sprintf("%s is %v, which is not a count", name, p.value))
			whole = false
			continue
		}
		sum = sum.Plus(f)
		keep(p.place, f)
	}
	if !whole {
		return Figure{}
	}
	return sum
}

// kvUse reads how full the caches are.
func (b *builder) kvUse() {
	for _, name := range b.names.kvUse {
		points := b.points(name)
		if len(points) == 0 {
			continue
		}
		var most, all float64
		for _, p := range points {
			s, ok := shareOf(p.value)
			if !ok {
				b.odd(fmt.Sprintf("%s is %v, which is no share of a whole", name, p.value))
				return
			}
			most, all = max(most, s.X), all+s.X
			if own := b.rank(p.place); !own.KVUse.Known || s.X > own.KVUse.X {
				own.KVUse = s
			}
		}
		b.g.KVUse = Share{X: most, Known: true}
		if len(points) > 1 {
			b.g.KVMean = Share{X: min(1, all/float64(len(points))), Known: true}
		}
		return
	}
}

// cacheConfig reads the size of vLLM's KV cache from labels. Newer versions give
// it in tokens, which alone is right for models that keep several sorts of cache;
// the older ones as blocks, "None" until they are known.
func (b *builder) cacheConfig() {
	family := b.families[cacheConfig]
	if family == nil || len(b.ranks) == 0 {
		return
	}
	number := func(m *dto.Metric, name string) (int64, bool) {
		v, err := strconv.ParseInt(label(m, name), 10, 64)
		return v, err == nil && v > 0 && v <= largest
	}
	for _, m := range family.Metric {
		tokens, ok := number(m, "kv_cache_size_tokens")
		if !ok {
			blocks, ok1 := number(m, "num_gpu_blocks")
			size, ok2 := number(m, "block_size")
			if !ok1 || !ok2 || blocks > largest/size {
				continue
			}
			tokens = blocks * size
		}
		// It names the rank, but never the model.
		rank := shorten(label(m, b.names.rank), maxText)
		for at, own := range b.ranks {
			if at.rank == rank || len(b.ranks) == 1 && rank == "" {
				own.KVTokens = exactly(tokens)
			}
		}
	}
	sum := exactly(0)
	for _, own := range b.ranks {
		if sum = sum.Plus(own.KVTokens); sum.N > largest {
			sum = Figure{}
		}
	}
	b.g.KVTokens = sum
}

// rank is what is known of one rank so far.
func (b *builder) rank(at place) *Rank {
	if r := b.ranks[at]; r != nil {
		return r
	}
	r := &Rank{Name: at.rank, Model: at.model}
	b.ranks[at] = r
	b.order = append(b.order, at)
	return r
}

// listRanks chooses the ranks to show and brings them into order.
func (b *builder) listRanks() {
	g := &b.g
	g.RankCount = max(1, len(b.ranks))
	if len(b.ranks) == 0 {
		return
	}
	ranks := make([]Rank, 0, len(b.ranks))
	g.Model = b.order[0].model
	for _, at := range b.order {
		ranks = append(ranks, *b.ranks[at])
		if at.model != g.Model {
			g.Model = ""
		}
	}
	if len(ranks) == 1 {
		return // the sums say it all
	}
	byName := func(a, c Rank) int {
		m, err1 := strconv.ParseUint(a.Name, 10, 32)
		n, err2 := strconv.ParseUint(c.Name, 10, 32)
		if err1 == nil && err2 == nil && m != n {
			return cmp.Compare(m, n)
		}
		return cmp.Or(strings.Compare(a.Name, c.Name), strings.Compare(a.Model, c.Model))
	}
	slices.SortFunc(ranks, func(a, c Rank) int {
		return cmp.Or(cmp.Compare(c.Waiting.N, a.Waiting.N), cmp.Compare(c.Running.N, a.Running.N), byName(a, c))
	})
	ranks = slices.Clone(ranks[:min(len(ranks), MaxRanks)])
	slices.SortFunc(ranks, byName)
	g.Ranks = ranks
}
