package sim

import "time"

const (
	// settling is how long a step stays open for requests that arrive with its
	// beginning, so that the batch does not hang on which goroutine ran first.
	// It is part of the step's own time.
	settling = time.Microsecond
	// maxLag is how far the scheduler may fall behind its own plan before it
	// plans anew. On the wall clock a step that overslept is made up for by the
	// next ones; a suspended machine is not.
	maxLag = 50 * time.Millisecond
)

// schedule works in steps until the engine is closed. Without work it blocks.
func (e *Engine) schedule() {
	defer close(e.done)
	defer e.shut()
	timer := time.NewTimer(0)
	<-timer.C
	defer timer.Stop()

	var begin time.Time // of the next step; zero when the engine was idle
	for {
		if !e.busy() {
			begin = time.Time{}
			select {
			case <-e.wake:
			case <-e.stop:
				return
			}
			continue
		}
		if now := time.Now(); begin.IsZero() || now.Sub(begin) > maxLag {
			begin = now
		}
		if !e.sleepUntil(timer, begin.Add(settling), nil) {
			return
		}
		step := e.compose(begin)
		end := begin.Add(max(step.cost, settling))
		if !e.sleepUntil(timer, end, &step) {
			return
		}
		begin = end
		if !e.commit(&step) {
			begin = time.Time{} // everybody left: the next step begins now
		}
	}
}

func (e *Engine) busy() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.waiting)+len(e.running) > 0
}

// sleepUntil waits for an instant, or until nobody is left in the step; false
// when the engine was closed.
func (e *Engine) sleepUntil(timer *time.Timer, at time.Time, s *step) bool {
	timer.Reset(time.Until(at))
	for {
		select {
		case <-timer.C:
			return true
		case <-e.wake:
			if s != nil && e.abandoned(s) {
				return true
			}
		case <-e.stop:
			return false
		}
	}
}

// shut tells all calls that no more tokens will come.
func (e *Engine) shut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for _, list := range [][]*sequence{e.waiting, e.running} {
		for _, s := range list {
			s.call.lost = true
			poke(s.call.signal)
		}
	}
}

// step is one pass through the model.
type step struct {
	parts []part
	cost  time.Duration
}

// part is what a step computes for one sequence.
type part struct {
	s *sequence
	n int // tokens
}

func (e *Engine) abandoned(s *step) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return s.empty()
}

// empty tells whether everybody in the step has left.
func (s *step) empty() bool {
	for _, p := range s.parts {
		if !p.s.gone {
			return false
		}
	}
	return true
}

// compose fills a step: running sequences first, oldest first, each with its
// next token or its next part of a prompt; then waiting ones in their order,
// as far as slots, budget and KV cache go. When the cache is too small for a
// running sequence the youngest one gives up its room and waits again, to
// compute everything once more; no new one comes in then.
func (e *Engine) compose(begin time.Time) step {
	e.mu.Lock()
	defer e.mu.Unlock()
	cfg := e.config()
	c := composition{budget: cfg.BatchTokens}
	preempted := false
	for i := 0; i < len(e.running) && c.budget > 0; i++ {
		s := e.running[i]
		n := min(s.tokens()-s.computed, c.budget)
		for !e.kv.grow(s, s.computed+n) {
			preempted = true
			if e.preemptYoungest() == s {
				n = 0
				break
			}
		}
		if n > 0 {
			c.add(s, n)
		}
	}
	for len(e.waiting) > 0 && len(e.running) < cfg.Slots && c.budget > 0 && !preempted {
		if !e.admitNext(&c, begin, cfg) {
			break
		}
	}
	return step{parts: c.parts, cost: c.cost(cfg)}
}

// preemptYoungest sends the sequence that was admitted last back to the head
// of the queue. Never in a step yet: sequences enter it oldest first.
func (e *Engine) preemptYoungest() *sequence {
	last := len(e.running) - 1
	s := e.running[last]
	e.running[last] = nil
	e.running = e.running[:last]
	e.kv.release(s)
	s.computed, s.preempted = 0, true
	s.call.truth.Preemptions++
	e.gauges.preemptions++
	e.waiting = insert(e.waiting, 0, s)
	return s
}

