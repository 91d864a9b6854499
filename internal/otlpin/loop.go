package otlpin

import "time"

// delivery is one call of a ticket's deliver.
type delivery struct {
	to    func(EngineSpan, bool)
	span  EngineSpan
	found bool
}

// loop closes join windows, delivers spans and forgets old tickets, until Close.
func (j *Joiner) loop() {
	defer close(j.ended)
	timer := time.NewTimer(linger)
	defer timer.Stop()
	var due []delivery
	for {
		now := time.Now()
		j.mu.Lock()
		var next time.Duration
		due, next = j.collect(due[:0], now)
		last := j.closed && j.waiting.n == 0 && j.ready.n == 0
		j.mu.Unlock()
		for i := range due {
			j.hand(due[i])
			due[i] = delivery{}
		}
		if last {
			return
		}
		if next <= 0 {
			continue
		}
		timer.Reset(next)
		select {
		case <-timer.C:
		case <-j.wake:
		}
	}
}

// collect closes the tickets that are due, a bounded number at a time so that the
// lock is free in between, and says how long there is nothing more to do. The caller holds mu.
func (j *Joiner) collect(due []delivery, now time.Time) ([]delivery, time.Duration) {
	const most = 256
	at := j.at(now)
	for n := 0; ; n++ {
		if n == most {
			return due, 0
		}
		var t *Ticket
		switch {
		case j.ready.n > 0:
			t = j.ready.first
			j.ready.remove(t)
		case j.waiting.n > 0 && (j.closed || j.waiting.first.deadline <= at):
			t = j.waiting.first
			j.waiting.remove(t)
		case j.past.n > 0 && (j.past.first.deadline < at || j.closed):
			j.forget(j.past.first)
			continue
		default:
			next := linger
			if j.waiting.n > 0 {
				next = min(next, max(time.Duration(j.waiting.first.deadline-at), slack))
			}
			if j.past.n > 0 { // which is in no hurry
				next = min(next, max(time.Duration(j.past.first.deadline-at), time.Second))
			}
			return due, next
		}
		span, found := t.result()
		due = append(due, delivery{to: t.deliver, span: span, found: found})
		t.close(found, now)
	}
}

// hand calls deliver. A panic in there is counted and ends nothing else.
func (j *Joiner) hand(d delivery) {
	defer func() {
		if recover() != nil {
			j.mu.Lock()
			j.count.Panics++
			j.mu.Unlock()
		}
	}()
	d.to(d.span, d.found)
}

// wakeUp has the loop look again. It never blocks.
func (j *Joiner) wakeUp() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}
