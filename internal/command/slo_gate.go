package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/internal/quantity"
	"github.com/weirgate/weir/slo"
)

// statusStop is what weir slo gate ends with when a release is to wait. 1 is that
// it cannot be told.
const statusStop = 3

// sloGate is `weir slo gate`: may a release go on?
type sloGate struct {
	ask     sloAsk
	pick    sloPick
	failOn  string
	minData string
	json    bool

	out, errOut io.Writer
}

const sloGateShort = "Tells a release pipeline by its exit status whether the error budgets allow a release"

// failStates are the states that --fail-on may name, as slo.States orders them.
var failStates = slo.States[1:]

func configureSLOGate(cmd *cobra.Command) {
	g := new(sloGate)
	cmd.Long = `Asks a running gateway whether its error budgets allow a release, and says so by the
exit status:

  0  go: nothing is as bad as --fail-on; what is bad yet not that bad is told on
     standard error
  3  stop: an objective is in the state --fail-on or a worse one; one line for each
     says why and what to do
  1  it cannot be told: no gateway answers, no objective is configured, nothing is
     what --class, --model or --objective ask for, or there is less data than --min-data
  2  the command line is wrong

States, the worst last: warning (half of the budget is used), ticket (it burns all the
time), freeze (four fifths are used), exhausted (all is), page (it burns so fast that
somebody has to look now). A budget freezes only when its period has enough calls to
tell; until then the gate lets releases pass and says so, unless --min-data asks for
more. The sums over all models decide, with --model those models.`
	cmd.Example = `  weir slo gate && ./release.sh
  weir slo gate --class interactive --fail-on exhausted
  weir slo gate --admin http://10.0.0.1:2019,http://10.0.0.2:2019 --min-data 1k --json`
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exit(statusUsage, err) })
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return exit(statusUsage, errors.New("weir slo gate takes no arguments"))
		}
		return nil
	}
	g.ask.flags(cmd)
	g.pick.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&g.failOn, "fail-on", string(slo.StateFreeze), "stop at this `state` and all that are worse: "+stateNames())
	f.StringVar(&g.minData, "min-data", "0", "least `count` of good and bad calls in the period, like 1k, that each objective needs")
	f.BoolVar(&g.json, "json", false, "write one JSON object")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = true // what follows is not about flags
		g.out, g.errOut = cmd.OutOrStdout(), cmd.ErrOrStderr()
		ctx, stop := interruptible(cmd)
		defer stop()
		return g.run(ctx)
	}
}

