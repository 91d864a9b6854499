package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/internal/rules"
	"github.com/weirgate/weir/slo"
)

// ruling is `weir rules`: what other programs need to watch the objectives.
type ruling struct {
	admin, from, file                 string
	prometheus, alertmanager, grafana bool
	scale                             float64

	client *http.Client
	in     io.Reader
	out    io.Writer
}

const rulesShort = "Writes Prometheus rules, Alertmanager routes or a Grafana dashboard for the objectives"

func configureRules(cmd *cobra.Command) {
	r := new(ruling)
	cmd.Long = `Asks a running gateway for its objectives and writes, one at a time:

--prometheus    recording rules for error ratios and burn rates, and alerting rules with
                the windows, factors, names and labels of the gateway's own alerts, for
                the field rule_files of Prometheus 2.42 or later. promtool check rules
                accepts them.
--alertmanager  routes, inhibitions (a page silences the ticket of the same, an alert
                about all models those of each) and receivers, who have yet to be told how
                to reach people.
--grafana       a dashboard: compliance, budget, burn rates, latency, what waits, engines,
                GPUs, tokens. It needs none of the rules.

Write them anew when the objectives change. Where no gateway can be reached, --from
reads what GET /weir/slo/config of its admin endpoint answered.`
	cmd.Example = `  weir rules --prometheus --out /etc/prometheus/weir.yml
  weir rules --alertmanager > alertmanager.yml
  weir rules --grafana --out weir.json
  curl -s http://127.0.0.1:2019/weir/slo/config | weir rules --prometheus --from -`
	cmd.Args = cobra.NoArgs
	f := cmd.Flags()
	f.BoolVar(&r.prometheus, "prometheus", false, "write rules")
	f.BoolVar(&r.alertmanager, "alertmanager", false, "write routes")
	f.BoolVar(&r.grafana, "grafana", false, "write a dashboard")
	f.StringVar(&r.admin, "admin", "http://127.0.0.1:2019", "admin `URL` of the gateway")
	f.StringVar(&r.from, "from", "", "read the objectives from this `file` instead, - is standard input")
	f.StringVar(&r.file, "out", "", "write to this `file`, which is replaced as a whole; standard output when empty")
	f.Float64Var(&r.scale, "scale", 1, "for drills: divide every time of the rules by this `factor`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = true // what follows is not about flags
		r.in, r.out = cmd.InOrStdin(), cmd.OutOrStdout()
		ctx, stop := interruptible(cmd)
		defer stop()
		return r.run(ctx)
	}
}

func (r *ruling) run(ctx context.Context) error {
	write, err := r.writer()
	if err != nil {
		return err
	}
	var config slo.Config
	if !r.alertmanager { // routes are the same for all
		if config, err = r.config(ctx); err != nil {
			return err
		}
	}
	if r.file == "" {
		return write(r.out, config)
	}
	if err := writeFile(r.file, func(w io.Writer) error { return write(w, config) }); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// writer returns what writes the form that is asked for.
func (r *ruling) writer() (func(io.Writer, slo.Config) error, error) {
	n := 0
	for _, asked := range []bool{r.prometheus, r.alertmanager, r.grafana} {
		if asked {
			n++
		}
	}
	switch {
	case n != 1:
		return nil, errors.New("say what to write: one of --prometheus, --alertmanager and --grafana")
	case r.scale != 1 && !r.prometheus:
		return nil, errors.New("--scale is for --prometheus: only rules have times")
	case r.prometheus:
		return func(w io.Writer, c slo.Config) error { return rules.Prometheus(w, c, rules.Options{Scale: r.scale}) }, nil
	case r.grafana:
		return rules.Grafana, nil
	}
	return func(w io.Writer, _ slo.Config) error { return rules.Alertmanager(w) }, nil
}

// config asks for the objectives, or reads them.
func (r *ruling) config(ctx context.Context) (slo.Config, error) {
	var b bytes.Buffer
	what := "the gateway's answer"
	switch r.from {
	case "":
		ask := adminAsk{admin: r.admin, path: "/weir/slo/config", json: true, client: r.client, out: &b}
		if err := ask.do(ctx); err != nil {
			return slo.Config{}, err
		}
	case "-":
		what = "standard input"
		if _, err := b.ReadFrom(io.LimitReader(r.in, maxAnswer)); err != nil {
			return slo.Config{}, fmt.Errorf("--from: %w", err)
		}
	default:
		what = r.from
		f, err := os.Open(r.from)
		if err != nil {
			return slo.Config{}, fmt.Errorf("--from: %w", err)
		}
		defer f.Close()
		if _, err := b.ReadFrom(io.LimitReader(f, maxAnswer)); err != nil {
			return slo.Config{}, fmt.Errorf("--from: %w", err)
		}
	}
	var answer struct {
		Config *slo.Config `json:"config"`
	}
	if err := json.Unmarshal(b.Bytes(), &answer); err != nil {
		return slo.Config{}, fmt.Errorf("read %s: %w; it is to be what GET /weir/slo/config answers", what, err)
	}
	if answer.Config == nil {
		return slo.Config{}, fmt.Errorf("read %s: it has no field config; it is to be what GET /weir/slo/config answers", what)
	}
	return *answer.Config, nil
}
