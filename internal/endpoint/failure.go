package endpoint

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
)

// Failure is an error of a known Kind. Its text holds no key.
type Failure struct {
	Kind Kind
	// Text says what failed and what to do next.
	Text string
	// Err is the error behind it; nil when an answer tells the failure.
	Err error
}

// Error returns the text.
func (f *Failure) Error() string { return f.Text }

// Unwrap returns the error behind the failure.
func (f *Failure) Unwrap() error { return f.Err }

// KindOf says what kind of failure an error is: that of a Failure, or of an
// error of net/http and what lies below it. nil is "". An error of which nothing
// else is known is FailedReset: the exchange broke off.
//
// A deadline, whoever set it, is FailedTimeout; a dial that ran into the
// dialer's own time-out is FailedConnect, since the address does not answer.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	var failure *Failure
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &failure):
		return failure.Kind
	case errors.Is(err, context.Canceled):
		return FailedCancelled
	case errors.Is(err, context.DeadlineExceeded):
		return FailedTimeout
	case errors.As(err, &dns):
		return FailedDNS
	case isTLS(err):
		return FailedTLS
	case errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect"), errors.Is(err, syscall.ECONNREFUSED):
		return FailedConnect
	case isTimeout(err):
		return FailedTimeout
	}
	return FailedReset
}

// KindOfStatus says what kind of failure an HTTP status is; "" is none. A
// redirect is FailedShape: it is not followed, since a POST would arrive as a GET.
func KindOfStatus(status int) Kind {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return FailedAuth
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return FailedNotFound
	case status == http.StatusTooManyRequests:
		return FailedLimit
	case status >= 500:
		return FailedServer
	case status >= 400:
		return FailedRequest
	case status >= 300:
		return FailedShape
	}
	return ""
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// isTLS tells whether a connection failed for TLS, or for want of it on one side.
func isTLS(err error) bool {
	var record tls.RecordHeaderError
	var verification *tls.CertificateVerificationError
	var alert tls.AlertError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	if errors.As(err, &record) || errors.As(err, &verification) || errors.As(err, &alert) ||
		errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid) {
		return true
	}
	// What net/http and crypto/tls have no type for.
	text := err.Error()
	return strings.Contains(text, "tls: ") || strings.Contains(text, "x509: ") || strings.Contains(text, "TLS handshake") ||
		strings.Contains(text, "server gave HTTP response to HTTPS client") ||
		strings.Contains(text, `malformed HTTP response "\x15\x03`) // a TLS alert in answer to plain HTTP
}

// bare returns the error below the method and URL that net/http puts before it.
func bare(err error) error {
	if outer := new(url.Error); errors.As(err, &outer) {
		return outer.Err
	}
	return err
}

// hint says what to do next about a kind of failure.
func hint(kind Kind) string {
	switch kind {
	case FailedDNS:
		return "check the host name of the base URL"
	case FailedConnect:
		return "check host and port of the base URL, that the server runs, and HTTPS_PROXY and NO_PROXY"
	case FailedTLS:
		return "check http:// or https:// in the base URL, and the server's certificate"
	case FailedTimeout:
		return "give it more time, or ask for less at once"
	case FailedReset:
		return "see the log of the server, or of what stands before it, for why it closed the connection"
	case FailedCancelled:
		return "its context was done"
	case FailedAuth:
		return "check that the key is of this endpoint, whole, and allowed to use the model"
	case FailedNotFound:
		return "check base URL and model name"
	case FailedLimit:
		return "send less at once, or ask for a higher limit"
	case FailedRequest:
		return "the body of the answer says what it does not like about the request"
	case FailedServer:
		return "see the log of the server"
	case FailedStream:
		return "see the log of the server for the error that it sent within the stream"
	case FailedTruncated:
		return "look for a time-out or a limit of what stands between here and the server"
	case FailedShape:
		return "check the base URL: what answers there does not speak the API"
	case FailedEmpty:
		return "check the prompt, the stop conditions and max_tokens"
	}
	return ""
}
