package slo

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// warningsOf returns what Complete says of a class, as "kind objective: reason".
func warningsOf(tb testing.TB, c Class) (all []string) {
	tb.Helper()
	_, warnings := complete(tb, Config{Classes: []Class{c}, Burn: []BurnRule{}})
	for _, w := range warnings {
		if w.Class != c.Name {
			tb.Errorf("a warning of class %q", w.Class)
		}
		all = append(all, string(w.Kind)+" "+w.Objective+": "+w.Reason)
	}
	return all
}

// TestPresetWarnings: each preset says after how many tokens its parts reach E2E, and
// nothing else.
func TestPresetWarnings(t *testing.T) {
	for name, want := range map[string]string{
		Interactive: "long_answers e2e_p95: ttft p99 <= 2s, tpot p95 <= 40ms: one after the other these reach e2e p95 <= 5s after 75 tokens",
		Completion:  "long_answers e2e_p95: ttft p99 <= 500ms, tpot p95 <= 20ms: one after the other these reach e2e p95 <= 1s after 25 tokens",
		Batch: "long_answers e2e_p95: prefill p99 <= 10s else ttft_upstream, queue p99 <= 30s, tpot p95 <= 100ms: " +
			"one after the other these reach e2e p95 <= 1m after 200 tokens",
	} {
		if got := warningsOf(t, Presets()[name]); len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	// A TTFT of 10 s is what batch does not have, and why.
	got := warningsOf(t, Presets()[Batch].Without(Prefill).With(timed(TTFT, 990_000, 10*time.Second)))
	if len(got) != 2 || !strings.HasPrefix(got[1], "contradiction ttft_p99: ttft p99 <= 10s is below queue p99 <= 30s") {
		t.Errorf("got %q", got)
	}
}

func TestContradictions(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lines []string
		want  []string // how the warnings begin
	}{
		{"none", []string{"ttft p99 <= 2s", "queue p99 <= 1s", "ttft_upstream p99 <= 2s", "prefill p99 <= 1s", "e2e p95 <= 2s"}, nil},
		{"ttft below queue", []string{"queue p99 <= 1s", "ttft p99 <= 500ms"}, []string{"contradiction ttft_p99: ttft p99 <= 500ms is below queue p99 <= 1s, which is a part"}},
		{"of another target", []string{"ttft p95 <= 500ms", "queue p99 <= 1s"}, []string{"contradiction ttft_p95: ttft p95 <= 500ms is below queue p99 <= 1s"}},
		{"median below, and more promised", []string{"ttft p50 <= 500ms", "ttft p99 <= 2s", "queue p99 <= 1s"}, nil},
		{"strictest below", []string{"ttft p50 <= 3s", "ttft p99 <= 500ms", "queue p99 <= 1s", "queue p50 <= 1ms"}, []string{"contradiction ttft_p99: ttft p99 <= 500ms is below queue p99"}},
		{"conditions of its own", []string{"ttft p95 <= 500ms when input_tokens <= 10", "ttft p99 <= 2s", "queue p99 <= 1s"},
			[]string{"contradiction ttft_p95: ttft p95 <= 500ms when input_tokens <= 10 is below queue"}},
		{"upstream above all", []string{"ttft p99 <= 2s", "ttft_upstream p99 <= 3s"}, []string{"contradiction ttft_p99: ttft p99 <= 2s is below ttft_upstream p99 <= 3s"}},
		{"prefill above ttft", []string{"ttft p99 <= 2s", "prefill p99 <= 3s"}, []string{"contradiction ttft_p99: ttft p99 <= 2s is below prefill p99 <= 3s"}},
		{"prefill above upstream", []string{"ttft_upstream p99 <= 2s", "prefill p99 <= 3s"}, []string{"contradiction ttft_upstream_p99: ttft_upstream p99 <= 2s is below prefill"}},
		{"visible below first", []string{"ttft_visible p99 <= 1s", "ttft p99 <= 2s"}, []string{"contradiction ttft_visible_p99: ttft_visible p99 <= 1s is below ttft p99 <= 2s"}},
		{"prefill and queue", []string{"prefill p99 <= 1.5s", "queue p99 <= 1s", "ttft p99 <= 2s", "e2e p95 <= 2.2s", "ttft_visible p90 <= 2500ms"}, []string{
			"contradiction ttft_p99: ttft p99 <= 2s is below queue p99 <= 1s and prefill p99 <= 1.5s together",
			"contradiction e2e_p95: e2e p95 <= 2.2s is below ttft_visible p90 <= 2.5s",
			"contradiction e2e_p95: e2e p95 <= 2.2s is below queue p99 <= 1s and prefill p99 <= 1.5s together"}},
		{"queue alone is too long", []string{"prefill p99 <= 1s", "queue p99 <= 3s", "ttft p99 <= 2s"}, []string{"contradiction ttft_p99: ttft p99 <= 2s is below queue p99 <= 3s, which is"}},
		{"gaps above all", []string{"e2e p99 <= 1s", "icl_max p99 <= 2s"}, []string{"contradiction e2e_p99: e2e p99 <= 1s is below icl_max p99 <= 2s"}},
		{"network and tpot are parts of nothing", []string{"network p99 <= 5s", "ttft p99 <= 1s", "tpot p99 <= 9s"}, nil},
		{"tokens, exactly", []string{"ttft p99 <= 1s", "tpot p95 <= 10ms", "e2e p95 <= 2s"}, []string{
			"long_answers e2e_p95: ttft p99 <= 1s, tpot p95 <= 10ms: one after the other these reach e2e p95 <= 2s after 100 tokens, and longer answers miss it though they keep the rest; raise it, or add to it: when output_tokens <= 100"}},
		{"tokens without a first", []string{"tpot p95 <= 10ms", "e2e p95 <= 2s"}, []string{"long_answers e2e_p95: tpot p95 <= 10ms: one after the other these reach e2e p95 <= 2s after 200 tokens"}},
		{"tokens after upstream's", []string{"ttft_upstream p99 <= 1s", "queue p99 <= 500ms", "tpot p95 <= 10ms", "e2e p95 <= 2s"}, []string{"long_answers e2e_p95: ttft_upstream p99 <= 1s, tpot p95 <= 10ms"}},
		{"tokens after the queue", []string{"queue p99 <= 500ms", "tpot p95 <= 10ms", "e2e p95 <= 2s"}, []string{"long_answers e2e_p95: queue p99 <= 500ms, tpot p95 <= 10ms"}},
		{"no room for a token", []string{"ttft p99 <= 2s", "tpot p95 <= 10ms", "e2e p95 <= 2s"}, []string{"long_answers e2e_p95: ttft p99 <= 2s, tpot p95 <= 10ms: one after the other these reach e2e p95 <= 2s after 0 tokens"}},
		{"ttft above e2e, said once", []string{"ttft p99 <= 3s", "tpot p95 <= 10ms", "e2e p95 <= 2s"}, []string{"contradiction e2e_p95: e2e p95 <= 2s is below ttft p99 <= 3s"}},
		{"short answers only", []string{"ttft p99 <= 1s", "tpot p95 <= 10ms", "e2e p95 <= 2s when output_tokens <= 100"}, nil},
		{"not so short", []string{"ttft p99 <= 1s", "tpot p95 <= 10ms", "e2e p95 <= 2s when output_tokens <= 101"}, []string{"long_answers e2e_p95: "}},
		{"short prompts are no short answers", []string{"ttft p99 <= 1s", "tpot p95 <= 10ms", "e2e p95 <= 2s when input_tokens <= 5"}, []string{"long_answers e2e_p95: "}},
		{"longer than answers get", []string{"ttft p99 <= 1s", "tpot p95 <= 10ms", "e2e p95 <= 1h"}, nil},
		{"goodput above the lowest", []string{"ttft p99 <= 1s", "tpot p95 <= 1s", "goodput 96%"}, []string{"contradiction goodput: goodput 96% asks more than tpot p95 <= 1s, and whatever misses that misses goodput too; lower it to 95%"}},
		{"goodput, where the lowest is for some", []string{"ttft p99 <= 1s", "tpot p95 <= 1s when input_tokens <= 5", "goodput 96%"}, nil},
	} {
		got := warningsOf(t, classOf(t, tt.lines...))
		for i := range max(len(got), len(tt.want)) {
			if len(got) != len(tt.want) || !strings.HasPrefix(got[i], tt.want[i]) {
				t.Errorf("%s: got\n%s, want\n%s", tt.name, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
				break
			}
		}
	}
}

// TestEnvelopeLimitsAnswers: an envelope for as many calls as the objective is as good as a
// condition.
func TestEnvelopeLimitsAnswers(t *testing.T) {
	for envelope, want := range map[string]int{
		"output_tokens p95 <= 100": 0, "output_tokens p99 <= 100": 0, "output_tokens p95 <= 101": 1, "output_tokens p90 <= 100": 1, "input_tokens p95 <= 100": 1, "rate <= 2/s": 1,
	} {
		c := classOf(t, "ttft p99 <= 1s", "tpot p95 <= 10ms", "e2e p95 <= 2s")
		var err error
		if c.Valid, err = ParseEnvelope(envelope); err != nil {
			t.Fatal(err)
		}
		if got := warningsOf(t, c); len(got) != want {
			t.Errorf("%s: %q", envelope, got)
		}
	}
}

// TestParts: what is a part of a part is a part, and nothing is a part of itself.
func TestParts(t *testing.T) {
	for n := range Number(Numbers) {
		if n.contains(n) {
			t.Errorf("%s contains itself", n)
		}
		for _, p := range parts[n] {
			for _, q := range parts[p] {
				if !n.contains(q) {
					t.Errorf("%s contains %s, that %s, and the first not the last", n, p, q)
				}
			}
		}
	}
	if Number(200).contains(TTFT) {
		t.Error("a number that is not there contains something")
	}
}

// TestWarningsAreTrue: for every contradiction a call can be made up that keeps the part as
// promised and misses the whole.
func TestWarningsAreTrue(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	seen := 0
	for range 3000 {
		c := Class{Name: "gold"}
		for n := range Success {
			if rng.IntN(2) == 0 {
				c.Objectives = append(c.Objectives, timed(n, 990_000, time.Duration(1+rng.IntN(20))*100*ms))
			}
		}
		if len(c.Objectives) == 0 {
			continue
		}
		_, warnings := complete(t, Config{Classes: []Class{c}})
		at := func(n Number) time.Duration {
			o, _ := c.strictest(n)
			return o.Threshold
		}
		told := map[string]bool{}
		for _, w := range warnings {
			told[w.Objective] = true
		}
		for _, whole := range c.Objectives {
			least := max(at(Queue)+at(Prefill), at(TTFTUpstream), at(TTFT), at(TTFTVisible), at(ICLMax))
			switch whole.Number {
			case TTFT:
				least = max(at(Queue)+at(Prefill), at(TTFTUpstream))
			case TTFTVisible:
				least = max(at(Queue)+at(Prefill), at(TTFTUpstream), at(TTFT))
			case TTFTUpstream:
				least = at(Prefill)
			case E2E:
				if tpot := at(TPOT); tpot > 0 {
					least = longestAnswer * time.Second // any answer may be too long
				}
			default:
				least = 0
			}
			want := least > whole.Threshold
			name := whole.Number.String() + "_p99"
			if told[name] != want {
				t.Fatalf("%q: %s told %v, want %v: %v", textsOf(c), name, told[name], want, warnings)
			}
			if want {
				seen++
			}
		}
		if slices.ContainsFunc(warnings, func(w Warning) bool { return w.Reason == "" || strings.HasSuffix(w.Reason, ".") }) {
			t.Fatalf("a reason is no sentence without a full stop: %v", warnings)
		}
	}
	if seen < 1000 {
		t.Errorf("only %d contradictions", seen)
	}
}
