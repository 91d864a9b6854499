package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestOneCallAlone(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, e *Engine) {
		begin := time.Now()
		c := send(t.Context(), e, chatPath, "a", "", chat("How wide is the river?", 4, ""))
		got := truth(t, e, "chatcmpl-a")
		wantAt(t, "arrival", got.Arrival, begin)
		wantAt(t, "scheduling", got.Scheduled, begin)
		first := begin.Add(prefillCost(got.Input))
		wantAt(t, "first token", got.FirstToken, first)
		if len(got.Tokens) != 4 {
			t.Fatalf("%d tokens, want 4", len(got.Tokens))
		}
		for i, at := range got.Tokens {
			wantAt(t, fmt.Sprintf("token %d", i), at, first.Add(time.Duration(i)*decodeCost(1)))
		}
		if !slices.EqualFunc(got.Sent, got.Tokens, time.Time.Equal) {
			t.Errorf("sent at %v, generated at %v: want the same", got.Sent, got.Tokens)
		}
		wantAt(t, "end", got.End, got.Tokens[3])
		wantAt(t, "headers", c.opened, begin)
		wantAt(t, "role chunk", c.first(t, `"role":"assistant"`), first)
		wantAt(t, "[DONE]", c.first(t, "[DONE]"), got.End)
		if got.Finish != "length" || got.Aborted || got.Output != 4 || got.Status != 200 || got.Preemptions != 0 {
			t.Errorf("truth %+v", got)
		}
	})
}

func TestQueueOfSixForTwoSlots(t *testing.T) {
	inBubble(t, Config{Slots: 2, NoPrefixCache: true}, func(t *testing.T, e *Engine) {
		begin := time.Now()
		var calls []func()
		for i := range 6 {
			calls = append(calls, func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				send(t.Context(), e, chatPath, fmt.Sprint("r", i), "", chat("How wide is the river?", 5, ""))
			})
		}
		together(calls...)

		// Two by two: the second of a pair is computed while the first writes its
		// second token, then both write until the first is done and makes room.
		p := prefillCost(truth(t, e, "r0").Input)
		at := begin
		for pair := range 3 {
			a, b := truth(t, e, fmt.Sprint("r", 2*pair)), truth(t, e, fmt.Sprint("r", 2*pair+1))
			wantAt(t, "first of pair scheduled", a.Scheduled, at)
			at = at.Add(p)
			if pair > 0 {
				at = at.Add(decodeCost(1)) // the last token of the pair before
			}
			wantAt(t, "first of pair first token", a.FirstToken, at)
			wantAt(t, "second of pair scheduled", b.Scheduled, at)
			at = at.Add(p + decodeCost(1))
			wantAt(t, "second of pair first token", b.FirstToken, at)
			at = at.Add(3 * decodeCost(2))
			wantAt(t, "first of pair end", a.End, at)
			if pair == 2 {
				wantAt(t, "last end", b.End, at.Add(decodeCost(1)))
			}
			queue, ok := b.Queue()
			if want := b.Scheduled.Sub(begin.Add(time.Duration(2*pair+1) * time.Millisecond)); !ok || queue != want {
				t.Errorf("queue time %v, want %v", queue, want)
			}
		}
	})
}

func TestDecodeCostGrowsWithTheBatch(t *testing.T) {
	cfg := Config{DecodePerKVToken: time.Microsecond}
	for _, n := range []int{1, 2, 8} {
		inBubble(t, cfg, func(t *testing.T, e *Engine) {
			var calls []func()
			for i := range n {
				calls = append(calls, func() {
					send(t.Context(), e, chatPath, fmt.Sprint("r", i), "", chat("How wide is the river?", 6, ""))
				})
			}
			together(calls...)
			for i := range n {
				got := truth(t, e, fmt.Sprint("r", i))
				for k := 1; k < len(got.Tokens); k++ {
					held := time.Duration(n * (got.Input + k - 1)) // KV tokens of all
					want := decodeCost(n) + held*time.Microsecond
					if gap := got.Tokens[k].Sub(got.Tokens[k-1]); gap != want {
						t.Errorf("batch of %d, token %d: gap %v, want %v", n, k, gap, want)
					}
				}
			}
		})
	}
}

