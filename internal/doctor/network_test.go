package doctor

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/sim"
)

func TestNameFaults(t *testing.T) {
	notFound := &net.DNSError{Err: "no such host", IsNotFound: true}
	for _, c := range []struct {
		host  string
		err   error
		parts []string
	}{
		{"api.exmaple.com", notFound, []string{"there is no host api.exmaple.com", "nslookup api.exmaple.com"}},
		{"vllm", notFound, []string{"no host vllm", "Docker Compose"}},
		{"vllm.prod.svc.cluster.local", notFound, []string{"inside the cluster"}},
		{"box.local", notFound, []string{"multicast"}},
		{"api.example.com", &net.DNSError{Err: "i/o timeout", IsTimeout: true}, []string{"resolver does not answer", "resolv.conf"}},
		{"api.example.com", &net.DNSError{Err: "server misbehaving", IsTemporary: true}, []string{"does not resolve"}},
		{"api.example.com", nil, []string{"has no address"}},
	} {
		t.Run(c.host, func(t *testing.T) {
			cfg := of("http://" + c.host + ":8000/v1")
			cfg.Resolve = func(context.Context, string) ([]netip.Addr, error) { return nil, c.err }
			findings := run(t, cfg)
			want(t, findings, "name", Red, c.parts...)
			want(t, findings, "tcp", Grey, "not checked because "+find(t, findings, "name").Title)
			want(t, findings, "answer", Grey, "not checked because "+find(t, findings, "name").Title)
		})
	}
}

func TestSeveralAddresses(t *testing.T) {
	engine := engineAt(t, quick(sim.VLLM))
	cfg := named("engine.test", engine)
	cfg.Resolve = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")}, nil
	}
	findings := run(t, cfg)
	want(t, findings, "name", Green, "2 addresses", "127.0.0.1, 127.0.0.2")
	// The server of the test listens on the first alone.
	want(t, findings, "tcp", Yellow, "1 of 2 addresses", "127.0.0.2", "connection refused")
	want(t, findings, "answer", Green)
}

// TestSilentIPv6: a name with an IPv6 address that does not answer.
func TestSilentIPv6(t *testing.T) {
	engine := engineAt(t, quick(sim.VLLM))
	for _, c := range []struct {
		host string
		err  error
		part string
	}{
		{"engine.test", os.ErrDeadlineExceeded, "remove the name's IPv6 address"},
		{"localhost", syscall.ECONNREFUSED, "write 127.0.0.1 in place of localhost"},
	} {
		t.Run(c.host, func(t *testing.T) {
			cfg := named(c.host, engine)
			cfg.Resolve = func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1")}, nil
			}
			cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				if strings.HasPrefix(address, "[") {
					return nil, &net.OpError{Op: "dial", Err: c.err}
				}
				return (&net.Dialer{}).DialContext(ctx, network, address)
			}
			findings := run(t, cfg)
			want(t, findings, "tcp", Yellow, "over IPv4 but not over IPv6", "::1", c.part)
			want(t, findings, "stream", Green)
		})
	}
}

func TestTCPFaults(t *testing.T) {
	for _, c := range []struct {
		name, base string
		err        error
		parts      []string
	}{
		{"refused here", "http://127.0.0.1:8000/v1", syscall.ECONNREFUSED, []string{"nothing listens at 127.0.0.1 port 8000", "container"}},
		{"refused there", "http://10.0.0.7:8000/v1", syscall.ECONNREFUSED, []string{"nothing listens at 10.0.0.7", "--host 0.0.0.0"}},
		{"refused without a port", "http://127.0.0.1/v1", syscall.ECONNREFUSED, []string{"nothing listens at 127.0.0.1 port 80", "No port was written, and 80 is what http stands for", "8000 (vLLM)", "30000 (SGLang)", "8080 (llama.cpp, or a gateway)", "11434 (Ollama)", "http://127.0.0.1:8000"}},
		{"refused without a port, TLS", "https://[::1]", syscall.ECONNREFUSED, []string{"443 is what https stands for", "https://[::1]:8000"}},
		{"dropped", "http://10.0.0.7:8000/v1", os.ErrDeadlineExceeded, []string{"no answer from 10.0.0.7 port 8000", "firewall"}},
		{"no route", "http://10.0.0.7:8000/v1", syscall.EHOSTUNREACH, []string{"no route to it", "network"}},
		{"other", "http://10.0.0.7:8000/v1", errors.New("hm"), []string{"no connection"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := of(c.base)
			cfg.Dial = func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: c.err}
			}
			findings := run(t, cfg)
			want(t, findings, "tcp", Red, c.parts...)
			want(t, findings, "tls", Grey, "not checked because")
			want(t, findings, "models", Grey, "not checked because")
		})
	}
}

