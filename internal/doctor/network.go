package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxAddresses is how many addresses of a name are tried; services behind more
// answer at all of them or at none.
const maxAddresses = 8

// dialLimit is how long one address may take to accept a connection. What takes
// longer than three seconds has lost two packets.
const dialLimit = 4 * time.Second

// checkName resolves the endpoint's name.
func checkName(ctx context.Context, v *visit) Finding {
	host := v.base.Hostname()
	if v.proxy != nil {
		return grey("not checked because the proxy resolves names")
	}
	if a, err := netip.ParseAddr(host); err == nil {
		v.addresses = []netip.Addr{a}
		return green(host + " is an address; there is nothing to resolve")
	}
	resolve := v.Resolve
	if resolve == nil {
		resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	addresses, err := resolve(ctx, host)
	if err != nil || len(addresses) == 0 {
		return v.unresolved(host, err)
	}
	for _, a := range addresses {
		if a = a.Unmap(); !slices.Contains(v.addresses, a) {
			v.addresses = append(v.addresses, a)
		}
	}
	all := len(v.addresses)
	v.addresses = v.addresses[:min(all, maxAddresses)]
	if all == 1 {
		return green(host + " is " + v.addresses[0].String())
	}
	return green(fmt.Sprintf("%s has %d addresses", host, all), list(v.addresses)+".")
}

func (v *visit) unresolved(host string, err error) Finding {
	next := "check the spelling, and ask from this machine: nslookup " + host
	switch {
	case strings.HasSuffix(host, ".svc") || strings.Contains(host, ".svc.") || strings.HasSuffix(host, ".cluster.local"):
		next = "run this inside the cluster: names of its services are known only there"
	case strings.HasSuffix(host, ".local"):
		next = "names under .local are known by multicast only, and seldom inside containers: use the address"
	case !strings.Contains(host, "."):
		next = "a name without a dot is known only within its own network, such as that of Docker Compose: run this there, or use the address and a published port"
	}
	var dns *net.DNSError
	switch {
	case err == nil:
		return red(host+" has no address", "The name exists, but neither with an IPv4 nor with an IPv6 address.", next)
	case errors.As(err, &dns) && dns.IsNotFound:
		return red("there is no host "+host, "The resolver says that the name does not exist.", next)
	case errors.As(err, &dns) && dns.IsTimeout, errors.Is(err, context.DeadlineExceeded):
		return red("the resolver does not answer", "Nothing is known of "+host+".", "check /etc/resolv.conf and the way to the name server")
	}
	return red(host+" does not resolve", "The resolver failed.", next)
}

// attempt is one try to connect to one address.
type attempt struct {
	address netip.Addr
	took    time.Duration
	err     error
}

// checkTCP connects to each address of the endpoint.
func checkTCP(ctx context.Context, v *visit) Finding {
	if v.proxy != nil {
		return grey("not checked because calls go through a proxy")
	}
	attempts := make([]attempt, len(v.addresses))
	var all sync.WaitGroup
	for i, a := range v.addresses {
		all.Go(func() { attempts[i] = v.connect(ctx, a) })
	}
	all.Wait()

	port := portOf(v.base)
	var good, bad []netip.Addr
	var failed attempt
	for _, a := range attempts {
		if a.err == nil {
			good = append(good, a.address)
		} else {
			bad = append(bad, a.address)
			if failed.err == nil {
				failed = a
			}
		}
	}
	if len(good) == 0 {
		return v.closed(failed, port)
	}
	v.addresses = append(good, bad...) // what follows goes to one that answers
	v.connects = []time.Duration{attempts[slices.IndexFunc(attempts, func(a attempt) bool { return a.err == nil })].took}
	if len(bad) == 0 {
		return green("port " + port + " accepts connections")
	}
	fault := dialFault(failed.err)
	six := func(a netip.Addr) bool { return a.Is6() }
	four := func(a netip.Addr) bool { return a.Is4() }
	if !slices.ContainsFunc(bad, four) && !slices.ContainsFunc(good, six) {
		next := "remove the name's IPv6 address, or make the server listen on it"
		if isLoopback(v.base.Hostname()) {
			next = "write 127.0.0.1 in place of " + v.base.Hostname()
		}
		return yellow("the endpoint answers over IPv4 but not over IPv6",
			fmt.Sprintf("At %s: %s. Clients that try IPv6 first lose time with each new connection, or fail.", list(bad), fault), next)
	}
	return yellow(fmt.Sprintf("%d of %d addresses do not accept connections", len(bad), len(attempts)),
		fmt.Sprintf("At %s: %s.", list(bad), fault), "take the dead addresses out of the name, or start the servers behind them")
}

func (v *visit) connect(ctx context.Context, a netip.Addr) attempt {
	ctx, cancel := context.WithTimeout(ctx, min(dialLimit, v.Timeout))
	defer cancel()
	begin := time.Now()
	conn, err := v.dial(ctx, "tcp", net.JoinHostPort(a.String(), portOf(v.base)))
	took := time.Since(begin)
	if err == nil {
		_ = conn.Close() // nothing was sent
	}
	return attempt{a, took, err}
}

// closed says what it means that no address accepts a connection.
func (v *visit) closed(a attempt, port string) Finding {
	where := a.address.String() + " port " + port
	local := a.address.IsLoopback()
	switch fault := dialFault(a.err); fault {
	case "connection refused":
		if v.base.Port() == "" {
			return red("nothing listens at "+where, "The connection was refused. No port was written, and "+port+" is what "+v.base.Scheme+" stands for.",
				"write the port: usual are 8000 (vLLM), 30000 (SGLang), 8080 (llama.cpp, or a gateway) and 11434 (Ollama), as in "+v.base.Scheme+"://"+v.base.Host+":8000")
		}
		if local {
			return red("nothing listens at "+where, "The connection was refused.",
				"start the server, or correct the port. Inside a container 127.0.0.1 is the container itself: use the host's name (host.docker.internal) or the service's, and publish the port")
		}
		return red("nothing listens at "+where, "The connection was refused.",
			"start the server, or correct the port. If it runs there but listens on 127.0.0.1 only, start it with --host 0.0.0.0; in a container, publish the port")
	case "no answer in time":
		return red("no answer from "+where, "The connection was neither accepted nor refused.",
			"look for a firewall or a security group that drops packets, for a VPN that is not up, and check the address")
	default:
		return red("no connection to "+where+": "+fault, "", "check the address and the network of this machine")
	}
}

// checkRoundTrip measures the way to the endpoint: three connections, and one
// request that asks for nothing.
func checkRoundTrip(ctx context.Context, v *visit) Finding {
	head := v.headOf(ctx)
	if head.err != nil {
		return grey("not measured because a request without content was not answered")
	}
	http := fmt.Sprintf("an HTTP request without content takes %s", shortMS(head.answered.Sub(head.sent)))
	if v.proxy != nil || len(v.connects) == 0 {
		return green(http + " through the proxy")
	}
	for len(v.connects) < 3 {
		a := v.connect(ctx, v.addresses[0])
		if a.err != nil {
			return yellow("the endpoint does not accept every connection", "A second one failed: "+dialFault(a.err)+".",
				"look for a limit of connections at the server or on the way")
		}
		v.connects = append(v.connects, a.took)
	}
	slices.Sort(v.connects)
	v.rtt = v.connects[1]
	title := fmt.Sprintf("a connection takes %s (median of 3), %s", shortMS(v.rtt), http)
	if v.rtt > farAway {
		return yellow(title, "Each new connection costs that once, with TLS twice or three times, and each call at least once.",
			"use an endpoint that is nearer, and keep connections alive")
	}
	return green(title)
}

// farAway is the round trip above which the way itself is noticed: the time to
// the first token of a quick engine.
const farAway = 300 * time.Millisecond

func list(addresses []netip.Addr) string {
	var texts []string
	for _, a := range addresses {
		texts = append(texts, a.String())
	}
	return strings.Join(texts, ", ")
}

// shortMS writes a duration as milliseconds with three digits or so.
func shortMS(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms < 10:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}
