package otlpin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// The addresses at which exporters look for a collector.
const (
	DefaultHTTP = "127.0.0.1:4318"
	DefaultGRPC = "127.0.0.1:4317"
)

const (
	// maxBody bounds a request body as it comes and as it unpacks. Exporters send
	// some hundred KiB; collectors take 20 MiB over HTTP and 4 MiB over gRPC.
	maxBody = 16 << 20
	// maxBodies is how many bodies are in memory at once.
	maxBodies = 8
	// gateWait is how long an export waits for its turn before it is told to come again.
	gateWait = 2 * time.Second
	// bodyTime is how long a body may take to arrive.
	bodyTime = 15 * time.Second
	// maxConns bounds the open connections of each listener: a fleet of engines with
	// an exporter in every process has some hundred.
	maxConns = 1024
	// maxHeader bounds the headers of a request, which go on to the collector.
	maxHeader = 64 << 10
)

// Options are a Receiver's. The zero value takes spans, joins and forwards nothing.
type Options struct {
	// Joiner takes the engines' spans; nil joins nothing. The Receiver does not close it.
	Joiner *Joiner
	// Forward is the collector to which everything goes on, unchanged:
	// "http://host:4318" or "https://…" (the base URL, as in
	// OTEL_EXPORTER_OTLP_ENDPOINT), or "host:4317" for gRPC, also written "grpc://…",
	// "grpcs://…" for gRPC over TLS. "" forwards nothing.
	Forward string
	// ForwardHeader is sent to the collector beside the engine's own headers, and
	// instead of those of the same name: its credentials, say. It is never shown.
	ForwardHeader http.Header
	// QueueBytes and QueueBatches bound what waits for the collector, and what is
	// being sent. 0 or less is 64 MiB and 2,048.
	QueueBytes   int64
	QueueBatches int
	// Listen listens over TCP at an address, host:port; nil is net.Listen. One that
	// shares addresses lets a Receiver take over from another.
	Listen func(address string) (net.Listener, error)
	// Report is told when the collector stops working (an error) and when it works
	// again (nil): once for each change. It may be nil. Calls do not overlap.
	Report func(error)
}

// Receiver takes OTLP exports, shows traces to a Joiner, and passes everything on to a
// collector. An export is always answered at once, whatever the collector does.
type Receiver struct {
	options  Options
	gate     chan struct{} // a place for each body in memory
	gateWait time.Duration // see there
	count    receiverCounts

	// mu guards started and closing; what follows is set once, by Start.
	mu        sync.Mutex
	started   bool
	closing   bool
	http      *http.Server
	httpAddr  string
	grpc      *grpc.Server
	grpcAddr  string
	cutGRPC   func()
	forwarder *forwarder // nil forwards nothing
	running   sync.WaitGroup
	handlers  sync.RWMutex  // read-locked by each request over HTTP
	stop      chan struct{} // closed when Close begins
	closed    chan struct{} // closed when Close is done
}

// New returns a Receiver that Start sets going.
func New(o Options) *Receiver {
	if o.Listen == nil {
		o.Listen = func(address string) (net.Listener, error) { return net.Listen("tcp", address) }
	}
	return &Receiver{
		options: o, gate: make(chan struct{}, maxBodies), gateWait: gateWait,
		stop: make(chan struct{}), closed: make(chan struct{}),
	}
}

