package doctor

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/sim"
)

// nothing is a machine without a GPU.
var nothing = machine{
	glob:     func(string) ([]string, error) { return nil, nil },
	open:     func(string) error { return errors.New("not there") },
	lookPath: func(string) (string, error) { return "", exec.ErrNotFound },
}

// of is a configuration for an endpoint of a test: no proxy variables, no GPU,
// and short waits.
func of(base string) Config {
	return Config{
		Base: base, KeyName: "TEST_KEY", Environ: func(string) string { return "" },
		Timeout: 5 * time.Second, machine: nothing, grace: 40 * time.Millisecond,
	}
}

// engineAt serves a simulated engine and returns its base URL with /v1.
func engineAt(t *testing.T, cfg sim.Config) string {
	t.Helper()
	e := start(t, cfg)
	s := httptest.NewUnstartedServer(e)
	s.Config = e.Server()
	s.Start()
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// start starts a simulated engine.
func start(t *testing.T, cfg sim.Config) *sim.Engine {
	t.Helper()
	e, err := sim.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// quick is a simulated engine whose tokens come in short order.
func quick(q sim.Quirks) sim.Config {
	return sim.Config{Quirks: q, PrefillBase: 3 * time.Millisecond, DecodeBase: time.Millisecond, DecodePerSequence: sim.None}
}

// steady is a simulated engine whose tokens can be told apart even by a busy
// machine, for tests that count calls.
func steady(q sim.Quirks) sim.Config {
	return sim.Config{Quirks: q, PrefillBase: 10 * time.Millisecond, DecodeBase: 10 * time.Millisecond, DecodePerSequence: sim.None}
}

// first is a script of faults: the first calls go well, the others have the fault.
func first(well int, fault string) []string {
	script := make([]string, 32)
	for i := well; i < len(script); i++ {
		script[i] = fault
	}
	return script
}

// serve serves a handler and returns its URL.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// find returns the finding of a check.
func find(t *testing.T, findings []Finding, check string) Finding {
	t.Helper()
	for _, f := range findings {
		if f.Check == check {
			return f
		}
	}
	t.Fatalf("there is no finding of %s", check)
	return Finding{}
}

// want asserts level and texts of a check: each of parts must stand in title,
// detail or next step, which must be there unless all is well.
func want(t *testing.T, findings []Finding, check string, level Level, parts ...string) {
	t.Helper()
	f := find(t, findings, check)
	if f.Level != level {
		t.Errorf("%s is %s, want %s: %+v", check, f.Level, level, f)
	}
	if (f.Level == Red || f.Level == Yellow) && f.Next == "" {
		t.Errorf("%s does not say what to do: %+v", check, f)
	}
	for _, part := range parts {
		if !strings.Contains(f.Title+"\n"+f.Detail+"\n"+f.Next, part) {
			t.Errorf("%s says nothing of %q: %+v", check, part, f)
		}
	}
}

// run makes all checks.
func run(t *testing.T, cfg Config) []Finding {
	t.Helper()
	var told []Finding
	findings := Run(t.Context(), cfg, func(f Finding) { told = append(told, f) })
	if len(told) != len(findings) {
		t.Errorf("%d findings were reported, %d returned", len(told), len(findings))
	}
	names := Checks()
	for i, f := range findings {
		if f.Check != names[i] || told[i] != f {
			t.Errorf("finding %d is %+v, reported %+v, want one of %s", i, f, told[i], names[i])
		}
		if f.Title == "" || (f.Level == Red || f.Level == Yellow) && f.Next == "" {
			t.Errorf("a finding without a title or a next step: %+v", f)
		}
	}
	return findings
}

// named is a configuration whose endpoint has a name of its own, which leads to
// the server at the URL.
func named(name, server string) Config {
	_, address, _ := strings.Cut(server, "://")
	address, _, _ = strings.Cut(address, "/")
	_, port, _ := net.SplitHostPort(address)
	scheme, _, _ := strings.Cut(server, "://")
	cfg := of(scheme + "://" + name + ":" + port + "/v1")
	cfg.Resolve = func(_ context.Context, host string) ([]netip.Addr, error) {
		if host == name {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return cfg
}

// pool trusts the certificate of a test server.
func pool(s *httptest.Server) *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(s.Certificate())
	return p
}

func mustAddr(t *testing.T, text string) netip.Addr {
	t.Helper()
	a, err := netip.ParseAddr(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// quiet is a log that nobody reads.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
