package caddymodule

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/weirgate/weir/internal/command"
)

// The subcommands stand beside Caddy's own: `weir run`, `weir reload`,
// `weir validate` and the rest are Caddy's.
func init() {
	for _, make := range []func() *cobra.Command{command.NewDemoCommand, command.NewSimCommand} {
		made := make()
		caddycmd.RegisterCommand(caddycmd.Command{
			Name:  made.Name(),
			Short: made.Short,
			Long:  made.Long,
			CobraFunc: func(cmd *cobra.Command) {
				cmd.Use, cmd.Example, cmd.Args, cmd.RunE = made.Use, made.Example, made.Args, made.RunE
				cmd.Flags().AddFlagSet(made.Flags())
			},
		})
	}
}
