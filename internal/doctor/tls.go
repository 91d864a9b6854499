package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// checkTLS looks at the certificate of an https endpoint, and for TLS behind an
// address that says http.
func checkTLS(ctx context.Context, v *visit) Finding {
	if v.base.Scheme == "http" {
		return v.checkPlain(ctx)
	}
	state, err := v.handshake(ctx, false)
	if err != nil {
		return v.tlsFault(err)
	}
	leaf := state.PeerCertificates[0]
	left := leaf.NotAfter.Sub(v.now())
	title := fmt.Sprintf("%s, the certificate holds until %s", tls.VersionName(state.Version), leaf.NotAfter.UTC().Format(time.DateOnly))
	if left < 7*24*time.Hour && left < leaf.NotAfter.Sub(leaf.NotBefore)/4 {
		return yellow(title, fmt.Sprintf("That is in %d hours.", int(left.Hours())), "renew the certificate, and look why it has not been renewed by itself")
	}
	return green(title)
}

// checkPlain looks at an endpoint whose address says http.
func (v *visit) checkPlain(ctx context.Context) Finding {
	head := v.headOf(ctx)
	if head.err != nil || head.status == http.StatusBadRequest {
		// A server of TLS answers plain HTTP with an alert, with 400, or not at all.
		if _, err := v.handshake(ctx, true); err == nil {
			return red("the address says http, but the endpoint speaks TLS",
				"Clients meet an error such as \"client sent an HTTP request to an HTTPS server\".",
				"write https:// in place of http://")
		}
	}
	if head.err != nil {
		return v.silent(head.err)
	}
	if v.proxy == nil && len(v.addresses) > 0 && !isPrivate(v.addresses[0]) {
		return yellow("calls travel over a public network without TLS", "Key, prompts and answers can be read on the way.",
			"use the endpoint's https address, or put a server with TLS before it")
	}
	return green("plain HTTP, within this machine or a private network")
}

// silent is an endpoint that accepts a connection and answers no HTTP.
func (v *visit) silent(err error) Finding {
	next := "check that the port is that of the HTTP API, and see the server's log"
	switch {
	case strings.HasPrefix(dialFault(err), "no answer"):
		return red("the endpoint accepts connections but does not answer", "A request without content had no answer in time.",
			"see whether the server hangs or still loads its model, and check that the port is that of the HTTP API")
	case strings.Contains(err.Error(), "malformed HTTP"):
		return red("what answers there does not speak HTTP", "", next)
	}
	return red("the endpoint closes connections without an answer", "", next)
}

// handshake makes a connection with TLS and closes it again. Through a proxy it
// is that of a request.
func (v *visit) handshake(ctx context.Context, unverified bool) (tls.ConnectionState, error) {
	if v.proxy != nil {
		x := v.headOf(ctx)
		if x.err == nil && x.tls == nil {
			return tls.ConnectionState{}, errors.New("the answer came without TLS")
		}
		if x.err != nil {
			return tls.ConnectionState{}, x.err
		}
		return *x.tls, nil
	}
	limit := v.Timeout
	if unverified {
		limit = min(limit, dialLimit) // what speaks no TLS may wait for more
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := v.dial(ctx, "tcp", net.JoinHostPort(v.addresses[0].String(), portOf(v.base)))
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	t := tls.Client(conn, &tls.Config{
		ServerName: v.base.Hostname(), RootCAs: v.Roots, Time: v.now, NextProtos: []string{"h2", "http/1.1"},
		InsecureSkipVerify: unverified, // only to ask whether it is TLS at all
	})
	if err := t.HandshakeContext(ctx); err != nil {
		return tls.ConnectionState{}, fmt.Errorf("shake hands: %w", err)
	}
	return t.ConnectionState(), nil
}

// tlsFault says what a failed handshake means.
func (v *visit) tlsFault(err error) Finding {
	host := v.base.Hostname()
	var plain tls.RecordHeaderError
	var name x509.HostnameError
	var issuer x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	// The type of an alert is crypto/tls's own; its text is of a fixed table.
	_, alert, refused := strings.Cut(err.Error(), "remote error: tls: ")
	switch {
	case errors.As(err, &plain), strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return red("the address says https, but the endpoint does not speak TLS", "It answered with something else, most likely plain HTTP.",
			"write http:// in place of https://, or put a server with TLS before it")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return v.outOfTime(invalid.Cert)
	case errors.As(err, &name):
		names := "It names none."
		if c := name.Certificate; c != nil && len(c.DNSNames) > 0 {
			names = "It is for " + v.foreign(strings.Join(c.DNSNames[:min(len(c.DNSNames), 5)], ", ")) + "."
		}
		return red("the certificate is not for "+host, names, "use one of the names that it is for, or have it made out for "+host)
	case errors.As(err, &issuer):
		by := ""
		if c := issuer.Cert; c != nil {
			by = "It was issued by " + v.foreign(c.Issuer.String()) + "."
		}
		return red("the certificate's issuer is not trusted here", by,
			"if that is your own authority, add it to this machine's certificates (or name it in SSL_CERT_FILE); if it is a proxy that looks into TLS, ask for its authority; check that the server sends its whole chain")
	case errors.As(err, &invalid):
		return red("the certificate is not valid for a server", "", "have it issued anew, for a server and with its whole chain")
	case refused:
		return red("the endpoint refuses TLS with this client", "Its alert: "+v.foreign(alert)+".",
			"check that the server knows the name "+host+", speaks TLS 1.2 or later, and asks for no client certificate")
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return red("the connection was closed during the TLS handshake", "",
			"check that the port is that of https; something on the way may also cut connections to "+host)
	}
	return red("no TLS connection to "+host+": "+dialFault(err), "", "check that the port is that of https")
}

// outOfTime is a certificate whose time has not come, or is over. The fault may
// be this machine's clock.
func (v *visit) outOfTime(c *x509.Certificate) Finding {
	now := "This machine's clock says " + v.now().UTC().Format("2006-01-02 15:04") + " UTC."
	if c != nil && v.now().Before(c.NotBefore) {
		return red("the certificate does not hold before "+c.NotBefore.UTC().Format(time.DateOnly), now, "set this machine's clock, or wait until then")
	}
	title := "the certificate has expired"
	if c != nil {
		title += " on " + c.NotAfter.UTC().Format(time.DateOnly)
	}
	return red(title, now, "renew it on the server; if this machine's clock is wrong, set that")
}
