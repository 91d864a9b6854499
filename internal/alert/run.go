package alert

import (
	"context"
	"sync"
	"time"
)

// Run tells receivers until ctx is done, and then what still waits, for at most five
// seconds. Then it cuts off attempts that run, and returns when these have ended; it
// does not wait for a receiver or a Blame that goes on regardless. It is not called
// again while it runs, and whoever starts it in a goroutine waits for its return.
func (m *Manager) Run(ctx context.Context) {
	cut, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stopping := make(chan struct{})
	var workers sync.WaitGroup
	b := newBlamer(m, &workers)
	for {
		m.launch(cut, stopping, &workers)
		if ctx.Err() != nil {
			break // launched nevertheless: what waits is told once
		}
		next := b.step(time.Now())
		var due <-chan time.Time
		var timer *time.Timer
		if !next.IsZero() {
			timer = time.NewTimer(time.Until(next))
			due = timer.C
		}
		select {
		case <-ctx.Done():
		case <-m.wake:
		case <-due:
		case answer := <-b.answers:
			b.take(answer)
		}
		if timer != nil {
			timer.Stop()
		}
	}
	m.stop(stopping)
	defer m.stopped()
	ended := make(chan struct{})
	go func() { workers.Wait(); close(ended) }()
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-ended:
		return
	case <-timer.C:
	}
	cancel()
	// What honours its context ends now.
	timer.Reset(time.Second)
	select {
	case <-ended:
	case <-timer.C:
	}
}

// launch starts the goroutines of outlets that have none.
func (m *Manager) launch(ctx context.Context, stopping <-chan struct{}, workers *sync.WaitGroup) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range m.outlets {
		if o.running {
			continue
		}
		o.running = true
		workers.Go(func() {
			defer func() {
				m.mu.Lock()
				o.running = false
				o.letGo()
				m.mu.Unlock()
			}()
			m.run(ctx, o, stopping)
		})
	}
}

// stop makes outlets tell what waits and end.
func (m *Manager) stop(stopping chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopping = true
	close(stopping)
}

func (m *Manager) stopped() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopping = false
}
