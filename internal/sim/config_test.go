package sim

import (
	"strings"
	"testing"
	"time"
)

func TestZeroConfigIsBelievable(t *testing.T) {
	if err := (Config{}).Validate(); err != nil {
		t.Fatal(err)
	}
	inBubble(t, Config{}, func(t *testing.T, e *Engine) {
		send(t.Context(), e, chatPath, "a", "", chat(strings.Repeat("How wide is the river? ", 30), 50, ""))
		got := truth(t, e, "a")
		prefill, _ := got.Prefill()
		decode, _ := got.Decode()
		if prefill < 50*time.Millisecond || prefill > 100*time.Millisecond {
			t.Errorf("first token after %v with %d tokens, want 50 to 100 ms", prefill, got.Input)
		}
		if tpot := decode / 49; tpot < 12*time.Millisecond || tpot > 18*time.Millisecond {
			t.Errorf("a token each %v, want about 15 ms", tpot)
		}
		if e.Config().Slots != 32 {
			t.Errorf("%d slots", e.Config().Slots)
		}
	})
}

func TestValidateSaysWhatWouldBeRight(t *testing.T) {
	for _, tc := range []struct {
		cfg  Config
		hint string
	}{
		{Config{Quirks: "tgi"}, "choose vllm, sglang or llamacpp"},
		{Config{Slots: -1}, "slots is -1"},
		{Config{Slots: 64, BatchTokens: 32}, "at least as many batch tokens"},
		{Config{KVBlocks: 10}, "give at least 2048 blocks"},
		{Config{OutputMin: 10, OutputMax: 5}, "swap them"},
		{Config{BlockTokens: -4}, "block tokens is -4"},
		{Config{Fault: "boom"}, "choose from"},
		{Config{FaultScript: []string{"", "boom"}}, "entry 2 of the fault script"},
		{Config{Truths: -1}, "number of truths"},
		{Config{StreamInterval: -1}, "stream interval"},
	} {
		err := tc.cfg.Validate()
		if err == nil || !strings.Contains(err.Error(), tc.hint) || !strings.HasPrefix(err.Error(), "configure simulated engine: ") {
			t.Errorf("%+v: %v, want a hint of %q", tc.cfg, err, tc.hint)
		}
		if _, err := Start(tc.cfg); err == nil {
			t.Errorf("%+v starts", tc.cfg)
		}
	}
	err := Config{Quirks: "tgi", Slots: -1}.Validate()
	if err == nil || !strings.Contains(err.Error(), "tgi") || !strings.Contains(err.Error(), "slots") {
		t.Errorf("not all at once: %v", err)
	}
}
