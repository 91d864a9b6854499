package caddymodule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/weirgate/weir/internal/engine"
	"github.com/weirgate/weir/internal/gateway"
	"github.com/weirgate/weir/internal/gpu"
	"github.com/weirgate/weir/internal/otlpin"
	"github.com/weirgate/weir/internal/telemetry"
)

// watchers holds what watches engines and GPUs, takes engines' spans and exports
// our own: each is shared by the configurations that say the same of it, so that a
// reload does not interrupt it, and ends with the last of them.
var watchers = caddy.NewUsagePool()

// watcher is one of them, which runs in the background.
type watcher[T any] struct {
	is   T
	stop func() error
}

// Destruct implements caddy.Destructor.
func (w watcher[T]) Destruct() error { return w.stop() }

// watch returns the watcher of a key, made when it is new. The app gives it back
// when it ends.
func watch[T any](a *App, key string, make func() (T, func() error, error)) (T, error) {
	v, _, err := watchers.LoadOrNew(key, func() (caddy.Destructor, error) {
		is, stop, err := make()
		return watcher[T]{is, stop}, err
	})
	if err != nil {
		var none T
		return none, err
	}
	a.watching = append(a.watching, key)
	return v.(watcher[T]).is, nil
}

// keyFor names a watcher by all that its configuration says.
func keyFor(kind string, config any) string {
	b, _ := json.Marshal(config) // plain structs always marshal
	return kind + " " + string(b)
}