// Start listens at the given addresses, host:port with port 0 for a free one; ""
// does without that protocol. After an error nothing is left running. A Receiver
// starts once.
func (r *Receiver) Start(listenHTTP, listenGRPC string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started {
		return errors.New("start the trace receiver: it was started before; make a new one")
	}
	where, err := parseTarget(r.options.Forward)
	if err != nil {
		return fmt.Errorf("start the trace receiver: %w", err)
	}
	var listeners []net.Listener
	abandon := func(err error) error {
		for _, l := range listeners {
			err = errors.Join(err, l.Close())
		}
		return fmt.Errorf("start the trace receiver: %w", err)
	}
	listen := func(address string) (*limitedListener, error) {
		l, err := r.options.Listen(address)
		if err != nil {
			return nil, fmt.Errorf("%w: choose another address, or end what listens there", err)
		}
		listeners = append(listeners, l)
		if where.is(l.Addr()) {
			return nil, fmt.Errorf("the collector to forward to is this receiver itself, at %s: name the collector's own address", l.Addr())
		}
		return limitConns(l, maxConns), nil
	}
	var overHTTP, overGRPC *limitedListener
	if listenHTTP != "" {
		if overHTTP, err = listen(listenHTTP); err != nil {
			return abandon(err)
		}
		r.httpAddr = overHTTP.Addr().String()
	}
	if listenGRPC != "" {
		if overGRPC, err = listen(listenGRPC); err != nil {
			return abandon(err)
		}
		r.grpcAddr = overGRPC.Addr().String()
	}
	if where.kind != targetNone {
		to, err := newSender(where)
		if err != nil {
			return abandon(err)
		}
		r.forwarder = newForwarder(to, r.options)
	}
	if overHTTP != nil {
		r.http = r.newHTTPServer()
		r.running.Go(func() { _ = r.http.Serve(overHTTP) }) // ends with Close: ErrServerClosed
	}
	if overGRPC != nil {
		r.grpc, r.cutGRPC = r.newGRPCServer(), overGRPC.cutAll
		r.running.Go(func() { _ = r.grpc.Serve(overGRPC) })
	}
	r.started = true
	return nil
}

// HTTPAddr and GRPCAddr are where the Receiver listens; "" where it does not.
func (r *Receiver) HTTPAddr() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.httpAddr
}

// GRPCAddr is where the Receiver listens for gRPC; see HTTPAddr.
func (r *Receiver) GRPCAddr() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.grpcAddr
}

// Close ends everything that Start began: it lets exports that are being read
// finish and sends what waits for the collector, both until ctx is done, and then
// drops the rest, counted. The error is ctx's when something had to be cut short.
// Close may be called more than once, and without Start.
func (r *Receiver) Close(ctx context.Context) error {
	r.mu.Lock()
	r.started = true // a closed Receiver does not start
	first := !r.closing
	r.closing = true
	r.mu.Unlock()
	if !first {
		<-r.closed
		return nil
	}
	defer close(r.closed)
	close(r.stop)
	var cut error
	if r.http != nil {
		if cut = r.http.Shutdown(ctx); cut != nil {
			_ = r.http.Close() // what it says was said
		}
		r.handlers.Lock() // wait for those whose connections were cut
		r.handlers.Unlock()
	}
	if r.grpc != nil {
		gently := make(chan struct{})
		r.running.Go(func() { r.grpc.GracefulStop(); close(gently) })
		select {
		case <-gently:
		case <-ctx.Done():
			cut = ctx.Err()
			r.cutGRPC()
			r.grpc.Stop()
		}
	}
	r.running.Wait()
	if r.forwarder != nil {
		if err := r.forwarder.close(ctx); err != nil {
			cut = err
		}
	}
	if cut != nil {
		return fmt.Errorf("close the trace receiver: %w", cut)
	}
	return nil
}

// enter waits for a place for one more body in memory.
func (r *Receiver) enter(ctx context.Context) bool {
	select {
	case r.gate <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(r.gateWait)
	defer timer.Stop()
	select {
	case r.gate <- struct{}{}:
		return true
	case <-timer.C:
	case <-ctx.Done():
	case <-r.stop:
	}
	return false
}

func (r *Receiver) leave() { <-r.gate }

// wants and take make the Receiver the sink of what it reads.
func (r *Receiver) wants(id TraceID) bool {
	return r.options.Joiner != nil && r.options.Joiner.wants(id)
}
func (r *Receiver) take(s *seen) { r.options.Joiner.take(s) }
