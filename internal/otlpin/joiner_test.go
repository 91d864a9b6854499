package otlpin

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	spanpb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/weirgate/weir/internal/call"
)

// outcome is what a call heard of its span.
type outcome struct {
	calls int
	span  EngineSpan
	found bool
	at    time.Duration // after the end of the call
}

// done ends a call and keeps what it hears, in a synctest bubble.
func done(ticket *Ticket) *outcome {
	o := new(outcome)
	ended := time.Now()
	span, answer := ticket.Done(ended, func(s EngineSpan, found bool) {
		o.calls++
		o.span, o.found, o.at = s, found, time.Since(ended)
	})
	switch answer {
	case Joined:
		o.calls, o.span, o.found = 1, span, true
	case None:
		o.calls = -1
	}
	return o
}

func (o *outcome) is(t *testing.T, what string, calls int, id uint64, at time.Duration) {
	t.Helper()
	synctest.Wait() // until the Joiner is at rest
	if o.calls != calls || o.found != (id != 0) || o.span.SpanID != spanOf(id) || o.at < at || o.at > at+slack {
		t.Errorf("%s: heard %d times, found %v, span %x after %v; want %d times, span %d after %v",
			what, o.calls, o.found, o.span.SpanID, o.at, calls, id, at)
	}
}

// empty checks that a Joiner keeps nothing.
func empty(t *testing.T, j *Joiner) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.open != 0 || j.waiting.n != 0 || j.ready.n != 0 || j.past.n != 0 || j.kept != 0 || j.links != 0 || len(j.traces) != 0 {
		t.Errorf("left: %d open, %d wait, %d ready, %d remembered calls, %d spans, %d links, %d traces",
			j.open, j.waiting.n, j.ready.n, j.past.n, j.kept, j.links, len(j.traces))
	}
}

func counts(t *testing.T, j *Joiner, want JoinCounts) {
	t.Helper()
	if got := j.State().JoinCounts; got != want {
		t.Errorf("counts\n%+v, want\n%+v", got, want)
	}
}

// bubble runs a test with a Joiner on a clock of its own.
func bubble(t *testing.T, test func(*testing.T, *Joiner)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		j := NewJoiner(0)
		defer j.Close()
		test(t, j)
	})
}

func TestSpanBeforeTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, j *Joiner) {
		ticket := j.Track(traceOf(1), spanOf(10))
		feed(t, j, vllm(1, 11, 10))
		o := done(ticket)
		o.is(t, "call", 1, 11, 0)
		if o.span.Queue != call.Lasting(100*ms) || o.span.Match != ByParent || o.span.Others != 0 {
			t.Errorf("delivered %+v", o.span)
		}
		time.Sleep(time.Hour)
		o.is(t, "call", 1, 11, 0)
		counts(t, j, JoinCounts{Tracked: 1, Joined: 1, EngineSpans: 1})
		empty(t, j)
	})
}

func TestSpanAfterTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, j *Joiner) {
		o := done(j.Track(traceOf(1), spanOf(10)))
		time.Sleep(1500 * ms)
		o.is(t, "before", 0, 0, 0)
		feed(t, j, vllm(1, 11, 10))
		synctest.Wait()
		o.is(t, "call", 1, 11, 1500*ms)
		time.Sleep(time.Minute)
		o.is(t, "call", 1, 11, 1500*ms)
	})
}

func TestNoSpan(t *testing.T) {
	bubble(t, func(t *testing.T, j *Joiner) {
		first := done(j.Track(traceOf(1), spanOf(10)))
		time.Sleep(700 * ms)
		second := done(j.Track(traceOf(2), spanOf(20)))
		time.Sleep(time.Minute)
		first.is(t, "first", 1, 0, 2*time.Second)
		second.is(t, "second", 1, 0, 2*time.Second)
		counts(t, j, JoinCounts{Tracked: 2, Unjoined: 2})
	})
}

func TestLateSpan(t *testing.T) {
	bubble(t, func(t *testing.T, j *Joiner) {
		o := done(j.Track(traceOf(1), spanOf(10)))
		time.Sleep(5 * time.Second)
		o.is(t, "call", 1, 0, 2*time.Second)
		feed(t, j, vllm(1, 11, 10), vllm(1, 11, 10))
		time.Sleep(time.Second)
		feed(t, j, vllm(1, 12, 10))
		counts(t, j, JoinCounts{Tracked: 1, Unjoined: 1, EngineSpans: 4 - 1, Late: 2, Duplicate: 1})
		if late := j.State().Latest.Or(0); late < 4*time.Second-slack || late > 4*time.Second {
			t.Errorf("late by %v, want 4 s", late)
		}
		time.Sleep(2 * linger)
		feed(t, j, vllm(1, 11, 10)) // the call is forgotten
		if got := j.State().Foreign; got != 1 {
			t.Errorf("%d foreign spans", got)
		}
	})
}

