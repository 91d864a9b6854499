package sim

import (
	"strings"
	"testing"
	"time"
)

// TestChange: what is changed holds from the next step on, and what a call was told
// before stays.
func TestChange(t *testing.T) {
	inBubble(t, Config{DecodePerKVToken: time.Microsecond}, func(t *testing.T, e *Engine) {
		send(t.Context(), e, chatPath, "a", "", chat("hello", 11, ""))
		if err := e.Change(func(c *Config) { c.DecodeBase *= 3; c.PrefillBase *= 2; c.DecodePerKVToken = None }); err != nil {
			t.Fatal(err)
		}
		send(t.Context(), e, chatPath, "b", "", chat("hello", 11, ""))
		a, b := truth(t, e, "a"), truth(t, e, "b")
		before, _ := a.Decode()
		after, _ := b.Decode()
		// 10 steps of 14 ms and 200 µs, and 1 µs for each of the tokens held,
		// then of 42 ms.
		tokens := 0
		for i := range 10 {
			tokens += a.Input + i
		}
		if want := 10*(14*time.Millisecond+200*time.Microsecond) + time.Duration(tokens)*time.Microsecond; before != want {
			t.Errorf("before: decode took %v, want %v", before, want)
		}
		if want := 10 * (42*time.Millisecond + 200*time.Microsecond); after != want {
			t.Errorf("after: decode took %v, want %v", after, want)
		}
		prefill, _ := b.Prefill()
		if want := 100*time.Millisecond + time.Duration(b.Input)*100*time.Microsecond; prefill != want {
			t.Errorf("after: prefill took %v, want %v", prefill, want)
		}
		if got := e.Config(); got.DecodePerKVToken != 0 || got.DecodeBase != 42*time.Millisecond || got.Slots != 32 {
			t.Errorf("configuration %+v", got)
		}
	})
}

// TestChangeUnderWay: fewer slots let what runs end, and let no more in than
// there are.
func TestChangeUnderWay(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, e *Engine) {
		var calls []func()
		for i := range 6 {
			calls = append(calls, func() {
				send(t.Context(), e, chatPath, strings.Repeat("x", i+1), "", chat(strings.Repeat("y ", i+1), 40, ""))
			})
		}
		calls = append(calls, func() {
			time.Sleep(200 * time.Millisecond)
			if err := e.Change(func(c *Config) { c.Slots = 1 }); err != nil {
				t.Error(err)
			}
		}, func() {
			time.Sleep(300 * time.Millisecond)
			together(func() { send(t.Context(), e, chatPath, "late1", "", chat("a", 20, "")) }, func() { send(t.Context(), e, chatPath, "late2", "", chat("b", 20, "")) })
		})
		together(calls...)
		one, two := truth(t, e, "late1"), truth(t, e, "late2")
		if one.Scheduled.After(two.Scheduled) {
			one, two = two, one
		}
		for i := range 6 {
			if early := truth(t, e, strings.Repeat("x", i+1)); early.Output != 40 || early.End.After(one.Scheduled) {
				t.Errorf("call %d wrote %d tokens until %v, the late one was scheduled at %v", i, early.Output, early.End, one.Scheduled)
			}
		}
		if two.Scheduled.Before(one.End) {
			t.Errorf("two ran in one slot: %v before %v", two.Scheduled, one.End)
		}
	})
}

