package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"

	"github.com/weirgate/weir/internal/estimate"
	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/ledger"
	"github.com/weirgate/weir/internal/limit"
	"github.com/weirgate/weir/internal/queue"
	"github.com/weirgate/weir/internal/signals"
	"github.com/weirgate/weir/internal/spend"
)

// rooms are what calls pass beside the meter. They outlive configurations, so
// that a reload forgets no debt, no caller and no spending: a configuration
// names what it uses, and finds it as the one before has left it.
type rooms struct {
	estimates  *estimate.Estimator
	objectives *objectives
	signals    signals.Log // what engines and GPUs did
	budgets    *spend.Budgets
	prices     atomic.Pointer[spend.PriceFile] // of the running configuration; nil without

	mu       sync.Mutex // guards all below
	pools    map[string]*pool
	stores   map[string]*keys.Store
	pricings map[string]*spend.PriceFile
	ledgers  map[string]openLedger
	running  []*App // begun and not ended, the oldest first
	holds    *App   // of those, the one whose pools and prices hold; nil before the first
	restored bool   // estimates have what was saved
	// measureOnly is the runtime switch for all pools, those to come included.
	measureOnly bool
}

// pool is one set of upstreams with its limits and its queue.
type pool struct {
	limits *limit.Pool
	queue  *queue.Queue
}

type openLedger struct {
	*ledger.Ledger
	options LedgerConfig
}

func newRooms() *rooms {
	r := &rooms{
		estimates:  estimate.New(0, 0),
		objectives: newObjectives(),
		pools:      make(map[string]*pool),
		stores:     make(map[string]*keys.Store),
		pricings:   make(map[string]*spend.PriceFile),
		ledgers:    make(map[string]openLedger),
	}
	r.budgets = spend.NewBudgets(func() *spend.Prices {
		if f := r.prices.Load(); f != nil {
			return f.Prices()
		}
		return nil
	})
	return r
}

// pool returns the pool of a name, made when it is new: with no limits and a
// queue that holds nobody.
func (r *rooms) pool(name string) (*pool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pools[name]; p != nil {
		return p, nil
	}
	q, err := queue.New(name, queue.Config{})
	if err != nil {
		return nil, fmt.Errorf("make the queue of pool %s: %w", name, err)
	}
	p := &pool{limits: limit.New(name, nil), queue: q}
	p.limits.SetOverride(r.measureOnly)
	r.pools[name] = p
	return p, nil
}

// store returns the keys of a file, read when it is first named.
func (r *rooms) store(path string) *keys.Store {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stores[path]
	if s == nil {
		s = keys.Open(path, time.Now())
		r.stores[path] = s
	}
	return s
}

// pricing returns the prices of a file. One that cannot be read is an error
// when it is first named; later the last good list holds.
func (r *rooms) pricing(path string) (*spend.PriceFile, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.pricings[path]; f != nil {
		return f, nil
	}
	f, err := spend.OpenPrices(path)
	if err != nil {
		return nil, err
	}
	r.pricings[path] = f
	return f, nil
}

// ledger returns the ledger of a configuration, opened when it is first named.
// It stays open until the process ends: calls of an older configuration may
// still have to be recorded in it.
func (r *rooms) ledger(c *LedgerConfig, log *zap.Logger) (*ledger.Ledger, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l, ok := r.ledgers[c.Path]; ok {
		if l.options != *c {
			log.Warn("options of a ledger that is open take effect when the process starts anew", zap.String("ledger", c.Path))
		}
		return l.Ledger, nil
	}
	options := c.options()
	options.Log = slog.New(zapslog.NewHandler(log.Core(), zapslog.WithName(log.Name())))
	l, err := ledger.Open(options)
	if err != nil {
		return nil, fmt.Errorf("open the ledger: %w", err)
	}
	r.ledgers[c.Path] = openLedger{l, *c}
	return l, nil
}

