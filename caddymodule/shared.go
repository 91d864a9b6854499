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
	rooms   *rooms
}

// Destruct implements caddy.Destructor: the last user is gone, be it a
// configuration or a call.
func (s *shared) Destruct() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownWait)
	defer cancel()
	return s.rooms.close(ctx)
}

// states holds one entry. Each configuration and each call in flight uses it
// once, and the last one out drops it.
var states = caddy.NewUsagePool()

const poolKey = "weir"

// acquire returns the shared state, made by the first configuration that asks.
// Each acquire must be followed by one release.
func acquire() (*shared, error) {
	v, _, err := states.LoadOrNew(poolKey, func() (caddy.Destructor, error) {
		m := telemetry.New()
		s := &shared{gateway: gateway.New(m), metrics: m, rooms: newRooms()}
		s.gateway.Judge(s.rooms.objectives.tracker)
		m.Live(s.live)
		m.Walls(s.walls)
		m.Engines(s.engines)
		m.GPUs(s.gpus)
		m.Spans(s.spans)
		m.Joins(s.joins)
		m.SLO(s.promises)
		remember(s)
		return s, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*shared), nil
}

func release() { _, _ = states.Delete(poolKey) }

// hold keeps the state for a call in flight: should a reload take weir away and
// a later one bring it back while the call runs, both find the state that the
// call reports to. It must be followed by one release.
func (s *shared) hold() { states.LoadOrStore(poolKey, s) }

// current returns the shared state while a configuration or a call uses it,
// else nil.
func current() *shared {
	var s *shared
	states.Range(func(_, v any) bool {
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

// made holds the states whose gateways may still have calls in flight, those of
// configurations that are gone among them.
var made struct {
	sync.Mutex
	states []*shared
	onExit sync.Once
}

func remember(s *shared) {
	made.Lock()
	defer made.Unlock()
	made.states = append(slices.DeleteFunc(made.states, func(old *shared) bool {
		return old.gateway.Live().InFlight == 0
	}), s)
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
	for _, s := range made.states {
		if cut, left := s.gateway.Shutdown(ctx); cut > 0 {
			caddy.Log().Named("weir").Warn("calls cut by shutdown; a longer grace_period lets them finish",
				zap.Int("cut", cut), zap.Int("without_record", left))
			// Their servers have yet to write the access log, which happens
			// after the record; nothing tells when that is done.
			select {
			case <-time.After(logWait):
			case <-ctx.Done():
			}
		}
		if err := s.rooms.flush(ctx); err != nil {
			caddy.Log().Named("weir").Warn("the ledger has not taken everything; its spill keeps the rest for the next start", zap.Error(err))
		}
	}
	if err := endWatchers(); err != nil {
		caddy.Log().Named("weir").Warn("what watched beside the calls did not end well", zap.Error(err))
	}
}
