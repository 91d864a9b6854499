package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/spf13/cobra"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/sim"
)

// demo is `weir demo`: the gateway in front of an endpoint, or of the embedded
// engine simulator, printing each call as it is measured.
type demo struct {
	listen   string // host:port of the gateway
	admin    string // host:port of the admin endpoint; a free port when that is taken
	upstream string // base URL of the endpoint; "" is the embedded simulator
	keyEnv   string // environment variable with the upstream's own key
	once     bool   // send one call, show it, end

	out io.Writer
}

// NewDemoCommand returns `weir demo`.
func NewDemoCommand() *cobra.Command {
	d := new(demo)
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Runs the gateway in front of an endpoint, or of a simulated engine, and shows each measured call",
		Long: `Runs the gateway in front of an endpoint, or of the embedded engine simulator
when none is named, says where to send a first call, and prints each call as it
is measured. Nothing is written to disk but the secret for key ids.`,
		Example: `  weir demo
  weir demo --upstream http://127.0.0.1:8000
  TAOTOKEN_KEY=sk-… weir demo --upstream https://taotoken.net/api --upstream-key-env TAOTOKEN_KEY`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.out = cmd.OutOrStdout()
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return d.run(ctx)
		},
	}
	cmd.Flags().StringVar(&d.listen, "listen", "127.0.0.1:8080", "address of the gateway")
	cmd.Flags().StringVar(&d.admin, "admin", "127.0.0.1:2019", "address of the admin endpoint; a free port when it is taken")
	cmd.Flags().StringVar(&d.upstream, "upstream", "", "base URL of the endpoint, with or without a path; the embedded simulator when empty")
	cmd.Flags().StringVar(&d.keyEnv, "upstream-key-env", "", "environment variable that holds the key for the endpoint; callers' keys pass when empty")
	cmd.Flags().BoolVar(&d.once, "once", false, "send one call, show its record, and end")
	return cmd
}

func (d *demo) run(ctx context.Context) error {
	if err := free(d.listen); err != nil {
		return fmt.Errorf("listen on %s: %w; choose another address with --listen", d.listen, err)
	}
	admin := d.admin
	if free(admin) != nil {
		admin = "127.0.0.1:0"
	}
	admin, err := resolve(admin)
	if err != nil {
		return fmt.Errorf("find an address for the admin endpoint: %w", err)
	}
	what, upstream := "endpoint", d.upstream
	if upstream == "" {
		engine, address, err := simulate()
		if err != nil {
			return err
		}
		defer engine.Close()
		what, upstream = "simulated engine", "http://"+address
	}
	config, err := d.config(admin, upstream)
	if err != nil {
		return err
	}
	if err := caddy.Load(config, true); err != nil {
		return fmt.Errorf("start the gateway: %w", err)
	}
	defer func() { _ = caddy.Stop() }()

	fmt.Fprintf(d.out, "%-18s%s\n%-18shttp://%s\n%-18shttp://%s/weir/calls\n\n", what, upstream, "gateway", d.listen, "records", admin)
	if d.once {
		return d.first(ctx, admin)
	}
	fmt.Fprintf(d.out, "Send a first call from another terminal:\n\n%s\n\nCalls appear below; Ctrl-C ends.\n\n%s\n", curl(d.listen), demoHead)
	return d.follow(ctx, admin)
}

// firstBody is the body of the call that the demo proposes, and sends by itself with --once.
const firstBody = `{"model":"demo","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Why is a weir low?"}]}`

func curl(listen string) string {
	return "  curl -N http://" + listen + "/v1/chat/completions -H 'Content-Type: application/json' \\\n    -d '" + firstBody + "'"
}

// first sends one call and shows its record.
func (d *demo) first(ctx context.Context, admin string) error {
	run := fmt.Sprintf("demo-%d", time.Now().UnixNano())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.listen+"/v1/chat/completions", strings.NewReader(firstBody))
	if err != nil {
		return fmt.Errorf("make the first call: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Weir-Run", run)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("send the first call: %w", err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return fmt.Errorf("read the answer to the first call: %w", err)
	}
	for {
		calls, err := fetch(ctx, admin, "run="+run)
		if err != nil {
			return err
		}
		if len(calls) > 0 {
			fmt.Fprintf(d.out, "%s\n%s\n\n", demoHead, line(calls[0]))
			enc := json.NewEncoder(d.out)
			enc.SetIndent("", "  ")
			return enc.Encode(calls[0])
		}
		if !wait(ctx) {
			return nil
		}
	}
}

