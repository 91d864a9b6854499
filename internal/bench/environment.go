package bench

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/weirgate/weir/internal/endpoint"
)

// snapshotWithin bounds how long an environment is read: a load test does not
// wait for what is good to know.
const snapshotWithin = 5 * time.Second

// Channel says what a snapshot is taken of.
type Channel struct {
	// Client asks; nil is http.DefaultClient. Redirects are not followed.
	Client *http.Client
	// Root is the URL below which the API stands, as endpoint.Found has it.
	Root string
	// Key goes with the questions to Root's own host, and is in nothing returned.
	Key string
	API endpoint.API
	// Model and Profile are noted as they are.
	Model   string
	Profile Profile
	// Admin is the gateway's admin address, "" without one.
	Admin string
	// Weir is the version of this program.
	Weir string
	// Now is the time to note; the zero time is now.
	Now time.Time
	// run runs a program and returns its output; tests have their own.
	run func(ctx context.Context, name string, args ...string) ([]byte, error)
}

// Snapshot reads what is measured: engine, version, model and limits as far as
// the engine tells over HTTP, the gateway, and the GPUs if the channel ends on
// this machine. It takes a few seconds at most; what cannot be read is absent, and so is
// what an engine says beyond a fixed list of fields, some of which hold secrets.
func Snapshot(ctx context.Context, c Channel) Environment {
	e := Environment{Time: c.Now, API: c.API, Model: c.Model, Profile: c.Profile, Weir: c.Weir}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	if e.Profile == "" {
		e.Profile = Weir
	}
	u, err := url.Parse(c.Root)
	if err != nil || u.Host == "" {
		return e
	}
	u = &url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(u.Path, "/")}
	e.Channel = u.String()
	ctx, cancel := context.WithTimeout(ctx, snapshotWithin)
	defer cancel()
	client := http.Client{}
	if c.Client != nil {
		client = *c.Client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	var all sync.WaitGroup
	all.Go(func() { e.Engine = readEngine(ctx, &client, u, &c) })
	if c.Admin != "" {
		all.Go(func() { e.Gateway = readGateway(ctx, &client, c.Admin) })
	}
	if local(u.Hostname()) {
		all.Go(func() { e.GPU = readGPUs(ctx, c.run) })
	}
	all.Wait()
	return e
}

// local tells whether a host is this machine by its very address. A name that
// resolves to it may be a tunnel's.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// readGateway says what is known of the gateway: that it is there. Its admin
// endpoint does not tell its version.
func readGateway(ctx context.Context, client *http.Client, admin string) string {
	u, err := adminURL(admin)
	if err != nil {
		return ""
	}
	if _, body, err := get(ctx, client, u.JoinPath("weir", "ready"), nil, 1<<10); err != nil || strings.TrimSpace(string(body)) != "ok" {
		return ""
	}
	return "weir"
}
