package caddymodule

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
)

func init() { caddy.RegisterModule(App{}) }

// App is what all `weir` directives of a configuration share. It needs no
// configuration.
type App struct {
	shared  *shared
	storage certmagic.Storage
	log     *zap.Logger
}

// CaddyModule implements caddy.Module.
func (App) CaddyModule() caddy.ModuleInfo {
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
	return nil
}

// Start implements caddy.App.
func (a *App) Start() error {
	a.shared.gateway.LoadSecret()
	return nil
}

// Stop implements caddy.App. Calls in flight go on by themselves.
func (a *App) Stop() error { return nil }

// Cleanup implements caddy.CleanerUpper.
func (a *App) Cleanup() error {
	if a.shared != nil {
		release()
	}
	return nil
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
	_ caddy.CleanerUpper = (*App)(nil)
)
