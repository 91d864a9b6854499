package otlpin

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

type targetKind uint8

const (
	targetNone targetKind = iota
	targetHTTP
	targetGRPC
)

// target is where everything goes on to.
type target struct {
	kind    targetKind
	secure  bool
	url     *url.URL // of HTTP: the base, without a trailing slash
	address string   // host:port
}

var errTarget = errors.New("the collector to forward to is not understood: write http://host:4318, or host:4317 for gRPC")

// parseTarget reads Options.Forward. Errors do not repeat it: it may hold a password.
func parseTarget(s string) (target, error) {
	if s == "" {
		return target{}, nil
	}
	if !strings.Contains(s, "://") {
		s = "grpc://" + s
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
		return target{}, errTarget
	}
	t := target{url: u}
	port := u.Port()
	switch u.Scheme {
	case "http", "https":
		t.kind, t.secure = targetHTTP, u.Scheme == "https"
		if port == "" {
			port = map[bool]string{false: "80", true: "443"}[t.secure]
		}
		u.Path = strings.TrimRight(strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1/traces"), "/")
		u.RawPath = ""
	case "grpc", "grpcs":
		t.kind, t.secure = targetGRPC, u.Scheme == "grpcs"
		if port == "" || strings.Trim(u.Path, "/") != "" || u.User != nil {
			return target{}, errTarget
		}
	default:
		return target{}, errTarget
	}
	t.address = net.JoinHostPort(u.Hostname(), port)
	return t, nil
}

// is tells whether the target is the listener at addr, as far as that can be told
// without resolving names: what it took it would send itself, for ever.
func (t target) is(addr net.Addr) bool {
	if t.kind == targetNone {
		return false
	}
	host, port, err := net.SplitHostPort(t.address)
	if err != nil {
		return false
	}
	own, err := netip.ParseAddrPort(addr.String())
	if err != nil || port != strings.TrimPrefix(addr.String()[strings.LastIndex(addr.String(), ":"):], ":") {
		return false
	}
	if host == "localhost" {
		return own.Addr().IsLoopback() || own.Addr().IsUnspecified()
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	return ip.Unmap() == own.Addr().Unmap() || own.Addr().IsUnspecified() && (ip.IsLoopback() || ip.IsUnspecified())
}
