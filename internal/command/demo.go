package command

import (
	"context"
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

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/spf13/cobra"

	"github.com/weirgate/weir/internal/sim"
)

// demo is `weir demo`: the gateway in front of an endpoint, or of the embedded
// engine simulator, printing each call as it is measured.
type demo struct {
	listen   string // host:port of the gateway
	admin    string // host:port of the admin endpoint; a free port when that is taken
	upstream string // base URL of the endpoint; "" is the embedded simulator
	keyEnv   string // environment variable with the upstream's own key
	model    string // of the proposed call
	once     bool   // send one call, show it, end

	out io.Writer
}

const demoShort = "Runs the gateway in front of an endpoint, or of a simulated engine, and shows each measured call"

func configureDemo(cmd *cobra.Command) {
	d := new(demo)
	cmd.Long = `Runs the gateway in front of an endpoint, or of the embedded engine simulator
when none is named, says where to send a first call, and prints each call as it
is measured. Of Weir nothing is written to disk but, in Caddy's data directory, the
secret for key ids and what was learnt of the lengths of prompts and answers.`
	cmd.Example = `  weir demo
  weir demo --once
  weir demo --upstream http://127.0.0.1:8000
  UPSTREAM_KEY=sk-… weir demo --upstream https://taotoken.net/api --upstream-key-env UPSTREAM_KEY`
	cmd.Args = cobra.NoArgs
	cmd.Flags().StringVar(&d.listen, "listen", "127.0.0.1:8080", "address of the gateway")
	cmd.Flags().StringVar(&d.admin, "admin", "127.0.0.1:2019", "address of the admin endpoint; a free port when it is taken")
	cmd.Flags().StringVar(&d.upstream, "upstream", "", "base URL of the endpoint, with or without a path; the embedded simulator when empty")
	cmd.Flags().StringVar(&d.keyEnv, "upstream-key-env", "", "environment variable that holds the key for the endpoint; callers' keys pass when empty")
	cmd.Flags().StringVar(&d.model, "model", "demo", "model that the proposed first call names")
	cmd.Flags().BoolVar(&d.once, "once", false, "send one call, show its record, and end")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = true // what follows is not about flags
		d.out = cmd.OutOrStdout()
		ctx := cmd.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
		return d.run(ctx)
	}
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

	fmt.Fprintf(d.out, "%-18s%s\n%-18shttp://%s\n%-18shttp://%s/weir/calls\n\n", what, upstream, "gateway", d.reach(), "records", admin)
	if d.once {
		return d.first(ctx, admin)
	}
	fmt.Fprintf(d.out, "Send a first call from another terminal:\n\n%s\n\nCalls appear below; Ctrl-C ends.\n\n%s\n", d.curl(), demoHead)
	return d.follow(ctx, admin)
}

// config writes the demo's Caddyfile and adapts it.
func (d *demo) config(admin, upstream string) ([]byte, error) {
	u, err := url.Parse(upstream)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("upstream %q is not a base URL; write it like http://127.0.0.1:8000 or https://example.com/api", upstream)
	}
	prefix := strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1")
	var b strings.Builder
	fmt.Fprintf(&b, "{\n\tadmin %s\n\tauto_https off\n\tpersist_config off\n\tlog {\n\t\tlevel ERROR\n\t}\n\tweir {\n\t\tslo {\n\t\t\tstate off\n\t\t}\n\t}\n}\n", admin)
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
	s := &simulated{engine: engine, server: engine.Server(), done: make(chan struct{})}
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
