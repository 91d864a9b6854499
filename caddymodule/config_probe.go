package caddymodule

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirgate/weir/internal/gateway"
	"github.com/weirgate/weir/internal/probe"
	"github.com/weirgate/weir/internal/quantity"
)

// ProbeConfig is a small synthetic call that the gateway makes to itself, again and
// again: through a listener, the directive and the engine.
type ProbeConfig struct {
	Name string `json:"name"`
	// URL is a site of this configuration as a client sees it, such as http://127.0.0.1:8080.
	URL string `json:"url"`
	// Model is asked for.
	Model string `json:"model"`
	// Output is how many tokens are asked for. Default: 8.
	Output int64 `json:"output_tokens,omitempty"`
	// Every is the time from one call to the next. Default: 1m.
	Every caddy.Duration `json:"every,omitempty"`
	// Timeout is how long a call may take. Default: 30s.
	Timeout caddy.Duration `json:"timeout,omitempty"`
	// Key goes along where the upstream wants one; the gateway itself asks a probe for
	// none. Placeholders such as {env.KEY} are replaced.
	Key string `json:"key,omitempty"`
}

func (c *ProbeConfig) options() probe.Options {
	return probe.Options{
		Name: c.Name, URL: c.URL, Model: c.Model, Output: int(c.Output), Every: time.Duration(c.Every), Timeout: time.Duration(c.Timeout),
		Key: caddy.NewReplacer().ReplaceAll(c.Key, ""),
	}
}

// probing is a probe and the way that its calls take.
type probing struct {
	*probe.Probe
	name string
	way  *marking
}

// provisionProbes makes the probes, which call nothing yet.
func (a *App) provisionProbes() error {
	for _, c := range a.Probes {
		if slices.ContainsFunc(a.probing, func(p *probing) bool { return p.name == c.Name }) {
			return fmt.Errorf("probe %s is given twice, and its series would be one; give one of them another name", c.Name)
		}
		way := newMarking(a.shared.gateway)
		o := c.options()
		o.HTTP = &http.Client{Transport: way}
		o.Report = a.shared.metrics.ObserveProbe
		p, err := probe.New(o)
		if err != nil {
			return err
		}
		a.probing = append(a.probing, &probing{p, c.Name, way})
	}
	return nil
}

// probeAfter is how long after its configuration has become the active one a probe begins.
// The servers of the one before are just closing then, and with them connections that they
// have accepted and not read from.
const probeAfter = time.Second

// run makes calls until ctx is done.
func (p *probing) run(ctx context.Context) {
	defer p.way.CloseIdleConnections()
	select {
	case <-time.After(probeAfter):
		p.Run(ctx)
	case <-ctx.Done():
	}
}

// marking marks each call of a probe as the gateway's own.
type marking struct {
	*http.Transport
	gateway *gateway.Gateway
}

// newMarking makes one that speaks HTTP/1.1, as most clients do, and asks no proxy: the
// site is this process's own, and the mark is nobody else's business.
func newMarking(g *gateway.Gateway) *marking {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &marking{&http.Transport{Protocols: protocols, DisableCompression: true}, g}
}

// RoundTrip implements http.RoundTripper.
func (m *marking) RoundTrip(r *http.Request) (*http.Response, error) {
	name, mark := m.gateway.ProbeHeader()
	defer m.gateway.DropProbe(mark) // it went elsewhere, or nowhere
	marked := r.Clone(r.Context())
	marked.Header.Set(name, mark)
	return m.Transport.RoundTrip(marked)
}

// parseProbe reads
//
//	probe <name> <url> {
//		model         <name>
//		output_tokens <number>
//		every         <duration>
//		timeout       <duration>
//		key           <key>
//	}
func parseProbe(d *caddyfile.Dispenser) (*ProbeConfig, error) {
	c := new(ProbeConfig)
	if !d.Args(&c.Name, &c.URL) || d.NextArg() {
		return nil, d.Err("probe takes a name and the URL of a site, as in: probe chat http://127.0.0.1:8080 { model llama-3 }")
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		var err error
		switch option := d.Val(); option {
		case "model":
			if !one(d, &c.Model) {
				err = d.ArgErr()
			}
		case "output_tokens":
			c.Output, err = value(d, positive(quantity.ParseCount))
		case "every":
			c.Every, err = duration(d)
		case "timeout":
			c.Timeout, err = duration(d)
		case "key":
			if !one(d, &c.Key) {
				err = d.ArgErr()
			}
		default:
			err = d.Errf("probe has no option %q; it has model, output_tokens, every, timeout and key", option)
		}
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}
