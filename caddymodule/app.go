package caddymodule

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/weirgate/weir/internal/gateway"
	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/ledger"
	"github.com/weirgate/weir/internal/spend"
	"github.com/weirgate/weir/internal/telemetry"
	"github.com/weirgate/weir/slo"
)

func init() { caddy.RegisterModule(new(App)) }

// App is what all `weir` directives of a configuration share. All of it is
// optional.
type App struct {
	// Keys says where callers' keys are kept. Without it a caller is known by the
	// short id of its key.
	Keys *KeysConfig `json:"keys,omitempty"`
	// Ledger says where usage is recorded. Without it usage is in memory and in
	// the access log only.
	Ledger *LedgerConfig `json:"ledger,omitempty"`
	// Prices is the file of what tokens cost, for reports and for budgets in money.
	Prices string `json:"prices,omitempty"`
	// Engines says whose metrics are read, to stand beside each call.
	Engines []*EngineConfig `json:"engines,omitempty"`
	// GPU says how GPUs are watched. Default: not at all.
	GPU *GPUConfig `json:"gpu,omitempty"`
	// OTLP makes spans of calls and says where they go. Default: none are made.
	OTLP *OTLPConfig `json:"otlp,omitempty"`
	// Classes are service classes beside the presets, or changes of those.
	Classes []*ClassConfig `json:"classes,omitempty"`
	// SLO says how objectives are kept. Default: those of the presets, in memory and on
	// disk, told to nobody.
	SLO *SLOConfig `json:"slo,omitempty"`
	// Alerts says whom alerts go to.
	Alerts []*AlertConfig `json:"alerts,omitempty"`
	// Probes are calls that the gateway makes itself, again and again.
	Probes []*ProbeConfig `json:"probes,omitempty"`
	// Receiver takes engines' own spans, to know each call's queue and prefill.
	Receiver *ReceiverConfig `json:"otlp_receiver,omitempty"`

	shared  *shared
	storage certmagic.Storage
	log     *zap.Logger

	keys   *keys.Store
	prices *spend.PriceFile
	ledger atomic.Pointer[ledger.Ledger]
	wanted map[string]wanted // by pool
	// remembers are the servers whose requests know their connection.
	remembers map[*caddyhttp.Server]bool
	once      sync.Once
	failed    error // of once

	// beside is what looks on from Start on; what follows is set before it.
	beside    atomic.Pointer[gateway.Beside]
	reception *reception // nil without a Receiver
	// metricsExport is nil unless metrics are sent over OTLP.
	metricsExport *telemetry.MetricsExport
	watching      []string // keys of watchers that are in use

	promised slo.Config       // completed; without classes nothing is judged
	events   *caddyevents.App // nil when there is none
	ctx      caddy.Context
	probing  []*probing

	background sync.WaitGroup
	cancel     context.CancelFunc
}

// CaddyModule implements caddy.Module.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "weir", New: func() caddy.Module { return new(App) }}
}

// Provision implements caddy.Provisioner. It opens nothing: `caddy validate`
// provisions too.
func (a *App) Provision(ctx caddy.Context) error {
	a.log = ctx.Logger()
	a.storage = ctx.Storage()
	s, err := acquire()
	if err != nil {
		return fmt.Errorf("make shared state: %w", err)
	}
	a.shared = s
	// Each configuration brings a new registry; the collectors stay.
	if err := s.metrics.Register(ctx.GetMetricsRegistry()); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	// Apps start in no particular order, so the first call may come before
	// this app has started: whoever comes first loads the secret.
	s.gateway.SetSecretSource(sync.OnceValue(a.secret))
	a.wanted = make(map[string]wanted)
	a.remembers = make(map[*caddyhttp.Server]bool)
	if err := a.provisionObjectives(ctx); err != nil {
		return err
	}
	if err := a.provisionProbes(); err != nil {
		return err
	}
	if a.Keys != nil {
		a.keys = s.rooms.store(a.Keys.File)
	}
	if a.Prices != "" {
		if a.prices, err = s.rooms.pricing(a.Prices); err != nil {
			return fmt.Errorf("read prices: %w", err)
		}
	}
	return nil
}

