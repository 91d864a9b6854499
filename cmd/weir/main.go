// Command weir is Caddy with the Weir gateway built in.
package main

import (
	_ "time/tzdata" // named time zones on machines without a zone database

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/weirgate/weir/caddymodule"
)

func main() {
	caddycmd.Main()
}
