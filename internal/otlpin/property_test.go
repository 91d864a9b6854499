package otlpin

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	spanpb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// story is a random course of calls and of spans that come early, late, twice,
// in any order, or never.
type story struct {
	j   *Joiner
	all sync.WaitGroup

	mu     sync.Mutex // guards what follows
	rng    *rand.Rand
	calls  []*told
	owner  map[SpanID]*told // the call below which a request's span truly is
	nextID uint64
}

// told is one call of a story.
type told struct {
	trace, client uint64
	alone         bool // in its trace
	tracked       time.Time
	ended         time.Time
	heard         int
	found         bool
	span          EngineSpan
	// sure is when, at the latest, the first span came that shows by itself whose it is.
	sure time.Time
	came map[SpanID]bool
}

func (s *story) id() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextID++
	return s.nextID
}

func (s *story) below(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.IntN(n)
}

func (s *story) upTo(d time.Duration) time.Duration { return time.Duration(s.below(int(d))) }

// TestStories: whatever comes in whatever order, each call hears exactly once,
// within its window, only of its own requests, and of one that came in time.
func TestStories(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &story{rng: rand.New(rand.NewPCG(seed, 5)), j: NewJoiner(0), owner: map[SpanID]*told{}, nextID: 1000}
				s.run(t)
				s.j.Close()
				s.judge(t)
			})
		})
	}
}

func (s *story) run(t *testing.T) {
	for range 30 {
		trace := s.id()
		n := 1 + s.below(4)*s.below(2)
		for range n {
			c := &told{trace: trace, client: s.id(), alone: n == 1, came: map[SpanID]bool{}}
			s.calls = append(s.calls, c)
			s.all.Go(func() { s.live(t, c) })
		}
	}
	s.all.Wait()
	time.Sleep(5 * time.Minute)
}

// live is the course of one call: its requests' spans come on their own.
func (s *story) live(t *testing.T, c *told) {
	time.Sleep(s.upTo(3 * time.Second))
	c.tracked = time.Now()
	ticket := s.j.Track(traceOf(c.trace), spanOf(c.client))
	for range s.below(4) {
		s.all.Go(func() { s.send(t, c) })
	}
	time.Sleep(s.upTo(3 * time.Second))
	c.ended = time.Now()
	span, answer := ticket.Done(c.ended, func(span EngineSpan, found bool) { c.hear(t, span, found) })
	switch answer {
	case Joined:
		c.hear(t, span, true)
	case None:
		t.Error("a tracked call has no answer")
	}
}

func (c *told) hear(t *testing.T, span EngineSpan, found bool) {
	c.heard++
	c.span, c.found = span, found
	if late := time.Since(c.ended); late > DefaultWindow+slack {
		t.Errorf("heard %v after the end", late)
	}
}

// send sends one request's span, below up to three others, in any order and
// partly twice, or not all of them.
func (s *story) send(t *testing.T, c *told) {
	parent := c.client
	var spans []*spanpb.Span
	for range s.below(4) {
		id := s.id()
		spans = append(spans, wireSpan(c.trace, id, parent, "proxy"))
		parent = id
	}
	whole := vllm(c.trace, s.id(), parent)
	direct := len(spans) == 0
	spans = append(spans, whole)
	s.mu.Lock()
	s.owner[SpanID(whole.SpanId)] = c
	s.rng.Shuffle(len(spans), func(i, j int) { spans[i], spans[j] = spans[j], spans[i] })
	s.mu.Unlock()
	for _, span := range spans {
		if s.below(6) == 0 {
			continue // lost
		}
		for range 1 + s.below(5)/4 {
			time.Sleep(s.upTo(2 * time.Second))
			feed(t, s.j, span, vllm(s.id(), s.id(), 0))
			if span != whole {
				continue
			}
			s.mu.Lock()
			c.came[SpanID(whole.SpanId)] = true
			if direct && c.sure.IsZero() {
				c.sure = time.Now()
			}
			s.mu.Unlock()
		}
	}
}

func (s *story) judge(t *testing.T) {
	var joined int64
	for i, c := range s.calls {
		if c.heard != 1 {
			t.Errorf("call %d heard %d times", i, c.heard)
		}
		if c.found {
			joined++
			if owner := s.owner[c.span.SpanID]; owner != c {
				t.Errorf("call %d got a span of another", i)
			}
			if !c.came[c.span.SpanID] {
				t.Errorf("call %d got a span that never came", i)
			}
		}
		inTime := !c.sure.IsZero() && c.sure.Before(c.ended.Add(DefaultWindow))
		if inTime && !c.found {
			t.Errorf("call %d did not get a span of its own that came %v after its end", i, c.sure.Sub(c.ended))
		}
		if c.alone && len(c.came) == 0 && c.found {
			t.Errorf("call %d got a span though none came", i)
		}
	}
	got := s.j.State()
	if got.Joined != joined || got.Joined+got.Unjoined != got.Tracked || got.Open != 0 || got.Overflow != 0 || got.Panics != 0 {
		t.Errorf("%+v, but %d calls heard of a span", got, joined)
	}
	// Every span of a request became something.
	if became := got.Joined + got.Further + got.Late + got.Ambiguous + got.Duplicate; became != got.EngineSpans {
		t.Errorf("%d engine spans became %d: %+v", got.EngineSpans, became, got)
	}
	empty(t, s.j)
}
