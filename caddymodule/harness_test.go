package caddymodule

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/quic-go/quic-go/http3"

	"github.com/weirgate/weir/internal/call"
)

// caddyLock: one Caddy runs in a process at a time.
var caddyLock sync.Mutex

// run is a running Caddy with this module, started from a Caddyfile.
type run struct {
	t     *testing.T
	admin string
	dir   string // everything that Caddy writes: storage and logs
}

// start runs Caddy with the sites. Global options beyond those that every test
// needs go into globals.
func start(t *testing.T, globals, sites string) *run {
	t.Helper()
	caddyLock.Lock()
	t.Cleanup(caddyLock.Unlock)
	// The last calls of an earlier test hold its state until they have ended.
	until(t, "a process without calls in flight", func() bool { return current() == nil })
	dir, err := os.MkdirTemp("", "weir-")
	if err != nil {
		t.Fatal(err)
	}
	// Caddy may still be at work on a certificate when it has stopped.
	t.Cleanup(func() { until(t, "an empty directory", func() bool { return os.RemoveAll(dir) == nil }) })
	t.Setenv("XDG_DATA_HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("HOME", dir)
	r := &run{t: t, admin: freeAddress(t), dir: dir}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Errorf("stop caddy: %v", err)
		}
	})
	r.load(globals, sites)
	return r
}

// load replaces the configuration, as a reload does.
func (r *run) load(globals, sites string) {
	r.t.Helper()
	if err := r.tryLoad(globals, sites); err != nil {
		r.t.Fatalf("load configuration: %v", err)
	}
}

// tryLoad is load for a configuration that may be refused, be it by the adapter.
func (r *run) tryLoad(globals, sites string) error {
	r.t.Helper()
	defer r.settled()
	return caddy.Load(r.adapt(globals, sites), true)
}

// settled waits until no address has two configurations that listen. Caddy takes the
// servers of the old one, or of a new one that failed, down on goroutines of their own, and a connection that these
// accept meanwhile may be closed without an answer.
func (r *run) settled() {
	r.t.Helper()
	until(r.t, "the old configuration's listeners to close", func() bool {
		// Caddy counts a listener down before it closes it, so the sockets
		// themselves are counted, too, where the system tells.
		sockets := make(map[string]int)
		table, _ := os.ReadFile("/proc/self/net/tcp")
		for _, l := range listening.FindAllSubmatch(table, -1) {
			sockets[string(l[1])]++
		}
		alone := true
		given.Range(func(address, _ any) bool {
			n, err := strconv.Atoi(port(address.(string)))
			if err != nil {
				r.t.Fatal(err)
			}
			alone = caddy.ListenerUsage("tcp", address.(string)) <= 1 && sockets[fmt.Sprintf("%04X", n)] <= 1
			return alone
		})
		return alone
	})
}

// listening finds the ports of loopback with a listener in Linux' table of sockets: slot,
// local address, remote address, state, of which 0A is listening.
var listening = regexp.MustCompile(`(?m)^ *\d+: 0100007F:([0-9A-F]{4}) [0-9A-F:]+ 0A `)

// awaitCertificate returns once the site has its certificate: Caddy gets it
// while it already listens.
func (r *run) awaitCertificate(s site) {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		c, err := tls.Dial("tcp", s.secure, &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"})
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("no certificate for %s: %v", s.secure, err)
		}
		runtime.Gosched()
	}
}

func (r *run) adapt(globals, sites string) []byte {
	r.t.Helper()
	text := fmt.Sprintf("{\n\tadmin %s\n\tpersist_config off\n\tauto_https disable_redirects\n\tlocal_certs\n\tskip_install_trust\n\tstorage_check off\n\tstorage_clean_interval off\n\tstorage file_system %s\n\tlog {\n\t\toutput file %s/caddy.log\n\t}\n%s\n}\n%s", r.admin, r.dir, r.dir, globals, sites)
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		r.t.Fatalf("adapt: %v\n%s", err, text)
	}
	return config
}

// records asks the admin endpoint for calls; query is without the question mark.
func (r *run) records(query string) []*call.Record {
	r.t.Helper()
	var answer struct{ Calls []*call.Record }
	status, body := r.get("/weir/calls?" + query)
	if status != http.StatusOK {
		r.t.Fatalf("GET /weir/calls?%s: %d %s", query, status, body)
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		r.t.Fatal(err)
	}
	return answer.Calls
}

