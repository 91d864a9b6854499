package sim

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Engine is a simulated inference engine. It is an http.Handler; Start makes
// one and Close ends it.
type Engine struct {
	manner  atomic.Pointer[manner] // never changed, but replaced by Change
	started time.Time
	mux     *http.ServeMux

	wake chan struct{} // capacity 1: something changed that the scheduler waits for
	stop chan struct{}
	done chan struct{} // closed when the scheduler has returned
	once sync.Once

	mu       sync.Mutex // guards what follows, and each call and sequence
	closed   bool
	waiting  []*sequence // preempted ones first, then by arrival
	running  []*sequence // oldest first
	kv       *kvCache
	gauges   counters
	history  *history
	arrivals int            // calls received
	repeats  map[uint64]int // how often a request was seen, for its ids
}

// sequence is one choice of a call, as the scheduler sees it.
type sequence struct {
	call   *call
	choice int
	prompt []token  // at least one
	hashes []uint64 // of the prompt's full blocks
	counts bool     // it is the first choice of its prompt, whose tokens count once
	// What it will write: tokens, how many of them reasoning, and why it ends.
	length    int
	reasoning int
	finish    string
	order     uint64 // decides between equal arrivals

	arrival   time.Time
	scheduled time.Time // first taken out of the queue
	first     time.Time // first token
	last      time.Time // latest token
	cached    int       // prompt tokens found in the cache when first scheduled
	computed  int       // tokens in the KV cache
	generated int
	preempted bool
	gone      bool // finished or aborted

	shared  []*block
	private int // blocks held besides shared
}

// tokens is what has to be in the KV cache before the next token can be written.
func (s *sequence) tokens() int { return len(s.prompt) + s.generated }

// call is one request inside the engine. The engine's lock guards it, but for
// the signal.
type call struct {
	truth     Truth
	sequences []*sequence
	emitted   []emission // not yet taken by the handler
	open      int        // sequences that have not ended
	lost      bool       // the engine closed before its end
	signal    chan struct{}
}

// emission is one generated token.
type emission struct {
	choice, index int
}

// Start starts an engine. Whoever starts it closes it.
func Start(cfg Config) (*Engine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	e := &Engine{
		started: time.Now(),
		wake:    make(chan struct{}, 1),
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
		kv:      newKVCache(cfg.KVBlocks, cfg.BlockTokens, !cfg.NoPrefixCache),
		gauges:  newCounters(),
		history: newHistory(cfg.Truths),
		repeats: make(map[uint64]int),
	}
	e.manner.Store(mannerOf(cfg))
	e.mux = e.routes()
	go e.schedule()
	return e, nil
}

// Close stops the scheduler and waits for it. Calls under way break off, later
// ones are answered with 503. A second Close does nothing.
func (e *Engine) Close() error {
	e.once.Do(func() { close(e.stop) })
	<-e.done
	return nil
}

// Config returns the configuration with its defaults filled in.
func (e *Engine) Config() Config { return *e.config() }

var (
	errQueueFull = errors.New("the request queue is full")
	errClosed    = errors.New("the engine is shutting down")
)

// submit puts the sequences of a call into the queue.
func (e *Engine) submit(c *call, sequences []*sequence) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errClosed
	}
	if len(e.waiting)+len(sequences) > e.config().QueueLimit {
		return errQueueFull
	}
	now := time.Now()
	c.truth.Arrival = now
	c.truth.Choices = len(sequences)
	c.sequences, c.open = sequences, len(sequences)
	for _, s := range sequences {
		s.call, s.arrival = c, now
		if s.counts {
			c.truth.Input += len(s.prompt)
		}
		at := len(e.waiting)
		for at > 0 && e.waiting[at-1].after(s) {
			at--
		}
		e.waiting = insert(e.waiting, at, s)
	}
	e.nudge()
	return nil
}

// after tells whether s, which arrived no later, goes behind t all the same.
// It makes the order of equal arrivals a matter of what arrived.
func (s *sequence) after(t *sequence) bool {
	return !s.preempted && s.call != t.call && s.arrival.Equal(t.arrival) && s.order > t.order
}

func insert(list []*sequence, at int, s *sequence) []*sequence {
	list = append(list, nil)
	copy(list[at+1:], list[at:])
	list[at] = s
	return list
}

// leave ends a call whose handler returns: what still runs or waits of it is
// aborted, and its room is free at once.
func (e *Engine) leave(c *call) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.open == 0 {
		return
	}
	for _, s := range c.sequences {
		if !s.gone {
			s.gone = true
			e.kv.release(s)
			e.gauges.finished["abort"]++
		}
	}
	e.waiting = withoutGone(e.waiting)
	e.running = withoutGone(e.running)
	c.open = 0
	c.truth.Aborted = true
	c.truth.End = time.Now()
	e.nudge()
}

func withoutGone(list []*sequence) []*sequence {
	kept := list[:0]
	for _, s := range list {
		if !s.gone {
			kept = append(kept, s)
		}
	}
	clear(list[len(kept):])
	return kept
}

// progress is what a handler learns when it looks at its call.
type progress struct {
	emitted   []emission
	scheduled bool
	finished  bool
	lost      bool
}

// take hands over the tokens that have come since the last take.
func (e *Engine) take(c *call) progress {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := progress{emitted: c.emitted, scheduled: !c.truth.Scheduled.IsZero(), finished: c.open == 0, lost: c.lost}
	c.emitted = nil
	return p
}

// nudge wakes the scheduler.
func (e *Engine) nudge() { poke(e.wake) }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
