package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/internal/bench"
	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/endpoint"
)

// benchmark is `weir bench`: a load test of an endpoint from the client's side.
type benchmark struct {
	benchFlags
	key secret

	out, errs io.Writer
	now       time.Time
	client    *http.Client // for all but the calls themselves
}

const benchShort = "Loads an endpoint and measures it from the client's side"

// matrixExample is a file for --matrix, as the help shows it.
const matrixExample = `model = "qwen3-8b"
ignore-eos = true

[[load]]
concurrency = [1, 8, 32]
input = [256, 2048]
output = 128
calls = 200          # number of prompts of each repeat

[[load]]
rate = ["2/s", "4/s"]
input = "lognormal 512 sd 256 max 4096"
output = "uniform 64-256"
duration = "2m"
`

func configureBench(cmd *cobra.Command) {
	b := new(benchmark)
	cmd.Long = `Sends calls to an OpenAI-compatible or Anthropic endpoint and measures them from the
client's side: throughput, time to first token, time per output token, end-to-end
time, goodput, failures by kind. Each load is preceded by warm-up calls that are
left out, and repeated; medians are shown, and how far the repeats lie apart.

The base URL may be written with or without /v1, with a path, or as the URL of an
API. The key comes from an environment variable, never from the command line.

A load is a closed loop (--concurrency 8: the next call when one has ended), an open
loop (--rate 4/s: sent when due, whatever is in flight), or the replay of a trace,
which has arrivals and lengths. For the lengths of a trace alone, name a load as well:
--replay FILE --load 'concurrency 8' --input trace --output trace.

Lengths are in tokens of the model, which the warm-up's usage teaches; prompts
differ from their first word on unless --shared-prefix makes them share a beginning.

What the figures mean is printed with them. --metrics-profile takes the definitions
of another tool. The result of --save holds all that a later --baseline needs.
Files that exist are written over.

The first Ctrl-C ends the load, and what was measured until then is written; a
second one ends everything at once.

A file for --matrix has groups of loads, of which every combination is one, and any
flag above them; so has one for --config, where groups may be absent:

` + indent(matrixExample) + `
Exit status: 0, 1 for an error or when no call succeeded, 3 for a regression against
the baseline, 130 when it was interrupted.`
	cmd.Example = `  weir bench --url http://127.0.0.1:8000 --concurrency 8 --calls 200 --input 512 --output 128 --ignore-eos
  OPENAI_API_KEY=… weir bench --url https://taotoken.net/api --key-env OPENAI_API_KEY --model gpt-5 --rate 2/s --duration 2m
  weir bench --url http://127.0.0.1:8000 --ladder 1,4,8,16,32 --calls 100 --html ladder.html
  weir bench --url http://127.0.0.1:8080 --staircase 6/s --objective ttft=2s
  weir bench --url http://127.0.0.1:8000 --concurrency 8 --save monday.json
  weir bench --url http://127.0.0.1:8000 --concurrency 8 --save tuesday.json --baseline monday.json
  weir bench --url http://127.0.0.1:8000 --matrix loads.toml --csv=loads.csv
  weir bench --url http://127.0.0.1:8080 --concurrency 4 --raw calls.jsonl --compare --admin http://127.0.0.1:2019
  weir bench --url http://127.0.0.1:8000 --replay calls.jsonl --speed 2`
	cmd.Args = noWords
	b.register(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = true // what follows is not about flags
		if err := b.readFile(cmd.Flags()); err != nil {
			return err
		}
		b.out, b.errs, b.now = cmd.OutOrStdout(), cmd.ErrOrStderr(), time.Now()
		b.client = &http.Client{Timeout: 30 * time.Second}
		ctx, stop := interruptible(cmd)
		defer stop()
		context.AfterFunc(ctx, stop) // the next Ctrl-C is the system's
		err := b.run(ctx)
		return b.key.hideError(err)
	}
}

// noWords refuses words beside flags. Most are the file of a flag that may stand
// without one.
func noWords(_ *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	return fmt.Errorf("%q stands alone: all is said by flags, and the file of --json, --csv and --markdown goes behind an equals sign, as in --json=result.json", call.NameOf(words[0]))
}

var errNothing = errors.New("nothing was measured")