// TestRefusedForReal: a port that nothing listens on.
func TestRefusedForReal(t *testing.T) {
	want(t, run(t, of("http://127.0.0.1:1/v1")), "tcp", Red, "nothing listens")
}

func TestFarAway(t *testing.T) {
	v := newVisit(of("http://127.0.0.1:1/v1"))
	v.addresses = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	v.head = &exchange{status: 200, sent: time.Unix(100, 0), answered: time.Unix(100, 400e6)}
	v.connects = []time.Duration{350 * time.Millisecond, 9 * time.Millisecond, 400 * time.Millisecond}
	f := checkRoundTrip(t.Context(), v)
	f.Check = "round_trip"
	want(t, []Finding{f}, "round_trip", Yellow, "350 ms (median of 3)", "400 ms", "nearer")

	v.connects = []time.Duration{1, 2, 3}
	if f := checkRoundTrip(t.Context(), v); f.Level != Green {
		t.Errorf("a short way is %+v, want green", f)
	}
}

// TestSecondConnectionRefused: an endpoint that takes one connection and refuses the next.
func TestSecondConnectionRefused(t *testing.T) {
	v := newVisit(of("http://127.0.0.1:1/v1"))
	v.base = mustURL(t, "http://127.0.0.1:1/v1")
	v.addresses = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	v.head = &exchange{status: 200, sent: time.Unix(100, 0), answered: time.Unix(100, 0)}
	v.connects = []time.Duration{time.Millisecond}
	v.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED }
	f := checkRoundTrip(t.Context(), v)
	f.Check = "round_trip"
	want(t, []Finding{f}, "round_trip", Yellow, "does not accept every connection", "limit of connections")
}

func TestClock(t *testing.T) {
	engine := start(t, quick(sim.VLLM))
	for _, c := range []struct {
		name  string
		off   time.Duration
		age   string
		none  bool
		level Level
		parts []string
	}{
		{name: "right", level: Green},
		{name: "3 s", off: 3 * time.Second, level: Green},
		{name: "20 s ahead", off: 20 * time.Second, level: Yellow, parts: []string{"ahead of ours", "NTP"}},
		{name: "20 s behind", off: -20 * time.Second, level: Yellow, parts: []string{"behind ours", "NTP"}},
		{name: "an hour", off: time.Hour, level: Red, parts: []string{"ahead of ours", "Certificates", "NTP"}},
		{name: "cached", off: time.Hour, age: "3600", level: Grey, parts: []string{"cache"}},
		{name: "none", none: true, level: Grey, parts: []string{"does not say its time"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Date", time.Now().Add(c.off).UTC().Format(http.TimeFormat))
				if c.none {
					w.Header()["Date"] = nil
				}
				if c.age != "" {
					w.Header().Set("Age", c.age)
				}
				engine.ServeHTTP(w, r)
			}))
			findings := run(t, of(url+"/v1"))
			want(t, findings, "clock", c.level, c.parts...)
			want(t, findings, "answer", Green)
		})
	}
}

// TestSkew: the header is cut to the second and was written at some instant
// between question and answer, so that no more is certain.
func TestSkew(t *testing.T) {
	base := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return base.Add(time.Duration(ms) * time.Millisecond) }
	for _, c := range []struct {
		date, sent, answered int // milliseconds
		want                 time.Duration
	}{
		{0, 0, 10, 0},
		{0, 990, 1010, 0},  // cut off: it may have been 999 ms more
		{0, 1000, 1010, 0}, // exactly on the edge
		{0, 1500, 1510, -500 * time.Millisecond},
		{1000, 980, 1000, 0},
		{1000, 0, 600, 400 * time.Millisecond},
		{0, 900, 5000, 0}, // a slow answer proves nothing
		{60000, 0, 0, time.Minute},
	} {
		if got := skewOf(at(c.date), at(c.sent), at(c.answered)); got != c.want {
			t.Errorf("date %d within %d and %d ms: %v, want %v", c.date, c.sent, c.answered, got, c.want)
		}
	}
}

func TestDialFaults(t *testing.T) {
	for want, err := range map[string]error{
		"connection refused":        &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
		"its name does not resolve": &net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}},
		"no route to it":            syscall.ENETUNREACH,
		"no answer in time":         context.DeadlineExceeded,
		"cancelled":                 context.Canceled,
		"connection reset":          syscall.ECONNRESET,
		"the connection failed":     errors.New("x"),
	} {
		if got := dialFault(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
