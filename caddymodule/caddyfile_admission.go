package caddymodule

import (
	"errors"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/limit"
	"github.com/weirgate/weir/internal/quantity"
	"github.com/weirgate/weir/internal/queue"
)

// admissionOptions are the options of keys, limits and queue:
//
//	pool        <name>
//	require_key {
//		allow_paths <path...>
//	}
//	limit       key|model|key_model|pool [<key>] [<model>] {
//		<dimension> <number> [burst <number>]
//	}
//	mode        off|shadow|enforce
//	replicas    <number>
//	queue {
//		calls, tokens_in_flight, max_waiting, max_per_class, max_per_key, max_bytes <number>
//		max_wait <duration>
//		class    <name> {
//			weight <number>
//			ttft   <duration>
//		}
//		shed
//	}
//	default_output_tokens <number>
//	reader_timeout        <duration>|off
var admissionOptions = map[string]func(*Handler, *caddyfile.Dispenser) error{
	"pool":                  parsePool,
	"require_key":           parseRequireKey,
	"limit":                 parseLimit,
	"mode":                  parseMode,
	"replicas":              parseReplicas,
	"queue":                 parseQueue,
	"default_output_tokens": parseDefaultOutput,
	"reader_timeout":        parseReaderTimeout,
}

// value reads the option's only argument as something that people write.
func value[T any](d *caddyfile.Dispenser, parse func(string) (T, error)) (v T, err error) {
	option := d.Val()
	var text string
	if !one(d, &text) {
		return v, d.ArgErr()
	}
	if v, err = parse(text); err != nil {
		return v, d.Errf("%s: %v", option, err)
	}
	return v, nil
}

// policy returns the directive's limits, which are enforced unless mode says
// otherwise.
func (h *Handler) policy() *limit.Policy {
	if h.Limits == nil {
		h.Limits = &limit.Policy{Mode: limit.Enforce}
	}
	return h.Limits
}

func parsePool(h *Handler, d *caddyfile.Dispenser) error {
	if !one(d, &h.Pool) {
		return d.ArgErr()
	}
	return nil
}

func parseRequireKey(h *Handler, d *caddyfile.Dispenser) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	h.RequireKey = new(RequireKey)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		if option := d.Val(); option != "allow_paths" {
			return d.Errf("require_key has no option %q; it has allow_paths", option)
		}
		paths := d.RemainingArgs()
		if len(paths) == 0 {
			return d.ArgErr()
		}
		h.RequireKey.AllowPaths = append(h.RequireKey.AllowPaths, paths...)
	}
	return nil
}

func parseMode(h *Handler, d *caddyfile.Dispenser) error {
	var mode string
	if !one(d, &mode) {
		return d.ArgErr()
	}
	if err := h.policy().Mode.UnmarshalText([]byte(mode)); err != nil {
		return d.Errf("mode is off, shadow or enforce, not %q", mode)
	}
	return nil
}

func parseReplicas(h *Handler, d *caddyfile.Dispenser) error {
	n, err := value(d, strconv.Atoi)
	if err != nil {
		return err
	}
	if n < 1 {
		return d.Errf("replicas is the number of gateways that share the limits, at least 1, not %d", n)
	}
	h.policy().Replicas = n
	return nil
}

func parseDefaultOutput(h *Handler, d *caddyfile.Dispenser) (err error) {
	h.DefaultOutputTokens, err = value(d, positive(quantity.ParseCount))
	return err
}

func parseReaderTimeout(h *Handler, d *caddyfile.Dispenser) error {
	after, err := value(d, func(text string) (time.Duration, error) {
		if text == "off" {
			return -1, nil
		}
		return positive(quantity.ParseDuration)(text)
	})
	h.ReaderTimeout = caddy.Duration(after)
	return err
}

// positive is parse for options of which 0 would mean the default, and not what
// whoever writes a 0 has in mind.
func positive[T int | int64 | time.Duration](parse func(string) (T, error)) func(string) (T, error) {
	return func(text string) (T, error) {
		v, err := parse(text)
		if err == nil && v <= 0 {
			err = errors.New("must be above 0; leave it out for the default")
		}
		return v, err
	}
}

