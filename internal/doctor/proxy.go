package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/weirgate/weir/internal/endpoint"
)

// setting is a variable of the environment that says something.
type setting struct{ name, value string }

// environment is what the proxy variables say.
type environment struct {
	http, https, all, no setting
}

func readEnvironment(get func(string) string) environment {
	first := func(name string) setting {
		for _, n := range []string{name, strings.ToLower(name)} {
			if v := get(n); v != "" {
				return setting{n, v}
			}
		}
		return setting{}
	}
	return environment{http: first("HTTP_PROXY"), https: first("HTTPS_PROXY"), all: first("ALL_PROXY"), no: first("NO_PROXY")}
}

// of is the variable that Go programs heed for a URL, whatever NO_PROXY says.
// They pay no heed to ALL_PROXY.
func (e environment) of(u *url.URL) setting {
	if u.Scheme == "https" {
		return e.https
	}
	return e.http
}

// proxy is the way that a Go program takes to a URL: the proxy's URL, or nil for
// the straight way, by the rules of net/http: never for this machine itself.
func (e environment) proxy(u *url.URL) (*url.URL, setting) {
	s := e.of(u)
	if s.value == "" || u.Hostname() == "localhost" || isLoopbackAddress(u.Hostname()) || e.exempt(u) {
		return nil, setting{}
	}
	p, err := parseProxy(s.value)
	if err != nil {
		return nil, s // Go passes over it, and over the error
	}
	return p, s
}

func parseProxy(value string) (*url.URL, error) {
	u, err := url.Parse(value)
	if err != nil || u.Scheme == "" || u.Host == "" {
		u, err = url.Parse("http://" + value)
	}
	if err != nil || u.Hostname() == "" {
		return nil, errors.New("it is neither a URL nor host:port")
	}
	return u, nil
}

// exempt tells whether NO_PROXY names a URL's host, as Go reads it: host names
// with all below them, addresses, CIDR blocks, each with a port if need be, and
// "*" for all.
func (e environment) exempt(u *url.URL) bool {
	host, port := strings.ToLower(u.Hostname()), portOf(u)
	address, err := netip.ParseAddr(host)
	isAddress := err == nil
	for _, entry := range strings.Split(e.no.value, ",") {
		entry = strings.ToLower(strings.TrimSpace(entry))
		if entry == "*" {
			return true
		}
		if block, err := netip.ParsePrefix(entry); err == nil {
			if isAddress && block.Contains(address.Unmap()) {
				return true
			}
			continue
		}
		name, itsPort, err := net.SplitHostPort(entry)
		if err != nil {
			name = entry
		}
		if name == "" || itsPort != "" && itsPort != port {
			continue
		}
		if a, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
			if isAddress && a.Unmap() == address.Unmap() {
				return true
			}
			continue
		}
		if strings.HasPrefix(name, "*.") {
			name = name[1:]
		}
		if dotted := "." + strings.TrimPrefix(name, "."); strings.HasSuffix(host, dotted) || host == name {
			return true
		}
	}
	return false
}

// misread returns the first entry of NO_PROXY that Go does not understand and
// what to write instead; "" when there is none.
func (e environment) misread() (entry, instead string) {
	for _, entry := range strings.Split(e.no.value, ",") {
		entry = strings.TrimSpace(entry)
		switch {
		case strings.ContainsAny(entry, " ;|\t\n"):
			return entry, "separate entries by commas"
		case strings.Contains(entry, "://"):
			return entry, "write the host alone, without a scheme"
		case strings.HasPrefix(entry, "<"):
			return entry, "name the hosts; such classes are known to Windows alone"
		case entry == "*" || !strings.ContainsAny(strings.TrimPrefix(entry, "*."), "*?"):
			if _, err := netip.ParsePrefix(entry); err == nil || !strings.Contains(entry, "/") {
				continue
			}
			return entry, "write the host alone, or a block such as 10.0.0.0/8"
		case strings.IndexFunc(strings.Trim(entry, "*?."), func(r rune) bool { return r != '.' && (r < '0' || r > '9') }) < 0:
			return entry, "write a block such as 192.168.0.0/16"
		default:
			return entry, "write the domain alone: example.com holds for all below it too"
		}
	}
	return "", ""
}

