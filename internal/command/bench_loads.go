package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/bench"
	"github.com/weirgate/weir/internal/quantity"
	"github.com/weirgate/weir/internal/workload"
)

// defaultCalls is how many calls a repeat has when nothing bounds it: enough for
// a p95, and soon over.
const defaultCalls = 100

// wayToLoad is how the flags say to load the endpoint: the flag that does.
type wayToLoad string

const (
	byConcurrency wayToLoad = "--concurrency"
	byRate        wayToLoad = "--rate"
	byWords       wayToLoad = "--load"
	byReplay      wayToLoad = "--replay"
	byLadder      wayToLoad = "--ladder"
	byLadderRate  wayToLoad = "--ladder-rate"
	byStairs      wayToLoad = "--staircase"
	byGroups      wayToLoad = "[[load]] groups of a file"
)

// way finds out how the endpoint is to be loaded. There must be one way. A replay
// beside another one lends its lengths, and --concurrency beside an open loop is
// a bound.
func (b *benchmark) way() (wayToLoad, error) {
	var ways []string
	for _, one := range []struct {
		given bool
		way   wayToLoad
	}{
		{b.rate != "", byRate}, {b.load != "", byWords}, {b.ladder != "", byLadder}, {b.ladderRate != "", byLadderRate},
		{b.staircase != "", byStairs}, {len(b.groupsOfLoads) > 0, byGroups},
	} {
		if one.given {
			ways = append(ways, string(one.way))
		}
	}
	switch replayed := b.replay != "" || b.replayLedger != ""; {
	case len(ways) > 1:
		return "", fmt.Errorf("%s exclude each other: choose one of them", strings.Join(ways, " and "))
	case len(ways) == 0 && replayed:
		return byReplay, nil
	case len(ways) == 0 && b.concurrency > 0:
		return byConcurrency, nil
	case len(ways) == 0:
		return "", errors.New("say how to load the endpoint: --concurrency 8, --rate 4/s, --ladder 1,4,8,16,32, --staircase 6/s or --matrix loads.toml")
	}
	way := wayToLoad(ways[0])
	if b.concurrency > 0 && (way == byLadder || way == byGroups) {
		return "", fmt.Errorf("--concurrency and %s exclude each other: that has numbers of its own", way)
	}
	return way, nil
}

// baseLoad is what all loads have in common. Its arrivals are still to be said.
func (b *benchmark) baseLoad(ctx context.Context, way wayToLoad) (load bench.Load, err error) {
	load = bench.Load{
		Calls: b.calls, Repeats: b.repeat, Thermal: b.thermal, Warmup: b.warmup, Discard: max(b.discard, 0),
		Sharing: workload.Sharing{Tokens: b.shared, Groups: b.groups},
	}
	if b.shared == 0 {
		load.Sharing = workload.Sharing{}
	}
	switch b.warmup {
	case -1:
		load.Warmup = 0 // the default there
	case 0:
		load.Warmup = bench.None
	}
	for _, d := range []struct {
		flag, text string
		to         *time.Duration
	}{{"duration", b.duration, &load.Duration}, {"pause", b.pause, &load.Pause}, {"window", b.window, &load.Window}} {
		if d.text == "" {
			continue
		}
		if *d.to, err = quantity.ParseDuration(d.text); err != nil {
			return load, fmt.Errorf("--%s: %w", d.flag, err)
		}
	}
	if load.Pause == 0 {
		load.Pause = bench.None
	}
	if b.thermal {
		switch {
		case way == byLadder || way == byLadderRate || way == byStairs:
			return load, fmt.Errorf("--thermal and %s exclude each other: one load is watched for long", way)
		case b.calls > 0:
			return load, errors.New("--thermal and --calls exclude each other: a thermal run has a --duration")
		}
	}
	if load.Trace, err = b.trace(ctx, load.Duration); err != nil {
		return load, err
	}
	input, output := b.input, b.output
	if way == byReplay {
		input, output = orElse(input, workload.KindTrace), orElse(output, workload.KindTrace)
	}
	if load.Input, err = workload.ParseLength(orElse(input, "256")); err != nil {
		return load, fmt.Errorf("--input: %w", err)
	}
	if load.Output, err = outputOf(orElse(output, "128")); err != nil {
		return load, fmt.Errorf("--output: %w", err)
	}
	return load, nil
}

// follows tells whether a load ends with its trace.
func follows(load *bench.Load) bool {
	return load.Arrivals.Shape == workload.Replay || load.Input.Kind == workload.KindTrace || load.Output.Kind == workload.KindTrace
}

