package alert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"

	"github.com/weirgate/weir/internal/call"
)

// broken says why no answer came. It names what the operating system, the resolver and
// TLS say, and nothing else: a text that holds what the other side wrote could repeat
// the request's secrets.
func broken(ctx context.Context, err error) string {
	var (
		dns         *net.DNSError
		op          *net.OpError
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		record      tls.RecordHeaderError
		timeout     net.Error
	)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "no answer within " + attemptTime.String()
	case ctx.Err() != nil:
		return "cut off: the gateway ends, or the receiver was removed"
	case errors.As(err, &dns):
		return "the name cannot be resolved (" + dns.Err + ")"
	case errors.As(err, &certificate):
		return cut(call.OneLine(certificate.Error()), maxExcerpt)
	case errors.As(err, &authority):
		return authority.Error()
	case errors.As(err, &record):
		return "it does not speak TLS; write http:// if that is meant"
	case errors.As(err, &op):
		return cut(call.OneLine(op.Error()), maxExcerpt)
	case errors.As(err, &timeout) && timeout.Timeout():
		return "it took too long"
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed before an answer"
	}
	return "the connection broke, or what came was no HTTP answer"
}

// foreign prepares an error's text of somebody else's receiver for being shown.
func foreign(err error) string {
	const most = 500
	return cut(call.OneLine(err.Error()), most)
}
