package command

import (
	"errors"
	"fmt"

	"github.com/weirgate/weir/internal/bench"
	"github.com/weirgate/weir/internal/quantity"
	"github.com/weirgate/weir/internal/workload"
)

// maxLoads bounds the combinations of a file: it would take days.
const maxLoads = 1000

// combinations are the loads of a file: of each group every combination.
func (b *benchmark) combinations(load bench.Load) ([]bench.Load, error) {
	var loads []bench.Load
	for i := range b.groupsOfLoads {
		some, err := b.groupsOfLoads[i].loads(b, load)
		if err != nil {
			return nil, fmt.Errorf("[[load]] number %d: %w", i+1, err)
		}
		if loads = append(loads, some...); len(loads) > maxLoads {
			return nil, fmt.Errorf("the groups have more than %d combinations: make several files of them", maxLoads)
		}
	}
	return loads, nil
}

func (g *loadGroup) loads(b *benchmark, load bench.Load) ([]bench.Load, error) {
	arrivals, err := g.arrivals()
	if err != nil {
		return nil, err
	}
	inputs, err := lengths(g.Input, load.Input, workload.ParseLength)
	if err != nil {
		return nil, fmt.Errorf("input: %w", err)
	}
	outputs, err := lengths(g.Output, load.Output, outputOf)
	if err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	if g.Calls < 0 || g.Shared < 0 || g.Groups < 0 {
		return nil, errors.New("calls, shared-prefix and prefix-groups cannot be below 0")
	}
	if g.Calls > 0 || g.Duration != "" { // its own bounds, in place of those for all
		load.Calls, load.Duration = g.Calls, 0
	}
	if g.Duration != "" {
		if load.Duration, err = quantity.ParseDuration(g.Duration); err != nil {
			return nil, fmt.Errorf("duration: %w", err)
		}
	}
	if g.Shared > 0 {
		load.Sharing.Tokens = g.Shared
		load.Sharing.Groups = max(b.groups, 1)
	}
	if g.Groups > 0 && load.Sharing.Tokens > 0 {
		load.Sharing.Groups = g.Groups
	}
	if n := len(arrivals) * len(inputs) * len(outputs); n > maxLoads {
		return nil, fmt.Errorf("it has %d combinations: make several files of them, of %d at most", n, maxLoads)
	}
	var loads []bench.Load
	for _, a := range arrivals {
		for _, in := range inputs {
			for _, out := range outputs {
				one := load
				one.Arrivals, one.Input, one.Output = a, in, out
				one.Label = fmt.Sprintf("%v, %v in, %v out", a, in, out)
				loads = append(loads, one)
			}
		}
	}
	return loads, nil
}

// arrivals are what a group lists of them, one after the other.
func (g *loadGroup) arrivals() ([]workload.Arrivals, error) {
	if (len(g.Concurrency) > 0) == (len(g.Rate) > 0) {
		return nil, errors.New("give it either concurrency or rate")
	}
	var arrivals []workload.Arrivals
	for _, n := range g.Concurrency {
		if n < 1 || n > workload.MaxConcurrency {
			return nil, fmt.Errorf("concurrency: %d is not within 1 and %d", n, workload.MaxConcurrency)
		}
		arrivals = append(arrivals, workload.Arrivals{Shape: workload.Closed, Concurrency: int(n)})
	}
	for _, item := range g.Rate {
		text := fmt.Sprint(item)
		if rate, err := parseRate(text); err == nil {
			arrivals = append(arrivals, workload.Arrivals{Shape: workload.Poisson, Rate: rate})
			continue
		}
		a, err := workload.ParseArrivals(text)
		if err != nil {
			return nil, fmt.Errorf("rate: %w", err)
		}
		arrivals = append(arrivals, a)
	}
	return arrivals, nil
}

// lengths reads what a group lists, else takes what all loads have.
func lengths(list oneOrMore[any], common workload.Length, parse func(string) (workload.Length, error)) ([]workload.Length, error) {
	if len(list) == 0 {
		return []workload.Length{common}, nil
	}
	var all []workload.Length
	for _, item := range list {
		l, err := parse(fmt.Sprint(item))
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}
