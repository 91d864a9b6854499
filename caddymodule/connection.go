package caddymodule

import (
	"context"
	"net"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// connectionKey is where a request's context holds its client's connection.
type connectionKey struct{}

// keepConnection makes the server that a directive is part of remember each
// request's connection, so that the kernel can be asked for its round trip.
// Servers of a configuration are provisioned one after the other.
func (a *App) keepConnection(ctx caddy.Context) {
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok || a.remembers[server] {
		return
	}
	a.remembers[server] = true
	server.RegisterConnContext(func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, c)
	})
}

// connection returns the connection of the request's client: nil over HTTP/3,
// which has none of its own.
func connection(r *http.Request) net.Conn {
	c, _ := r.Context().Value(connectionKey{}).(net.Conn)
	return c
}