func TestChunkedPrefill(t *testing.T) {
	prompt := strings.Repeat("river ", 100)
	for _, tc := range []struct {
		name   string
		cfg    Config
		prefil func(input int) time.Duration
	}{
		{"chunks of 40", Config{BatchTokens: 40}, func(n int) time.Duration {
			return time.Duration((n+39)/40)*50*time.Millisecond + time.Duration(n)*100*time.Microsecond
		}},
		{"whole", Config{BatchTokens: 40, WholePrefill: true}, prefillCost},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, tc.cfg, func(t *testing.T, e *Engine) {
				send(t.Context(), e, chatPath, "a", "", chat(prompt, 2, ""))
				got := truth(t, e, "a")
				prefill, ok := got.Prefill()
				if want := tc.prefil(got.Input); !ok || prefill != want {
					t.Errorf("prefill of %d tokens took %v, want %v", got.Input, prefill, want)
				}
			})
		})
	}
}

func TestPrefixCacheShortensPrefill(t *testing.T) {
	prompt := strings.Repeat("The weir lets the river flow over. ", 20)
	for _, off := range []bool{false, true} {
		inBubble(t, Config{NoPrefixCache: off}, func(t *testing.T, e *Engine) {
			for _, id := range []string{"cold", "warm"} {
				c := send(t.Context(), e, chatPath, id, "", chat(prompt, 3, `,"stream_options":{"include_usage":true}`))
				got := truth(t, e, id)
				want := 0
				if id == "warm" && !off {
					want = (got.Input - 1) / 16 * 16
				}
				if got.Cached != want {
					t.Errorf("%s, cache off %v: %d of %d tokens cached, want %d", id, off, got.Cached, got.Input, want)
				}
				if prefill, _ := got.Prefill(); prefill != prefillCost(got.Input-want) {
					t.Errorf("%s: prefill %v, want %v", id, prefill, prefillCost(got.Input-want))
				}
				c.first(t, fmt.Sprintf(`"cached_tokens":%d}`, want))
			}
			// Another beginning shares nothing.
			send(t.Context(), e, chatPath, "other", "", chat("No: "+prompt, 3, ""))
			if got := truth(t, e, "other"); got.Cached != 0 {
				t.Errorf("%d tokens cached of a prompt that begins otherwise", got.Cached)
			}
		})
	}
}

func TestPreemptionOfTheYoungest(t *testing.T) {
	cfg := Config{NoPrefixCache: true, BlockTokens: 4, ModelLen: 64, KVBlocks: 16}
	inBubble(t, cfg, func(t *testing.T, e *Engine) {
		together(
			func() { send(t.Context(), e, chatPath, "old", "", chat("How wide is the river?", 30, "")) },
			func() {
				time.Sleep(time.Millisecond)
				send(t.Context(), e, chatPath, "young", "", chat("How deep is the river?", 30, ""))
			},
		)
		old, young := truth(t, e, "old"), truth(t, e, "young")
		if old.Preemptions != 0 || young.Preemptions != 1 {
			t.Fatalf("preempted %d and %d times, want 0 and 1", old.Preemptions, young.Preemptions)
		}
		if old.Output != 30 || young.Output != 30 || len(young.Tokens) != 30 {
			t.Errorf("wrote %d and %d tokens, want 30 each", old.Output, young.Output)
		}
		// Both held what they had computed when there was no block left for the
		// older one's next token.
		before := 0
		for before < 30 && young.Tokens[before].Before(old.End) {
			before++
		}
		for _, held := range []int{old.Input + before + 1, young.Input + before} {
			if held > 64 {
				t.Errorf("a sequence held %d tokens of 64", held)
			}
		}
		// Then the young one computes everything again before its next token.
		again := old.End.Add(prefillCost(young.Input + before))
		wantAt(t, "first token after preemption", young.Tokens[before], again)
		wantAt(t, "the one after it", young.Tokens[before+1], again.Add(decodeCost(1)))
		if got := e.kv.used(); got != 0 {
			t.Errorf("%d KV blocks are still in use", got)
		}
	})
}