// background runs f until stop is called, and makes stop wait for it.
func background(f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// tell logs that something fails, and when it works again (a nil error).
func tell(log *zap.Logger, fails, works string) func(error) {
	return func(err error) {
		if err != nil {
			log.Warn(fails, zap.Error(err))
			return
		}
		log.Info(works)
	}
}

// lookOn sets up what the configuration wants to look on. A GPU that is not there
// or a collector that is down is told of, and is no error.
func (a *App) lookOn() (*gateway.Beside, error) {
	b := new(gateway.Beside)
	for _, c := range a.Engines {
		sampler, err := a.watchEngine(c)
		if err != nil {
			return nil, err
		}
		b.Engines = append(b.Engines, gateway.WatchedEngine{Gauges: sampler, Upstreams: c.upstreams()})
	}
	var err error
	if b.GPUs, err = a.watchGPUs(); err != nil {
		return nil, err
	}
	if b.Tracer, err = a.export(); err != nil {
		return nil, err
	}
	if b.Joiner, err = a.receive(); err != nil {
		return nil, err
	}
	if a.metricsExport, err = a.exportMetrics(); err != nil {
		return nil, err
	}
	return b, nil
}

// exportMetrics returns nil unless metrics are to be sent as well as scraped.
func (a *App) exportMetrics() (*telemetry.MetricsExport, error) {
	if a.OTLP == nil || !a.OTLP.Metrics {
		return nil, nil
	}
	return watch(a, keyFor("otlp metrics", a.OTLP), func() (*telemetry.MetricsExport, func() error, error) {
		log := a.log.Named("otlp")
		o := a.OTLP.options()
		o.Report = tell(log, "metrics cannot be exported; they can still be scraped", "metrics are exported")
		e, err := telemetry.NewMetricsExport(a.shared.metrics, o, 0)
		if err != nil {
			return nil, nil, fmt.Errorf("otlp metrics: %w", err)
		}
		return e, func() error { return e.Close(context.Background()) }, nil
	})
}

func (a *App) watchEngine(c *EngineConfig) (*engine.Sampler, error) {
	return watch(a, keyFor("engine", c), func() (*engine.Sampler, func() error, error) {
		log := a.log.Named("engine")
		s, err := engine.NewSampler(engine.Options{
			Address: c.URL, Kind: engine.Kind(c.Kind), Every: time.Duration(c.Every), MaxSeqs: c.MaxSeqs, KVTokens: c.KVTokens,
			Report: tell(log, "an engine's metrics cannot be read; records go without its gauges until they can", "an engine's metrics are read again"),
		})
		if err != nil {
			return nil, nil, fmt.Errorf("engine %s: %w", c.Kind, err)
		}
		stop := background(s.Run)
		return s, func() error { stop(); return nil }, nil
	})
}

// watchGPUs returns nil where there are none to watch.
func (a *App) watchGPUs() (*gpu.Sampler, error) {
	if a.GPU == nil {
		return nil, nil
	}
	return watch(a, keyFor("gpu", a.GPU), func() (*gpu.Sampler, func() error, error) {
		log := a.log.Named("gpu")
		source, err := a.GPU.open()
		if err != nil {
			if a.GPU.Source == gpuDCGM {
				return nil, nil, fmt.Errorf("gpu dcgm: %w", err)
			}
			// The configuration may be shared with machines that have one.
			log.Warn("GPUs are not watched", zap.Error(err))
			return nil, func() error { return nil }, nil
		}
		s := gpu.NewSampler(source, gpu.Options{Report: func(state gpu.State) {
			if state.Error != "" {
				log.Warn("GPUs cannot be sampled", zap.String("source", state.Source), zap.String("error", state.Error))
				return
			}
			log.Info("GPUs are sampled", zap.String("source", state.Source), zap.Int("gpus", state.GPUs))
		}})
		stop := background(s.Run)
		return s, func() error { stop(); return source.Close() }, nil
	})
}

// export returns nil unless spans are to be made.
func (a *App) export() (*telemetry.Tracer, error) {
	if a.OTLP == nil {
		return nil, nil
	}
	return watch(a, keyFor("otlp", a.OTLP), func() (*telemetry.Tracer, func() error, error) {
		log := a.log.Named("otlp")
		o := a.OTLP.options()
		o.Report = tell(log, "spans cannot be exported; they are dropped, and counted, until they can", "spans are exported")
		t, err := telemetry.NewTracer(o)
		if err != nil {
			return nil, nil, fmt.Errorf("otlp: %w", err)
		}
		return t, func() error { return t.Close(context.Background()) }, nil
	})
}

// reception is a receiver of engines' spans and what joins them.
type reception struct {
	joiner   *otlpin.Joiner
	receiver *otlpin.Receiver
}

// listen listens as Caddy's own servers do, so that the receiver of a new
// configuration can take over from that of the one before at the same address.
func listen(address string) (net.Listener, error) {
	at, err := caddy.ParseNetworkAddress(address)
	if err != nil {
		return nil, err
	}
	l, err := at.Listen(context.Background(), 0, net.ListenConfig{})
	if err != nil {
		return nil, err
	}
	return l.(net.Listener), nil // TCP always is one
}

// receive returns nil unless engines' spans are to be taken.
func (a *App) receive() (*otlpin.Joiner, error) {
	c := a.Receiver
	if c == nil {
		return nil, nil
	}
	r, err := watch(a, keyFor("otlp_receiver", c), func() (*reception, func() error, error) {
		log := a.log.Named("otlp_receiver")
		joiner := otlpin.NewJoiner(time.Duration(c.Window))
		forward, header := c.forward()
		receiver := otlpin.New(otlpin.Options{Joiner: joiner, Forward: forward, ForwardHeader: header, Listen: listen, Report: tell(log, "the collector does not take what engines send; it is kept for a while, then dropped and counted", "the collector takes what engines send")})
		if err := receiver.Start(c.HTTP, c.GRPC); err != nil {
			joiner.Close()
			return nil, nil, fmt.Errorf("otlp_receiver: %w", err)
		}
		return &reception{joiner, receiver}, func() error {
			ctx, cancel := context.WithTimeout(context.Background(), shutdownWait)
			defer cancel()
			err := receiver.Close(ctx)
			joiner.Close()
			return err
		}, nil
	})
	if err != nil {
		return nil, err
	}
	a.reception = r
	return r.joiner, nil
}

// lookAway gives back what this configuration watched with. When the process ends,
// calls may still be in flight: what they lead to is ended after them.
func (a *App) lookAway() error {
	if caddy.Exiting() {
		return nil
	}
	ends := make([]func() error, len(a.watching))
	for i, key := range a.watching {
		ends[i] = func() error {
			_, err := watchers.Delete(key)
			return err
		}
	}
	a.watching = nil
	return together(ends)
}

// endWatchers ends them all, at the end of the process. What takes engines' spans
// goes first, since metrics that are exported count what it learns.
func endWatchers() error {
	var first, then []func() error
	watchers.Range(func(_, v any) bool {
		switch w := v.(type) {
		case watcher[*reception]:
			first = append(first, w.Destruct)
		case caddy.Destructor:
			then = append(then, w.Destruct)
		}
		return true
	})
	return errors.Join(together(first), together(then))
}

// together runs all of them at once: a collector that does not answer is waited for,
// and what else goes to it would wait as long again.
func together(ends []func() error) error {
	errs := make([]error, len(ends))
	var running sync.WaitGroup
	for i, end := range ends {
		running.Go(func() { errs[i] = end() })
	}
	running.Wait()
	return errors.Join(errs...)
}