func stateNames() string {
	names := make([]string, len(failStates))
	for i, s := range failStates {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

// gated is one objective that a release is held up by, or that people should know of.
type gated struct {
	Class     string    `json:"class"`
	Model     string    `json:"model,omitempty"`
	Objective string    `json:"objective"` // its name
	Text      string    `json:"text"`
	State     slo.State `json:"state"`
	Reason    string    `json:"reason"`
	Action    string    `json:"action"`
}

func (g gated) line() string {
	return fmt.Sprintf("%s: %s: %s; %s", gateName(g.Class, g.Text, g.Model), named(string(g.State)), g.Reason, g.Action)
}

// gateName names an objective in a line of its own.
func gateName(class, text, model string) string {
	name := named(class) + ": " + named(text)
	if model != slo.AllModels {
		name += " of " + named(model)
	}
	return name
}

// judgement is what the gate says.
type judgement struct {
	Verdict    string  `json:"verdict"` // go, stop, or unknown
	Period     string  `json:"period"`
	FailOn     string  `json:"fail_on"`
	Objectives int     `json:"objectives"` // how many were looked at
	Offending  []gated `json:"offending"`
	Warnings   []gated `json:"warnings"`
	// TooFew are those with too few calls to tell; Lacking those with fewer than --min-data.
	TooFew  []string `json:"too_few_calls,omitempty"`
	Lacking []string `json:"less_than_min_data,omitempty"`
	Notes   []string `json:"notes,omitempty"`
}

func (g *sloGate) run(ctx context.Context) error {
	from := slices.Index(failStates, slo.State(g.failOn))
	if from < 0 {
		return exit(statusUsage, fmt.Errorf("--fail-on %s: there is no such state; use one of %s", named(g.failOn), stateNames()))
	}
	least, err := quantity.ParseCount(g.minData)
	if err != nil {
		return exit(statusUsage, fmt.Errorf("--min-data: %w", err))
	}
	s, err := g.ask.do(ctx)
	if err != nil {
		return err
	}
	picked, err := g.pick.from(s.status.Objectives)
	if err != nil {
		return err
	}
	if len(g.pick.models) == 0 {
		picked = onlySums(picked)
	}
	if len(picked) == 0 {
		return errors.New("no call has been counted for any objective, so nothing can be told; ask again after some traffic")
	}
	j := s.judge(picked, failStates[from:], least)
	j.FailOn = g.failOn
	return g.tell(j, least)
}

// judge looks at each objective. stops are the states that hold up a release.
func (s *sight) judge(picked []slo.ObjectiveStatus, stops []slo.State, least int64) judgement {
	j := judgement{Verdict: "go", Period: s.status.Period.Name, Objectives: len(picked), Offending: []gated{}, Warnings: []gated{}, Notes: s.notes}
	for _, o := range picked {
		state, _ := s.stateOf(o)
		name := gateName(o.Class, o.Text, o.Model)
		if o.Total() < least {
			j.Lacking = append(j.Lacking, fmt.Sprintf("%s has %s good and bad calls", name, thousands(o.Total())))
		}
		if state == slo.StateOK {
			if o.Budget.TooFew {
				j.TooFew = append(j.TooFew, name)
			}
			continue
		}
		at := gated{o.Class, o.Model, o.Objective.Name, o.Text, state, s.reason(o, state), s.action(o, state)}
		if slices.Contains(stops, state) || !slices.Contains(slo.States, state) { // a state of a newer gateway is no reason to go
			j.Offending = append(j.Offending, at)
		} else {
			j.Warnings = append(j.Warnings, at)
		}
	}
	switch {
	case len(j.Offending) > 0:
		j.Verdict = "stop"
	case len(j.Lacking) > 0:
		j.Verdict = "unknown"
	}
	return j
}

// tell writes the judgement, and returns the error that has the exit status.
func (g *sloGate) tell(j judgement, least int64) error {
	var err error
	if g.json {
		enc := json.NewEncoder(g.out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		err = enc.Encode(j)
	} else {
		err = g.text(j)
	}
	if err != nil {
		return fmt.Errorf("write the judgement: %w", err)
	}
	switch j.Verdict {
	case "stop":
		return exit(statusStop, fmt.Errorf("stop: %d of %d objectives hold up the release", len(j.Offending), j.Objectives))
	case "unknown":
		return fmt.Errorf("it cannot be told: %d of %d objectives have fewer calls than --min-data %s; the first: %s",
			len(j.Lacking), j.Objectives, quantity.FormatCount(least), j.Lacking[0])
	}
	return nil
}

// text writes offending objectives to standard output, and all else that people
// should know to standard error.
func (g *sloGate) text(j judgement) error {
	for _, o := range j.Offending {
		if _, err := fmt.Fprintln(g.out, o.line()); err != nil {
			return err
		}
	}
	for _, o := range j.Warnings {
		fmt.Fprintln(g.errOut, "warning: "+o.line())
	}
	if n := len(j.TooFew); n > 0 {
		fmt.Fprintf(g.errOut, "note: %d of %d objectives have too few calls in the period to tell; the first is %s\n", n, j.Objectives, j.TooFew[0])
	}
	for _, text := range j.Notes {
		fmt.Fprintln(g.errOut, "note: "+text)
	}
	if j.Verdict != "go" {
		return nil
	}
	_, err := fmt.Fprintf(g.out, "go: no objective of %d is at %s or worse (budget of %s)\n", j.Objectives, j.FailOn, named(j.Period))
	return err
}

// reason says why an objective is in its state.
func (s *sight) reason(o slo.ObjectiveStatus, state slo.State) string {
	if state == slo.StatePage || state == slo.StateTicket {
		if why := firingText(o); why != "" {
			return why
		}
		return "it burned too fast until just now, and the alert has not ended yet"
	}
	consumed, allowed, of := o.Budget.Consumed, o.Budget.Allowed, "so far"
	if o.Budget.ConsumedForecast != nil && o.Budget.AllowedForecast != nil {
		consumed, allowed, of = o.Budget.ConsumedForecast, o.Budget.AllowedForecast, "by the forecast"
	}
	if consumed == nil || allowed == nil {
		return "that was told by an alert, and has not ended yet"
	}
	return fmt.Sprintf("%s of the error budget of %s is used: %s bad calls, and %s allows %s %s",
		percent(*consumed), named(s.status.Period.Name), thousands(o.Bad), o.Objective.Target.Percent(), allowedText(*allowed), of)
}

// allowedText writes a number of bad calls, which need not be whole.
func allowedText(n float64) string {
	if n >= 100 && n < math.MaxInt64 {
		return thousands(int64(n))
	}
	return fmt.Sprintf("%.1f", n)
}

// action says what to do about it.
func (s *sight) action(o slo.ObjectiveStatus, state slo.State) string {
	look := "weir diagnose"
	if o.Model != slo.AllModels && !strings.ContainsAny(o.Model, " '\"$`\\") {
		look += " --model " + named(o.Model)
	}
	switch state {
	case slo.StatePage:
		return "look now what is wrong: " + look
	case slo.StateExhausted:
		return "release only what mends it: " + look
	case slo.StateFreeze:
		return "hold back what is risky until the budget recovers: " + look
	case slo.StateTicket:
		return "look within days what is wrong: " + look
	case slo.StateWarning:
		return "release with care; what uses it up: " + look
	}
	return "see weir slo"
}
