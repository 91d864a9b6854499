package command

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

// inquiry is `weir diagnose`: what the running gateway finds in its latest calls.
type inquiry struct {
	admin, since, against, model, class, key, run, id string
	json                                              bool

	client *http.Client
	out    io.Writer
}

const diagnoseShort = "Names the layer at fault in the latest calls, with evidence"

func configureDiagnose(cmd *cobra.Command) {
	q := new(inquiry)
	cmd.Long = `Asks a running gateway what stands out in its latest calls (at most 1,000), or in one
of them: which layer took how much of which time (network, the gateway's queue, the
engine's queue, prefill, decode, GPU, client), how that is known, what speaks for it
and what against, and what to do next. What cannot be told from what was measured
is called undetermined.

With --against the calls received since (5m, unless --since says otherwise) are set
beside those of that time before it: the change is split into phases to the
nanosecond, calls of equal size and batch are compared, so that what is only other
traffic is called that, and one cause is named with what speaks for and against it.
Of the last two hours a sample of 30 calls a minute is kept for it.`
	cmd.Example = `  weir diagnose
  weir diagnose --since 15m --model llama-3
  weir diagnose --since 5m --against 1h
  weir diagnose --id 8k1m2…`
	cmd.Args = cobra.NoArgs
	f := cmd.Flags()
	f.StringVar(&q.admin, "admin", "http://127.0.0.1:2019", "admin `URL` of the gateway")
	f.StringVar(&q.since, "since", "", "only calls received since then: a span like 15m, or a time")
	f.StringVar(&q.against, "against", "", "a healthy time before --since to compare with: a `span` like 1h")
	f.StringVar(&q.class, "class", "", "only calls of this `class`")
	f.StringVar(&q.model, "model", "", "only calls to this `model`")
	f.StringVar(&q.key, "key", "", "only calls of this `key`: its alias or short id")
	f.StringVar(&q.run, "run", "", "only calls of this X-Weir-Run")
	f.StringVar(&q.id, "id", "", "only this call: its id, the client's X-Request-Id or the upstream's response id")
	f.BoolVar(&q.json, "json", false, "write one JSON object")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = true // what follows is not about flags
		q.out = cmd.OutOrStdout()
		ctx, stop := interruptible(cmd)
		defer stop()
		return q.ask(ctx)
	}
}

func (q *inquiry) ask(ctx context.Context) error {
	query := make(url.Values)
	for name, value := range map[string]string{"since": q.since, "against": q.against, "class": q.class, "model": q.model, "key": q.key, "run": q.run, "id": q.id} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return adminAsk{admin: q.admin, path: "/weir/diagnose", query: query, json: q.json, client: q.client, out: q.out}.do(ctx)
}
