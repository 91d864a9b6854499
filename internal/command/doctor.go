package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/internal/doctor"
	"github.com/weirgate/weir/internal/endpoint"
)

// examination is `weir doctor`: an endpoint, or a gateway and what is behind it,
// checked as an expert would.
type examination struct {
	url, api, model string
	keyEnv          string
	admin, metrics  string
	timeout         time.Duration
	slow            bool
	json, noColour  bool

	out io.Writer
}

const doctorShort = "Checks an endpoint as an expert would, and says what to do next"

func configureDoctor(cmd *cobra.Command) {
	e := new(examination)
	cmd.Use = "doctor [URL]"
	cmd.Long = `Checks an endpoint, or a gateway and what is behind it, one line a check: name,
connection, TLS, proxies, clock, base URL, key, model, answers streamed and not,
usage, buffering and compression on the way, keep-alive, the engine's metrics, and
flags that would make figures exact. Each line that is not ok says why, and what to
do next. Checks that the fault of another keeps from being made are one line at the
end; the last line counts.

A healthy endpoint gets four short calls. The key comes from an environment variable
and is never shown; neither are answers.

The status is 0 when nothing is broken (warnings included), 1 when something is, and
2 when the command line is wrong.`
	cmd.Example = `  weir doctor http://127.0.0.1:8000
  OPENAI_API_KEY=… weir doctor https://taotoken.net/api --key-env OPENAI_API_KEY --model gpt-5
  weir doctor http://127.0.0.1:8080 --admin http://127.0.0.1:2019
  weir doctor http://127.0.0.1:8000 --json`
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exit(statusUsage, err) })
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 1 {
			return exit(statusUsage, errors.New("more than one URL: the doctor sees one endpoint at a time"))
		}
		return nil
	}
	f := cmd.Flags()
	f.StringVar(&e.url, "url", "", "base `URL` of the endpoint; the same as the argument")
	f.StringVar(&e.api, "api", string(endpoint.Chat), "API to speak: chat, completions, responses or messages (Anthropic)")
	f.StringVar(&e.model, "model", "", "`model` to ask for; the first that is listed when empty")
	f.StringVar(&e.keyEnv, "key-env", "", "environment `variable` that holds the key; no key is sent when empty")
	f.StringVar(&e.admin, "admin", "", "admin `URL` of the gateway, like http://127.0.0.1:2019: the gateway is checked too")
	f.StringVar(&e.metrics, "metrics", "", "`URL` of the engine's metrics; below the endpoint when empty")
	f.DurationVar(&e.timeout, "timeout", 10*time.Second, "longest that one request may take")
	f.BoolVar(&e.slow, "slow", false, "also let a connection idle for six seconds")
	f.BoolVar(&e.json, "json", false, "write one JSON object")
	f.BoolVar(&e.noColour, "no-color", false, "use no colours; also NO_COLOR in the environment")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cmd.SilenceUsage = true // what follows is not about flags
		if len(args) == 1 {
			if e.url != "" {
				return exit(statusUsage, errors.New("the URL is given twice, as an argument and with --url"))
			}
			e.url = args[0]
		}
		e.out = cmd.OutOrStdout()
		ctx, stop := interruptible(cmd)
		defer stop()
		return e.run(ctx)
	}
}

func (e *examination) run(ctx context.Context) error {
	if e.url == "" {
		return exit(statusUsage, errors.New("name the endpoint: weir doctor http://127.0.0.1:8000"))
	}
	if !slices.Contains(endpoint.APIs, endpoint.API(e.api)) {
		return exit(statusUsage, fmt.Errorf("--api %s is not known: choose chat, completions, responses or messages", e.api))
	}
	if e.timeout <= 0 {
		return exit(statusUsage, fmt.Errorf("--timeout %v: give a time, like 10s", e.timeout))
	}
	c := doctor.Config{
		Base: e.url, API: endpoint.API(e.api), Model: e.model, KeyName: e.keyEnv, Admin: e.admin, Metrics: e.metrics,
		Slow: e.slow, Timeout: e.timeout, Environ: os.Getenv,
	}
	if e.keyEnv != "" {
		// As it is: stray white space is one of the things to find.
		if c.Key = os.Getenv(e.keyEnv); c.Key == "" {
			return exit(statusUsage, fmt.Errorf("environment variable %s is empty: put the key into it, or leave --key-env out", e.keyEnv))
		}
	}
	colour := !e.noColour && os.Getenv("NO_COLOR") == "" && isTerminal(e.out)
	var written error
	page := doctor.NewPage(e.out, widthOf(e.out), colour)
	findings := doctor.Run(ctx, c, func(f doctor.Finding) {
		if !e.json && written == nil {
			written = page.Add(f)
		}
	})
	switch {
	case e.json:
		written = doctor.JSON(e.out, findings)
	case written == nil:
		written = page.End()
	}
	switch {
	case written != nil:
		return written
	case ctx.Err() != nil:
		return errors.New("interrupted: not all checks were made")
	case doctor.Worst(findings) == doctor.Red:
		return errors.New("something is broken; the lines marked FAIL say what, and what to do next")
	}
	return nil
}
