package caddymodule

import (
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirgate/weir/internal/quantity"
)

// parseEngine reads
//
//	engine <kind> <url> {
//		upstream     <host:port...>
//		max_num_seqs <number>
//		kv_tokens    <number>
//		every        <duration>
//	}
func parseEngine(d *caddyfile.Dispenser) (*EngineConfig, error) {
	c := new(EngineConfig)
	if !d.Args(&c.Kind, &c.URL) || d.NextArg() {
		return nil, d.Err("engine takes a kind and a URL, as in: engine vllm http://127.0.0.1:8000")
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		var err error
		switch option := d.Val(); option {
		case "upstream":
			more := d.RemainingArgs()
			if len(more) == 0 {
				return nil, d.ArgErr()
			}
			c.Upstreams = append(c.Upstreams, more...)
		case "max_num_seqs":
			c.MaxSeqs, err = value(d, quantity.ParseCount)
		case "kv_tokens":
			c.KVTokens, err = value(d, quantity.ParseCount)
		case "every":
			c.Every, err = duration(d)
		default:
			err = d.Errf("engine has no option %q; it has upstream, max_num_seqs, kv_tokens and every", option)
		}
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// parseGPU reads
//
//	gpu nvml
//	gpu dcgm <url>
func parseGPU(d *caddyfile.Dispenser) (*GPUConfig, error) {
	c := new(GPUConfig)
	if !d.Args(&c.Source) {
		return nil, d.ArgErr()
	}
	c.URL = ""
	if d.NextArg() {
		c.URL = d.Val()
	}
	if d.NextArg() {
		return nil, d.ArgErr()
	}
	return c, nil
}

// parseOTLP reads
//
//	otlp [<endpoint>] {
//		protocol  grpc|http/protobuf
//		header    <name> <value>
//		sample    <share>
//		keep_ttft <duration>
//		keep_e2e  <duration>
//		metrics
//	}
func parseOTLP(d *caddyfile.Dispenser) (*OTLPConfig, error) {
	c := new(OTLPConfig)
	if d.NextArg() {
		c.Endpoint = d.Val()
	}
	if d.NextArg() {
		return nil, d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		var err error
		switch option := d.Val(); option {
		case "protocol":
			if !one(d, &c.Protocol) {
				err = d.ArgErr()
			}
		case "header":
			c.Headers, err = header(d, c.Headers)
		case "sample":
			var share float64
			share, err = value(d, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) })
			c.Sample = &share
		case "keep_ttft":
			c.KeepTTFT, err = duration(d)
		case "keep_e2e":
			c.KeepE2E, err = duration(d)
		case "metrics":
			if c.Metrics = true; d.NextArg() {
				err = d.ArgErr()
			}
		default:
			err = d.Errf("otlp has no option %q; it has protocol, header, sample, keep_ttft, keep_e2e and metrics", option)
		}
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// parseReceiver reads
//
//	otlp_receiver [<http address>] {
//		grpc    <address>
//		forward <collector>
//		header  <name> <value>
//		window  <duration>
//	}
func parseReceiver(d *caddyfile.Dispenser) (*ReceiverConfig, error) {
	c := new(ReceiverConfig)
	if d.NextArg() {
		c.HTTP = d.Val()
	}
	if d.NextArg() {
		return nil, d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		var err error
		switch option := d.Val(); option {
		case "grpc":
			if !one(d, &c.GRPC) {
				err = d.ArgErr()
			}
		case "forward":
			if !one(d, &c.Forward) {
				err = d.ArgErr()
			}
		case "header":
			c.Headers, err = header(d, c.Headers)
		case "window":
			c.Window, err = duration(d)
		default:
			err = d.Errf("otlp_receiver has no option %q; it has grpc, forward, header and window", option)
		}
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

func duration(d *caddyfile.Dispenser) (caddy.Duration, error) {
	span, err := value(d, quantity.ParseDuration)
	return caddy.Duration(span), err
}

func header(d *caddyfile.Dispenser, into map[string]string) (map[string]string, error) {
	var name, content string
	if !d.Args(&name, &content) || d.NextArg() {
		return into, d.Err("it takes a name and a value")
	}
	if into == nil {
		into = make(map[string]string)
	}
	into[name] = content
	return into, nil
}