// callsOf is how many calls a repeat of the load has: what it says, and no more
// than there are in a trace that it follows.
func callsOf(load *bench.Load) int {
	switch rows := len(load.Trace); {
	case follows(load):
		if load.Calls == 0 || load.Calls > rows {
			return rows
		}
	case load.Calls == 0 && load.Duration == 0 && !load.Thermal:
		return defaultCalls
	}
	return load.Calls
}

func orElse(text, other string) string {
	if strings.TrimSpace(text) == "" {
		return other
	}
	return text
}

// outputOf reads the length of answers; 0 is none, which leaves the end to the model.
func outputOf(text string) (workload.Length, error) {
	if strings.TrimSpace(text) == "0" {
		return workload.Length{}, nil
	}
	return workload.ParseLength(text)
}

// arrivals are those of a single load.
func (b *benchmark) arrivals(way wayToLoad) (a workload.Arrivals, err error) {
	switch way {
	case byConcurrency:
		return workload.Arrivals{Shape: workload.Closed, Concurrency: b.concurrency}, nil
	case byReplay:
		return workload.Arrivals{Shape: workload.Replay, Rate: b.speed, Concurrency: b.concurrency}, nil
	case byRate:
		rate, err := parseRate(b.rate)
		if err != nil {
			return a, fmt.Errorf("--rate: %w", err)
		}
		a = workload.Arrivals{Shape: workload.Poisson, Rate: rate, Concurrency: b.concurrency}
	default:
		if a, err = workload.ParseArrivals(b.load); err != nil {
			return a, fmt.Errorf("--load: %w", err)
		}
		if b.concurrency > 0 {
			if a.Concurrency > 0 {
				return a, fmt.Errorf("--load %q says how many calls may be in flight, and so does --concurrency: leave it out", b.load)
			}
			a.Concurrency = b.concurrency
		}
	}
	return a, nil
}

// parseRate reads calls a second: 4, 4/s, 240/min.
func parseRate(text string) (float64, error) {
	text = strings.TrimSpace(text)
	if strings.Trim(text, "0123456789.") == "" && text != "" {
		text += "/s"
	}
	a, err := workload.ParseArrivals("rate " + text)
	if err != nil {
		return 0, fmt.Errorf("%q is no rate: write it like 4/s or 240/min, between %g and %g calls a second", text, workload.MinRate, float64(workload.MaxRate))
	}
	return a.Rate, nil
}

// steps are the loads of a ladder.
func (b *benchmark) steps(load bench.Load, way wayToLoad) ([]bench.Load, error) {
	text := b.ladder + b.ladderRate
	var loads []bench.Load
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		step := load
		if way == byLadderRate {
			rate, err := parseRate(part)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", way, err)
			}
			step.Arrivals = workload.Arrivals{Shape: workload.Poisson, Rate: rate, Concurrency: b.concurrency}
		} else {
			n, err := strconv.Atoi(part)
			if err != nil || n < 1 || n > workload.MaxConcurrency {
				return nil, fmt.Errorf("%s: %q is no number of calls at a time, from 1 to %d; write it like 1,4,8,16,32", way, part, workload.MaxConcurrency)
			}
			step.Arrivals = workload.Arrivals{Shape: workload.Closed, Concurrency: n}
		}
		loads = append(loads, step)
	}
	return loads, nil
}

func (b *benchmark) stairs(load bench.Load, o bench.Objectives) (*bench.Stairs, error) {
	switch {
	case o.TTFT == 0:
		return nil, errors.New("--staircase needs an objective for the first token: --objective ttft=2s")
	case b.duration != "":
		return nil, errors.New("--staircase and --duration exclude each other: --stair says how long each stair lasts")
	case b.calls > 0:
		return nil, errors.New("--staircase and --calls exclude each other: --stair says how long each stair lasts")
	case b.repeat > 1:
		return nil, errors.New("--staircase and --repeat exclude each other: each stair is climbed once")
	}
	target, err := parseRate(b.staircase)
	if err != nil {
		return nil, fmt.Errorf("--staircase: %w", err)
	}
	each, err := quantity.ParseDuration(b.stair)
	if err != nil {
		return nil, fmt.Errorf("--stair: %w", err)
	}
	if each == 0 {
		return nil, errors.New("--stair must be longer than nothing, like 2m")
	}
	load.Arrivals.Concurrency = b.concurrency
	return &bench.Stairs{Load: load, Target: target, Objective: o.TTFT, Each: each}, nil
}
