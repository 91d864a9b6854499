package caddymodule

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// cause returns the error that says why err happened. reverse_proxy wraps what
// its dialer said in a type that does not unwrap, so that only the text is left.
func cause(err error) error {
	var dial reverseproxy.DialError
	if !errors.As(err, &dial) {
		return err
	}
	text := dial.Error()
	failed := &net.OpError{Op: "dial", Err: err}
	switch {
	case strings.Contains(text, "lookup "):
		failed.Err = &net.DNSError{Err: "see the server's log"}
	case strings.HasSuffix(text, syscall.ECONNREFUSED.Error()):
		failed.Err = syscall.ECONNREFUSED
	case strings.HasSuffix(text, "i/o timeout"), strings.HasSuffix(text, syscall.ETIMEDOUT.Error()),
		strings.HasSuffix(text, "deadline exceeded"):
		failed.Err = os.ErrDeadlineExceeded
	}
	return failed
}
