package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/internal/engine"
	"github.com/weirgate/weir/internal/ledger"
	"github.com/weirgate/weir/internal/quantity"
	"github.com/weirgate/weir/internal/spend"
)

// reconcile is `weir usage reconcile`: the ledger's sums held against an engine's
// own counters.
type reconcile struct {
	engine    string
	db        string
	since     string
	models    []string
	upstreams []string
	from      string
	save      string
	tolerance string
	json      bool

	client *http.Client // nil is the default one
	now    time.Time
	out    io.Writer
}

const reconcileShort = "Holds the ledger's sums against an engine's counters, and explains the difference"

func configureReconcile(cmd *cobra.Command) {
	rec := new(reconcile)
	cmd.Long = `Reads the counters of tokens that an engine (vLLM, SGLang or llama.cpp) keeps, and
the ledger's sums of the calls to it, and explains the difference line by line:
calls whose usage was not reported, tokens that the engine does not count, requests
that did not come through the gateway. It ends with an error when more tokens than
--tolerance remain unexplained.

An engine's counters run since its start, and the ledger sums by hours. So the
exact way is to compare what both grew by: save a snapshot while no call is under way,
and compare with it later, again while none is. Without a snapshot the ledger is
taken since the hour of the engine's start, where the engine tells it.

What the counters mean: vLLM counts whole prompts, the cached part included, and
the generated tokens of aborted calls as far as they came. SGLang counts whole
prompts, and counts calls when they finish. llama.cpp counts prompt tokens without
those that its cache gave, counts generated tokens when a call finishes, and
prints six significant digits, so that a million and more is rounded.

Calls are the engine's when the ledger has its address as their upstream: the host
and port of --engine, unless --upstream names others.`
	cmd.Example = `  weir usage reconcile --engine http://127.0.0.1:8000 --db usage.db --save monday.json
  weir usage reconcile --engine http://127.0.0.1:8000 --db usage.db --from monday.json
  weir usage reconcile --engine http://10.0.0.7:8000 --upstream vllm.internal:8000 --since 7d --tolerance 2k`
	cmd.Args = cobra.NoArgs
	f := cmd.Flags()
	f.StringVar(&rec.engine, "engine", "", "base `URL` of the engine, or that of its metrics")
	f.StringVar(&rec.db, "db", "usage.db", "the ledger's `file`")
	f.StringVar(&rec.since, "since", "", "`time` where the ledger's sums begin: 7d, 2026-11-01 (in UTC), 2026-11-01T09:00:00Z or all; the engine's start when empty")
	f.StringArrayVar(&rec.models, "model", nil, "only the ledger's calls of this `model`, as clients name it; may be given several times. The engine counts all it serves")
	f.StringArrayVar(&rec.upstreams, "upstream", nil, "`host:port` under which the ledger knows the engine, or * for all calls; may be given several times")
	f.StringVar(&rec.from, "from", "", "compare with this snapshot, a `file`: only what was counted since")
	f.StringVar(&rec.save, "save", "", "write a snapshot of both sides to this `file`; without --from nothing is compared")
	f.StringVar(&rec.tolerance, "tolerance", "0", "prompt or generated `tokens` that may remain unexplained, like 500 or 2k")
	f.BoolVar(&rec.json, "json", false, "write one JSON object")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = true // what follows is not about flags
		rec.out, rec.now = cmd.OutOrStdout(), time.Now()
		ctx, stop := interruptible(cmd)
		defer stop()
		return rec.run(ctx)
	}
}

func (rec *reconcile) run(ctx context.Context) error {
	if rec.engine == "" {
		return errors.New("--engine is missing: name the engine, like --engine http://127.0.0.1:8000")
	}
	tolerance, err := quantity.ParseCount(rec.tolerance)
	if err != nil {
		return fmt.Errorf("--tolerance: %w", err)
	}
	r, err := openLedger(rec.db)
	if err != nil {
		return err
	}
	defer r.Close()
	return rec.compare(ctx, r, tolerance)
}

// compare reads both sides, and compares or saves them as the flags say.
func (rec *reconcile) compare(ctx context.Context, r ledger.Reporter, tolerance int64) error {
	var before *snapshot
	if rec.from != "" {
		var err error
		if before, err = readSnapshot(rec.from); err != nil {
			return err
		}
	}
	after, notes, err := rec.look(ctx, r, before)
	if err != nil {
		return err
	}
	if rec.save != "" {
		if err := after.write(rec.save); err != nil {
			return err
		}
		if before == nil {
			_, err := fmt.Fprintf(rec.out, "Saved the counters of %s and the ledger's sums to %s.\nCompare with it later: weir usage reconcile --engine URL --db %s --from %s\n",
				after.Engine.Kind, rec.save, rec.db, rec.save)
			if err == nil && after.Engine.InFlight.N > 0 {
				_, err = fmt.Fprintf(rec.out, "%s\n", inFlight(after.Engine))
			}
			return err
		}
	}
	var c *comparison
	if before == nil {
		c = explain(after.Engine, after.Ledger)
	} else if c, err = since(before, after); err != nil {
		return err
	}
	c.Engine, c.Since, c.Until, c.Tolerance = after.Engine.Kind, after.Query.Since, after.Taken, tolerance
	if before != nil {
		c.Since = before.Taken
	}
	c.Notes = append(notes, c.Notes...)
	write := c.table
	if rec.json {
		write = c.json
	}
	if err := write(rec.out); err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	return c.verdict()
}

