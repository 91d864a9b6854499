package gateway

import (
	"slices"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/engine"
	"github.com/weirgate/weir/internal/gpu"
	"github.com/weirgate/weir/internal/otlpin"
	"github.com/weirgate/weir/internal/telemetry"
)

// Beside is what stands beside the calls and looks on: nothing in it may hold
// one up. Each part may be nil.
type Beside struct {
	// Tracer gives calls their place in a trace and makes their spans.
	Tracer *telemetry.Tracer
	// Joiner finds the engines' own spans of calls. Without a Tracer it joins
	// nothing, since no trace goes upstream.
	Joiner *otlpin.Joiner
	// Engines are those whose gauges are read.
	Engines []WatchedEngine
	// GPUs are those that the engines run on.
	GPUs *gpu.Sampler
}

// WatchedEngine is one engine whose gauges are read.
type WatchedEngine struct {
	Gauges *engine.Sampler
	// Upstreams are the addresses, host:port, at which it serves calls.
	Upstreams []string
}

// SetBeside sets what looks on from the next call on; calls in flight keep what
// they began with. nil is nothing.
func (g *Gateway) SetBeside(b *Beside) {
	if b == nil {
		b = new(Beside)
	}
	g.beside.Store(b)
}

// gaugesOf returns the gauges of the engine behind an upstream, nil when they
// are not read.
func (b *Beside) gaugesOf(upstream string) *engine.Sampler {
	for i := range b.Engines {
		if slices.Contains(b.Engines[i].Upstreams, upstream) {
			return b.Engines[i].Gauges
		}
	}
	return nil
}

// wrote tells the GPUs' books how much output has just come.
func (c *Call) wrote(now time.Duration) {
	if events := c.meter.ContentEvents(); events > c.counted {
		c.beside.GPUs.Count(c.identity.Time.Add(now), int(events-c.counted))
		c.counted = events
	}
}

// surroundings looks up the client's round trip, and what engine and GPUs were
// doing while the call ran.
func (c *Call) surroundings(rec *call.Record) {
	defer c.gateway.forgive()
	rec.ClientRTT = c.clientTrip()
	if gauges := c.beside.gaugesOf(rec.Upstream); gauges != nil {
		if sent, known := rec.Instants.Sent.Get(); known {
			rec.AtDispatch = loadAt(gauges, c.identity.Time.Add(sent))
			c.boundQueue(rec, gauges, sent)
		}
		if first, known := rec.Instants.FirstToken.Get(); known {
			rec.AtFirstToken = loadAt(gauges, c.identity.Time.Add(first))
		}
	}
	if gpus := c.beside.GPUs; gpus != nil {
		if sent, known := rec.Instants.Sent.Get(); known {
			rec.GPU = windowOf(gpus, c.identity.Time.Add(sent), c.identity.Time.Add(rec.Instants.Ended.Or(sent)))
			first, last := rec.Instants.FirstToken, rec.Instants.LastToken
			if first.IsKnown() && last.IsKnown() && !rec.GPU.IsZero() {
				if joules, known := gpus.Share(c.identity.Time.Add(first.Or(0)), c.identity.Time.Add(last.Or(0)), c.counted); known {
					rec.GPU.Joules = call.Figure(joules)
				}
			}
		}
	}
}

// spans leaves the call's spans, if they are made.
func (c *Call) spans(rec *call.Record) {
	defer c.gateway.forgive()
	if t := c.tracer(); t != nil {
		rec.Trail = c.trace.attemptsMade(c.attempts)
		rec.Sampled = t.End(&c.span, rec)
	}
}

// tracer is what makes the call's spans: what it began with, or what has taken its
// place while the call ran.
func (c *Call) tracer() *telemetry.Tracer {
	if t := c.beside.Tracer; !t.Closed() {
		return t
	}
	return c.gateway.beside.Load().Tracer
}

// boundQueue says what the gauges tell of the engine's queue, where the engine
// itself told nothing of this call: once nothing waits, this call does not
// either. The time until the first token (the whole answer, when it is not
// streamed) then is work, but for that much at most.
func (c *Call) boundQueue(rec *call.Record, gauges *engine.Sampler, sent time.Duration) {
	wait, source := rec.Phases.Prefill, &rec.PhaseSources.Prefill
	if !rec.Stream {
		wait, source = rec.Phases.Engine, &rec.PhaseSources.Engine
	}
	if !wait.IsKnown() || *source != call.Unattributed {
		return
	}
	if bound, known := gauges.NoQueueAt(c.identity.Time.Add(sent)); known && bound < wait.Or(0) {
		rec.QueueBound = call.Lasting(bound)
		*source = call.Inferred
	}
}

// loadAt is the last reading that was over at an instant.
func loadAt(gauges *engine.Sampler, t time.Time) call.EngineLoad {
	g, ok := gauges.Before(t)
	if !ok {
		return call.EngineLoad{}
	}
	load := call.EngineLoad{Running: g.Running.Count(), Waiting: g.Waiting.Count(), KVUse: g.KVUse.Number()}
	if !load.IsZero() {
		load.Age = call.Lasting(t.Sub(g.Time))
	}
	return load
}

func windowOf(gpus *gpu.Sampler, from, to time.Time) call.GPUWindow {
	w := gpus.Window(from, to)
	return call.GPUWindow{
		GPUs: w.GPUs, Samples: w.Samples, Utilization: w.Utilization, MemoryBandwidth: w.MemoryBandwidth,
		ClockRatio: w.ClockRatio, Reasons: w.Reasons.Names(),
	}
}