func (b *benchmark) run(ctx context.Context) error {
	// All that can be checked on this machine comes first: no load is worth its
	// time when there is nowhere to put the result.
	plan, err := b.plan(ctx)
	if err != nil {
		return err
	}
	if err := b.checkFiles(); err != nil {
		return err
	}
	if err := b.readKey(); err != nil {
		return err
	}
	earlier, err := b.readBaseline()
	if err != nil {
		return err
	}
	base, err := endpoint.ParseBase(b.url)
	if err != nil {
		return fmt.Errorf("--url: %w", err)
	}
	found, err := b.find(ctx, base)
	if err != nil {
		return b.unless(ctx, err)
	}
	result, err := b.measure(ctx, plan, found, earlier)
	if len(result.Runs) == 0 {
		if err == nil {
			err = errNothing
		}
		return b.unless(ctx, err)
	}
	// What was measured is shown even when a later load failed.
	err = errors.Join(b.show(result), err, noneSucceeded(result))
	switch {
	case ctx.Err() != nil:
		why := "interrupted: the result holds what was measured until then"
		if earlier != nil {
			why += ", and was not compared with the baseline"
		}
		return exit(statusInterrupted, errors.Join(errors.New(why), err))
	case earlier != nil && err == nil:
		return b.judge(*earlier, result)
	}
	return err
}

// unless returns err, or that the user has ended it before anything came of it.
func (b *benchmark) unless(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return exit(statusInterrupted, errors.New("interrupted before anything was measured"))
	}
	return err
}

// noneSucceeded is an error when no call did: figures that are all absent are
// no success.
func noneSucceeded(r bench.Result) error {
	for i := range r.Runs {
		for _, f := range r.Runs[i].Repeats {
			if f.Good > 0 {
				return nil
			}
		}
	}
	return errors.New("no call succeeded; see the failed calls by kind, and try weir doctor")
}

// readKey takes the key from the environment.
func (b *benchmark) readKey() error {
	if b.keyEnv == "" {
		return nil
	}
	if b.key = secret(strings.TrimSpace(os.Getenv(b.keyEnv))); b.key != "" {
		return nil
	}
	if strings.Trim(b.keyEnv, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
		// It may be the key itself.
		return errors.New("--key-env names no variable that is set: it takes the name of an environment variable, like OPENAI_API_KEY, and not the key itself")
	}
	return fmt.Errorf("environment variable %s is empty: put the key into it, or leave --key-env out", b.keyEnv)
}

// find looks for the API below the base URL, and for the model.
func (b *benchmark) find(ctx context.Context, base endpoint.Base) (endpoint.Found, error) {
	found, err := endpoint.Find(ctx, b.client, base, endpoint.API(b.api), string(b.key))
	if err != nil {
		if endpoint.KindOf(err) == endpoint.FailedAuth && b.keyEnv == "" {
			return found, fmt.Errorf("%w; name the environment variable that holds the key: --key-env OPENAI_API_KEY", err)
		}
		return found, err
	}
	if b.model != "" {
		return found, nil
	}
	switch n := len(found.Models); {
	case n == 1 && len(found.Models[0]) >= call.MaxName:
		return found, errors.New("--model is missing: the only model that the endpoint lists has a name too long to be taken from there")
	case n == 1:
		b.model = found.Models[0]
		return found, nil
	case n == 0:
		return found, errors.New("--model is missing, and the endpoint lists none: name the model to ask for")
	default:
		return found, fmt.Errorf("--model is missing: the endpoint serves %s", some(found.Models, 8))
	}
}

// missing adds to an error of the first calls that the endpoint does not list
// the model, where that is so: whatever it answered, this is the likely reason.
func (b *benchmark) missing(err error, found endpoint.Found) error {
	failure, ok := errors.AsType[*endpoint.Failure](err)
	if !ok || len(found.Models) == 0 || slices.Contains(found.Models, call.NameOf(b.model)) {
		return err
	}
	switch failure.Kind {
	case endpoint.FailedNotFound, endpoint.FailedRequest, endpoint.FailedAuth:
	default:
		return err
	}
	if near := endpoint.Nearest(b.model, found.Models, 3); len(near) > 0 {
		return fmt.Errorf("%w; the endpoint does not list the model %s: did you mean %s?", err, shown(b.model), some(near, 3))
	}
	return fmt.Errorf("%w; the endpoint does not list the model %s: it serves %s", err, shown(b.model), some(found.Models, 8))
}

// some lists the first names, and how many more there are.
func some(names []string, most int) string {
	var all []string
	for _, name := range names[:min(len(names), most)] {
		all = append(all, shown(name))
	}
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all, ", "), more)
	}
	return strings.Join(all, ", ")
}
