package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/internal/quantity"
)

// headway is `weir capacity`: how much more the running gateway's upstreams take.
type headway struct {
	admin, model, upstream, class, since string
	rate, ttft, tpot                     string
	json                                 bool

	client *http.Client
	out    io.Writer
}

const capacityShort = "Says how much more fits, from live calls or from a plan"

func configureCapacity(cmd *cobra.Command) {
	h := new(headway)
	cmd.Long = `Asks a running gateway how many calls a second its upstreams take before the time to
the first token suffers, from the calls that it saw, without a load test: the rate
at which TTFT reaches 80 % of its objective, an interval for it, how many GPUs a
target rate needs, and whether fewer would do. What the calls cannot carry is
refused, with the reason.

weir capacity plan needs no gateway and no calls: it counts GPUs from the figures of
model and hardware.`
	cmd.Example = `  weir capacity
  weir capacity --model llama-3 --since 6h --target-rate 40
  weir capacity plan --model llama-3.1-70b --gpu h100 --tp 8 --rate 20 \
    --ttft 300ms --tpot 25ms --input 1024 --output 256`
	cmd.Args = cobra.NoArgs
	f := cmd.Flags()
	f.StringVar(&h.admin, "admin", "http://127.0.0.1:2019", "admin `URL` of the gateway")
	f.StringVar(&h.model, "model", "", "only calls to this `model`")
	f.StringVar(&h.upstream, "upstream", "", "only this `upstream`, as weir diagnose names it")
	f.StringVar(&h.class, "class", "", "service `class` whose objectives decide; the gateway's default when empty")
	f.StringVar(&h.since, "since", "", "only calls received since then: a span like 6h, or a time")
	f.StringVar(&h.rate, "target-rate", "", "`calls` a second to count GPUs for, like 40; none when empty")
	f.StringVar(&h.ttft, "ttft", "", "objective of TTFT to hold calls against, a `time` like 2s; the class's when empty")
	f.StringVar(&h.tpot, "tpot", "", "objective of TPOT, a `time` like 40ms; the class's when empty")
	f.BoolVar(&h.json, "json", false, "write one JSON object")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = true // what follows is not about flags
		h.out = cmd.OutOrStdout()
		ctx, stop := interruptible(cmd)
		defer stop()
		return h.ask(ctx)
	}
	plan := &cobra.Command{Use: "plan", Short: capacityPlanShort}
	configureCapacityPlan(plan)
	cmd.AddCommand(plan)
}

func (h *headway) ask(ctx context.Context) error {
	if h.rate != "" {
		rate, err := strconv.ParseFloat(h.rate, 64)
		if err != nil || !(rate > 0) || math.IsInf(rate, 0) {
			return errors.New("--target-rate is no rate: give calls a second, like 40 or 2.5")
		}
	}
	for name, text := range map[string]string{"ttft": h.ttft, "tpot": h.tpot} {
		if text == "" {
			continue
		}
		switch d, err := quantity.ParseDuration(text); {
		case err != nil:
			return fmt.Errorf("--%s: %w", name, err)
		case d == 0:
			return fmt.Errorf("--%s is 0: give a time, like 500ms", name)
		}
	}
	query := make(url.Values)
	for name, value := range map[string]string{
		"model": h.model, "upstream": h.upstream, "class": h.class, "since": h.since, "target_rate": h.rate, "ttft": h.ttft, "tpot": h.tpot,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return adminAsk{
		admin: h.admin, path: "/weir/capacity", query: query, json: h.json, client: h.client, out: h.out,
		patience: 2 * time.Minute, // many calls are replayed many times
	}.do(ctx)
}