func TestForeignAndOwnSpans(t *testing.T) {
	bubble(t, func(t *testing.T, j *Joiner) {
		ticket := j.Track(traceOf(1), spanOf(10))
		feed(t, j, vllm(2, 11, 10), wireSpan(1, 10, 3, "chat", double(attrQueue, 1)), wireSpan(1, 9, 10, "POST"))
		o := done(ticket)
		time.Sleep(time.Minute)
		o.is(t, "call", 1, 0, 2*time.Second)
		counts(t, j, JoinCounts{Tracked: 1, Unjoined: 1, Foreign: 1})
	})
}

// TestParents: several calls of one trace get their own spans, even when proxies
// stand between and report in whatever order.
func TestParents(t *testing.T) {
	bubble(t, func(t *testing.T, j *Joiner) {
		a, b, c := j.Track(traceOf(1), spanOf(10)), j.Track(traceOf(1), spanOf(20)), j.Track(traceOf(1), spanOf(30))
		feed(t, j, vllm(1, 23, 22), vllm(1, 11, 10)) // b's is below 22, below 21
		oa, ob, oc := done(a), done(b), done(c)
		oa.is(t, "a", 1, 11, 0)
		time.Sleep(100 * ms)
		feed(t, j, wireSpan(1, 22, 21, "proxy"))
		time.Sleep(100 * ms)
		ob.is(t, "b, of unknown ancestors", 0, 0, 0)
		feed(t, j, wireSpan(1, 21, 20, "router"), vllm(1, 99, 98))
		synctest.Wait()
		ob.is(t, "b", 1, 23, 200*ms)
		time.Sleep(time.Minute)
		oc.is(t, "c", 1, 0, 2*time.Second)
		counts(t, j, JoinCounts{Tracked: 3, Joined: 2, Unjoined: 1, EngineSpans: 3, Ambiguous: 1})
	})
}

// TestOnlyCallOfItsTrace: then the ancestors need not be known, but what is the
// call's own for certain is taken instead.
func TestOnlyCallOfItsTrace(t *testing.T) {
	bubble(t, func(t *testing.T, j *Joiner) {
		o := done(j.Track(traceOf(1), spanOf(10)))
		feed(t, j, vllm(1, 99, 98))
		time.Sleep(time.Minute)
		o.is(t, "by trace", 1, 99, 2*time.Second)
		if o.span.Match != ByTrace {
			t.Errorf("matched by %s", o.span.Match)
		}
		o = done(j.Track(traceOf(2), spanOf(10)))
		feed(t, j, vllm(2, 99, 98), vllm(2, 11, 10))
		time.Sleep(time.Minute)
		o.is(t, "by parent", 1, 11, 0)
		counts(t, j, JoinCounts{Tracked: 2, Joined: 2, EngineSpans: 3, Further: 1})
	})
}

// TestSeveralRequests: the last attempt counts and, of those that began together,
// the one that answered first, whatever the order of arrival.
func TestSeveralRequests(t *testing.T) {
	first, slow, quick := vllm(1, 11, 10), vllm(1, 12, 10), vllm(1, 13, 10)
	slow.StartTimeUnixNano += uint64(time.Second)
	quick.StartTimeUnixNano += uint64(time.Second)
	quick.Attributes[0] = double(attrTTFT, 0.1601)
	for _, order := range [][]*spanpb.Span{{first, slow, quick}, {quick, slow, first}, {slow, quick, first}, {first, quick, slow}} {
		bubble(t, func(t *testing.T, j *Joiner) {
			ticket := j.Track(traceOf(1), spanOf(10))
			feed(t, j, order...)
			feed(t, j, order[0])
			o := done(ticket)
			o.is(t, "call", 1, 13, 0)
			if o.span.Others != 2 {
				t.Errorf("%d others", o.span.Others)
			}
			feed(t, j, vllm(1, 14, 10))
			counts(t, j, JoinCounts{Tracked: 1, Joined: 1, EngineSpans: 5, Further: 3, Duplicate: 1})
		})
	}
}

// TestSGLang: the request, its thread and its wait come from two processes, in any order.
func TestSGLang(t *testing.T) {
	request, thread, waiting := sglang(1, 11, 10)
	secondRank := wireSpan(1, 15, 12, queueStage)
	secondRank.StartTimeUnixNano += uint64(ms)
	for _, order := range [][]*spanpb.Span{
		{request, thread, waiting, secondRank}, {waiting, secondRank, thread, request}, {secondRank, thread, request, waiting},
		{request, secondRank, waiting, thread}, {thread, waiting, request, secondRank},
	} {
		bubble(t, func(t *testing.T, j *Joiner) {
			ticket, other := j.Track(traceOf(1), spanOf(10)), j.Track(traceOf(1), spanOf(50))
			for _, s := range order {
				feed(t, j, s)
			}
			o := done(ticket)
			o.is(t, "call", 1, 11, 0)
			if o.span.Queue != call.Lasting(120*ms) || o.span.Prefill != call.Lasting(80*ms) || o.span.PrefillWithQueue != call.Lasting(200*ms) {
				t.Errorf("queue %v, prefill %v", o.span.Queue, o.span.Prefill)
			}
			done(other)
		})
	}
}

