package gateway

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/dialect"
	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/rtt"
	"github.com/weirgate/weir/slo"
)

// Budgets that keep memory bounded. They are not knobs: the defaults suit
// every body that an engine accepts, and what passes them is still forwarded.
const (
	// MaxLook is how much of one request body is kept and looked at.
	MaxLook = 10 << 20
	// MaxLooks bounds what all calls together keep of their request bodies.
	MaxLooks = 256 << 20
	// RingSize is how many records, and how many failed ones, are kept in memory.
	RingSize = 1000
)

// Metrics takes what the gateway counts. Its methods are called on the call's
// own goroutine and must not block.
type Metrics interface {
	Observe(*call.Record)     // once per call, at its end
	Phases(*call.Record)      // once per call, when its phases are final
	Unmeasured(reason string) // a request that is not an inference call
	Barred(reason string)     // such a request that was refused
	AddedDelay(time.Duration) // the gateway's own time on one chunk; sampled
}

// Gateway is the state shared by all calls. It outlives configurations.
type Gateway struct {
	metrics Metrics
	namer   atomic.Pointer[keys.Namer]
	secret  atomic.Pointer[func() []byte]
	recent  ring
	failed  ring
	history history
	live    live
	looks   budget
	prefix  string
	counter atomic.Uint64
	faults  atomic.Int64
	trips   rtt.Samples // of connections, to clients and upstream
	beside  atomic.Pointer[Beside]
	tracker *slo.Tracker // nil judges nothing
	probing probeMarks
}

// New returns a Gateway that reports to metrics. Keys have no id until it has a
// source for the secret.
func New(metrics Metrics) *Gateway {
	var seed [5]byte
	_, _ = rand.Read(seed[:]) // never fails; it ends the process instead
	g := &Gateway{
		metrics: metrics,
		prefix:  strings.ToLower(base32.StdEncoding.EncodeToString(seed[:])),
	}
	g.looks.limit = MaxLooks
	g.SetBeside(nil)
	return g
}

// SetSecretSource sets where the secret for key ids comes from: asked when the
// first key is met, or by LoadSecret. A source that follows another is asked
// only if that one never was: ids stay what they are while the process lives.
func (g *Gateway) SetSecretSource(source func() []byte) { g.secret.Store(&source) }

// LoadSecret asks the source for the secret, unless that has been done.
func (g *Gateway) LoadSecret() { g.naming() }

func (g *Gateway) naming() *keys.Namer {
	n := g.namer.Load()
	if n != nil {
		return n
	}
	source := g.secret.Load()
	if source == nil {
		return nil
	}
	g.namer.CompareAndSwap(nil, keys.NewNamer((*source)()))
	return g.namer.Load()
}

// keyID returns the short id of a caller's key; "" for no key, and when there
// is no secret to make ids with.
func (g *Gateway) keyID(key string) string {
	if key == "" {
		return ""
	}
	if n := g.naming(); n != nil {
		return n.ID(key)
	}
	return ""
}

var idEncoding = base32.HexEncoding.WithPadding(base32.NoPadding)

// newID returns a call id: unique within the process by its counter, and among
// processes by 40 random bits.
func (g *Gateway) newID() string {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], g.counter.Add(1))
	id := make([]byte, 0, 8+13)
	id = append(id, g.prefix...)
	return string(idEncoding.AppendEncode(id, n[3:]))
}

// Faults returns how often what looks on has panicked: a record was not counted,
// or lacks what stood beside its call.
func (g *Gateway) Faults() int64 { return g.faults.Load() }

// keep stores a sealed record where the calls API finds it, and reports it. A
// fault in the reporting is not the call's.
func (g *Gateway) keep(rec *call.Record) {
	g.recent.add(rec)
	if rec.Outcome.Failed() {
		g.failed.add(rec)
	}
	g.history.add(rec, rec.Time.Add(rec.Instants.Ended.Or(0)))
	if rec.Probe {
		return // it has series of its own
	}
	defer g.forgive()
	g.metrics.Observe(rec)
}

// forgive is deferred around what looks on: a fault in it is counted, and is not
// the call's.
func (g *Gateway) forgive() {
	if recover() != nil {
		g.faults.Add(1)
	}
}

// Shutdown cuts every call in flight and waits until each has left its record,
// or until ctx is done. It returns how many were cut, and how many of them had
// not ended when ctx was done.
func (g *Gateway) Shutdown(ctx context.Context) (cut, left int) {
	return g.live.cut(ctx)
}

// Options are one directive's choices. The zero value measures and changes nothing.
type Options struct {
	// Dialect overrides what the path says; nil lets the path decide.
	Dialect *dialect.Dialect
	// Class is the service class of the directive's calls.
	Class string
	// Weights orders the classes: a header may ask for a class of less weight.
	Weights map[string]int
	// Usage says whether the upstream may be asked for usage.
	Usage UsagePolicy
	// Admission is what calls pass before they are sent; nil lets all pass.
	Admission *Admission
	// Private keeps the call's place in a trace from the upstream, where spans are
	// made: one that belongs to somebody else has no use for it.
	Private bool
	// NoReplay switches off the one retry over a stale keep-alive connection.
	NoReplay bool
}

// UsagePolicy says what may be done so that the upstream reports usage.
type UsagePolicy string

const (
	Passthrough    UsagePolicy = "passthrough"      // nothing: bytes pass unchanged
	Inject         UsagePolicy = "inject"           // ask for usage when the client said nothing
	InjectAndStrip UsagePolicy = "inject_and_strip" // and keep the usage event from the client
)