// TestChangeCache: a cache that shrinks makes sequences give up their room, and
// one that no longer keeps prefixes computes whole prompts; and back.
func TestChangeCache(t *testing.T) {
	prompt := strings.Repeat("a river runs over the weir ", 40)
	inBubble(t, Config{ModelLen: 1024, KVBlocks: 256}, func(t *testing.T, e *Engine) {
		change := func(f func(*Config)) {
			t.Helper()
			if err := e.Change(f); err != nil {
				t.Fatal(err)
			}
		}
		cached := func(id string) int {
			send(t.Context(), e, chatPath, id, "", chat(prompt, 4, ""))
			got := truth(t, e, id)
			if got.Output != 4 {
				t.Fatalf("call %s wrote %d tokens", id, got.Output)
			}
			return got.Cached
		}
		if first, second := cached("a"), cached("b"); first != 0 || second == 0 {
			t.Errorf("cached %d, then %d tokens", first, second)
		}
		change(func(c *Config) { c.NoPrefixCache = true })
		if n := cached("c"); n != 0 {
			t.Errorf("cached %d tokens without a prefix cache", n)
		}
		change(func(c *Config) { c.NoPrefixCache = false })
		if first, second := cached("d"), cached("e"); first != 0 || second == 0 {
			t.Errorf("with a prefix cache again: cached %d, then %d tokens", first, second)
		}

		var calls []func()
		for i := range 6 {
			calls = append(calls, func() {
				send(t.Context(), e, chatPath, strings.Repeat("k", i+1), "", chat(strings.Repeat(string(rune('a'+i))+" word ", 100), 60, ""))
			})
		}
		calls = append(calls, func() { time.Sleep(500 * time.Millisecond); change(func(c *Config) { c.KVBlocks = 64 }) })
		together(calls...)
		preempted := 0
		for i := range 6 {
			got := truth(t, e, strings.Repeat("k", i+1))
			if got.Output != 60 {
				t.Errorf("call %d wrote %d tokens", i, got.Output)
			}
			preempted += got.Preemptions
		}
		if preempted == 0 {
			t.Error("no sequence gave up its room")
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.kv.total != 64 || e.kv.used() != 0 || e.kv.free+e.kv.idle.Len() != 64 || e.kv.free < 0 {
			t.Errorf("at the end: total %d, used %d, free %d, idle %d", e.kv.total, e.kv.used(), e.kv.free, e.kv.idle.Len())
		}
	})
}

// TestChangeRefused: what cannot be changes nothing.
func TestChangeRefused(t *testing.T) {
	e, err := Start(Config{FaultScript: []string{"", "status:500"}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for name, f := range map[string]func(*Config){
		"not valid": func(c *Config) { c.Slots = -1 },
		"a fault":   func(c *Config) { c.FaultScript[1] = "boom" },
		"quirks":    func(c *Config) { c.Quirks = LlamaCPP },
		"model":     func(c *Config) { c.Model = "other" },
		"length":    func(c *Config) { c.ModelLen = 100 },
		"blocks":    func(c *Config) { c.BlockTokens = 32 },
	} {
		if err := e.Change(f); err == nil || !strings.HasPrefix(err.Error(), "change simulated engine: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := e.Config(); got.Slots != 32 || got.Quirks != VLLM || got.FaultScript[1] != "status:500" {
		t.Errorf("configuration %+v", got)
	}
}

// TestChangeIsDeterministic: the same change at the same instant makes the same
// calls.
func TestChangeIsDeterministic(t *testing.T) {
	run := func() (all []time.Duration) {
		inBubble(t, Config{Seed: 7}, func(t *testing.T, e *Engine) {
			began := time.Now()
			var calls []func()
			for i := range 20 {
				calls = append(calls, func() {
					time.Sleep(time.Duration(i) * 30 * time.Millisecond)
					send(t.Context(), e, chatPath, strings.Repeat("d", i+1), "", chat("word "+strings.Repeat("z ", i), 30, ""))
				})
			}
			calls = append(calls, func() {
				time.Sleep(333 * time.Millisecond)
				if err := e.Change(func(c *Config) { c.DecodeBase *= 2; c.Slots = 4 }); err != nil {
					t.Error(err)
				}
			})
			together(calls...)
			for i := range 20 {
				all = append(all, truth(t, e, strings.Repeat("d", i+1)).End.Sub(began))
			}
		})
		return all
	}
	one, two := run(), run()
	for i := range one {
		if one[i] != two[i] {
			t.Fatalf("call %d ended after %v, then after %v", i, one[i], two[i])
		}
	}
}
