package otlpin

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// batch is one export on its way to the collector.
type batch struct {
	what   *signal
	header http.Header // what goes with it; see outgoing
	body   []byte      // as it came; unpacked for a collector that speaks gRPC
	json   bool        // its encoding, else protobuf
	gzip   bool        // body is still compressed
	spans  int
	since  time.Time // when it was queued
}

// overhead is what a batch occupies beside its bytes, roughly.
const overhead = 512

func (b *batch) size() int64 {
	n := overhead + cap(b.body)
	for name, values := range b.header {
		n += len(name)
		for _, v := range values {
			n += len(v)
		}
	}
	return int64(n)
}

// backlog is a bounded queue. What was taken counts until it is released, so that
// the bounds hold for what is being sent, too.
type backlog struct {
	maxBytes   int64
	maxBatches int

	mu      sync.Mutex
	batches []*batch
	bytes   int64
	held    int // batches, taken ones included
	closed  bool
	more    chan struct{} // of one place: something was added, or the queue closed
}

func newBacklog(maxBytes int64, maxBatches int) *backlog {
	return &backlog{maxBytes: maxBytes, maxBatches: maxBatches, more: make(chan struct{}, 1)}
}

// put adds a batch unless there is no room.
func (q *backlog) put(b *batch) bool {
	size := b.size()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.held >= q.maxBatches || q.bytes+size > q.maxBytes {
		return false
	}
	q.batches = append(q.batches, b)
	q.bytes += size
	q.held++
	q.signal()
	return true
}

// take waits for the oldest batch; nil when the queue is closed and empty, or ctx is done.
func (q *backlog) take(ctx context.Context) *batch {
	for {
		if b, last := q.pop(); b != nil || last {
			return b
		}
		select {
		case <-q.more:
		case <-ctx.Done():
			return nil
		}
	}
}

func (q *backlog) pop() (b *batch, last bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.batches) > 0 {
		b = q.batches[0]
		q.batches[0] = nil
		q.batches = q.batches[1:]
	}
	if len(q.batches) > 0 || q.closed {
		q.signal() // for the next who waits
	}
	return b, b == nil && q.closed
}

// release gives back the room of a batch that was taken.
func (q *backlog) release(b *batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= b.size()
	q.held--
}

// close lets nothing more in.
func (q *backlog) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

// signal wakes one who waits. The caller holds mu.
func (q *backlog) signal() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// load is what the queue holds, taken batches included.
func (q *backlog) load() (batches int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held, q.bytes
}