// checkProxy looks at the proxy variables: whether calls go through a proxy, and
// whether they should.
func checkProxy(ctx context.Context, v *visit) Finding {
	e, u := v.environment, v.base
	v.proxy, v.proxyFrom = e.proxy(u)
	if e.http.value == "" && e.https.value == "" && e.all.value == "" {
		return green("no proxy is set in the environment")
	}
	s := e.of(u)
	if s.value != "" {
		p, err := parseProxy(s.value)
		if _, whole := url.Parse(s.value); err != nil || whole != nil && strings.Contains(s.value, "://") {
			return red(s.name+" does not name a proxy", "Its value is neither a URL nor host:port; some programs stop there, others pass over it.",
				"set "+s.name+" to a URL such as http://proxy.example:3128, or unset it")
		}
		switch p.Scheme {
		case "http", "https", "socks5", "socks5h":
		default:
			return red(s.name+" names a proxy of a kind that is not known here", "The kind is "+v.foreign(p.Scheme)+".",
				"set it to a URL with http, https or socks5")
		}
	}
	entry, instead := e.misread()
	if v.proxy != nil {
		return v.proxied(ctx, entry, instead)
	}
	covered := e.exempt(u)
	switch {
	case entry != "":
		return yellow("an entry of "+e.no.name+" is not understood by Go programs, Weir among them",
			"The entry is "+v.foreign(entry)+"; other programs may understand it otherwise.", instead)
	case covered:
		return green("calls go straight to the endpoint", e.no.name+" names it.")
	case isLoopback(u.Hostname()) && (s.value != "" || e.all.value != ""):
		name := s.name
		if s.value == "" {
			name = e.all.name
		}
		return yellow("some clients send calls for this very machine to a proxy",
			fmt.Sprintf("%s is set, and %s does not name %s. Go programs never use a proxy for this machine; Python and Node do, and then fail with an error of the proxy.",
				name, "NO_PROXY", u.Hostname()),
			"export NO_PROXY=localhost,127.0.0.1,::1")
	case s.value == "" && e.all.value != "":
		return yellow("clients take different ways to the endpoint",
			e.all.name+" is set: curl and Python use it, Go programs, Weir among them, pay no heed to it.",
			fmt.Sprintf("set %s_PROXY if calls are to go through the proxy; else name the host in NO_PROXY", strings.ToUpper(u.Scheme)))
	}
	return green("calls go straight to the endpoint", "The proxy that is set is for another kind of URL.")
}

// proxied looks at a way through a proxy.
func (v *visit) proxied(ctx context.Context, entry, instead string) Finding {
	shown, name, host := v.foreign(v.proxy.Host), v.proxyFrom.name, v.foreign(v.base.Hostname())
	noProxy := fmt.Sprintf("if the endpoint can be reached without a proxy, add %s to NO_PROXY", host)
	if entry != "" {
		noProxy += "; the entry " + v.foreign(entry) + " of NO_PROXY is not understood: " + instead
	}
	conn, err := v.dial(ctx, "tcp", net.JoinHostPort(v.proxy.Hostname(), portOf(v.proxy)))
	if err != nil {
		return red("the proxy "+shown+" cannot be reached: "+dialFault(err), name+" sends calls to it.",
			"start the proxy, or correct or unset "+name+"; "+noProxy)
	}
	_ = conn.Close() // nothing was written that could be lost
	x := v.headOf(ctx)
	status, err := x.status, x.err
	if v.base.Scheme == "https" {
		// The endpoint's own answer is none of the proxy's, nor is its certificate.
		if status = int(v.connectStatus.Load()); status == http.StatusOK || status == 0 && endpoint.KindOf(err) == endpoint.FailedTLS {
			err = nil
		}
	}
	local := isLocal(v.base.Hostname())
	switch {
	case status == http.StatusProxyAuthRequired:
		return red("the proxy "+shown+" wants to know who is asking (407)", name+" has no user and password, or wrong ones.",
			"write them into "+name+" as http://user:password@host:port; "+noProxy)
	case err != nil && status == 0:
		return red("the proxy "+shown+" does not carry calls to the endpoint", "It was reached, but gave no proper answer.", noProxy)
	case local && (status == http.StatusForbidden || status >= 502 && status <= 504), v.base.Scheme == "https" && status >= 300:
		return red(fmt.Sprintf("the proxy %s does not reach the endpoint (%d)", shown, status),
			name+" sends calls to it, and it cannot reach, or may not, what lies in your own network.", noProxy)
	case local:
		return yellow("calls for a host of your own network go through the proxy "+shown, "This is what "+name+" says.", noProxy)
	case entry != "":
		return yellow("an entry of NO_PROXY is not understood by Go programs, Weir among them", "The entry is "+v.foreign(entry)+".", instead)
	}
	return green("calls go through the proxy " + shown)
}
