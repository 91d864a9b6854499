package otlpin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

const (
	defaultQueueBytes   = 64 << 20
	defaultQueueBatches = 2048
	// senders is how many batches are on their way at once, so that a collector that
	// takes a second for each still gets several a second.
	senders = 4
	// attemptTime bounds one attempt, as OTLP exporters do by default.
	attemptTime = 10 * time.Second
	// firstPause and lastPause bound the growing pause between attempts.
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
	// maxPause is the longest pause that a collector may ask for.
	maxPause = 30 * time.Second
	// giveUp is the age at which a batch is dropped: collectors retry as long by default.
	giveUp = 5 * time.Minute
)

// sender sends one batch to the collector.
type sender interface {
	send(context.Context, *batch) error
	// overGRPC tells that batches are to be protobuf, unpacked.
	overGRPC() bool
	close()
}

// refusal is an error of the collector's that another attempt would not mend.
type refusal struct {
	err error
	// batch tells that the fault is the batch's, not the collector's.
	batch bool
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// pause is a passing failure after which the collector asked for a pause.
type pause struct {
	err   error
	after time.Duration
}

func (p *pause) Error() string { return p.err.Error() }
func (p *pause) Unwrap() error { return p.err }

// ForwardState is what became of what goes on to the collector.
type ForwardState struct {
	// Forwarded is the batches that the collector took, ForwardedSpans the spans in them.
	Forwarded      int64 `json:"forwarded_batches"`
	ForwardedSpans int64 `json:"forwarded_spans"`
	// Full, Expired, Refused and Cut are the batches that were dropped: because the
	// queue was full, after five minutes of attempts, because the collector
	// refused them, and because the gateway ended. DroppedSpans is the spans in all of these.
	Full         int64 `json:"dropped_queue_full"`
	Expired      int64 `json:"dropped_expired"`
	Refused      int64 `json:"dropped_refused"`
	Cut          int64 `json:"dropped_at_end"`
	DroppedSpans int64 `json:"dropped_spans"`
	// Failures is the attempts that failed.
	Failures int64 `json:"failed_attempts"`
	// Queued and QueuedBytes are what waits or is being sent.
	Queued      int   `json:"queued_batches"`
	QueuedBytes int64 `json:"queued_bytes"`
	// Error is why the collector does not work; "" while it does, or nothing was sent yet.
	Error string `json:"error,omitempty"`
}

// Dropped is the batches that were dropped, for whatever reason.
func (s ForwardState) Dropped() int64 { return s.Full + s.Expired + s.Refused + s.Cut }

// forwarder passes batches on. Nil forwards nothing.
type forwarder struct {
	to      sender
	extra   http.Header
	report  func(error)
	queue   *backlog
	cancel  context.CancelFunc
	ending  chan struct{} // closed when the queue is drained for the last time
	workers sync.WaitGroup

	mu    sync.Mutex
	count ForwardState // without the queue's figures

	// telling orders reports, which are made without mu.
	telling sync.Mutex
	told    bool // that the collector does not work
}

func newForwarder(to sender, o Options) *forwarder {
	if o.QueueBytes <= 0 {
		o.QueueBytes = defaultQueueBytes
	}
	if o.QueueBatches <= 0 {
		o.QueueBatches = defaultQueueBatches
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &forwarder{
		to: to, extra: o.ForwardHeader, report: o.Report,
		queue: newBacklog(o.QueueBytes, o.QueueBatches), cancel: cancel, ending: make(chan struct{}),
	}
	for range senders {
		f.workers.Go(func() { f.work(ctx) })
	}
	return f
}

func (f *forwarder) overGRPC() bool { return f != nil && f.to.overGRPC() }

// offer queues a batch, and tells whether there was room. It never blocks.
func (f *forwarder) offer(b *batch) bool {
	b.header = outgoing(b.header, f.extra)
	b.since = time.Now()
	if f.queue.put(b) {
		return true
	}
	f.drop(b, func(c *ForwardState) { c.Full++ })
	return false
}

func (f *forwarder) work(ctx context.Context) {
	for {
		b := f.queue.take(ctx)
		if b == nil {
			return
		}
		f.pass(ctx, b)
		f.queue.release(b)
	}
}

// pass sends one batch, again and again if need be.
func (f *forwarder) pass(ctx context.Context, b *batch) {
	for wait := firstPause; ; wait = min(2*wait, lastPause) {
		err := f.attempt(ctx, b)
		if err == nil {
			f.tally(func(c *ForwardState) { c.Forwarded++; c.ForwardedSpans += int64(b.spans) })
			f.tell(nil)
			return
		}
		if ctx.Err() != nil {
			f.drop(b, func(c *ForwardState) { c.Cut++ })
			return
		}
		f.tally(func(c *ForwardState) { c.Failures++ })
		var no *refusal
		if errors.As(err, &no) {
			f.drop(b, func(c *ForwardState) { c.Refused++ })
			if !no.batch {
				f.tell(err)
			}
			return
		}
		f.tell(err)
		after := wait/2 + rand.N(wait)
		var asked *pause
		if errors.As(err, &asked) {
			after = max(after, min(asked.after, maxPause))
		}
		if time.Since(b.since)+after > giveUp {
			f.drop(b, func(c *ForwardState) { c.Expired++ })
			return
		}
		if !f.sleep(ctx, after) {
			f.drop(b, func(c *ForwardState) { c.Cut++ })
			return
		}
	}
}

// attempt sends a batch once. A panic in there is an error like any other.
func (f *forwarder) attempt(ctx context.Context, b *batch) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &refusal{err: fmt.Errorf("the attempt panicked: %v", p), batch: true}
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	return f.to.send(ctx, b)
}

// sleep waits before the next attempt; false when there is to be none.
func (f *forwarder) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-f.ending:
	}
	return false
}

// tell reports that the collector works (nil) or does not, if that is news.
func (f *forwarder) tell(err error) {
	f.telling.Lock()
	defer f.telling.Unlock()
	f.tally(func(c *ForwardState) {
		if c.Error = ""; err != nil {
			c.Error = err.Error()
		}
	})
	if f.told == (err != nil) {
		return
	}
	f.told = err != nil
	if f.report == nil {
		return
	}
	if err != nil {
		err = fmt.Errorf("pass spans on to the collector: %w", err)
	}
	f.report(err)
}

func (f *forwarder) tally(add func(*ForwardState)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	add(&f.count)
}

func (f *forwarder) drop(b *batch, add func(*ForwardState)) {
	f.tally(func(c *ForwardState) { add(c); c.DroppedSpans += int64(b.spans) })
}

func (f *forwarder) state() *ForwardState {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	s := f.count
	f.mu.Unlock()
	s.Queued, s.QueuedBytes = f.queue.load()
	return &s
}

// close sends what is queued, each batch once, until ctx is done, and drops the rest.
func (f *forwarder) close(ctx context.Context) error {
	f.queue.close()
	close(f.ending)
	ended := make(chan struct{})
	go func() { f.workers.Wait(); close(ended) }()
	var err error
	select {
	case <-ended:
	case <-ctx.Done():
		err = ctx.Err()
		f.cancel()
		<-ended
	}
	f.cancel()
	for {
		b, _ := f.queue.pop()
		if b == nil {
			break
		}
		f.drop(b, func(c *ForwardState) { c.Cut++ })
		f.queue.release(b)
	}
	f.to.close()
	return err
}