func TestClientThatLeavesFreesItsSlotAtOnce(t *testing.T) {
	inBubble(t, Config{Slots: 1}, func(t *testing.T, e *Engine) {
		begin := time.Now()
		ctx, leave := context.WithCancel(t.Context())
		together(
			func() { send(ctx, e, chatPath, "leaver", "", chat("How wide is the river?", 1000, "")) },
			func() {
				time.Sleep(time.Millisecond)
				send(t.Context(), e, chatPath, "next", "", chat("How deep is it?", 3, ""))
			},
			func() {
				time.Sleep(333 * time.Millisecond) // in the middle of a step
				leave()
			},
		)
		left := begin.Add(333 * time.Millisecond)
		leaver, next := truth(t, e, "leaver"), truth(t, e, "next")
		if !leaver.Aborted || leaver.Finish != "" {
			t.Errorf("truth of the client that left: %+v", leaver)
		}
		wantAt(t, "end of the one that left", leaver.End, left)
		prefill := prefillCost(leaver.Input)
		if want := 1 + int((333*time.Millisecond-prefill)/decodeCost(1)); leaver.Output != want {
			t.Errorf("the one that left got %d tokens, want %d", leaver.Output, want)
		}
		wantAt(t, "scheduling of the next", next.Scheduled, left)
		wantAt(t, "first token of the next", next.FirstToken, left.Add(prefillCost(next.Input)))
		if next.Aborted || next.Output != 3 {
			t.Errorf("truth of the next: %+v", next)
		}
	})
}

func TestClientThatLeavesABatchMakesRoomAtTheNextStep(t *testing.T) {
	inBubble(t, Config{Slots: 2, NoPrefixCache: true}, func(t *testing.T, e *Engine) {
		ctx, leave := context.WithCancel(t.Context())
		together(
			func() { send(t.Context(), e, chatPath, "stays", "", chat("How wide is the river?", 40, "")) },
			func() { send(ctx, e, chatPath, "leaver", "", chat("How wide is the river?", 40, "")) },
			func() {
				time.Sleep(time.Millisecond)
				send(t.Context(), e, chatPath, "next", "", chat("How deep is it?", 3, ""))
			},
			func() {
				time.Sleep(200 * time.Millisecond)
				leave()
			},
		)
		stays, leaver, next := truth(t, e, "stays"), truth(t, e, "leaver"), truth(t, e, "next")
		at := slices.IndexFunc(stays.Tokens, leaver.End.Before)
		wantAt(t, "scheduling of the next", next.Scheduled, stays.Tokens[at])
		if gap, want := stays.Tokens[at+1].Sub(stays.Tokens[at]), decodeCost(1)+prefillCost(next.Input); gap != want {
			t.Errorf("the step with the newcomer took %v, want %v", gap, want)
		}
	})
}

func TestClientThatLeavesTheQueue(t *testing.T) {
	inBubble(t, Config{Slots: 1}, func(t *testing.T, e *Engine) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		together(
			func() { send(t.Context(), e, chatPath, "runs", "", chat("How wide is the river?", 10, "")) },
			func() {
				time.Sleep(time.Millisecond)
				send(ctx, e, chatPath, "waits", "", chat("How wide is the river?", 10, ""))
			},
		)
		runs, waits := truth(t, e, "runs"), truth(t, e, "waits")
		if !waits.Aborted || !waits.Scheduled.IsZero() || waits.Output != 0 {
			t.Errorf("truth of the one that left the queue: %+v", waits)
		}
		if _, ok := waits.Queue(); ok {
			t.Error("a call that never left the queue has a queue time")
		}
		if _, ok := waits.Prefill(); ok {
			t.Error("a call without a token has a prefill time")
		}
		if _, ok := waits.Decode(); ok {
			t.Error("a call without a token has a decode time")
		}
		if decode, _ := runs.Decode(); decode != 9*decodeCost(1) {
			t.Errorf("decode of the one that ran took %v, want %v", decode, 9*decodeCost(1))
		}
	})
}

