package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/weirgate/weir/internal/dialect"
	"github.com/weirgate/weir/internal/gateway"
	"github.com/weirgate/weir/internal/limit"
)

func init() { caddy.RegisterModule(Handler{}) }

// Handler measures the inference calls that pass through it and changes none of
// their bytes. It stands before reverse_proxy:
//
//	weir {
//		dialect      <name>
//		class        <name> [<matchers…>]
//		usage_policy passthrough|inject|inject_and_strip
//		stale_retry  on|off
//		propagate    on|off
//		probes       [<live path> <ready path>]
//	}
//
// Everything is optional; bare `weir` is the same as `{"handler": "weir"}`.
type Handler struct {
	// Dialect overrides which API the calls speak. By default the path decides,
	// and the body where two APIs share a path.
	Dialect string `json:"dialect,omitempty"`

	// Class is the service class that the calls belong to. Default: interactive.
	Class string `json:"class,omitempty"`

	// Classes gives calls that meet matchers a class of their own. The first that
	// match decide.
	Classes []*ClassRule `json:"classes,omitempty"`

	// UsagePolicy says whether the upstream may be asked to report token usage
	// when a streaming client said nothing about it: "passthrough" (default)
	// changes nothing; "inject" asks, so that the client sees one more event;
	// "inject_and_strip" asks for it uncompressed and keeps that event from
	// the client.
	UsagePolicy gateway.UsagePolicy `json:"usage_policy,omitempty"`

	// NoStaleRetry switches off the one retry of a request that met a
	// keep-alive connection which the upstream had already closed.
	NoStaleRetry bool `json:"no_stale_retry,omitempty"`

	// NoPropagate keeps the trace that a call is part of from the upstream, where
	// spans are made: an upstream that somebody else runs has no use for it.
	NoPropagate bool `json:"no_propagate,omitempty"`

	// Pool names the limits and the queue that the calls share with those of
	// other directives that name the same. Default: default.
	Pool string `json:"pool,omitempty"`

	// RequireKey refuses whoever has no key of the global option keys. Without it
	// everybody may call, and is told apart all the same.
	RequireKey *RequireKey `json:"require_key,omitempty"`

	// Limits are rates and caps for keys, models and the whole pool.
	Limits *limit.Policy `json:"limits,omitempty"`

	// Queue holds calls back while the upstreams are full.
	Queue *QueueConfig `json:"queue,omitempty"`

	// DefaultOutputTokens is reserved for a call that does not bound its output,
	// unless such calls are known to write less. Default: 1024.
	DefaultOutputTokens int64 `json:"default_output_tokens,omitempty"`

	// ReaderTimeout is how long a client may refuse to take what is sent to it
	// before it is cut. Default: 2m where limits are enforced, so that nobody
	// holds a place for ever; else never. Below 0 is never.
	ReaderTimeout caddy.Duration `json:"reader_timeout,omitempty"`

	// Probes answers GET on two paths of the site for orchestrators: the first
	// while the process lives, the second while it takes new calls.
	Probes *Probes `json:"probes,omitempty"`

	app     *App
	options gateway.Options
	around  gateway.Surroundings
	shared  *shared
	log     *zap.Logger
}

// ClassRule gives calls that meet matchers a class.
type ClassRule struct {
	Class string `json:"class"`
	// MatchersRaw are matcher sets as routes have them; a call needs to meet one set.
	MatchersRaw caddyhttp.RawMatcherSets `json:"match,omitempty" caddy:"namespace=http.matchers"`

	matchers caddyhttp.MatcherSets
	options  gateway.Options // those of the handler, with the class
}

// Probes are the paths of the liveness and the readiness probe.
type Probes struct {
	Live  string `json:"live"`
	Ready string `json:"ready"`
}

// DefaultClass is the class of calls whose directive names none.
const DefaultClass = "interactive"

// CaddyModule implements caddy.Module.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.weir", New: func() caddy.Module { return new(Handler) }}
}

// Provision implements caddy.Provisioner.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.log = ctx.Logger()
	// The app is provisioned with the configuration even when no global block
	// names it: it registers the metrics and owns the secret for key ids.
	app, err := ctx.App("weir")
	if err != nil {
		return fmt.Errorf("load the weir app: %w", err)
	}
	h.app = app.(*App)
	h.shared = h.app.shared
	h.app.keepConnection(ctx)
	h.options = gateway.Options{
		Dialect: dialect.ByName(h.Dialect), Class: h.Class, Usage: h.UsagePolicy, NoReplay: h.NoStaleRetry, Private: h.NoPropagate,
	}
	if h.options.Class == "" {
		h.options.Class = DefaultClass
	}
	if err := h.provisionAdmission(); err != nil {
		return err
	}
	h.options.Weights = h.app.weights(h.Queue)
	h.app.warnOfClass(h.log, h.options.Class)
	for _, rule := range h.Classes {
		h.app.warnOfClass(h.log, rule.Class)
		sets, err := ctx.LoadModule(rule, "MatchersRaw")
		if err != nil {
			return fmt.Errorf("load the matchers of class %s: %w", rule.Class, err)
		}
		if err := rule.matchers.FromInterface(sets); err != nil {
			return fmt.Errorf("load the matchers of class %s: %w", rule.Class, err)
		}
		rule.options = h.options
		rule.options.Class = rule.Class
	}
	h.around = gateway.Surroundings{Status: errorStatus, Cause: cause, Upstream: upstreamAddress, Connection: connection, Retries: proxyRetries, Checkpoint: checkpoint}
	return nil
}