// admitNext takes the head of the queue into the step; false when it does not fit.
func (e *Engine) admitNext(c *composition, begin time.Time, cfg *Config) bool {
	s := e.waiting[0]
	hits := e.kv.cachedPrefix(s.hashes, s.tokens())
	cached := hits * cfg.BlockTokens
	n := s.tokens() - cached
	if n > c.budget {
		if !cfg.WholePrefill {
			n = c.budget
		} else if c.prefill > 0 {
			return false // a prompt beyond any budget goes when it is alone
		}
	}
	if !e.kv.admit(s, hits, cached+n) {
		return false
	}
	copy(e.waiting, e.waiting[1:])
	e.waiting[len(e.waiting)-1] = nil
	e.waiting = e.waiting[:len(e.waiting)-1]
	e.running = append(e.running, s)
	s.computed = cached
	if s.scheduled.IsZero() {
		s.scheduled = begin
		if s.arrival.After(begin) {
			s.scheduled = s.arrival
		}
		s.cached = cached
		e.gauges.prefixQueries += len(s.prompt)
		e.gauges.prefixHits += cached
		t := &s.call.truth
		if t.Scheduled.IsZero() {
			t.Scheduled = s.scheduled
			poke(s.call.signal)
		}
		if s.counts {
			t.Cached += cached
		}
	}
	c.add(s, n)
	return true
}

// composition adds up a step.
type composition struct {
	parts    []part
	budget   int
	prefill  int // tokens of prompts
	decodes  int // sequences that write their next token
	kvTokens int // tokens those hold
}

func (c *composition) add(s *sequence, n int) {
	c.parts = append(c.parts, part{s, n})
	c.budget -= n
	if s.generated > 0 && n == 1 {
		c.decodes++
		c.kvTokens += s.computed
	} else {
		c.prefill += n
	}
}

func (c *composition) cost(cfg *Config) time.Duration {
	var d time.Duration
	if c.prefill > 0 {
		d += cfg.PrefillBase + time.Duration(c.prefill)*cfg.PrefillPerToken
	}
	if c.decodes > 0 {
		d += cfg.DecodeBase + time.Duration(c.decodes)*cfg.DecodePerSequence + time.Duration(c.kvTokens)*cfg.DecodePerKVToken
	}
	return d
}

// commit ends a step: whoever has all its tokens computed writes the next one.
// It returns false when everybody had left.
func (e *Engine) commit(st *step) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if st.empty() {
		return false
	}
	now := time.Now()
	for _, p := range st.parts {
		s := p.s
		if s.gone {
			continue
		}
		s.computed += p.n
		e.kv.publish(s)
		if s.computed == s.tokens() {
			e.emit(s, now)
		}
	}
	e.running = withoutGone(e.running)
	return true
}

// emit writes the next token of a sequence and ends it when it was the last.
func (e *Engine) emit(s *sequence, now time.Time) {
	t := &s.call.truth
	if s.generated == 0 {
		s.first = now
		e.gauges.promptTokens += len(s.prompt)
		e.gauges.cachedTokens += s.cached
		if s.length > 0 {
			e.gauges.firstToken.observe(now.Sub(s.arrival))
		}
		if t.FirstToken.IsZero() {
			t.FirstToken = now
		}
	} else {
		e.gauges.interToken.observe(now.Sub(s.last))
	}
	if s.length > 0 {
		s.call.emitted = append(s.call.emitted, emission{s.choice, s.generated})
		s.generated++
		s.last = now
		t.Output++
		if s.generated <= s.reasoning {
			t.Reasoning++
		}
		t.Tokens = appendInstant(t.Tokens, now)
		e.gauges.generationTokens++
	} else {
		s.last = now
	}
	if s.generated >= s.length {
		s.gone = true
		e.kv.release(s)
		e.gauges.finish(s, now)
		if s.choice == 0 {
			t.Finish = s.finish
		}
		if s.call.open--; s.call.open == 0 {
			t.End = now
		}
	}
	poke(s.call.signal)
}
