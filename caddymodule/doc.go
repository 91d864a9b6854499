// Package caddymodule adapts the gateway to Caddy: app, handler, Caddyfile, admin API and command registration.
//
// It holds no logic of its own. Handler is the `weir` directive, App the
// optional global block, admin serves /weir/ on Caddy's admin endpoint. The
// state that must outlive a configuration lives in one caddy.UsagePool entry.
package caddymodule