// Validate implements caddy.Validator.
func (h *Handler) Validate() error {
	if h.Dialect != "" && h.options.Dialect == nil {
		return fmt.Errorf("unknown dialect %q; known are: %s", h.Dialect, strings.Join(dialect.Names(), ", "))
	}
	switch h.UsagePolicy {
	case "", gateway.Passthrough, gateway.Inject, gateway.InjectAndStrip:
	default:
		return fmt.Errorf("unknown usage_policy %q; use passthrough, inject or inject_and_strip", h.UsagePolicy)
	}
	if err := h.validateAdmission(); err != nil {
		return err
	}
	for _, rule := range h.Classes {
		if rule.Class == "" || len(rule.matchers) == 0 {
			return errors.New("an entry of classes needs a class and matchers")
		}
	}
	if p := h.Probes; p != nil {
		if !strings.HasPrefix(p.Live, "/") || !strings.HasPrefix(p.Ready, "/") {
			return fmt.Errorf("probes need two paths that begin with a slash, such as /livez /readyz; got %q and %q", p.Live, p.Ready)
		}
	}
	return nil
}

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if h.Probes != nil && h.probe(w, r) {
		return nil
	}
	if err := h.app.begin(); err != nil {
		return caddyhttp.Error(http.StatusInternalServerError, err)
	}
	options := h.optionsOf(r)
	c := h.shared.gateway.Begin(r, options, &h.around)
	if c == nil {
		if h.shared.gateway.Bar(w, r, options) {
			return nil
		}
		return next.ServeHTTP(w, r)
	}
	h.shared.hold()
	defer release()
	if extra := accessLogFields(r); extra != nil {
		extra.Add(zap.Object("weir", logged{c}))
	}
	if repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		repl.Map(placeholders{c}.value)
	}
	return c.Serve(w, next)
}

// optionsOf returns the options for the class of a request. A matcher that fails
// matches nothing.
func (h *Handler) optionsOf(r *http.Request) *gateway.Options {
	for _, rule := range h.Classes {
		if match, err := rule.matchers.AnyMatchWithError(r); match && err == nil {
			return &rule.options
		}
	}
	return &h.options
}

// accessLogFields returns where fields for the access log go, nil when the
// server keeps none: adding a field costs three allocations.
func accessLogFields(r *http.Request) *caddyhttp.ExtraLogFields {
	if server, ok := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok && server.Logs == nil {
		return nil
	}
	extra, _ := r.Context().Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields)
	return extra
}

// errorStatus is the status that Caddy answers when a handler returns err.
func errorStatus(err error) int {
	var handlerErr caddyhttp.HandlerError
	if errors.As(err, &handlerErr) && handlerErr.StatusCode > 0 {
		return handlerErr.StatusCode
	}
	return http.StatusInternalServerError
}

// upstreamAddress is what reverse_proxy left in its placeholder.
func upstreamAddress(r *http.Request) string {
	repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return ""
	}
	address, _ := repl.GetString("http.reverse_proxy.upstream.hostport")
	return address
}

// proxyRetries is how often reverse_proxy says it has tried again.
func proxyRetries(r *http.Request) (int, bool) {
	repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return 0, false
	}
	v, _ := repl.Get("http.reverse_proxy.retries")
	n, ok := v.(int)
	return n, ok
}

// routeGroups is where Caddy notes which groups of routes (`handle` blocks are
// such) have had their one match in this request: caddyhttp.routeGroupCtxKey,
// which is not exported.
const routeGroups caddy.CtxKey = "route_group"

// checkpoint remembers which route groups have matched, so that handlers behind
// weir can run again: without it the second run would find their `handle`
// blocks spent and answer nothing.
func checkpoint(r *http.Request) gateway.Restorer {
	groups, ok := r.Context().Value(routeGroups).(map[string]struct{})
	switch {
	case !ok:
		return nil
	case len(groups) == 0:
		return noneMatched(groups)
	}
	return someMatched{groups, maps.Clone(groups)}
}

// noneMatched is a request's groups, none of which had matched.
type noneMatched map[string]struct{}

// Restore implements gateway.Restorer.
func (groups noneMatched) Restore(ctx context.Context) context.Context {
	clear(groups)
	return ownVars(ctx)
}

// someMatched is a request's groups, and those that had matched.
type someMatched struct{ groups, matched map[string]struct{} }

// Restore implements gateway.Restorer.
func (s someMatched) Restore(ctx context.Context) context.Context {
	clear(s.groups)
	maps.Copy(s.groups, s.matched)
	return ownVars(ctx)
}

// ownVars returns a context with a copy of the request's variables. Caddy keeps
// them in a map without a lock, and a connection that the first run began to dial
// still reads it when the second run writes.
func ownVars(ctx context.Context) context.Context {
	vars, ok := ctx.Value(caddyhttp.VarsCtxKey).(map[string]any)
	if !ok {
		return ctx
	}
	return context.WithValue(ctx, caddyhttp.VarsCtxKey, maps.Clone(vars))
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.Validator             = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
