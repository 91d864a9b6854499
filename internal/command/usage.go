package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/internal/ledger"
	"github.com/weirgate/weir/internal/spend"
)

// usage is `weir usage`: what the ledger says was used, with costs where there
// is a price list.
type usage struct {
	ask        spend.Ask
	db, prices string
	json, csv  bool

	now time.Time
	out io.Writer
}

// openLedger opens the file of a ledger that a gateway may be writing.
func openLedger(path string) (*ledger.Reader, error) {
	r, err := ledger.OpenReader(path)
	if err != nil {
		return nil, fmt.Errorf("--db: %w", err)
	}
	return r, nil
}

const usageShort = "Reports the tokens and costs that the ledger holds"

func configureUsage(cmd *cobra.Command) {
	u := new(usage)
	cmd.Long = `Reports what was used, from the ledger's file: calls, tokens and, with a price
list, costs, grouped as asked. It only reads, and may run beside the gateway.

Tokens that upstreams reported and tokens that were estimated, because nothing was
reported, stand apart, and so do their costs. PROVENANCE says which share of the
tokens is known in which way: reported by the upstream in its final figure, by
its timings, counted from events, a partial figure of a stream that broke off, or
estimated.

Usage is summed by hours of UTC in which calls were received, and --since and
--until are rounded down to them. A time is a span that ends now (30d, 12h), a day
(2026-11-01, where it begins in --zone) or an instant (2026-11-01T09:00:00Z).

A price list is a file like this; prices are per million tokens, a model may be
a pattern, a later valid_from takes over from an earlier one at a full hour of UTC.
What is left out: cached_input and cache_write are priced as input, reasoning as
output. Costs are computed now, so a corrected price corrects the past.

` + indent(spend.PriceExample)
	cmd.Example = `  weir usage
  weir usage --by key,day --since 2026-11-01 --zone Europe/Berlin
  weir usage --by model --prices prices.json --csv > usage.csv
  weir usage reconcile --engine http://127.0.0.1:8000`
	cmd.Args = cobra.NoArgs
	f := cmd.Flags()
	f.StringSliceVar(&u.ask.By, "by", []string{"key", "model"}, "what to group by, in this order: a `list` of key, model, class, upstream, and one of hour, day, month")
	f.StringVar(&u.ask.Since, "since", "30d", "where the period begins, a `time` as above; all is everything there is")
	f.StringVar(&u.ask.Until, "until", "", "where the period ends, a `time` that is not included; now when empty")
	f.StringVar(&u.ask.Zone, "zone", "UTC", "time `zone` in which days and months begin, like Europe/Berlin")
	f.StringArrayVar(&u.ask.Keys, "key", nil, "only this key, by its `alias` or id; may be given several times")
	f.StringArrayVar(&u.ask.Models, "model", nil, "only this `model`, as clients name it; may be given several times")
	f.StringVar(&u.db, "db", "usage.db", "the ledger's `file`")
	f.StringVar(&u.prices, "prices", "", "`file` with a price list; no costs when empty")
	f.BoolVar(&u.json, "json", false, "write one JSON object")
	f.BoolVar(&u.csv, "csv", false, "write comma-separated values, without totals; a name that a spreadsheet would take for a formula gets a ' before it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = true // what follows is not about flags
		u.out, u.now = cmd.OutOrStdout(), time.Now()
		ctx, stop := interruptible(cmd)
		defer stop()
		return u.run(ctx)
	}
	reconcile := &cobra.Command{Use: "reconcile", Short: reconcileShort}
	configureReconcile(reconcile)
	cmd.AddCommand(reconcile)
}

// interruptible is the command's context, which Ctrl-C ends.
func interruptible(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

func (u *usage) run(ctx context.Context) error {
	if u.json && u.csv {
		return errors.New("--json and --csv exclude each other")
	}
	q, err := u.ask.Query(u.now)
	if err != nil {
		return err
	}
	var prices *spend.Prices
	if u.prices != "" {
		file, err := spend.OpenPrices(u.prices)
		if err != nil {
			return err
		}
		prices = file.Prices()
	}
	r, err := openLedger(u.db)
	if err != nil {
		return err
	}
	defer r.Close()
	return u.report(ctx, r, q, prices)
}

// report writes the answer to a query in the form that is asked for.
func (u *usage) report(ctx context.Context, r ledger.Reporter, q ledger.Query, prices *spend.Prices) error {
	lines, err := spend.Report(ctx, r, q, prices, u.now)
	if err != nil {
		return err
	}
	rep := usageReport{query: q, prices: prices, lines: lines}
	write := rep.table
	switch {
	case u.json:
		write = rep.json
	case u.csv:
		write = rep.csv
	}
	if err := write(u.out); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// usageReport is what is written.
type usageReport struct {
	query  ledger.Query
	prices *spend.Prices // nil without a price list
	lines  []spend.Line
}
