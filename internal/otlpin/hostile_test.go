package otlpin

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestAMillionForeignSpans leave nothing behind.
func TestAMillionForeignSpans(t *testing.T) {
	bubble(t, func(t *testing.T, j *Joiner) {
		ticket := j.Track(traceOf(1), spanOf(10))
		s := seen{EngineSpan: EngineSpan{SpanID: spanOf(11)}}
		for i := range uint64(million) {
			s.TraceID = traceOf(100 + i)
			if j.wants(s.TraceID) {
				t.Fatal("a foreign trace is wanted")
			}
		}
		if len(j.traces) != 1 || j.links != 0 || j.kept != 0 || j.State().Foreign != million {
			t.Errorf("%d traces, %d links, %d spans: %+v", len(j.traces), j.links, j.kept, j.State())
		}
		done(ticket)
	})
}

// TestAMillionSpansOfOneTrace: whoever knows the trace id can fill no more than
// that trace may hold, and the call still gets its own span.
func TestAMillionSpansOfOneTrace(t *testing.T) {
	for name, tracked := range map[string]int{"one call": 1, "two calls": 2} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, j *Joiner) {
				var tickets []*Ticket
				for i := range tracked {
					tickets = append(tickets, j.Track(traceOf(1), spanOf(10+uint64(i))))
				}
				var template collected
				if _, err := readProtobuf(protobufOf(t, request("", vllm(1, 11, 12), wireSpan(1, 11, 12, queueStage), wireSpan(1, 1, 1, ""))), &template); err != nil {
					t.Fatal(err)
				}
				for i := range uint64(million) {
					s := template.spans[i%3]
					s.SpanID, s.ParentID = spanOf(1000+i), spanOf(1000+i+i%5) // chains, and circles of one
					j.take(&s)
				}
				tr := j.traces[traceOf(1)]
				if len(tr.links) > maxLinks || len(tr.pending) > maxPending || j.kept > 1+maxStages+maxPending || j.links != len(tr.links) {
					t.Errorf("%d links, %d pending, %d spans kept", len(tr.links), len(tr.pending), j.kept)
				}
				feed(t, j, vllm(1, 77, 10))
				if o := done(tickets[0]); o.calls != 1 || o.span.SpanID != spanOf(77) {
					t.Errorf("the call's own span is not found: %+v", o)
				}
				for _, ticket := range tickets[1:] {
					done(ticket)
				}
				time.Sleep(2 * linger)
				empty(t, j)
			})
		})
	}
}

// TestTooManyCalls: what does not fit is not tracked, and counted.
func TestTooManyCalls(t *testing.T) {
	bubble(t, func(t *testing.T, j *Joiner) {
		var tickets []*Ticket
		for i := range uint64(maxTickets + 1000) {
			tickets = append(tickets, j.Track(traceOf(1+i), spanOf(10)))
		}
		if got := j.State(); got.Open != maxTickets || got.Untracked != 1000 {
			t.Errorf("%+v", got)
		}
		for i, ticket := range tickets {
			if (ticket == nil) != (i >= maxTickets) {
				t.Fatalf("call %d is tracked: %v", i, ticket != nil)
			}
			done(ticket)
		}
		time.Sleep(DefaultWindow + time.Second)
		synctest.Wait()
		if got := j.State(); got.Open != 0 || got.Unjoined != maxTickets || len(j.traces) != maxPast || j.past.n != maxPast {
			t.Errorf("%+v, %d traces", got, len(j.traces))
		}
		// Remembered ones make room for others.
		for i := range uint64(2 * maxTickets) {
			j.Track(traceOf(1_000_000+i), spanOf(10)).Done(time.Now(), nil)
		}
		if j.past.n != maxPast || len(j.traces) != maxPast {
			t.Errorf("%d remembered, %d traces", j.past.n, len(j.traces))
		}
	})
}

