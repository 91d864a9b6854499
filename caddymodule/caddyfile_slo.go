package caddymodule

import (
	"errors"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirgate/weir/internal/quantity"
)

// parseClass reads
//
//	class <name> [<preset>] {
//		<number> <target> [<= <threshold>] [else <number>] [when <condition>, …]
//		no       <number…>
//		valid    while <term>, …
//		weight   <number>
//	}
func parseClass(d *caddyfile.Dispenser) (*ClassConfig, error) {
	c := new(ClassConfig)
	if !d.Args(&c.Name) {
		return nil, d.Err("class takes a name, and what it is for in a block, as in: class chat interactive { ttft p99 <= 1s }")
	}
	if d.NextArg() {
		c.From = d.Val()
	}
	if d.NextArg() {
		return nil, d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		switch option := d.Val(); option {
		case "no":
			numbers := d.RemainingArgs()
			if len(numbers) == 0 {
				return nil, d.ArgErr()
			}
			c.Without = append(c.Without, numbers...)
		case "valid":
			args := d.RemainingArgs()
			if len(args) < 2 || args[0] != "while" {
				return nil, d.Err("valid says for which traffic the objectives hold, as in: valid while input_tokens p95 <= 8000, rate <= 2/s")
			}
			if c.Valid != "" {
				return nil, d.Err("valid is given twice; put all terms into one line, with commas")
			}
			c.Valid = strings.Join(args[1:], " ")
		case "weight":
			n, err := value(d, positive(strconv.Atoi))
			if err != nil {
				return nil, err
			}
			c.Weight = n
		default:
			c.Objectives = append(c.Objectives, strings.Join(append([]string{option}, d.RemainingArgs()...), " "))
		}
	}
	if _, err := c.class(); err != nil {
		return nil, d.WrapErr(err)
	}
	return c, nil
}

// parseSLO reads
//
//	slo off
//	slo {
//		period    rolling <duration> | calendar_month [<zone>]
//		burn      page|ticket <long> <short> <factor>
//		min_bad   <number>
//		min_calls <number>
//		warn      <percent>
//		freeze    <percent>
//		state     <directory>|off
//	}
func parseSLO(d *caddyfile.Dispenser) (*SLOConfig, error) {
	s := new(SLOConfig)
	if d.NextArg() {
		if d.Val() != "off" || d.NextArg() {
			return nil, d.Err("slo takes off, or a block")
		}
		s.Off = true
		return s, nil
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		var err error
		switch option := d.Val(); option {
		case "period":
			args := d.RemainingArgs()
			if len(args) == 0 {
				return nil, d.ArgErr()
			}
			s.Period = strings.Join(args, " ")
		case "burn":
			var b BurnConfig
			if b, err = parseBurn(d); err == nil {
				s.Burn = append(s.Burn, b)
			}
		case "min_bad":
			s.MinBad, err = value(d, positive(quantity.ParseCount))
		case "min_calls":
			s.MinCalls, err = value(d, positive(quantity.ParseCount))
		case "warn":
			s.Warn, err = value(d, parsePercent)
		case "freeze":
			s.Freeze, err = value(d, parsePercent)
		case "state":
			if !one(d, &s.State) {
				err = d.ArgErr()
			}
		default:
			err = d.Errf("slo has no option %q; it has period, burn, min_bad, min_calls, warn, freeze and state", option)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

func parseBurn(d *caddyfile.Dispenser) (b BurnConfig, err error) {
	args := d.RemainingArgs()
	if len(args) != 4 || args[0] != "page" && args[0] != "ticket" {
		return b, d.Err("burn takes page or ticket, a long and a short window and a factor, as in: burn page 1h 5m 14.4")
	}
	b.Page = args[0] == "page"
	long, err := quantity.ParseDuration(args[1])
	if err != nil {
		return b, d.Errf("burn: %v", err)
	}
	short, err := quantity.ParseDuration(args[2])
	if err != nil {
		return b, d.Errf("burn: %v", err)
	}
	b.Long, b.Short = caddy.Duration(long), caddy.Duration(short)
	if b.Factor, err = strconv.ParseFloat(args[3], 64); err != nil {
		return b, d.Errf("burn: %q is no factor; it is a number such as 14.4", args[3])
	}
	return b, nil
}

var errPercent = errors.New("give a percentage such as 80%")

// parsePercent reads "80%".
func parsePercent(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(number, 64)
	if err != nil || !percent || !(share > 0 && share <= 100) {
		return 0, errPercent
	}
	return share / 100, nil
}

// parseAlert reads
//
//	alert alertmanager|webhook <url> {
//		header <name> <value>
//		label  <name> <value>
//	}
func parseAlert(d *caddyfile.Dispenser) (*AlertConfig, error) {
	c := new(AlertConfig)
	if !d.Args(&c.Kind, &c.URL) || d.NextArg() {
		return nil, d.Err("alert takes a kind and a URL, as in: alert alertmanager http://127.0.0.1:9093")
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		var err error
		switch option := d.Val(); option {
		case "header":
			c.Headers, err = header(d, c.Headers)
		case "label":
			c.Labels, err = header(d, c.Labels)
		default:
			err = d.Errf("alert has no option %q; it has header and label", option)
		}
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}
