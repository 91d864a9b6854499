package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/bench"
	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/quantity"
	"github.com/weirgate/weir/internal/saturation"
	"github.com/weirgate/weir/internal/workload"
)

// benchPlan is what the flags come to.
type benchPlan struct {
	loads      []bench.Load
	ladder     bool
	stairs     *bench.Stairs // nil unless a staircase is climbed
	objectives bench.Objectives
	profile    bench.Profile
	saturation saturation.Options
	ask        endpoint.Ask // without the model
}

// plan makes of the flags what is to be done, or says what is wrong with them. It
// asks nothing of the endpoint.
func (b *benchmark) plan(ctx context.Context) (p benchPlan, err error) {
	if err := b.checkFlags(); err != nil {
		return p, err
	}
	if p.profile, err = bench.ParseProfile(b.profile); err != nil {
		return p, fmt.Errorf("--metrics-profile: %w", err)
	}
	if p.objectives, err = parseObjectives(b.objective); err != nil {
		return p, fmt.Errorf("--objective: %w", err)
	}
	p.saturation = saturation.Options{Headroom: b.headroom / 100, TTFT: p.objectives.TTFT, TPOT: p.objectives.TPOT}
	if p.ask, err = b.ask(); err != nil {
		return p, err
	}
	way, err := b.way()
	if err != nil {
		return p, err
	}
	load, err := b.baseLoad(ctx, way)
	if err != nil {
		return p, err
	}
	switch way {
	case byLadder, byLadderRate:
		p.ladder = true
		p.loads, err = b.steps(load, way)
	case byStairs:
		p.stairs, err = b.stairs(load, p.objectives)
	case byGroups:
		p.loads, err = b.combinations(load)
	default:
		load.Arrivals, err = b.arrivals(way)
		p.loads = []bench.Load{load}
	}
	if err != nil {
		return p, err
	}
	return p, b.finish(&p)
}

// checkFlags checks what needs no other flag to be understood.
func (b *benchmark) checkFlags() error {
	switch {
	case b.url == "":
		return errors.New("--url is missing: name the endpoint, like --url http://127.0.0.1:8000")
	case !slices.Contains(endpoint.APIs, endpoint.API(b.api)):
		return fmt.Errorf("--api %s is not known: choose chat, completions, responses or messages", shown(b.api))
	case b.timeout < 0:
		return fmt.Errorf("--timeout %v is below 0: write it like 5m, or 0 for no bound", b.timeout)
	case b.concurrency < 0:
		return fmt.Errorf("--concurrency %d is below 0: write it like --concurrency 8", b.concurrency)
	case b.calls < 0:
		return fmt.Errorf("--calls %d is below 0: write it like --calls 200", b.calls)
	case b.warmup < -1:
		return fmt.Errorf("--warmup %d is not possible: give a number of calls, 0 for none, or -1 for the default", b.warmup)
	case b.repeat < 0:
		return fmt.Errorf("--repeat %d is below 0: write it like --repeat 3", b.repeat)
	case b.discard != -1 && !(b.discard >= 0 && b.discard < 1):
		return fmt.Errorf("--discard %v is no share: give one from 0 to below 1, like 0.1", b.discard)
	case !(b.speed > 0):
		return fmt.Errorf("--speed %v is no factor above 0: 2 is twice as fast, 0.5 half", b.speed)
	case !(b.headroom > 0 && b.headroom < 100):
		return fmt.Errorf("--headroom %v is no percentage between 0 and 100", b.headroom)
	case !(b.threshold > 0 && b.threshold < 100):
		return fmt.Errorf("--threshold %v is no percentage between 0 and 100", b.threshold)
	case b.compare && b.admin == "":
		return errors.New("--compare needs the gateway's admin address: --admin http://127.0.0.1:2019")
	case b.force && b.baseline == "":
		return errors.New("--force goes with --baseline, which is missing")
	}
	return nil
}

// ask is what each call asks for, but for model and prompt.
func (b *benchmark) ask() (endpoint.Ask, error) {
	a := endpoint.Ask{
		API: endpoint.API(b.api), System: b.system, Stream: b.stream, Usage: true, IgnoreEOS: b.ignoreEOS,
	}
	if b.temperature >= 0 {
		a.Temperature = &b.temperature
	}
	if b.extra != "" {
		err := json.Unmarshal([]byte(b.extra), &a.Extra)
		if _, other := errors.AsType[*json.UnmarshalTypeError](err); other || err == nil && a.Extra == nil {
			err = errors.New("it is a value of another kind")
		}
		if err != nil {
			return a, fmt.Errorf("--extra is not a JSON object: %w; write it like --extra '{\"top_p\": 0.9}'", err)
		}
		for member, flag := range map[string]string{"stream": "--stream", "model": "--model"} {
			if _, is := a.Extra[member]; is {
				return a, fmt.Errorf("--extra has the member %q, which figures depend on: say it with %s", member, flag)
			}
		}
	}
	whole := a
	whole.MaxTokens = 1
	if _, err := whole.Body(); err != nil {
		return a, err
	}
	return a, nil
}

// finish completes the loads and checks them all, before the first of them costs
// any time.
func (b *benchmark) finish(p *benchPlan) error {
	loads, traced := p.loads, false
	if p.stairs != nil {
		if !b.stream {
			return errors.New("--staircase needs streams, since it goes by the time to first token: leave --stream=false out")
		}
		first := p.stairs.Load
		first.Label, first.Duration = "the first stair", p.stairs.Each
		first.Arrivals.Shape, first.Arrivals.Rate = workload.Poisson, p.stairs.Target/2
		loads = []bench.Load{first} // to check it
	}
	labels := make(map[string]int)
	for i := range loads {
		load := &loads[i]
		load.Calls = callsOf(load)
		if load.Label == "" {
			load.Label = load.Arrivals.String()
		}
		if labels[load.Label]++; labels[load.Label] > 1 {
			if p.ladder {
				return fmt.Errorf("the ladder has %s twice", load.Label)
			}
			load.Label = fmt.Sprintf("%s (%d)", load.Label, labels[load.Label])
		}
		if b.ignoreEOS && load.Output.IsNone() {
			return fmt.Errorf("%s: --ignore-eos needs a length of answers, or they would go on until the context is full: give --output", load.Label)
		}
		if err := load.Validate(); err != nil {
			return fmt.Errorf("%s: %w", load.Label, err)
		}
		traced = traced || follows(load)
	}
	if !traced && (b.replay != "" || b.replayLedger != "") {
		return errors.New("the arrivals are not those of the replay, and neither are the lengths: leave the other load out, or take the lengths with --input trace --output trace")
	}
	return nil
}

// parseObjectives reads ttft=2s,tpot=50ms,e2e=30s.
func parseObjectives(text string) (o bench.Objectives, err error) {
	if strings.TrimSpace(text) == "" {
		return o, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		to, known := map[string]*time.Duration{"ttft": &o.TTFT, "tpot": &o.TPOT, "e2e": &o.E2E}[strings.ToLower(strings.TrimSpace(name))]
		if !known {
			return o, fmt.Errorf("%q is no objective; write them like ttft=2s,tpot=50ms,e2e=30s", part)
		}
		if *to != 0 {
			return o, fmt.Errorf("%s is there twice", name)
		}
		if *to, err = quantity.ParseDuration(value); err != nil {
			return o, fmt.Errorf("%s: %w", name, err)
		}
		if *to == 0 {
			return o, fmt.Errorf("%s must be longer than nothing", name)
		}
	}
	return o, nil
}
