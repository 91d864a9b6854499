package caddymodule

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weirgate/weir/internal/gateway"
)

func init() {
	httpcaddyfile.RegisterHandlerDirective("weir", parseDirective)
	// Inside encode and intercept, after authentication, around handle and
	// route, so that sites with handle blocks are measured too.
	httpcaddyfile.RegisterDirectiveOrder("weir", httpcaddyfile.Before, "invoke")
	httpcaddyfile.RegisterGlobalOption("weir", parseGlobal)
}

func parseDirective(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(Handler)
	return handler, handler.UnmarshalCaddyfile(h.Dispenser)
}

// UnmarshalCaddyfile implements caddyfile.Unmarshaler. The syntax stands at
// Handler.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	if d.NextArg() {
		return d.ArgErr()
	}
	seen := make(map[string]bool)
	for d.NextBlock(0) {
		option := d.Val()
		if seen[option] && option != "limit" && option != "class" {
			return d.Errf("%s is given twice", option)
		}
		seen[option] = true
		if parse := admissionOptions[option]; parse != nil {
			if err := parse(h, d); err != nil {
				return err
			}
			continue
		}
		switch option {
		case "dialect":
			if !one(d, &h.Dialect) {
				return d.ArgErr()
			}
		case "class":
			if err := parseClassOf(h, d); err != nil {
				return err
			}
		case "usage_policy":
			var policy string
			if !one(d, &policy) {
				return d.ArgErr()
			}
			h.UsagePolicy = gateway.UsagePolicy(policy)
		case "stale_retry":
			var state string
			if !one(d, &state) {
				return d.ArgErr()
			}
			switch state {
			case "on":
			case "off":
				h.NoStaleRetry = true
			default:
				return d.Errf("stale_retry is on or off, not %q", state)
			}
		case "propagate":
			var state string
			if !one(d, &state) {
				return d.ArgErr()
			}
			if state != "on" && state != "off" {
				return d.Errf("propagate is on or off, not %q", state)
			}
			h.NoPropagate = state == "off"
		case "probes":
			h.Probes = &Probes{Live: "/livez", Ready: "/readyz"}
			switch paths := d.RemainingArgs(); len(paths) {
			case 0:
			case 2:
				h.Probes.Live, h.Probes.Ready = paths[0], paths[1]
			default:
				return d.Err("probes takes no path, or two: <live path> <ready path>")
			}
		default:
			return d.Errf("weir has no option %q; it has dialect, class, usage_policy, stale_retry, propagate, probes, pool, require_key, "+
				"limit, mode, replicas, queue, default_output_tokens and reader_timeout", option)
		}
	}
	return nil
}

// parseClassOf reads `class <name>`, or with matchers behind it, in a line or a
// block, the class of the calls that meet them.
func parseClassOf(h *Handler, d *caddyfile.Dispenser) error {
	var name string
	if !d.Args(&name) {
		return d.ArgErr()
	}
	matchers, err := caddyhttp.ParseCaddyfileNestedMatcherSet(d)
	switch {
	case err != nil:
		return d.Errf("class %s: %v; behind the name come matchers, as in: class batch header X-Job *", name, err)
	case len(matchers) > 0:
		h.Classes = append(h.Classes, &ClassRule{Class: name, MatchersRaw: caddyhttp.RawMatcherSets{matchers}})
	case h.Class != "":
		return d.Errf("class is given twice without matchers; put matchers behind one of them, as in: class batch header X-Job *")
	default:
		h.Class = name
	}
	return nil
}

// one reads the option's only argument.
func one(d *caddyfile.Dispenser, into *string) bool {
	return d.Args(into) && !d.NextArg()
}

// Interface guard
var _ caddyfile.Unmarshaler = (*Handler)(nil)