func TestQueueLimit(t *testing.T) {
	inBubble(t, Config{Slots: 1, QueueLimit: 1}, func(t *testing.T, e *Engine) {
		var third *client
		together(
			func() { send(t.Context(), e, chatPath, "runs", "", chat("one", 10, "")) },
			func() {
				time.Sleep(time.Millisecond)
				send(t.Context(), e, chatPath, "waits", "", chat("two", 10, ""))
			},
			func() {
				time.Sleep(2 * time.Millisecond)
				third = send(t.Context(), e, chatPath, "refused", "", chat("three", 10, ""))
			},
		)
		if third.status != 503 || third.header.Get("Retry-After") == "" || !strings.Contains(third.body(), "queue is full") {
			t.Errorf("got %d %v %s", third.status, third.header, third.body())
		}
		if got := truth(t, e, "refused"); got.Status != 503 || !got.Arrival.IsZero() {
			t.Errorf("truth of the refused call: %+v", got)
		}
	})
}

func TestFrontendTimeComesBeforeTheQueue(t *testing.T) {
	inBubble(t, Config{FrontendTime: 3 * time.Millisecond}, func(t *testing.T, e *Engine) {
		begin := time.Now()
		send(t.Context(), e, chatPath, "a", "", chat("Hello", 2, ""))
		got := truth(t, e, "a")
		wantAt(t, "receipt", got.Received, begin)
		wantAt(t, "arrival", got.Arrival, begin.Add(3*time.Millisecond))
		if queue, _ := got.Queue(); queue != 0 {
			t.Errorf("queue time %v, want 0", queue)
		}
	})
}

// TestSameSeedSameArrivalsSameBytes plays a crowded scenario several times:
// bursts at one instant, preemption, clients that leave, faults.
func TestSameSeedSameArrivalsSameBytes(t *testing.T) {
	play := func(seed uint64) (record string) {
		cfg := Config{Seed: seed, Slots: 6, BlockTokens: 4, ModelLen: 128, KVBlocks: 32, BatchTokens: 48, PerRequestMetrics: true}
		inBubble(t, cfg, func(t *testing.T, e *Engine) {
			begin := time.Now()
			answers := make([]*client, 24)
			var calls []func()
			for i := range answers {
				calls = append(calls, func() {
					time.Sleep(time.Duration(i/6) * 50 * time.Millisecond)
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(100+i*37)*time.Millisecond+time.Microsecond)
					defer cancel()
					if i%3 != 0 {
						ctx = t.Context()
					}
					fault := ""
					if i%5 == 0 {
						fault = "truncate:7"
					}
					answers[i] = send(ctx, e, chatPath, "", fault, chat(fmt.Sprint("Question ", i, " about rivers"), 20+i, ""))
				})
			}
			together(calls...)
			var b strings.Builder
			for i, c := range answers {
				fmt.Fprintf(&b, "%d: %d\n", i, c.status)
				for _, w := range c.writes {
					fmt.Fprintf(&b, "%v %s", w.at.Sub(begin), w.data)
				}
			}
			b.Write(e.metricsText())
			record = b.String()
		})
		return record
	}
	first := play(1)
	for range 4 {
		if again := play(1); again != first {
			a, b := lines(first), lines(again)
			for i := range min(len(a), len(b)) {
				if string(a[i]) != string(b[i]) {
					t.Fatalf("line %d differs:\n%s\n%s", i, a[i], b[i])
				}
			}
			t.Fatalf("%d lines, then %d", len(a), len(b))
		}
	}
	if play(2) == first {
		t.Error("another seed gave the same bytes")
	}
	if !strings.Contains(first, "vllm:num_preemptions_total") || strings.Contains(first, `vllm:num_preemptions_total{engine="0",model_name="weir-sim"} 0`) {
		t.Error("the scenario preempts nobody: it is too tame to show anything")
	}
}

func TestCloseEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := Start(Config{Slots: 1})
		if err != nil {
			t.Fatal(err)
		}
		var running, waiting *client
		together(
			func() { running = send(t.Context(), e, chatPath, "", "", chat("one", 1000, "")) },
			func() {
				time.Sleep(time.Millisecond)
				waiting = send(t.Context(), e, chatPath, "", "", chat("two", 1000, ""))
			},
			func() {
				time.Sleep(500 * time.Millisecond)
				e.Close()
				e.Close()
			},
		)
		if !running.aborted || !waiting.aborted {
			t.Errorf("calls under way ended cleanly: %v %v", running.aborted, waiting.aborted)
		}
		if late := send(t.Context(), e, chatPath, "", "", chat("three", 1, "")); late.status != 503 {
			t.Errorf("a call after Close got %d, want 503", late.status)
		}
	})
}
