package alert

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// attemptTime is the most that one attempt may take.
	attemptTime = 10 * time.Second
	// firstPause and lastPause are the pauses after the first failure and after many; each
	// is twice the one before, less a random part of up to a half. A page must not wait
	// long for a receiver that is back.
	firstPause, lastPause = time.Second, time.Minute
	// drainTime is how long Run tells what waits when its context is done.
	drainTime = 5 * time.Second
)

// outlet is one receiver while it is configured.
type outlet struct {
	wake chan struct{} // something may have changed; room for one
	// ctx is done when it is no longer configured.
	ctx    context.Context
	remove context.CancelFunc

	// The Manager's lock guards these.
	receiver Receiver
	manners  manners
	name     string
	running  bool // it has its goroutine
	state    ReceiverState

	// These are of the outlet's goroutine alone.
	failures int  // in a row
	reported bool // that it fails
}

func newOutlet() *outlet {
	ctx, remove := context.WithCancel(context.Background())
	return &outlet{wake: make(chan struct{}, 1), ctx: ctx, remove: remove}
}

// letGo closes idle connections.
func (o *outlet) letGo() {
	if o.manners.close != nil {
		o.manners.close()
	}
}

// run tells the receiver until it is gone, or until stopping is closed and there is
// nothing more to tell, or ctx is done.
func (m *Manager) run(ctx context.Context, o *outlet, stopping <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(o.ctx, cancel)()
	for ctx.Err() == nil {
		batch, sent, later := m.next(o, time.Now())
		if len(sent) == 0 {
			select {
			case <-stopping:
				return
			default:
			}
			m.rest(ctx, o, stopping, later)
			continue
		}
		r, report, name := m.subject(o)
		err := attempt(ctx, r, batch)
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("cut off before the receiver had answered: %w", ctx.Err())
			m.settle(o, time.Now(), sent, err)
			return
		}
		m.settle(o, time.Now(), sent, err)
		o.tell(report, name, err)
		if err != nil && !m.pause(ctx, o, stopping, err) {
			return
		}
	}
}

// subject returns what may change with Configure.
func (m *Manager) subject(o *outlet) (Receiver, func(string, error), string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return o.receiver, m.options.Report, o.name
}

// rest waits for something to tell.
func (m *Manager) rest(ctx context.Context, o *outlet, stopping <-chan struct{}, later time.Time) {
	var due <-chan time.Time
	if !later.IsZero() {
		timer := time.NewTimer(time.Until(later))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-stopping:
	case <-o.wake:
	case <-due:
	}
}

// attempt tells a receiver once. A panic in there is an error that another try would
// only repeat.
func attempt(ctx context.Context, r Receiver, batch Batch) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = Permanent(errors.New("the receiver panicked"))
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	return r.Send(ctx, batch)
}

// tell reports a change.
func (o *outlet) tell(report func(string, error), name string, err error) {
	if o.failures++; err == nil {
		o.failures = 0
	}
	if o.reported == (err != nil) {
		return
	}
	o.reported = err != nil
	if report == nil {
		return
	}
	if err != nil {
		err = fmt.Errorf("tell %s of alerts: %w", name, err)
	}
	report(name, err)
}

// pause waits before the next attempt; false when there is to be none. What is permanent
// leaves nothing to try again, and the pause keeps a receiver that refuses everything
// from being asked without end.
func (m *Manager) pause(ctx context.Context, o *outlet, stopping <-chan struct{}, err error) bool {
	wait := backoff(o.failures)
	if permanent(err) {
		wait = firstPause
	}
	var f *failure
	asked := time.Duration(0)
	if errors.As(err, &f) {
		asked = f.after
	}
	ended := false
	select {
	case <-stopping:
		ended = true
	default:
	}
	if ended {
		if asked > firstPause {
			return false // it will not listen before the end
		}
		wait, stopping = firstPause, nil
	}
	timer := time.NewTimer(max(wait, asked))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stopping: // one more try at once
	case <-ctx.Done():
		return false
	}
	return true
}

// backoff is the pause after so many failures in a row.
func backoff(failures int) time.Duration {
	pause := firstPause
	for range failures - 1 {
		if pause *= 2; pause >= lastPause {
			pause = lastPause
			break
		}
	}
	return pause/2 + rand.N(pause/2+1)
}
