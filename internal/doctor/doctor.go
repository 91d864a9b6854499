package doctor

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/engine"
)

// Config says what to check. Base alone is enough.
type Config struct {
	// Base is the endpoint's base URL as its user writes it; see endpoint.ParseBase.
	// With Admin it is the gateway's address for calls.
	Base string
	// API is the one to speak; "" is endpoint.Chat.
	API endpoint.API
	// Model is the model to call; "" takes the first that the endpoint lists.
	Model string
	// Key is the key as it stands in the environment, with whatever is wrong with
	// it; "" is none. It is never shown in any form.
	Key string
	// KeyName is the variable that Key comes from, for hints; "" is "the key's variable".
	KeyName string
	// Admin is the URL of Caddy's admin endpoint where Base is a gateway of ours,
	// such as http://127.0.0.1:2019; "" is no gateway.
	Admin string
	// Metrics is the URL of the engine, or of its metrics; "" looks for them beside
	// the API.
	Metrics string
	// Slow adds what takes long: six seconds of idling, to see whether the
	// endpoint closes idle connections.
	Slow bool
	// Timeout bounds each request and each call; 0 is ten seconds.
	Timeout time.Duration

	// Environ returns the value of a variable, for the proxy variables; nil is
	// os.Getenv.
	Environ func(string) string
	// Resolve looks up the addresses of a name; nil asks the system's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an address; nil is a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Roots are the authorities that are trusted; nil is those of the system.
	Roots *x509.CertPool
	// Now is the clock that certificates and the endpoint's clock are judged by;
	// nil is time.Now.
	Now func() time.Time

	machine machine       // for tests; the zero value is this machine
	idle    time.Duration // for tests; how long Slow idles
	grace   time.Duration // for tests; how long a connection is watched after an answer
}

// machine is what is asked of this machine beside its network.
type machine struct {
	glob     func(pattern string) ([]string, error)
	open     func(path string) error
	lookPath func(program string) (string, error)
}

// visit is one run of all checks.
type visit struct {
	Config
	secrets     secrets
	environment environment

	written   endpoint.Base // set by address, as all after it
	base      *url.URL
	proxy     *url.URL // nil is the straight way
	proxyFrom setting
	// connectStatus is what the proxy last answered when it was asked for a way
	// through (CONNECT), 0 when it was not; the transport writes it.
	connectStatus atomic.Int64
	addresses     []netip.Addr // by name; the first answers, after tcp
	connects      []time.Duration
	rtt           time.Duration // 0 is unknown

	transport *http.Transport
	http      *http.Client
	wires     wires
	id        string // begins the ids of all calls; see visitID
	run       string // X-Weir-Run, "" without a gateway
	root      string // below which the APIs stand; set by path

	head   *exchange
	found  endpoint.Found
	calls  calls
	engine engine.Kind // "" is unknown
	gate   gate

	blocked map[string]string // by check: why what needs it is not checked
	causes  map[string]string // by check: the one at fault
	going   bool              // the check being made does not stand in the way of others
}

// unnamedKey stands for the name of the key's variable where none was given.
const unnamedKey = "the key's variable"

// check is one of the doctor's questions.
type check struct {
	name  string
	needs []string // the checks whose fault would only be repeated
	ask   func(context.Context, *visit) Finding
}

// checks are asked in this order, which is that of the findings. It is set once.
var checks = []check{
	{"address", nil, checkAddress},
	{"proxy", []string{"address"}, checkProxy},
	{"name", []string{"address", "proxy"}, checkName},
	{"tcp", []string{"name"}, checkTCP},
	{"tls", []string{"tcp"}, checkTLS},
	{"round_trip", []string{"tls"}, checkRoundTrip},
	{"clock", []string{"tls"}, checkClock},
	{"path", []string{"tls"}, checkPath},
	{"models", []string{"path"}, checkModels},
	{"key", []string{"path"}, checkKey},
	{"model", []string{"key"}, checkModel},
	{"limit", []string{"key", "model"}, checkLimit},
	{"answer", []string{"model", "limit"}, checkAnswer},
	{"shape", []string{"answer"}, checkShape},
	{"stream", []string{"answer", "shape"}, checkStream},
	{"buffering", []string{"stream"}, checkBuffering},
	{"usage", []string{"stream"}, checkUsage},
	{"compression", []string{"stream"}, checkCompression},
	{"keep_alive", []string{"answer", "shape"}, checkKeepAlive},
	{"metrics", []string{"tls"}, checkMetrics},
	{"flags", []string{"stream"}, checkFlags},
	{"gpu", []string{"address"}, checkGPU},
	{"gateway", nil, checkGateway},
	{"record", []string{"gateway", "answer"}, checkRecord},
	{"ttft", []string{"record", "stream"}, checkTTFT},
	{"meter", []string{"record"}, checkMeter},
	{"config", []string{"gateway"}, checkConfig},
}