// follow prints each new record, oldest first, until ctx is done.
func (d *demo) follow(ctx context.Context, admin string) error {
	last := ""
	for wait(ctx) {
		calls, err := fetch(ctx, admin, "limit=200")
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		fresh := 0
		for fresh < len(calls) && calls[fresh].ID != last {
			fresh++
		}
		for i := fresh - 1; i >= 0; i-- {
			fmt.Fprintln(d.out, line(calls[i]))
		}
		if len(calls) > 0 {
			last = calls[0].ID
		}
	}
	return nil
}

// wait pauses between two looks at the records; false ends the demo.
func wait(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(200 * time.Millisecond):
		return true
	}
}

func fetch(ctx context.Context, admin, query string) ([]*call.Record, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/weir/calls?"+query, nil)
	if err != nil {
		return nil, fmt.Errorf("ask for records: %w", err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask for records: %w", err)
	}
	defer res.Body.Close()
	var answer struct{ Calls []*call.Record }
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	return answer.Calls, nil
}

const demoHead = "TIME      DIALECT             OUTCOME         TTFT       TPOT       E2E        IN     OUT    PHASES"

// line shows one call. A dash stands for what is unknown or undefined.
func line(r *call.Record) string {
	count := func(c call.Count) string {
		if n, known := c.Get(); known {
			return fmt.Sprint(n)
		}
		return "-"
	}
	var phases []string
	for f := range r.Fields {
		if ms, ok := f.Value.(float64); ok && f.Group == "phases" && ms >= 0.05 {
			phases = append(phases, fmt.Sprintf("%s %.1f", strings.TrimSuffix(f.Name, "_ms"), ms))
		}
	}
	outcome := string(r.Outcome)
	if r.Error != "" {
		outcome += " (" + r.Error + ")"
	}
	return fmt.Sprintf("%-9s %-19s %-15s %-10s %-10s %-10s %-6s %-6s %s", r.Time.Local().Format(time.TimeOnly), r.Dialect, outcome,
		milliseconds(r.TTFT), milliseconds(r.TPOT), milliseconds(r.E2E), count(r.Input), count(r.Output), strings.Join(phases, ", "))
}

func milliseconds(d call.Duration) string {
	if !d.IsKnown() {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", d.MillisecondsFloat())
}

// config writes the demo's Caddyfile and adapts it.
func (d *demo) config(admin, upstream string) ([]byte, error) {
	u, err := url.Parse(upstream)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("upstream %q is not a base URL; write it like http://127.0.0.1:8000 or https://example.com/api", upstream)
	}
	prefix := strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1")
	var b strings.Builder
	fmt.Fprintf(&b, "{\n\tadmin %s\n\tauto_https off\n\tpersist_config off\n\tlog {\n\t\tlevel ERROR\n\t}\n}\n", admin)
	host, port, err := net.SplitHostPort(d.listen)
	if err != nil {
		return nil, fmt.Errorf("listen address %q is not host:port: %w", d.listen, err)
	}
	if host != "" {
		host = "\tbind " + host + "\n"
	}
	fmt.Fprintf(&b, "http://:%s {\n%s\tweir\n", port, host)
	if prefix != "" {
		fmt.Fprintf(&b, "\trewrite * %s{uri}\n", prefix)
	}
	fmt.Fprintf(&b, "\treverse_proxy %s://%s {\n", u.Scheme, u.Host)
	if u.Scheme == "https" {
		b.WriteString("\t\theader_up Host {upstream_hostport}\n")
	}
	if d.keyEnv != "" {
		if os.Getenv(d.keyEnv) == "" {
			return nil, fmt.Errorf("environment variable %s is empty; put the endpoint's key into it", d.keyEnv)
		}
		fmt.Fprintf(&b, "\t\theader_up Authorization \"Bearer {env.%s}\"\n", d.keyEnv)
	}
	b.WriteString("\t}\n}\n")
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(b.String()), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return nil, fmt.Errorf("adapt the demo's configuration: %w", err)
	}
	return config, nil
}

// simulated is the embedded engine with its server.
type simulated struct {
	engine *sim.Engine
	server *http.Server
	done   chan struct{}
}

// simulate serves the embedded engine on a free port of the loopback interface.
func simulate() (*simulated, string, error) {
	engine, err := sim.Start(sim.Config{PerRequestMetrics: true})
	if err != nil {
		return nil, "", fmt.Errorf("start the simulated engine: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("listen for the simulated engine: %w", err), engine.Close())
	}
	s := &simulated{engine: engine, server: &http.Server{Handler: engine}, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		_ = s.server.Serve(l) // ends with Close
	}()
	return s, l.Addr().String(), nil
}

// Close ends the server and the engine, and waits for both.
func (s *simulated) Close() error {
	err := s.server.Close()
	<-s.done
	return errors.Join(err, s.engine.Close())
}

// free tells whether an address can be listened on.
func free(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}

// resolve returns the address with a port that is free, where it names port 0.
func resolve(address string) (string, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
