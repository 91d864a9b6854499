package doctor

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
)

// isLoopback tells whether a host is this machine itself, by its name.
func isLoopback(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	return isLoopbackAddress(host)
}

func isLoopbackAddress(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// shared is the block that carriers and overlay networks use (RFC 6598).
var shared = netip.MustParsePrefix("100.64.0.0/10")

// isPrivate tells whether an address belongs to no public network.
func isPrivate(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || shared.Contains(a)
}

// isLocal tells whether a host, by its name alone, lies on this machine or in a
// network of one's own.
func isLocal(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return isPrivate(a)
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if isLoopback(host) || !strings.Contains(host, ".") {
		return true
	}
	for _, end := range []string{".local", ".internal", ".lan", ".home.arpa", ".svc", ".corp", ".intranet"} {
		if strings.HasSuffix(host, end) {
			return true
		}
	}
	return false
}

// portOf is a URL's port, said or implied.
func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	switch u.Scheme {
	case "https":
		return "443"
	case "socks5", "socks5h":
		return "1080"
	}
	return "80"
}

// dialFault says in few words why a connection was not made.
func dialFault(err error) string {
	var name *net.DNSError
	var timed net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &name):
		return "its name does not resolve"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to it"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timed) && timed.Timeout():
		return "no answer in time"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, syscall.ECONNRESET):
		return "connection reset"
	}
	return "the connection failed"
}
