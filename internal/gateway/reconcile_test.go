package gateway

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/limit"
	"github.com/weirgate/weir/internal/queue"
	"github.com/weirgate/weir/internal/sim"
)

// TestTokensReconcile: ten thousand mixed calls of several keys and models, a
// fifth of which break off: what the ledger has is what the engine counted, to the
// last token, and so is what the limits were charged in the long run.
func TestTokensReconcile(t *testing.T) {
	total := 10_000
	if testing.Short() {
		total = 1000
	}
	synctest.Test(t, func(t *testing.T) {
		e := simulated(t, sim.Config{Slots: 64, Truths: total, OutputMin: 3, OutputMax: 30, ForceUsage: true})
		h := newHouse(t, enforced(call.Limits{TokensPerMinute: call.Known(1e9), Concurrency: call.Known(200)}), queue.Config{Calls: 100})
		rng := rand.New(rand.NewPCG(4, 4))
		next := direct(e)
		var all sync.WaitGroup
		for i := range total {
			time.Sleep(time.Duration(rng.IntN(40)) * time.Millisecond)
			id, body, path, stay := mixedCall(rng, i)
			all.Go(func() {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				if stay > 0 {
					timer := time.AfterFunc(stay, leave)
					defer timer.Stop()
				}
				r := httptest.NewRequestWithContext(ctx, "POST", path, strings.NewReader(body))
				r.Header.Set("X-Request-Id", id)
				h.call(httptest.NewRecorder(), r, next)
			})
		}
		all.Wait()
		h.empty(t, "after all")

		var reported, brokenOff call.Usage
		var partial, broken, left int
		for _, rec := range h.books.ends {
			truth, ok := e.Truth(rec.RequestID)
			if waited := !rec.Instants.Admitted.IsKnown(); waited || !ok {
				if ok || !waited || rec.Outcome != call.ClientGone {
					t.Fatalf("%s (%s): the engine has it: %v, it left while it waited: %v", rec.RequestID, rec.Outcome, ok, waited)
				}
				left++
				continue
			}
			switch rec.UsageSource {
			case call.UsageReported:
				if rec.Input.Or(-1) != int64(truth.Input) || rec.Output.Or(-1) != int64(truth.Output) || rec.Cached.Or(0) != int64(truth.Cached) {
					t.Fatalf("%s: reported %v in, %v out; the engine says %d and %d", rec.RequestID, rec.Input, rec.Output, truth.Input, truth.Output)
				}
				reported = sum(reported, int64(truth.Input), int64(truth.Output))
			case call.UsageNone, call.UsagePartial:
				broken++
				if rec.UsageSource == call.UsagePartial {
					partial++
				}
				if !truth.Aborted || rec.Outcome == call.Completed {
					t.Fatalf("%s: %s without usage, and the engine ended it itself", rec.RequestID, rec.Outcome)
				}
				// Each event is one token here, so the estimate is exact but for
				// answers that are not streamed, of which nothing has come, and for a
				// token that was written at the very moment the client left.
				wrote := int64(truth.Output)
				if got := rec.EstimatedOutput.Or(0); rec.Stream && (got > wrote || got < wrote-1) && rec.Path != "/v1/messages" {
					t.Errorf("%s: %d tokens came, the engine wrote %d", rec.RequestID, got, truth.Output)
				}
				input := int64(0)
				if !truth.FirstToken.IsZero() { // vLLM counts a prompt when it is computed
					input = int64(truth.Input)
				}
				brokenOff = sum(brokenOff, input, int64(truth.Output))
			}
		}
		if len(h.books.ends) != total || len(h.books.starts)+left != total || broken < total/20 {
			t.Errorf("%d rows, %d starts of %d calls; %d broke off", len(h.books.ends), len(h.books.starts), total, broken)
		}
		input, output := counters(t, e)
		if out := reported.Output.Or(0) + brokenOff.Output.Or(0); out != output {
			t.Errorf("output: %d reported and %d of calls that broke off are %d; the engine counted %d", reported.Output.Or(0), brokenOff.Output.Or(0), out, output)
		}
		if in := reported.Input.Or(0) + brokenOff.Input.Or(0); in != input {
			t.Errorf("input: %d reported and %d of calls that broke off are %d; the engine counted %d", reported.Input.Or(0), brokenOff.Input.Or(0), in, input)
		}
		t.Logf("%d calls, %d left the queue, %d broke off (%d with a running figure): %d + %d tokens in, %d + %d out", total, left, broken, partial,
			reported.Input.Or(0), brokenOff.Input.Or(0), reported.Output.Or(0), brokenOff.Output.Or(0))
	})
}

func sum(u call.Usage, input, output int64) call.Usage {
	u.Input, u.Output = call.Known(u.Input.Or(0)+input), call.Known(u.Output.Or(0)+output)
	return u
}

