package caddymodule

import (
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/weirgate/weir/internal/quantity"
)

// parseGlobal reads the global block:
//
//	weir {
//		keys   <file>
//		ledger sqlite <path> {
//			spill       <directory>
//			max_spill   <size>
//			retention   <duration>|forever
//			fail_closed
//		}
//		prices <file>
//		engine <kind> <url> { … }
//		gpu    nvml | dcgm <url>
//		otlp   [<endpoint>] { … }
//		otlp_receiver [<http address>] { … }
//		class  <name> [<preset>] { … }
//		slo    off | { … }
//		alert  alertmanager|webhook <url> { … }
//		probe  <name> <url> { … }
//	}
func parseGlobal(d *caddyfile.Dispenser, before any) (any, error) {
	d.Next() // the option's name
	if before != nil {
		// Caddy would put this block in the place of the one before.
		return nil, d.Err("weir is given twice among the global options; write one block with all of it")
	}
	if d.NextArg() {
		return nil, d.ArgErr()
	}
	app := new(App)
	seen := make(map[string]bool)
	for d.NextBlock(0) {
		option := d.Val()
		if seen[option] && !slices.Contains(repeated, option) {
			return nil, d.Errf("%s is given twice", option)
		}
		seen[option] = true
		switch option {
		case "keys":
			app.Keys = new(KeysConfig)
			if !one(d, &app.Keys.File) {
				return nil, d.ArgErr()
			}
		case "prices":
			if !one(d, &app.Prices) {
				return nil, d.ArgErr()
			}
		case "ledger":
			var err error
			if app.Ledger, err = parseLedger(d); err != nil {
				return nil, err
			}
		case "engine":
			c, err := parseEngine(d)
			if err != nil {
				return nil, err
			}
			app.Engines = append(app.Engines, c)
		case "gpu":
			var err error
			if app.GPU, err = parseGPU(d); err != nil {
				return nil, err
			}
		case "otlp":
			var err error
			if app.OTLP, err = parseOTLP(d); err != nil {
				return nil, err
			}
		case "otlp_receiver":
			var err error
			if app.Receiver, err = parseReceiver(d); err != nil {
				return nil, err
			}
		case "class":
			c, err := parseClass(d)
			if err != nil {
				return nil, err
			}
			app.Classes = append(app.Classes, c)
		case "slo":
			var err error
			if app.SLO, err = parseSLO(d); err != nil {
				return nil, err
			}
		case "alert":
			c, err := parseAlert(d)
			if err != nil {
				return nil, err
			}
			app.Alerts = append(app.Alerts, c)
		case "probe":
			c, err := parseProbe(d)
			if err != nil {
				return nil, err
			}
			app.Probes = append(app.Probes, c)
		default:
			return nil, d.Errf("the global weir block has no option %q; it has keys, ledger, prices, engine, gpu, otlp, otlp_receiver, "+
				"class, slo, alert and probe", option)
		}
	}
	return httpcaddyfile.App{Name: "weir", Value: caddyconfig.JSON(app, nil)}, nil
}

// repeated are the options that may be given several times.
var repeated = []string{"engine", "class", "alert", "probe"}

func parseLedger(d *caddyfile.Dispenser) (*LedgerConfig, error) {
	var kind string
	l := new(LedgerConfig)
	if !d.Args(&kind, &l.Path) || d.NextArg() {
		return nil, d.Err("ledger takes a kind and a path, as in: ledger sqlite usage.db")
	}
	if kind != "sqlite" {
		return nil, d.Errf("ledger knows sqlite, not %q", kind)
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		switch option := d.Val(); option {
		case "spill":
			if !one(d, &l.Spill) {
				return nil, d.ArgErr()
			}
		case "max_spill":
			n, err := value(d, quantity.ParseSize)
			if err != nil {
				return nil, err
			}
			l.MaxSpill = n
		case "retention":
			var text string
			if !one(d, &text) {
				return nil, d.ArgErr()
			}
			if text == "forever" {
				l.Retention = -1
				continue
			}
			age, err := quantity.ParseDuration(text)
			if err != nil {
				return nil, d.Errf("retention: %v; or say forever", err)
			}
			l.Retention = caddy.Duration(age)
		case "fail_closed":
			if d.NextArg() {
				return nil, d.ArgErr()
			}
			l.FailClosed = true
		default:
			return nil, d.Errf("ledger has no option %q; it has spill, max_spill, retention and fail_closed", option)
		}
	}
	return l, nil
}