func parseLimit(h *Handler, d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if len(args) == 0 {
		return d.Err("limit needs a scope: key, model, key_model or pool")
	}
	var r limit.Rule
	if err := r.Scope.UnmarshalText([]byte(args[0])); err != nil {
		return d.Errf("limit has no scope %q; it has key, model, key_model and pool", args[0])
	}
	names := args[1:]
	switch {
	case len(names) == 0:
	case r.Scope == limit.PerKey && len(names) == 1:
		r.Key = names[0]
	case r.Scope == limit.PerModel && len(names) == 1:
		r.Model = names[0]
	case r.Scope == limit.PerKeyModel && len(names) == 2:
		r.Key, r.Model = names[0], names[1]
	default:
		return d.Errf("limit %s takes no name, or: key <key>, model <model>, key_model <key> <model>; got %q", args[0], names)
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		if err := parseDimension(&r, d); err != nil {
			return err
		}
	}
	if r.Limits.IsZero() {
		return d.Errf("limit %s limits nothing; give it tokens_per_minute, input_tokens_per_minute, output_tokens_per_minute, "+
			"requests_per_minute, concurrency or tokens_in_flight", args[0])
	}
	p := h.policy()
	p.Rules = append(p.Rules, r)
	return nil
}

func parseDimension(r *limit.Rule, d *caddyfile.Dispenser) error {
	name := d.Val()
	l := &r.Limits
	at := map[string]struct{ limit, burst *call.Count }{
		"tokens_per_minute":        {&l.TokensPerMinute, &r.Burst.Tokens},
		"input_tokens_per_minute":  {&l.InputTokensPerMinute, &r.Burst.InputTokens},
		"output_tokens_per_minute": {&l.OutputTokensPerMinute, &r.Burst.OutputTokens},
		"requests_per_minute":      {&l.RequestsPerMinute, &r.Burst.Requests},
		"concurrency":              {&l.Concurrency, nil},
		"tokens_in_flight":         {&l.TokensInFlight, nil},
	}[name]
	if at.limit == nil {
		return d.Errf("there is no limit %q; there are tokens_per_minute, input_tokens_per_minute, output_tokens_per_minute, "+
			"requests_per_minute, concurrency and tokens_in_flight", name)
	}
	if at.limit.IsKnown() {
		return d.Errf("%s is given twice", name)
	}
	args := d.RemainingArgs()
	if len(args) != 1 && (len(args) != 3 || args[1] != "burst" || at.burst == nil) {
		return d.Errf("%s takes a number such as 200k, and a rate also a burst, as in: tokens_per_minute 200k burst 400k", name)
	}
	n, err := quantity.ParseCount(args[0])
	if err != nil {
		return d.Errf("%s: %v", name, err)
	}
	*at.limit = call.Known(n)
	if len(args) == 3 {
		if n, err = quantity.ParseCount(args[2]); err != nil {
			return d.Errf("burst of %s: %v", name, err)
		}
		*at.burst = call.Known(n)
	}
	return nil
}

func parseQueue(h *Handler, d *caddyfile.Dispenser) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	q := new(QueueConfig)
	h.Queue = q
	count := func(into *int64) (err error) {
		*into, err = value(d, positive(quantity.ParseCount))
		return err
	}
	number := func(into *int) (err error) {
		*into, err = value(d, positive(strconv.Atoi))
		return err
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		var err error
		switch option := d.Val(); option {
		case "calls":
			err = count(&q.Calls)
		case "tokens_in_flight":
			err = count(&q.Tokens)
		case "max_waiting":
			if q.MaxWaiting, err = value(d, strconv.Atoi); q.MaxWaiting == 0 {
				q.MaxWaiting = queue.NoWaiting // people who write 0 mean that nobody waits
			}
		case "max_per_class":
			err = number(&q.MaxPerClass)
		case "max_per_key":
			err = number(&q.MaxPerKey)
		case "max_bytes":
			q.MaxBytes, err = value(d, positive(quantity.ParseSize))
		case "max_wait":
			var wait time.Duration
			wait, err = value(d, positive(quantity.ParseDuration))
			q.MaxWait = caddy.Duration(wait)
		case "shed":
			if q.Shed = true; d.NextArg() {
				err = d.ArgErr()
			}
		case "class":
			err = parseQueueClass(q, d)
		default:
			err = d.Errf("queue has no option %q; it has calls, tokens_in_flight, max_waiting, max_per_class, max_per_key, "+
				"max_bytes, max_wait, class and shed", option)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func parseQueueClass(q *QueueConfig, d *caddyfile.Dispenser) error {
	var name string
	if !one(d, &name) {
		return d.ArgErr()
	}
	if _, twice := q.Classes[name]; twice {
		return d.Errf("class %s is given twice", name)
	}
	var class QueueClass
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		switch option := d.Val(); option {
		case "weight":
			n, err := value(d, strconv.Atoi)
			if err != nil {
				return err
			}
			class.Weight = n
		case "ttft":
			due, err := value(d, quantity.ParseDuration)
			if err != nil {
				return err
			}
			class.TTFT = caddy.Duration(due)
		default:
			return d.Errf("a class of the queue has no option %q; it has weight and ttft", option)
		}
	}
	if q.Classes == nil {
		q.Classes = make(map[string]QueueClass)
	}
	q.Classes[name] = class
	return nil
}
