package bench

import (
	"context"
	"sync"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/endpoint"
)

// fake is a caller whose calls take as long as they are told, by the clock.
type fake struct {
	// answer says what comes of the nth call, sent at a time since the first.
	answer func(n int, at time.Duration) script

	mu       sync.Mutex
	begin    time.Time
	calls    int
	ids      []string
	bodies   []string
	inFlight int
	most     int
}

// script is what comes of a call.
type script struct {
	ttft, tpot time.Duration
	tail       time.Duration // after the last token
	tokens     int           // output
	silent     bool          // no usage
	failed     endpoint.Kind
	running    bool // events carry running counts
}

func (f *fake) Call(ctx context.Context, api endpoint.API, body []byte, id string, events []endpoint.Event) endpoint.Reply {
	start := time.Now()
	f.mu.Lock()
	if f.begin.IsZero() {
		f.begin = start
	}
	n := f.calls
	f.calls++
	f.ids = append(f.ids, id)
	f.bodies = append(f.bodies, string(body))
	f.inFlight++
	f.most = max(f.most, f.inFlight)
	s := f.answer(n, start.Sub(f.begin))
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.inFlight--
		f.mu.Unlock()
	}()
	r := endpoint.Reply{Start: start, Events: events[:0], Status: 200}
	r.Record.Stream, r.Record.Outcome = true, call.Completed
	last := s.ttft + time.Duration(s.tokens-1)*s.tpot
	select {
	case <-time.After(last + s.tail):
	case <-ctx.Done():
		r.Failed, r.Err, r.End = endpoint.FailedCancelled, ctx.Err(), time.Since(start)
		return r
	}
	r.End = last + s.tail
	if s.failed != "" {
		r.Failed, r.Status, r.Record.Outcome = s.failed, 500, call.UpstreamError
		return r
	}
	for i := range s.tokens {
		e := endpoint.Event{At: s.ttft + time.Duration(i)*s.tpot, Mark: endpoint.Content | endpoint.Text | endpoint.Choices | endpoint.First}
		if s.running {
			e.Output = int32(i + 1)
		}
		r.Events = append(r.Events, e)
	}
	r.Record.TTFT, r.Record.E2E = call.Lasting(s.ttft), call.Lasting(r.End)
	r.Record.Input = call.Known(10)
	if !s.silent {
		r.Record.Output = call.Known(int64(s.tokens))
		if s.tokens > 1 {
			r.Record.TPOT = call.Lasting(s.tpot)
		}
	} else {
		r.Record.Input = call.Count{}
	}
	return r
}

// even answers every call alike.
func even(s script) func(int, time.Duration) script {
	return func(int, time.Duration) script { return s }
}