// TestTooManyCallsOfOneTrace: a long session is no reason to forget its present.
func TestTooManyCallsOfOneTrace(t *testing.T) {
	bubble(t, func(t *testing.T, j *Joiner) {
		for i := range uint64(3 * maxCalls) { // one after the other
			ticket := j.Track(traceOf(1), spanOf(10+i))
			feed(t, j, vllm(1, 100_000+i, 10+i))
			if o := done(ticket); !o.found {
				t.Fatalf("call %d found nothing", i)
			}
		}
		if n := len(j.traces[traceOf(1)].tickets); n != maxCalls {
			t.Errorf("%d calls are remembered", n)
		}
		var open []*Ticket
		for i := range uint64(2 * maxCalls) { // all at once
			open = append(open, j.Track(traceOf(1), spanOf(10_000+i)))
		}
		if got := j.State(); got.Untracked != maxCalls || got.Open != maxCalls {
			t.Errorf("%+v", got)
		}
		for _, ticket := range open {
			done(ticket)
		}
	})
}

// TestTooManySpansKept: the bounds over all traces hold, and what is full
// becomes free again.
func TestTooManySpansKept(t *testing.T) {
	bubble(t, func(t *testing.T, j *Joiner) {
		const calls = 40_000
		var tickets []*Ticket
		var template collected
		_, _ = readProtobuf(protobufOf(t, request("", vllm(1, 11, 12), wireSpan(1, 11, 12, queueStage))), &template)
		for i := range uint64(calls) {
			tickets = append(tickets, j.Track(traceOf(1+i), spanOf(10)))
			for n := range uint64(8) {
				s := template.spans[n&1]
				s.TraceID, s.SpanID, s.ParentID = traceOf(1+i), spanOf(100+n), spanOf(10)
				j.take(&s)
			}
		}
		if j.kept != maxKept || j.links != maxAllLinks || j.State().Overflow == 0 {
			t.Errorf("%d spans, %d links, %d did not fit", j.kept, j.links, j.State().Overflow)
		}
		for _, ticket := range tickets {
			ticket.Done(time.Now(), nil)
		}
		time.Sleep(3 * linger)
		empty(t, j)
	})
}

// TestConcurrently is for the race detector: every call hears exactly once.
func TestConcurrently(t *testing.T) {
	j := NewJoiner(20 * ms)
	var calls, others sync.WaitGroup
	stop := make(chan struct{})
	for g := range uint64(4) {
		calls.Go(func() {
			for i := range uint64(500) {
				id := traceOf(1 + g*1000 + i%100)
				ticket := j.Track(id, spanOf(1+g*1000+i))
				if i%3 == 0 {
					feed(t, j, vllm(1+g*1000+i%100, 1_000_000+g*1000+i, 1+g*1000+i))
				}
				calls.Add(1)
				if _, answer := ticket.Done(time.Now(), func(EngineSpan, bool) { calls.Done() }); answer != Awaited {
					calls.Done()
				}
			}
		})
		others.Go(func() {
			for i := uint64(0); ; i++ {
				select {
				case <-stop:
					return
				default:
					feed(t, j, vllm(1+i%4*1000+i%100, 2_000_000+i, i%5000), vllm(9_000_000, i, i))
					_ = j.State()
				}
			}
		})
	}
	calls.Wait()
	close(stop)
	others.Wait()
	j.Close()
	if got := j.State(); got.Joined+got.Unjoined != 2000 || got.Open != 0 {
		t.Errorf("%+v", got)
	}
}

// TestLoopSleeps: a Joiner at rest does nothing until it must.
func TestLoopSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := NewJoiner(0)
		before := time.Now()
		o := done(j.Track(traceOf(1), spanOf(10)))
		synctest.Wait() // the loop is blocked, on a timer
		if time.Since(before) != 0 || o.calls != 0 {
			t.Error("the loop does not wait")
		}
		j.Close()
		o.is(t, "call", 1, 0, 0)
	})
}
