package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAround(t *testing.T) {
	sample(t, Options{}, func(n int, _ *http.Request) (*http.Response, error) {
		time.Sleep(200 * time.Millisecond)
		if n == 5 {
			return nil, errors.New("gone")
		}
		return running(n, 0)
	}, func(t *testing.T, s *Sampler, e *scripted) {
		start := e.asked()[0] // question n begins n s later and is answered after 200 ms
		at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
		time.Sleep(20 * time.Second)
		synctest.Wait()
		for _, tt := range []struct{ ms, before, after int }{
			{199, -1, 0}, // under way
			{200, 0, 1}, {1000, 0, 1},
			{1001, 0, 2}, // the one under way is neither
			{1199, 0, 2}, {1200, 1, 2}, {2999, 2, 3},
			{4100, -1, 0}, {4999, -1, 0}, {5500, -1, 0}, // a try failed in between
		} {
			before, after, known := s.Around(at(tt.ms))
			if tt.before < 0 {
				if known {
					t.Errorf("at %d ms: %+v and %+v", tt.ms, before, after)
				}
			} else if !known || before.Running != exactly(int64(tt.before)) || after.Running != exactly(int64(tt.after)) {
				t.Errorf("at %d ms: %+v and %+v, %v, want those of %d and %d", tt.ms, before, after, known, tt.before, tt.after)
			}
		}
		for _, tt := range []struct{ ms, want int }{
			{199, -1}, {200, 0}, {1199, 0}, {1200, 1}, {5199, 4},
			{5200, -1}, {5800, -1}, // a try has failed
		} {
			if g, known := s.Before(at(tt.ms)); known != (tt.want >= 0) || known && g.Running != exactly(int64(tt.want)) {
				t.Errorf("before %d ms: %+v, %v, want that of %d", tt.ms, g, known, tt.want)
			}
		}
		if g, known := s.Before(time.Now()); !known || g.Time.Before(time.Now().Add(-time.Second)) {
			t.Errorf("before now: %+v, %v", g, known)
		}
		if _, known := s.Before(time.Now().Add(time.Hour)); known {
			t.Error("a reading that is an hour old is about now")
		}
		if _, _, known := s.Around(time.Now()); known {
			t.Error("there is something after now")
		}
		if _, _, known := s.Around(time.Now().Add(time.Hour)); known {
			t.Error("there is something around an hour from now")
		}
	})
}

// TestNoQueueAt tells what is claimed of a call sent at 10.3 s, when a reading
// was made every second, each in no time.
func TestNoQueueAt(t *testing.T) {
	const seconds = 20
	base := func(n int) string {
		return fmt.Sprintf("vllm:num_requests_running 3\nvllm:num_requests_waiting 0\nvllm:prompt_tokens_total %d\nvllm:num_preemptions_total 4\n", n)
	}
	only := func(when int, replace ...string) func(int) string {
		return func(n int) string {
			if n == when {
				return strings.NewReplacer(replace...).Replace(base(n))
			}
			return base(n)
		}
	}
	from := func(when int, replace ...string) func(int) string {
		return func(n int) string {
			if n >= when {
				return strings.NewReplacer(replace...).Replace(base(n))
			}
			return base(n)
		}
	}
	const waiting, one = "waiting 0", "waiting 1"
	ranked := "vllm:num_requests_running{engine=\"0\"} 3\nvllm:num_requests_running{engine=\"1\"} %d\n" +
		"vllm:num_requests_waiting{engine=\"0\"} 0\nvllm:num_requests_waiting{engine=\"1\"} 0\n"
	for name, tt := range map[string]struct {
		options Options
		page    func(n int) string
		bound   time.Duration // 0: nothing is claimed
	}{
		"never a queue":            {Options{}, base, 700 * time.Millisecond},
		"a queue before":           {Options{}, only(10, waiting, one), 0},
		"a queue after":            {Options{}, only(11, waiting, one), 0},
		"a queue long before":      {Options{}, only(9, waiting, one), 700 * time.Millisecond},
		"a queue long after":       {Options{}, only(12, waiting, one), 700 * time.Millisecond},
		"not shown after":          {Options{}, only(11, "vllm:num_requests_waiting 0\n", ""), 0},
		"swapped":                  {Options{}, only(11, waiting, waiting+"\nvllm:num_requests_swapped 1"), 0},
		"preempted":                {Options{}, from(11, "preemptions_total 4", "preemptions_total 5"), 0},
		"preempted before":         {Options{}, from(10, "preemptions_total 4", "preemptions_total 5"), 700 * time.Millisecond},
		"started again":            {Options{}, from(11, "prompt_tokens_total 1", "prompt_tokens_total "), 0},
		"with places":              {Options{MaxSeqs: 4}, base, 700 * time.Millisecond},
		"all places taken":         {Options{MaxSeqs: 3}, base, 0},
		"all places taken after":   {Options{MaxSeqs: 4}, only(11, "running 3", "running 4"), 0},
		"a rank has places":        {Options{MaxSeqs: 4}, func(int) string { return fmt.Sprintf(ranked, 2) }, 700 * time.Millisecond},
		"a rank has none":          {Options{MaxSeqs: 4}, func(int) string { return fmt.Sprintf(ranked, 4) }, 0},
		"gauges that may be older": {Options{}, func(int) string { return "sglang:num_running_reqs 0\nsglang:num_queue_reqs 0\n" }, 0},
		"tgi":                      {Options{}, func(int) string { return "tgi_queue_size 0\n" }, 700 * time.Millisecond},
		"another engine":           {Options{}, func(n int) string { return []string{base(n), "tgi_queue_size 0\n"}[n/11] }, 0},
		"unreadable after":         {Options{}, func(n int) string { return []string{base(n), ""}[n/11] }, 0},
	} {
		sample(t, tt.options, func(n int, _ *http.Request) (*http.Response, error) { return ok(tt.page(n)) },
			func(t *testing.T, s *Sampler, e *scripted) {
				sent := e.asked()[0].Add(10300 * time.Millisecond)
				time.Sleep(10500 * time.Millisecond)
				if bound, known := s.NoQueueAt(sent); known {
					t.Errorf("%s: %v is claimed before anything was read", name, bound)
				}
				time.Sleep((seconds - 10) * time.Second)
				synctest.Wait()
				if bound, known := s.NoQueueAt(sent); bound != tt.bound || known != (tt.bound > 0) {
					t.Errorf("%s: %v, %v, want %v", name, bound, known, tt.bound)
				}
				if _, known := s.NoQueueAt(e.asked()[0].Add(-time.Second)); known {
					t.Errorf("%s: something is claimed of the time before", name)
				}
			})
	}
}

