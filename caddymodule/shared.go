package caddymodule

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/gateway"
	"github.com/weirgate/weir/internal/telemetry"
)

// shared is the state that outlives configurations: the calls in flight, the
// latest records, the counters.
type shared struct {
	gateway *gateway.Gateway
	metrics *telemetry.Metrics
}

// Destruct implements caddy.Destructor. Calls still in flight hold the gateway
// themselves; nothing of it needs closing.
func (*shared) Destruct() error { return nil }

// pool holds one entry. Each configuration and each call in flight uses it
// once, and the last one out drops it.
var pool = caddy.NewUsagePool()

const poolKey = "weir"

// acquire returns the shared state, made by the first configuration that asks.
// Each acquire must be followed by one release.
func acquire() (*shared, error) {
	v, _, err := pool.LoadOrNew(poolKey, func() (caddy.Destructor, error) {
		m := telemetry.New()
		s := &shared{gateway: gateway.New(m), metrics: m}
		m.Live(s.live)
		remember(s.gateway)
		return s, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*shared), nil
}

func release() { _, _ = pool.Delete(poolKey) }

// hold keeps the state for a call in flight: should a reload take weir away and
// a later one bring it back while the call runs, both find the state that the
// call reports to. It must be followed by one release.
func (s *shared) hold() { pool.LoadOrStore(poolKey, s) }

// current returns the shared state while a configuration or a call uses it,
// else nil.
func current() *shared {
	var s *shared
	pool.Range(func(_, v any) bool {
		s, _ = v.(*shared)
		return false
	})
	return s
}

// live asks the gateway for what the gauges show.
func (s *shared) live() telemetry.LiveState {
	l := s.gateway.Live()
	state := telemetry.LiveState{InFlight: l.InFlight, AwaitingFirstToken: l.AwaitingFirstToken}
	if !l.OldestReceived.IsZero() {
		state.OldestAwaiting = call.Lasting(time.Since(l.OldestReceived))
	}
	return state
}

// shutdownWait is how long calls that outlasted the grace period may take to
// leave their records.
const shutdownWait = 2 * time.Second

// logWait is how long the process then lives on, so that the access log has
// those records.
const logWait = 100 * time.Millisecond

// made holds the gateways that may still have calls in flight, those of
// configurations that are gone among them.
var made struct {
	sync.Mutex
	gateways []*gateway.Gateway
	onExit   sync.Once
}

func remember(g *gateway.Gateway) {
	made.Lock()
	defer made.Unlock()
	made.gateways = append(slices.DeleteFunc(made.gateways, func(old *gateway.Gateway) bool {
		return old.Live().InFlight == 0
	}), g)
	made.onExit.Do(func() { caddy.OnExit(cutAll) })
}

// cutAll runs when the process ends, after Caddy has stopped its apps: what is
// in flight now has outlasted the grace period. Each such call is cancelled and
// leaves its record, with outcome gateway_shutdown.
func cutAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, shutdownWait)
	defer cancel()
	made.Lock()
	defer made.Unlock()
	for _, g := range made.gateways {
		if cut, left := g.Shutdown(ctx); cut > 0 {
			caddy.Log().Named("weir").Warn("calls cut by shutdown; a longer grace_period lets them finish",
				zap.Int("cut", cut), zap.Int("without_record", left))
			// Their servers have yet to write the access log, which happens
			// after the record; nothing tells when that is done.
			select {
			case <-time.After(logWait):
			case <-ctx.Done():
			}
		}
	}
}
