package slo

import (
	"testing"
	"time"
)

// TestQualifiedSentence is the sentence "with input p95 ≤ 8000 and output p95 ≤ 500, at a steady 2
// calls/s: success ≥ 99.5 %, TTFT p95 ≤ 1.5 s, TPOT p95 ≤ 30 ms, E2E p95 ≤ 20 s": traffic as promised for is
// judged, traffic beyond it is shown as outside and charges nothing.
func TestQualifiedSentence(t *testing.T) {
	envelope, err := ParseEnvelope("input_tokens p95 <= 8000, output_tokens p95 <= 500, rate <= 2/s")
	if err != nil {
		t.Fatal(err)
	}
	class := Class{Name: "c", Valid: envelope}
	for _, text := range []string{"success 99.5%", "ttft p95 <= 1.5s", "tpot p95 <= 30ms", "e2e p95 <= 20s"} {
		o, err := ParseObjective(text)
		if err != nil {
			t.Fatal(err)
		}
		class.Objectives = append(class.Objectives, o)
	}
	tr, _ := configured(t, class)
	// A minute of traffic: so many calls, of which some have long prompts; all are slow if slow.
	minute := func(n, calls, long int, slow bool) {
		for i := range calls {
			at := start.Add(time.Duration(n)*time.Minute + time.Duration(i)*10*time.Millisecond)
			f := simple(at, Answered)
			f.Ended = at.Add(5 * time.Second)
			f.Input, f.Output = 8000, 500
			if i < long {
				f.Input = 8001
			}
			ttft := 1500 * time.Millisecond
			if slow {
				ttft++
			}
			f.Values[TTFT], f.Values[TPOT], f.Values[E2E] = Exactly(ttft), Exactly(30*time.Millisecond), Exactly(5*time.Second)
			record(tr, "c", "m", at, f)
		}
		tr.Tick(start.Add(time.Duration(n+1) * time.Minute))
	}
	minute(0, 120, 6, false) // 2 a second, 95 % with at most 8000: just inside
	minute(1, 120, 0, true)  // inside and slow
	minute(2, 120, 7, true)  // 94.2 %
	minute(3, 121, 0, true)  // more than 2 a second
	minute(4, 1, 0, false)
	s := tr.Status(start.Add(5 * time.Minute))
	ttft := find(t, s, "c", "m", "ttft_p95")
	if ttft.Good != 121 || ttft.Bad != 120 || ttft.Outside != (Counts{Bad: 241}) || ttft.OutsideMinutes != 2 {
		t.Errorf("ttft: %+v, outside %+v in %d minutes", ttft.Counts, ttft.Outside, ttft.OutsideMinutes)
	}
	if !near(*ttft.Compliance, 121.0/241) || !near(*ttft.Budget.Consumed, 120/(0.05*241)) || ttft.Burn[1].Bad != 120 {
		t.Errorf("ttft: compliance %v, consumed %v, %d bad in half an hour", *ttft.Compliance, *ttft.Budget.Consumed, ttft.Burn[1].Bad)
	}
	if e := find(t, s, "c", AllModels, "e2e_p95"); e.Good != 241 || e.Outside.Good != 241 {
		t.Errorf("e2e: %+v, outside %+v", e.Counts, e.Outside)
	}
	// An outage is told of, in whatever minutes.
	at := start.Add(5 * time.Minute)
	for i := range 200 {
		record(tr, "c", "m", at.Add(time.Duration(i)*50*time.Millisecond), simple(at, Failed))
	}
	at = at.Add(10 * time.Second)
	tr.Tick(at)
	if f := find(t, tr.Status(at), "c", "m", "success").Firing; len(f) == 0 || !f[0].Outage {
		t.Errorf("an outage in a minute outside the envelope fires %+v", f)
	}
}

// TestFallback checks the batch class's first token.
func TestFallback(t *testing.T) {
	for _, k := range []struct {
		prefill, upstream Value
		want              Counts
	}{
		{Exactly(time.Second), Exactly(time.Hour), Counts{Good: 1}},
		{Exactly(time.Hour), Exactly(time.Second), Counts{Bad: 1}},
		{Unknown(), Exactly(time.Second), Counts{Good: 1}},
		{Unknown(), Exactly(time.Hour), Counts{Bad: 1}},
		{Unknown(), Unknown(), Counts{Unknown: 1}},
		{Unknown(), Value{}, Counts{Unknown: 1}},
		{Value{}, Exactly(time.Second), Counts{}},
		{AtMost(time.Hour), Exactly(time.Second), Counts{Good: 1}},
		{AtLeast(time.Hour), Exactly(time.Second), Counts{Bad: 1}},
	} {
		tr, _ := configured(t, Class{Name: "c", Objectives: []Objective{{Number: Prefill, Target: 990_000, Threshold: 10 * time.Second, Fallback: TTFTUpstream}}})
		f := simple(start, Answered)
		f.Values[Prefill], f.Values[TTFTUpstream] = k.prefill, k.upstream
		record(tr, "c", "m", start, f)
		if got := find(t, tr.Status(start), "c", AllModels, "prefill_p99").Counts; got != k.want {
			t.Errorf("prefill %+v, upstream TTFT %+v: %+v, want %+v", k.prefill, k.upstream, got, k.want)
		}
	}
}