// enter notes that a configuration begins to run. The first one's pools hold at
// once. Those of a later one hold when Caddy has started all of it (see takeOver):
// were it to fail, limits would have been dropped with what was used of them.
func (r *rooms) enter(a *App) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.running, a) {
		return nil
	}
	r.running = append(r.running, a)
	if r.holds != nil {
		return nil
	}
	return r.hold(a)
}

// takeOver makes the pools of a configuration hold that runs.
func (r *rooms) takeOver(a *App) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holds == a || !slices.Contains(r.running, a) {
		return nil
	}
	return r.hold(a)
}

// retire forgets a configuration that has ended or could not start. Where its
// pools held, those of the one that is left do.
func (r *rooms) retire(a *App) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.running, a)
	if i < 0 {
		return nil
	}
	r.running = slices.Delete(r.running, i, i+1)
	if r.holds != a {
		return nil
	}
	if r.holds = nil; len(r.running) == 0 {
		return nil
	}
	return r.hold(r.running[len(r.running)-1])
}

// looksOn makes what a configuration looks on with hold, if its pools do.
func (r *rooms) looksOn(a *App) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holds == a {
		a.shared.gateway.SetBeside(a.beside.Load())
	}
}

// hold makes the pools what a configuration says. Pools that it does not name
// limit nobody any more. The lock is held.
func (r *rooms) hold(a *App) error {
	r.holds = a
	r.prices.Store(a.prices)
	a.shared.gateway.SetBeside(a.beside.Load())
	all := r.objectives.promise(a)
	for name, p := range r.pools {
		want := a.wanted[name]
		all = errors.Join(all, p.limits.Apply(want.policy), p.queue.Configure(want.queue))
	}
	return all
}

// close ends what runs. Records that the ledgers have yet to write are written,
// as far as ctx allows; the rest waits in their spill.
func (r *rooms) close(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.objectives.end(ctx)
	for path, l := range r.ledgers {
		if err := l.Close(ctx); err != nil {
			all = errors.Join(all, fmt.Errorf("close ledger %s: %w", path, err))
		}
		delete(r.ledgers, path)
	}
	return all
}

// flush is close for ledgers that may still be needed.
func (r *rooms) flush(ctx context.Context) error {
	r.mu.Lock()
	open := slices.Collect(maps.Values(r.ledgers))
	all := r.objectives.close(ctx)
	r.mu.Unlock()
	for _, l := range open {
		all = errors.Join(all, l.Flush(ctx))
	}
	return all
}

// estimatesKey is where what the estimator has learnt lies in Caddy's storage.
const estimatesKey = "weir/estimates"

// restore brings back what an earlier process has learnt, once. Without it the
// estimator learns anew, so a failure is only told.
func (r *rooms) restore(ctx context.Context, storage certmagic.Storage, log *zap.Logger) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.restored {
		return
	}
	r.restored = true
	saved, err := storage.Load(ctx, estimatesKey)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = r.estimates.Restore(saved)
	}
	if err != nil {
		log.Warn("estimates of token counts begin anew", zap.Error(err))
	}
}

// save keeps what the estimator has learnt.
func (r *rooms) save(ctx context.Context, storage certmagic.Storage) error {
	if err := storage.Store(ctx, estimatesKey, r.estimates.Snapshot()); err != nil {
		return fmt.Errorf("store %s: %w", estimatesKey, err)
	}
	return nil
}

// wanted is what one configuration says of a pool.
type wanted struct {
	policy  limit.Policy
	queue   queue.Config
	limited bool // by a directive, not only named
}

// queues tells whether the pool's queue ever holds anybody.
func (w wanted) queues() bool { return w.queue.Calls > 0 || w.queue.Tokens > 0 }

// inForce yields the pools of the configuration that holds, by name. The lock is
// held.
func (r *rooms) inForce(yield func(name string, p *pool) bool) {
	if r.holds == nil {
		return
	}
	for name := range r.holds.wanted {
		if p := r.pools[name]; p != nil && !yield(name, p) {
			return
		}
	}
}

// Interface guard
var _ caddy.Destructor = (*shared)(nil)