// Validate implements caddy.Validator.
func (a *App) Validate() error {
	if a.Keys != nil && a.Keys.File == "" {
		return errors.New("keys needs a file, such as keys.json")
	}
	if l := a.Ledger; l != nil {
		if l.Path == "" {
			return errors.New("ledger needs the path of a database, such as usage.db")
		}
		if err := l.options().Validate(); err != nil {
			return fmt.Errorf("ledger: %w", err)
		}
	}
	if err := a.validateAlerts(); err != nil {
		return err
	}
	return a.validateBeside()
}

func (a *App) validateBeside() error {
	for _, c := range a.Engines {
		if err := c.validate(); err != nil {
			return err
		}
	}
	if a.GPU != nil {
		if err := a.GPU.validate(); err != nil {
			return err
		}
	}
	if a.OTLP != nil {
		if err := a.OTLP.validate(); err != nil {
			return err
		}
	}
	if a.Receiver == nil {
		return nil
	}
	if a.OTLP == nil {
		return errors.New("otlp_receiver joins engines' spans to calls by the trace that goes upstream, and without otlp none does: add otlp beside it")
	}
	return a.Receiver.validate()
}

// want notes what a directive says of a pool. Two directives may share a pool if
// they say the same, or if one of them says nothing.
func (a *App) want(name string, w wanted) error {
	before, taken := a.wanted[name]
	switch {
	case !taken || !before.limited:
		a.wanted[name] = w
	case w.limited && !reflect.DeepEqual(before, w):
		return fmt.Errorf("two weir directives say different things of the limits or the queue of pool %q; "+
			"give one of them a pool of its own, as in: pool other", name)
	}
	return nil
}

// Start implements caddy.App.
func (a *App) Start() error {
	a.shared.gateway.LoadSecret()
	if err := a.begin(); err != nil {
		return err
	}
	// Not in begin: no call waits for a driver to load, or fails because an address
	// is taken. Until here calls are looked on by nobody.
	b, err := a.lookOn()
	if err != nil {
		return err
	}
	a.beside.Store(b)
	a.shared.rooms.looksOn(a)
	a.announce()
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	if a.keys != nil {
		a.background.Go(func() {
			a.keys.Watch(ctx, 0, func(err error) {
				if err != nil {
					a.log.Error("the file of keys cannot be used; the keys that were read last stay in use", zap.Error(err))
					return
				}
				a.log.Info("keys were read anew", zap.Int("keys", a.keys.State().Keys))
				a.warnOfKeys()
				a.seed(ctx)
			})
		})
		if s := a.keys.State(); s.Error != "" {
			a.log.Error("the file of keys cannot be used", zap.String("error", s.Error), zap.Int("keys_in_use", s.Keys))
		}
		a.background.Go(func() { a.seed(ctx) })
	}
	if a.prices != nil {
		a.background.Go(func() {
			a.prices.Watch(ctx, 0, func(err error) {
				if err != nil {
					a.log.Error("the file of prices cannot be used; the prices that were read last stay in use", zap.Error(err))
				}
			})
		})
	}
	a.background.Go(func() { a.judge(ctx) })
	a.background.Go(func() { a.takeOver(ctx) })
	a.background.Go(func() { a.keepEstimates(ctx) })
	return nil
}

// begin makes the rooms what this configuration says. The first call may come
// before Start, since apps start in no particular order: whoever comes first does it.
func (a *App) begin() error {
	a.once.Do(func() {
		a.shared.rooms.restore(context.Background(), a.storage, a.log)
		if a.Ledger != nil {
			l, err := a.shared.rooms.ledger(a.Ledger, a.log)
			if err != nil {
				a.failed = err
				return
			}
			a.ledger.Store(l)
		}
		a.failed = a.shared.rooms.enter(a)
	})
	return a.failed
}