// record returns the one record of a run. It waits for it: the client may have
// the last byte before the handler has returned.
func (r *run) record(runID string) *call.Record {
	r.t.Helper()
	return r.recordsOf(runID, 1)[0]
}

// recordsOf waits until a run has left n records and returns them, the newest
// first; more than n fail the test.
func (r *run) recordsOf(runID string, n int) []*call.Record {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		calls := r.records(fmt.Sprintf("run=%s&limit=%d", url.QueryEscape(runID), n+1))
		if len(calls) == n {
			return calls
		}
		if len(calls) > n || time.Now().After(deadline) {
			r.t.Fatalf("run %s left %d records, want %d", runID, len(calls), n)
		}
	}
}

func (r *run) get(path string) (status int, body []byte) {
	r.t.Helper()
	res, err := http.Get("http://" + r.admin + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res.StatusCode, body
}

// given are the addresses that freeAddress has returned: a port that nobody
// listens on yet may come up again.
var given sync.Map

// freeAddress returns a loopback address on which nobody listens, another one each
// time. Its port is none of those that the system gives to whoever asks for any, as
// other tests do meanwhile: between here and its use it would be theirs.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000)))
		if err != nil {
			continue
		}
		address := l.Addr().String()
		l.Close()
		if _, again := given.LoadOrStore(address, true); !again {
			return address
		}
	}
	t.Fatal("every port that was tried is taken")
	return ""
}

func port(address string) string {
	_, p, _ := net.SplitHostPort(address)
	return p
}

// serve runs an upstream on loopback over HTTP/1.1 and h2c.
func serve(t *testing.T, h http.Handler) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return l.Addr().String()
}

// accept hands each connection to serve, and closes it when that returns; a nil
// config is without TLS. Everything has ended when the test has.
func accept(t *testing.T, config *tls.Config, serve func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if config != nil {
		l = tls.NewListener(l, config)
	}
	var all sync.WaitGroup
	over, end := context.WithCancel(context.Background())
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				// A proxy keeps idle connections beyond the test.
				defer context.AfterFunc(over, func() { _ = c.Close() })()
				serve(c)
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); end(); all.Wait() })
	return l.Addr().String()
}

// protocols are the ways a client can reach a site. Sites listen on two ports:
// one plain, one with TLS and QUIC.
var protocols = []string{"http/1.1", "h2c", "h2", "h3"}

// client speaks exactly one protocol. It follows no compression of its own, so
// that it sees the bytes as they are.
func client(t *testing.T, protocol string) *http.Client {
	t.Helper()
	insecure := &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"} // Caddy's own test authority
	if protocol == "h3" {
		tr := &http3.Transport{TLSClientConfig: insecure, DisableCompression: true}
		t.Cleanup(func() { _ = tr.Close() })
		return &http.Client{Transport: tr}
	}
	tr := &http.Transport{TLSClientConfig: insecure, DisableCompression: true, Protocols: new(http.Protocols)}
	switch protocol {
	case "http/1.1":
		tr.Protocols.SetHTTP1(true)
	case "h2c":
		tr.Protocols.SetUnencryptedHTTP2(true)
	case "h2":
		tr.Protocols.SetHTTP2(true)
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// site is a pair of addresses that serve the same routes.
type site struct{ plain, secure string }

func newSite(t *testing.T) site { return site{freeAddress(t), freeAddress(t)} }

// block writes the site's Caddyfile.
func (s site) block(directives string) string {
	return fmt.Sprintf("http://127.0.0.1:%s, https://localhost:%s {\n\tbind 127.0.0.1\n%s\n}\n", port(s.plain), port(s.secure), directives)
}

// http writes the Caddyfile of the site without TLS.
func (s site) http(directives string) string {
	return fmt.Sprintf("http://127.0.0.1:%s {\n\tbind 127.0.0.1\n%s\n}\n", port(s.plain), directives)
}

// url returns the site's address for a protocol.
func (s site) url(protocol, path string) string {
	if protocol == "http/1.1" || protocol == "h2c" {
		return "http://" + s.plain + path
	}
	return "https://localhost:" + port(s.secure) + path
}

// post makes a request for a run; body is JSON.
func post(ctx context.Context, t *testing.T, address, runID, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Weir-Run", runID)
	r.Header.Set("Authorization", "Bearer sk-test-key-of-the-harness")
	return r
}
