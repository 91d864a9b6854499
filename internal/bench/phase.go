package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/internal/workload"
)

// source yields what to send, and false at its end.
type source interface {
	Next() (workload.Item, bool)
}

// phase is the warm-up or the measured part of one repeat: calls are prepared
// ahead, sent, and their results handed to one goroutine.
//
// Whoever sends never waits for prompts to be written, nor for results to be
// looked at, unless those are slower than the endpoint all along.
type phase struct {
	cfg    *Config
	load   *Load
	name   string // what the ids of its calls begin with
	repeat int
	warmup bool
	from   int // index of its first call within the repeat
	items  source
	// prompter writes the prompt of each call, the first one with index prompts.
	prompter *workload.Prompter
	prompts  int
	arrivals workload.Arrivals

	begin    time.Time   // of sending; for whoever saw begun
	begun    atomic.Bool // set once begin is
	ready    chan prepared
	results  chan result
	inFlight atomic.Int64
	// What follows is for whoever saw run return.

	// written is how many prompts were written, failure why no more could be.
	written int
	failure error
	// unsent is how many calls an open loop could not send before its time was
	// over.
	unsent int
}

// prepared is a call about to be sent.
type prepared struct {
	item workload.Item
	body []byte
}

// result is a call that has ended.
type result struct {
	sample Sample
	point  point
	words  int
	reason error // in words, of a failed call
}

const (
	// resultsAhead results may wait for the sink before calls wait too.
	resultsAhead = 1024
	// aheadBytes bounds the prompts that wait to be sent, and so do leastAhead
	// and mostAhead by number.
	aheadBytes = 64 << 20
	leastAhead = 32
	mostAhead  = 2048
	// bytesPerToken is what a token of a prompt takes, about.
	bytesPerToken = 6
)

// ahead is how many calls are prepared before they are due.
func (l *Load) ahead() int {
	each := bytesPerToken * max(int(l.Input.Mean), l.Input.Max, 1000)
	n := min(max(l.Arrivals.Concurrency, leastAhead), mostAhead, max(aheadBytes/each, leastAhead))
	if l.Calls > 0 {
		n = min(n, l.Calls)
	}
	return n
}

// run sends the phase's calls and gives each result to take, in the order of
// their ends; every now and then it calls tick. When ctx is done, calls in flight
// are cancelled and left out. Nothing runs any more when it returns.
func (p *phase) run(ctx context.Context, take func(result), tick func()) error {
	ctx, stop := context.WithCancel(ctx)
	p.ready, p.results = make(chan prepared, p.load.ahead()), make(chan result, resultsAhead)
	full := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() { p.prepare(ctx, full) })
	all.Go(func() {
		defer close(p.results)
		select {
		case <-full:
		case <-ctx.Done():
		}
		p.begin = p.cfg.now()
		p.begun.Store(true)
		if p.closed() {
			p.closedLoop(ctx)
		} else {
			p.openLoop(ctx)
		}
	})
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for open := true; open; {
		select {
		case one, more := <-p.results:
			if open = more; more {
				take(one)
			}
		case <-ticker.C:
			tick()
		}
	}
	stop() // what is left of preparing
	all.Wait()
	return p.failure
}

// prepare writes prompts and bodies ahead. It closes full when the first calls
// are ready, so that the load does not begin with a wait for prompts.
func (p *phase) prepare(ctx context.Context, full chan struct{}) {
	defer close(p.ready)
	once := sync.OnceFunc(func() { close(full) })
	defer once()
	for {
		item, more := p.items.Next()
		if !more {
			return
		}
		item.Prompt, item.Words = p.prompter.Prompt(p.prompts+item.Index, item.Input)
		p.written++
		body, err := p.body(item)
		if err != nil {
			p.failure = fmt.Errorf("prepare call %d of %s: %w", item.Index, p.load.Label, err)
			return
		}
		if len(p.ready) == cap(p.ready) {
			once()
		}
		select {
		case p.ready <- prepared{item, body}:
		case <-ctx.Done():
			return
		}
	}
}

func (p *phase) body(item workload.Item) ([]byte, error) {
	ask := p.cfg.Ask
	ask.Prompt = item.Prompt
	if item.Output > 0 {
		ask.MaxTokens = item.Output
	}
	if ask.MaxTokens == 0 {
		ask.IgnoreEOS = false // nothing else would end the answer
	}
	return ask.Body()
}

func (p *phase) closed() bool { return p.arrivals.Shape == workload.Closed }

// elapsed is the time since the first call.
func (p *phase) elapsed() time.Duration {
	if !p.begun.Load() {
		return 0
	}
	return p.cfg.now().Sub(p.begin)
}

// over tells whether the time for sending has passed.
func (p *phase) over() bool {
	return p.load.Duration > 0 && !p.warmup && p.cfg.now().Sub(p.begin) >= p.load.Duration
}