// Checks returns the names of all checks in the order of their findings. Those
// from "gateway" on are made only where a gateway is named.
func Checks() []string {
	names := make([]string, len(checks))
	for i, c := range checks {
		names[i] = c.name
	}
	return names
}

// Run makes all checks, and calls report with each finding as it comes; report
// may be nil. The order is that of Checks, always the same. Run sends at most a
// dozen calls of at most 16 tokens each, one after the other, and a few requests
// that cost nothing; against an endpoint in good health it takes as long as
// those calls, and with Slow six seconds more.
//
// When ctx is done, the rest of the checks are Grey.
func Run(ctx context.Context, cfg Config, report func(Finding)) []Finding {
	v := newVisit(cfg)
	defer v.transport.CloseIdleConnections()
	var findings []Finding
	for _, c := range checks {
		if cfg.Admin == "" && c.name == "gateway" {
			break // no gateway was named
		}
		f := v.make(ctx, c)
		findings = append(findings, f)
		if report != nil {
			report(f)
		}
	}
	return findings
}

// make makes one check, unless the fault of an earlier one would only show again.
func (v *visit) make(ctx context.Context, c check) Finding {
	reason, cause := "", ""
	for _, need := range c.needs {
		if reason, cause = v.blocked[need], v.causes[need]; reason != "" {
			break
		}
	}
	var f Finding
	switch {
	case reason != "":
		v.blocked[c.name], v.causes[c.name] = reason, cause
		f = grey("not checked because " + reason)
		f.Cause = cause
	case ctx.Err() != nil:
		f = grey("not checked because the doctor was stopped")
		f.Cause = "stopped"
	default:
		v.going = false
		f = c.ask(ctx, v)
		if f.Level == Red && !v.going {
			v.block(c.name, f.Title)
		}
	}
	f.Check = c.name
	return v.secrets.clean(f)
}

// block keeps the checks that need this one from being made.
func (v *visit) block(name, reason string) {
	if v.blocked[name] == "" {
		v.blocked[name], v.causes[name] = reason, name
	}
}

// goOn says that the checks after this one can be made whatever it found.
func (v *visit) goOn() { v.going = true }

func (v *visit) foreign(text string) string { return v.secrets.foreign(text) }

func (v *visit) now() time.Time { return v.Now() }

func newVisit(cfg Config) *visit {
	v := &visit{Config: cfg, blocked: map[string]string{}, causes: map[string]string{}}
	if v.API == "" {
		v.API = endpoint.Chat
	}
	if v.KeyName == "" {
		v.KeyName = unnamedKey
	}
	if v.Timeout <= 0 {
		v.Timeout = 10 * time.Second
	}
	if v.Environ == nil {
		v.Environ = os.Getenv
	}
	if v.Now == nil {
		v.Now = time.Now
	}
	if v.idle == 0 {
		v.idle = 6 * time.Second // uvicorn, which vLLM and SGLang use, waits five
	}
	if v.grace == 0 {
		v.grace = 150 * time.Millisecond
	}
	v.machine.complete()
	v.secrets.add(v.Key)
	v.environment = readEnvironment(v.Environ)
	for _, s := range []setting{v.environment.http, v.environment.https, v.environment.all} {
		if p, err := parseProxy(s.value); err == nil && p.User != nil {
			password, _ := p.User.Password()
			v.secrets.add(password)
		}
	}
	v.newTransport()
	if v.Admin != "" {
		v.run = v.visitID()
	}
	return v
}

// complete fills in this machine for what a test leaves out.
func (m *machine) complete() {
	if m.glob == nil {
		m.glob = filepath.Glob
	}
	if m.lookPath == nil {
		m.lookPath = exec.LookPath
	}
	if m.open == nil {
		m.open = func(path string) error {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			return f.Close()
		}
	}
}
