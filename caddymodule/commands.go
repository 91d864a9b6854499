package caddymodule

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/weirgate/weir/internal/command"
)

// The subcommands stand beside Caddy's own: `weir run`, `weir reload`,
// `weir validate` and the rest are Caddy's.
func init() {
	for _, c := range command.All() {
		caddycmd.RegisterCommand(caddycmd.Command{Name: c.Name, Short: c.Short, CobraFunc: c.Configure})
	}
}