// mixedCall makes call number i: streamed or not, of three APIs, with prompts
// that share beginnings; stay is when its client leaves, 0 for never.
func mixedCall(rng *rand.Rand, i int) (id, body, path string, stay time.Duration) {
	id = "c" + strconv.Itoa(i)
	prompt := strings.Repeat("How wide is the river? ", 1+rng.IntN(20)) + strconv.Itoa(rng.IntN(50))
	stream := rng.IntN(3) > 0
	switch rng.IntN(3) {
	case 0:
		path = "/v1/chat/completions"
		body = fmt.Sprintf(`{"model":"m%d","stream":%v,"messages":[{"role":"user","content":%q}]}`, i%3, stream, prompt)
	case 1:
		path = "/v1/completions"
		body = fmt.Sprintf(`{"model":"m%d","stream":%v,"max_tokens":%d,"prompt":%q}`, i%3, stream, 1+rng.IntN(40), prompt)
	default:
		path = "/v1/messages"
		body = fmt.Sprintf(`{"model":"m%d","stream":%v,"max_tokens":%d,"messages":[{"role":"user","content":%q}]}`, i%3, stream, 1+rng.IntN(40), prompt)
	}
	if rng.IntN(5) == 0 {
		stay = time.Duration(1+rng.IntN(400)) * time.Millisecond
	}
	return id, body, path, stay
}

// counters reads the engine's own totals.
func counters(t *testing.T, e *sim.Engine) (input, output int64) {
	t.Helper()
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", http.NoBody))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cut := strings.LastIndexByte(strings.TrimSpace(line), ' ')
		v, err := strconv.ParseFloat(strings.TrimSpace(line)[cut+1:], 64)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.HasPrefix(line, "vllm:prompt_tokens_total"):
			input += int64(v)
		case strings.HasPrefix(line, "vllm:generation_tokens_total"):
			output += int64(v)
		}
	}
	return input, output
}

// TestOverload: three times what the engine can do, in three classes. With
// shedding the engine works on calls that make their first token in time, in
// every class; a plain queue at the same load makes hardly any.
func TestOverload(t *testing.T) {
	due := map[string]time.Duration{"interactive": 2 * time.Second, "completion": 1500 * time.Millisecond, "batch": 6 * time.Second}
	run := func(t *testing.T, shed bool) (useful, all map[string]int64) {
		useful, all = make(map[string]int64), make(map[string]int64)
		var mu sync.Mutex // guards both
		synctest.Test(t, func(t *testing.T) {
			const slots, tokens = 8, 40
			e := simulated(t, sim.Config{Slots: slots, Truths: 1, NoPrefixCache: true})
			q := queue.Config{Calls: slots, MaxWaiting: 100_000, MaxPerClass: 100_000, MaxPerKey: 100_000, MaxBytes: 1 << 40, MaxWait: time.Hour, Shed: shed}
			h := newHouse(t, limit.Policy{Mode: limit.Enforce}, q)
			h.options.Weights = map[string]int{"interactive": 16, "completion": 4, "batch": 1}
			h.options.Class = "interactive"
			if shed {
				h.options.Admission.TTFT = due
			}
			classes := []string{"interactive", "completion", "batch"}
			// A call takes a slot for a prefill and 40 steps of some 16 ms: 8 slots
			// serve about 11 a second.
			const each = time.Second / 33
			var calls sync.WaitGroup
			for i := range 33 * 60 {
				time.Sleep(each)
				calls.Go(func() {
					r := chat(strconv.Itoa(i), tokens, "")
					class := classes[i%3]
					if shed {
						r.Header.Set("X-Weir-Class", class)
					}
					rec := h.call(httptest.NewRecorder(), r, direct(e))
					if rec.Outcome != call.Completed {
						return
					}
					mu.Lock()
					defer mu.Unlock()
					all[class] += rec.Output.Or(0)
					if rec.TTFT.Or(time.Hour) <= due[class] {
						useful[class] += rec.Output.Or(0)
					}
				})
			}
			calls.Wait()
			h.empty(t, "after the overload")
		})
		return useful, all
	}
	useful, all := run(t, true)
	plain, plainAll := run(t, false)
	share := func(u, a map[string]int64, class string) float64 {
		return float64(u[class]) / float64(max(a[class], 1))
	}
	var done, doneEver int64
	for class := range due {
		t.Logf("%-12s with shedding %.3f useful of %d tokens, plain queue %.3f of %d", class,
			share(useful, all, class), all[class], share(plain, plainAll, class), plainAll[class])
		if share(useful, all, class) < 0.95 || all[class] == 0 {
			t.Errorf("%s: %.3f of the work was useful", class, share(useful, all, class))
		}
		if share(plain, plainAll, class) > 0.5 {
			t.Errorf("%s: a plain queue is no worse, so this load shows nothing", class)
		}
		done, doneEver = done+useful[class], doneEver+plainAll[class]
	}
	// The plain queue serves all that came, for as long as it takes; a third of
	// it is what fits into the time.
	if float64(done) < 0.85*float64(doneEver)/3 {
		t.Errorf("%d useful tokens; the engine can do about %d in that time", done, doneEver/3)
	}
}
