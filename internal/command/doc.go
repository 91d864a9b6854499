// Package command holds the subcommands, one file each.
//
// Each comes as a function that does the work, with plain arguments, a context
// that ends it and a writer for what people read, and as a function that
// configures a cobra command to call it. Nothing here knows Caddy.
package command
