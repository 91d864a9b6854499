package bench

import (
	"context"
	"sync"
	"time"

	"github.com/weirgate/weir/internal/endpoint"
)

// closedLoop keeps as many calls in flight as the load says.
func (p *phase) closedLoop(ctx context.Context) {
	var workers sync.WaitGroup
	for range p.arrivals.Concurrency {
		workers.Go(func() {
			var events []endpoint.Event
			for {
				select {
				case one, more := <-p.ready:
					if !more || p.over() || ctx.Err() != nil {
						return
					}
					events = p.send(ctx, one, false, events)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	workers.Wait()
}

// openLoop sends each call when it is due, however many are in flight, so that
// a stall of the endpoint shows in the calls that came during it.
func (p *phase) openLoop(ctx context.Context) {
	var calls sync.WaitGroup
	defer calls.Wait()
	spare := sync.Pool{New: func() any { return new([]endpoint.Event) }}
	var slots chan struct{}
	if bound := p.arrivals.Concurrency; bound > 0 {
		slots = make(chan struct{}, bound)
	}
	for {
		var one prepared
		var more bool
		select {
		case one, more = <-p.ready:
		case <-ctx.Done():
		}
		late := !p.warmup && p.load.Duration > 0 && one.item.Due >= p.load.Duration
		if !more || late || !p.waitFor(ctx, one.item.Due) {
			return
		}
		held := false
		if slots != nil {
			select {
			case slots <- struct{}{}:
			default:
				held = true
				select {
				case slots <- struct{}{}:
				case <-ctx.Done():
					return
				}
			}
		}
		if p.over() {
			p.leave()
			return
		}
		calls.Go(func() {
			events := spare.Get().(*[]endpoint.Event)
			*events = p.send(ctx, one, held, *events)
			spare.Put(events)
			if slots != nil {
				<-slots
			}
		})
	}
}

// leave counts the call at hand and those prepared that were due in time.
func (p *phase) leave() {
	p.unsent++
	for {
		select {
		case one, more := <-p.ready:
			if !more || one.item.Due >= p.load.Duration {
				return
			}
			p.unsent++
		default:
			return
		}
	}
}

// waitFor returns at due, or at once when that has passed; false when ctx is done.
func (p *phase) waitFor(ctx context.Context, due time.Duration) bool {
	return wait(ctx, due-p.cfg.now().Sub(p.begin))
}