// TestNoQueueWaitsForTheGauges: a reading made right after a call was sent cannot
// have seen it yet.
func TestNoQueueWaitsForTheGauges(t *testing.T) {
	// The engine's gauges lag by 400 ms. From 10.3 s on one request waits.
	sample(t, Options{}, func(n int, _ *http.Request) (*http.Response, error) {
		if time.Duration(n)*time.Second >= 10300*time.Millisecond+400*time.Millisecond { // question n comes after n s
			return running(3, 1)
		}
		return running(3, 0)
	}, func(t *testing.T, s *Sampler, e *scripted) {
		start := e.asked()[0]
		time.Sleep(15 * time.Second)
		synctest.Wait()
		// Sent at 10.3 s it waits: the reading at 11 s says so.
		if bound, known := s.NoQueueAt(start.Add(10300 * time.Millisecond)); known {
			t.Errorf("%v is claimed of the call that waits", bound)
		}
		// Of one sent at 9.9 s the reading at 10 s is too early: it takes the next,
		// and by then something waits that may be it.
		if bound, known := s.NoQueueAt(start.Add(9900 * time.Millisecond)); known {
			t.Errorf("%v is claimed, by a reading that came too early", bound)
		}
		if bound, known := s.NoQueueAt(start.Add(9500 * time.Millisecond)); !known || bound != 500*time.Millisecond {
			t.Errorf("%v, %v", bound, known)
		}
	})
}

// TestPause: nothing is claimed across a time in which nobody read.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &scripted{t: t, answer: func(int, *http.Request) (*http.Response, error) { return running(1, 0) }}
		s, err := NewSampler(Options{Address: "http://engine", Client: &http.Client{Transport: e}})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for range 2 { // from 0 to 5 s, and from 15 to 20 s
			ctx, cancel := context.WithTimeout(t.Context(), 5500*time.Millisecond)
			s.Run(ctx)
			cancel()
			time.Sleep(9500 * time.Millisecond)
		}
		for ms, want := range map[int]bool{2300: true, 4900: true, 5100: false, 6000: false, 12000: false, 14900: false, 16300: true} {
			at := start.Add(time.Duration(ms) * time.Millisecond)
			if _, _, known := s.Around(at); known != want {
				t.Errorf("readings around %d ms: %v", ms, known)
			}
			if ms == 4900 {
				continue // too late for the reading at 5 s
			}
			if _, known := s.NoQueueAt(at); known != want {
				t.Errorf("a claim at %d ms: %v", ms, known)
			}
		}
	})
}

func TestSameRun(t *testing.T) {
	n, day := exactly, time.Unix(1796112180, 0)
	for name, tt := range map[string]struct {
		a, b Gauges
		same bool
	}{
		"nothing known":     {Gauges{}, Gauges{}, true},
		"counters grow":     {Gauges{Prompt: n(5), Generated: n(5)}, Gauges{Prompt: n(6), Generated: n(5)}, true},
		"prompts fall":      {Gauges{Prompt: n(5)}, Gauges{Prompt: n(4)}, false},
		"tokens fall":       {Gauges{Generated: n(5)}, Gauges{Generated: n(0)}, false},
		"preemptions fall":  {Gauges{Preemptions: n(5)}, Gauges{Preemptions: n(0)}, false},
		"within rounding":   {Gauges{Prompt: Figure{1234570, true, 5}}, Gauges{Prompt: Figure{1234560, true, 5}}, true},
		"not shown again":   {Gauges{Prompt: n(5)}, Gauges{}, true},
		"started again":     {Gauges{Start: day}, Gauges{Start: day.Add(time.Second)}, false},
		"start not shown":   {Gauges{Start: day}, Gauges{}, true},
		"another process":   {Gauges{Process: "1"}, Gauges{Process: "2"}, false},
		"process not shown": {Gauges{Process: "1"}, Gauges{}, true},
		"another engine":    {Gauges{Kind: VLLM}, Gauges{Kind: TGI}, false},
	} {
		if got := tt.a.sameRun(&tt.b); got != tt.same {
			t.Errorf("%s: %v", name, got)
		}
	}
}