// TestSGLangInPart: without the queue, prefill is not told; the queue alone is.
func TestSGLangInPart(t *testing.T) {
	request, thread, waiting := sglang(1, 11, 10)
	bubble(t, func(t *testing.T, j *Joiner) {
		o := done(j.Track(traceOf(1), spanOf(10)))
		feed(t, j, request, thread)
		time.Sleep(time.Minute)
		o.is(t, "no queue", 1, 11, 2*time.Second)
		if o.span.Queue.IsKnown() || o.span.Prefill.IsKnown() || !o.span.PrefillWithQueue.IsKnown() {
			t.Errorf("delivered %+v", o.span)
		}
	})
	bubble(t, func(t *testing.T, j *Joiner) {
		o := done(j.Track(traceOf(1), spanOf(10)))
		feed(t, j, waiting)
		time.Sleep(time.Minute)
		o.is(t, "the queue alone", 1, 13, 2*time.Second)
		if want := (call.Engine{Queue: call.Lasting(120 * ms)}); !reflect.DeepEqual(o.span.Engine(), want) {
			t.Errorf("delivered %+v", o.span)
		}
	})
	bubble(t, func(t *testing.T, j *Joiner) {
		o := done(j.Track(traceOf(1), spanOf(10)))
		feed(t, j, waiting, request) // the span between them never comes
		time.Sleep(time.Minute)
		o.is(t, "no thread", 1, 11, 2*time.Second)
		if o.span.Prefill != call.Lasting(80*ms) {
			t.Errorf("delivered %+v", o.span)
		}
	})
}

func TestDone(t *testing.T) {
	bubble(t, func(t *testing.T, j *Joiner) {
		// Only the first counts.
		ticket := j.Track(traceOf(1), spanOf(10))
		o := done(ticket)
		if again := done(ticket); again.calls != -1 {
			t.Error("done twice")
		}
		// Nil does not wait, but takes what is there.
		ticket = j.Track(traceOf(2), spanOf(10))
		if _, answer := ticket.Done(time.Now(), nil); answer != None {
			t.Error(answer)
		}
		ticket = j.Track(traceOf(3), spanOf(10))
		feed(t, j, vllm(3, 99, 98))
		if span, answer := ticket.Done(time.Now(), nil); answer != Joined || span.SpanID != spanOf(99) {
			t.Error(answer, span)
		}
		// No ticket, no answer.
		for _, ticket := range []*Ticket{nil, j.Track(TraceID{}, spanOf(1)), j.Track(traceOf(1), SpanID{}), (*Joiner)(nil).Track(traceOf(1), spanOf(1))} {
			if o := done(ticket); o.calls != -1 {
				t.Error("a call that is not tracked hears something")
			}
		}
		time.Sleep(time.Minute)
		o.is(t, "first", 1, 0, 2*time.Second)
		if got := j.State(); got.Open != 0 || got.Untracked != 2 {
			t.Errorf("%+v", got)
		}
	})
}

func TestWindow(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{0: DefaultWindow, -1: DefaultWindow, time.Second: time.Second, time.Hour: maxWindow} {
		synctest.Test(t, func(t *testing.T) {
			j := NewJoiner(asked)
			o := done(j.Track(traceOf(1), spanOf(10)))
			time.Sleep(2 * maxWindow)
			o.is(t, "call", 1, 0, want)
			if j.Window() != want || j.State().Window != call.Lasting(want) {
				t.Errorf("the window is %v", j.Window())
			}
			j.Close()
		})
	}
}

// TestClose delivers to all who wait, what there is.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := NewJoiner(0)
		running := j.Track(traceOf(1), spanOf(10))
		var waiting []*outcome
		for i := range uint64(1000) {
			waiting = append(waiting, done(j.Track(traceOf(100+i), spanOf(10))))
		}
		feed(t, j, vllm(100, 99, 98)) // by trace: it would wait
		j.Close()
		j.Close()
		for i, o := range waiting {
			o.is(t, "waiting", 1, map[bool]uint64{true: 99}[i == 0], 0)
		}
		if o := done(running); o.calls != -1 {
			t.Error("a call that ran hears something")
		}
		if j.Track(traceOf(1), spanOf(10)) != nil {
			t.Error("a closed Joiner tracks")
		}
		empty(t, j)
	})
}

// TestPanic: a delivery that panics is counted and harms nobody else.
func TestPanic(t *testing.T) {
	bubble(t, func(t *testing.T, j *Joiner) {
		j.Track(traceOf(1), spanOf(10)).Done(time.Now(), func(EngineSpan, bool) { panic("at the disco") })
		o := done(j.Track(traceOf(2), spanOf(10)))
		time.Sleep(time.Minute)
		o.is(t, "the next", 1, 0, 2*time.Second)
		if j.State().Panics != 1 {
			t.Errorf("%+v", j.State())
		}
	})
}
