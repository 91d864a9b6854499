package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/weirgate/weir/internal/bench"
	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/report"
)

// measure puts the loads on the endpoint. With an error comes what was measured
// before it.
func (b *benchmark) measure(ctx context.Context, p benchPlan, found endpoint.Found, earlier *bench.Result) (bench.Result, error) {
	run := "bench-" + b.now.UTC().Format("20060102T150405.000")
	result := bench.Result{Version: 1, Objectives: p.objectives, Streamed: b.stream, Seed: b.seed}
	result.Environment = bench.Snapshot(ctx, bench.Channel{
		Client: b.client, Root: found.Root, Key: string(b.key), API: endpoint.API(b.api), Model: b.model, Profile: p.profile,
		Admin: b.admin, Weir: Version(), Now: b.now,
	})
	if b.environment != "" {
		if err := result.Environment.MergeGiven(b.environment); err != nil {
			return result, fmt.Errorf("--env: %w", err)
		}
	}
	b.key.hideIn(&result.Environment)
	if err := b.comparable(earlier, &result, &p); err != nil {
		return result, err
	}
	if b.admin != "" && result.Environment.Gateway == "" {
		result.Notes = append(result.Notes, "no gateway that takes calls answered at the address of --admin")
	}
	p.ask.Model = b.model
	compared := &comparer{compare: func(calls []bench.Sample) (bench.Compared, error) {
		return bench.Compare(context.WithoutCancel(ctx), b.client, b.admin, run, calls) // it bounds itself
	}}
	if b.compare {
		if err := b.checkGateway(ctx, found, p.ask, result.Environment.Gateway != "", run); err != nil {
			return result, err
		}
	}
	client, err := b.caller(found, run)
	if err != nil {
		return result, err
	}
	defer client.Close()
	raw, err := b.openRaw()
	if err != nil {
		return result, err
	}
	bar := report.NewBar(b.errs, isTerminal(b.errs), widthOf(b.errs))
	config := bench.Config{
		Caller: client, Run: run, Ask: p.ask, Objectives: p.objectives, Profile: p.profile, Seed: b.seed,
		Sink: func(s bench.Sample) {
			raw.write(s)
			if b.compare {
				compared.take(s)
			}
		},
	}
	if !b.quiet {
		config.Progress = bar.Show
	}
	err = b.loads(ctx, config, p, &result)
	if err != nil {
		err = b.missing(err, found)
	}
	result.Interrupted = ctx.Err() != nil
	_ = bar.Close() // progress that nobody could see is no fault of the figures
	for i := range result.Runs {
		if run := &result.Runs[i]; run.Thermal == nil && p.thermal() && !run.Interrupted {
			run.Notes = append(run.Notes, "calls took so long that there is no first and last window to compare; make --duration more than two --window and a call")
		}
	}
	return result, errors.Join(err, compared.fill(result.Runs), raw.close())
}

func (p *benchPlan) thermal() bool { return len(p.loads) > 0 && p.loads[0].Thermal }

// caller is what sends the calls, under this name of a run.
func (b *benchmark) caller(found endpoint.Found, run string) (*endpoint.Client, error) {
	return endpoint.NewClient(endpoint.Config{
		Root: found.Root, Key: string(b.key), Timeout: b.timeout, Header: http.Header{"X-Weir-Run": {run}},
	})
}

// loads runs what the plan says.
func (b *benchmark) loads(ctx context.Context, config bench.Config, p benchPlan, result *bench.Result) error {
	runner, err := bench.New(config)
	if err != nil {
		return err
	}
	switch {
	case p.stairs != nil:
		runs, stairs, err := runner.Staircase(ctx, *p.stairs)
		result.Runs, result.Staircase = runs, &stairs
		return err
	case p.ladder:
		runs, ladder, err := runner.Ladder(ctx, p.loads, p.saturation)
		result.Runs, result.Ladder = runs, &ladder
		return err
	}
	for _, load := range p.loads {
		run, err := runner.Run(ctx, load)
		if err != nil {
			return err
		}
		if len(run.Repeats) > 0 {
			result.Runs = append(result.Runs, run)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil
}

func (b *benchmark) readBaseline() (*bench.Result, error) {
	if b.baseline == "" {
		return nil, nil
	}
	text, err := os.ReadFile(b.baseline)
	if err != nil {
		return nil, fmt.Errorf("--baseline: %w; make one with --save", err)
	}
	var r bench.Result
	if err := json.Unmarshal(text, &r); err != nil || len(r.Runs) == 0 {
		return nil, fmt.Errorf("--baseline %s is not a result of weir bench --save", b.baseline)
	}
	if r.Version != 1 {
		return nil, fmt.Errorf("--baseline %s has version %d of the form, and this program knows version 1: use a newer weir", b.baseline, r.Version)
	}
	return &r, nil
}

// comparable tells before the load whether its result will be one that can be
// held against the baseline: two results without figures are, or are not, for the
// same reasons.
func (b *benchmark) comparable(earlier, now *bench.Result, p *benchPlan) error {
	if earlier == nil {
		return nil
	}
	before, after := *earlier, *now
	before.Runs, after.Runs = nil, nil
	for _, run := range earlier.Runs {
		before.Runs = append(before.Runs, bench.Run{Load: run.Load, Arrivals: run.Arrivals, Input: run.Input, Output: run.Output, Sharing: run.Sharing})
	}
	for _, load := range p.loads {
		after.Runs = append(after.Runs, bench.Run{Load: load.Label, Arrivals: load.Arrivals, Input: load.Input, Output: load.Output, Sharing: load.Sharing})
	}
	if p.stairs != nil { // how far it will be climbed is not known
		after.Runs = before.Runs
	}
	if _, err := bench.Against(before, after, b.against()); err != nil {
		if !b.force {
			err = fmt.Errorf("%w with --force", err)
		}
		return fmt.Errorf("--baseline %s: %w", b.baseline, err)
	}
	return nil
}

func (b *benchmark) against() bench.BaselineOptions {
	return bench.BaselineOptions{Threshold: b.threshold / 100, Force: b.force}
}

// errRegression ends the command with a status of its own.
var errRegression = errors.New("a figure is worse than in the baseline, beyond noise and threshold; see the table")

// judge holds the result against the baseline.
func (b *benchmark) judge(earlier, result bench.Result) error {
	verdict, err := bench.Against(earlier, result, b.against())
	if err != nil {
		return fmt.Errorf("--baseline %s: %w", b.baseline, err)
	}
	where := b.out
	if !b.table() {
		where = b.errs // a program reads the other
	}
	err = report.Regression(where, verdict, widthOf(where), b.colour(where))
	if verdict.Failed {
		return exit(statusRegression, errors.Join(errRegression, err))
	}
	return err
}