// takeOver waits until Caddy has made this configuration the active one, makes its pools
// hold, and begins to probe.
func (a *App) takeOver(ctx context.Context) {
	if !a.isActive(ctx) {
		return
	}
	if err := a.shared.rooms.takeOver(a); err != nil {
		a.log.Error("limits of the new configuration could not be applied; reload it", zap.Error(err))
	}
	// Not before: the sites may not listen yet.
	for _, p := range a.probing {
		a.background.Go(func() { p.run(ctx) })
	}
}

// isActive waits until Caddy has made this configuration the active one, which nothing
// announces; it tells false when ctx is done before. The configuration before it may take as
// long to stop as its streams last, so that is no sign to wait for.
func (a *App) isActive(ctx context.Context) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if active, err := caddy.ActiveContext().AppIfConfigured("weir"); err == nil && active == caddy.App(a) {
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

// seed tells the budgets what was spent before this process began, and tries
// again while the ledger does not answer.
func (a *App) seed(ctx context.Context) {
	l := a.ledger.Load()
	if l == nil || a.keys == nil {
		return
	}
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		err := a.shared.rooms.budgets.Seed(ctx, l, a.keys.All(), time.Now())
		if err == nil || ctx.Err() != nil {
			return
		}
		a.log.Warn("what keys have spent could not be read from the ledger; budgets count from the start of the process until it can", zap.Error(err))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// keepEvery is how often what the estimator has learnt is kept: a crash costs
// as much learning.
const keepEvery = 5 * time.Minute

func (a *App) keepEstimates(ctx context.Context) {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		// Not under ctx: at the end is when it matters.
		if err := a.shared.rooms.save(context.Background(), a.storage); err != nil {
			a.log.Warn("cannot keep what was learnt of token counts; after a restart estimates begin anew", zap.Error(err))
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// Stop implements caddy.App. Calls in flight go on by themselves.
func (a *App) Stop() error {
	if a.cancel != nil {
		a.cancel()
		a.background.Wait()
	}
	return errors.Join(a.shared.rooms.retire(a), a.lookAway())
}

// Cleanup implements caddy.CleanerUpper.
func (a *App) Cleanup() error {
	if a.shared == nil {
		return nil
	}
	err := errors.Join(a.shared.rooms.retire(a), a.lookAway())
	release()
	return err
}

// ready tells whether new calls are welcome: a configuration with weir runs, all
// of whose apps have started. That this one has would not do, since apps start
// in no particular order and the site may not be listening yet.
func ready() bool {
	if caddy.Exiting() {
		return false
	}
	_, err := caddy.ActiveContext().AppIfConfigured("weir")
	return err == nil
}

// secretKey is where the secret for key ids lies in Caddy's storage.
const secretKey = "weir/key_id_secret"

const secretSize = 32

// secret loads the secret for key ids, or makes it. Without a storage that
// works the ids are good until the process ends, which is said once.
func (a *App) secret() []byte {
	secret, err := loadSecret(context.Background(), a.storage)
	if err == nil {
		return secret
	}
	a.log.Error("cannot keep the secret for key ids: the ids of callers' keys will change at the next start; "+
		"give Caddy a storage it can write to", zap.Error(err))
	return newSecret()
}

func newSecret() []byte {
	secret := make([]byte, secretSize)
	_, _ = rand.Read(secret) // never fails; it ends the process instead
	return secret
}

func loadSecret(ctx context.Context, storage certmagic.Storage) ([]byte, error) {
	secret, err := storage.Load(ctx, secretKey)
	if err == nil && len(secret) == secretSize {
		return secret, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("load %s: %w", secretKey, err)
	}
	// Instances that share a storage must agree on one secret.
	if err := storage.Lock(ctx, secretKey); err != nil {
		return nil, fmt.Errorf("lock %s: %w", secretKey, err)
	}
	defer func() { _ = storage.Unlock(ctx, secretKey) }() // a lock left behind expires
	if secret, err := storage.Load(ctx, secretKey); err == nil && len(secret) == secretSize {
		return secret, nil
	}
	secret = newSecret()
	if err := storage.Store(ctx, secretKey, secret); err != nil {
		return nil, fmt.Errorf("store %s: %w", secretKey, err)
	}
	return secret, nil
}

// Interface guards
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.Validator    = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
