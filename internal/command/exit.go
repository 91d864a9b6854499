package command

import (
	"errors"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// Statuses that a command ends with, beside 0 for success and 1 for an error.
const (
	statusUsage       = 2 // of weir doctor, whose 1 says that something is broken
	statusRegression  = 3
	statusInterrupted = 130 // as shells have it of a program that Ctrl-C ended
)

// exit makes err end the process with a status of its own, above 1, for scripts.
func exit(status int, err error) error { return &ending{err, endWith(status)} }

// ending is an error and the status that goes with it.
type ending struct{ why, status error }

// Error says why, and leaves the status to the process.
func (e *ending) Error() string { return e.why.Error() }

// Unwrap returns both.
func (e *ending) Unwrap() []error { return []error{e.why, e.status} }

// endWith is an error of the kind that Caddy's main looks for. It is not
// exported, but what makes it is.
func endWith(status int) error {
	end := caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return status, nil })
	return end(new(cobra.Command), nil)
}

// reworded is err with another text; the status it ends with stays.
func reworded(err error, text string) error {
	if end, ok := errors.AsType[*ending](err); ok {
		return &ending{errors.New(text), end.status}
	}
	return errors.New(text)
}
