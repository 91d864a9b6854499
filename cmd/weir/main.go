// Command weir is Caddy with the Weir gateway built in.
package main

import (
	_ "time/tzdata" // named time zones on machines without a zone database

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/weirgate/weir/caddymodule"
)

func main() {
	caddy.CustomBinaryName = "weir"
	caddy.CustomLongDescription = "Weir is a gateway for LLM inference: Caddy with a meter that changes no byte.\nTry it with: weir demo"
	caddycmd.Main()
}