// look reads the engine's counters and the ledger's sums. A snapshot decides what
// is summed; without one the flags do.
func (rec *reconcile) look(ctx context.Context, r ledger.Reporter, before *snapshot) (after *snapshot, notes []string, err error) {
	counters, err := engine.Scrape(ctx, rec.client, rec.engine)
	if err != nil {
		return nil, nil, err
	}
	after = &snapshot{Version: snapshotVersion, Taken: rec.now.UTC(), Engine: counters}
	if before != nil {
		if rec.since != "" || len(rec.models) > 0 || len(rec.upstreams) > 0 {
			return nil, nil, errors.New("--since, --model and --upstream are those of the snapshot: leave them out with --from")
		}
		if counters.Kind != before.Engine.Kind {
			return nil, nil, fmt.Errorf("%s is a snapshot of %s, and the engine is %s: take a new one with --save", rec.from, before.Engine.Kind, counters.Kind)
		}
		after.Query = before.Query
	} else if after.Query, notes, err = rec.query(counters); err != nil {
		return nil, nil, err
	}
	after.Ledger, err = after.Query.sums(ctx, r, rec.upstreams == nil && before == nil)
	if err != nil {
		return nil, nil, err
	}
	again, err := engine.Scrape(ctx, rec.client, rec.engine)
	if err != nil {
		return nil, nil, err
	}
	if again.Prompt != counters.Prompt || again.Generated != counters.Generated {
		notes = append(notes, "The engine's counters moved while they were read: calls are under way. Compare again when none is.")
	}
	return after, notes, nil
}

// query says which calls are summed.
func (rec *reconcile) query(counters engine.Counters) (summed, []string, error) {
	s := summed{Models: rec.models, Upstreams: rec.upstreams}
	if s.Upstreams == nil {
		s.Upstreams = []string{hostPort(rec.engine)}
	}
	var notes []string
	var err error
	s.Since, err = spend.ParseTime(rec.since, time.UTC, rec.now)
	switch {
	case err != nil:
		err = fmt.Errorf("--since: %w", err)
	case rec.since != "":
		notes = []string{"The engine counts since its start, and the ledger is taken since --since. For an exact comparison use --save and later --from."}
	case counters.Start.IsZero():
		notes = []string{"The engine does not tell when it started. All of the ledger is compared with counters that began then; for an exact comparison use --save and later --from."}
	default:
		s.Since = counters.Start.Truncate(time.Hour)
		notes = []string{fmt.Sprintf("The engine started at %s. The ledger sums by the hour, so its sums may include calls of the %s before.",
			counters.Start.Format(time.RFC3339), counters.Start.Sub(s.Since).Round(time.Second))}
	}
	return s, notes, err
}

// hostPort is how the ledger names the upstream at a URL that has been checked.
func hostPort(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	if u.Port() != "" {
		return u.Host
	}
	if u.Scheme == "https" {
		return u.Host + ":443"
	}
	return u.Host + ":80"
}

// sums adds up the ledger's rows of the engine. Rows without an upstream are taken
// in: of a call that a crash of the gateway cut off it is not known. strict demands
// that the ledger knows the upstreams, if it knows any.
func (s summed) sums(ctx context.Context, r ledger.Reporter, strict bool) (ledger.Usage, error) {
	rows, err := r.Usage(ctx, ledger.Query{By: []ledger.Grouping{ledger.ByUpstream}, Since: s.Since, Models: s.Models})
	if err != nil {
		return ledger.Usage{}, fmt.Errorf("ask the ledger for usage: %w", err)
	}
	var mine []spend.Line
	var others []string
	found := false
	for _, row := range rows {
		switch {
		case row.Upstream == "":
			mine = append(mine, spend.Line{Usage: row})
		case slices.Contains(s.Upstreams, row.Upstream), slices.Contains(s.Upstreams, "*"):
			mine, found = append(mine, spend.Line{Usage: row}), true
		default:
			others = append(others, row.Upstream)
		}
	}
	if strict && !found && len(others) > 0 {
		slices.Sort(others)
		return ledger.Usage{}, fmt.Errorf("the ledger has no calls to %s in that time, but to %s: name the engine as the ledger does with --upstream, or take all with --upstream '*'",
			strings.Join(s.Upstreams, ", "), strings.Join(others[:min(len(others), 10)], ", "))
	}
	return spend.Total(mine).Usage, nil
}
