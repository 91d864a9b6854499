package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/internal/quantity"
	"github.com/weirgate/weir/slo"
)

// promises is `weir slo`: how the objectives stand.
type promises struct {
	ask    sloAsk
	pick   sloPick
	json   bool
	watch  string
	models bool

	out, errOut io.Writer
}

const sloShort = "Shows how the objectives stand: compliance, error budget, burn rate"

func configureSLO(cmd *cobra.Command) {
	p := new(promises)
	cmd.Long = `Shows how the objectives of a running gateway stand. Several gateways are shown as
one service: their counts are added up, never their percentages, which needs the same
objectives in all of them.

CALLS        good and bad ones of the budget's period, which the first line names
KEPT         the share of them that kept the promise, rounded down; below it, where
             there are fewer than ten times the calls that can show the target kept
             (59 for p95, 299 for p99, 2995 for p99.9), its 95% interval
UNKNOWN      the share of all calls of which nobody knows: it is in no other figure
BUDGET LEFT  of the bad calls that the target allows in the period, by its forecast where
             there is one; below 0% it is overspent
BURN RATE    bad calls over the last 5m to 3d by those that the target allows: at 1 the
             budget lasts for just its period
STATE        ok, warning (half of the budget is used), ticket (it burns all the time),
             freeze (four fifths), exhausted, page (look now); ok* is ok only because
             there are too few calls to tell
SINCE        when the alert for that state began

"–" is what is not known. A promise about all models of a class counts the calls of
all; --models shows each model below it. What could not be decided for too long is
decided: a call without a first token is bad as soon as the threshold has passed.`
	cmd.Example = `  weir slo
  weir slo --class interactive --models
  weir slo --admin http://10.0.0.1:2019,http://10.0.0.2:2019 --watch 5s
  weir slo gate && ./release.sh`
	cmd.Args = cobra.NoArgs
	p.ask.flags(cmd)
	p.pick.flags(cmd)
	f := cmd.Flags()
	f.BoolVar(&p.models, "models", false, "show single models below the sums over all")
	f.BoolVar(&p.json, "json", false, "write one JSON object; with --watch one a line")
	f.StringVar(&p.watch, "watch", "", "show it again after each `span`, like 5s, until Ctrl-C")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = true // what follows is not about flags
		p.out, p.errOut = cmd.OutOrStdout(), cmd.ErrOrStderr()
		ctx, stop := interruptible(cmd)
		defer stop()
		return p.run(ctx)
	}
	gate := &cobra.Command{Use: "gate", Short: sloGateShort}
	configureSLOGate(gate)
	cmd.AddCommand(gate)
}

// minWatch keeps --watch from being a load on the gateway.
const minWatch = time.Second

func (p *promises) run(ctx context.Context) error {
	if p.watch == "" {
		return p.once(ctx)
	}
	every, err := quantity.ParseDuration(p.watch)
	if err != nil {
		return fmt.Errorf("--watch: %w", err)
	}
	if every < minWatch {
		return fmt.Errorf("--watch %s is too often: objectives change with calls, ask every %v or less often", p.watch, minWatch)
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for first := true; ; first = false {
		if err := p.once(ctx); ctx.Err() != nil {
			return nil // Ctrl-C ends it, and is no error
		} else if written := (*writeError)(nil); first && err != nil || errors.As(err, &written) {
			return err
		} else if err != nil { // a gateway that is being restarted comes back
			fmt.Fprintln(p.errOut, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// writeError is that whoever reads the output is gone.
type writeError struct{ err error }

func (e *writeError) Error() string { return "write the objectives: " + e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// once shows how the objectives stand now.
func (p *promises) once(ctx context.Context) error {
	s, err := p.ask.do(ctx)
	if err != nil {
		return err
	}
	all := s.status.Objectives
	if s.status.Objectives, err = p.pick.from(all); err != nil {
		return err
	}
	sums := s.status.Objectives
	if !p.models && len(p.pick.models) == 0 {
		sums = onlySums(sums)
	}
	write := func() error {
		if p.json {
			return s.writeJSON(p.out, p.watch == "")
		}
		hidden := len(s.status.Objectives) - len(sums)
		s.status.Objectives = sums
		return s.table(p.out, hidden > 0, p.watch != "" && isTerminal(p.out))
	}
	if err := write(); err != nil {
		return &writeError{err}
	}
	return nil
}

// onlySums leaves out what is about one model.
func onlySums(all []slo.ObjectiveStatus) []slo.ObjectiveStatus {
	var sums []slo.ObjectiveStatus
	for _, o := range all {
		if o.Model == slo.AllModels {
			sums = append(sums, o)
		}
	}
	return sums
}

// writeJSON writes it for programs.
func (s *sight) writeJSON(w io.Writer, pretty bool) error {
	if s.status.Objectives == nil {
		s.status.Objectives = []slo.ObjectiveStatus{}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if pretty {
		enc.SetIndent("", "  ")
	}
	return enc.Encode(struct {
		Gateways []string        `json:"gateways"`
		Status   slo.Status      `json:"status"`
		Alerts   json.RawMessage `json:"alerts,omitempty"` // of one gateway, as it has them
		Notes    []string        `json:"notes,omitempty"`
	}{s.gateways, s.status, s.alertsJSON, s.notes})
}
