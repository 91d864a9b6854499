package slo

import (
	"maps"
	"reflect"
	"slices"
	"testing"
)

// parseAll reads objectives that must be right.
func parseAll(tb testing.TB, texts ...string) (all []Objective) {
	tb.Helper()
	for _, text := range texts {
		o, err := ParseObjective(text)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

func textsOf(c Class) (all []string) {
	for _, o := range c.Objectives {
		all = append(all, o.Text())
	}
	return all
}

func TestPresets(t *testing.T) {
	for name, want := range map[string][]string{
		"interactive": {"network p99 <= 20ms", "queue p99 <= 1s", "ttft p99 <= 2s", "tpot p95 <= 40ms", "e2e p95 <= 5s", "success 99.9%", "goodput 95%"},
		"completion":  {"network p99 <= 10ms", "queue p99 <= 200ms", "ttft p99 <= 500ms", "tpot p95 <= 20ms", "e2e p95 <= 1s", "success 99.9%", "goodput 95%"},
		"batch": {"network p99 <= 100ms", "queue p99 <= 30s", "prefill p99 <= 10s else ttft_upstream", "tpot p95 <= 100ms", "e2e p95 <= 1m", "success 99.5%",
			"goodput 95%"},
	} {
		c, ok := Preset(name)
		if got := textsOf(c); !ok || c.Name != name || !slices.Equal(got, want) || !reflect.DeepEqual(c.Valid, Envelope{}) {
			t.Errorf("Preset(%q) = %+v, %v: %q", name, c, ok, got)
		}
		if !reflect.DeepEqual(Presets()[name], c) {
			t.Errorf("Presets and Preset differ about %s", name)
		}
		if !reflect.DeepEqual(c.Objectives, parseAll(t, want...)) {
			t.Errorf("%s is not what its lines mean", name)
		}
	}
	if names := slices.Sorted(maps.Keys(Presets())); !slices.Equal(names, []string{"batch", "completion", "interactive"}) {
		t.Errorf("presets are %q", names)
	}
	if c, ok := Preset("gold"); ok || !reflect.DeepEqual(c, Class{}) {
		t.Errorf("a preset that is not there: %+v", c)
	}
}

// TestPresetsAreCopies: what somebody changes is nobody else's.
func TestPresetsAreCopies(t *testing.T) {
	Presets()[Batch].Objectives[0].Target = 1
	c, _ := Preset(Batch)
	c.Objectives[1].Target = 1
	if again, _ := Preset(Batch); again.Objectives[0].Target != 990_000 || again.Objectives[1].Target != 990_000 {
		t.Error("a preset was changed")
	}
}

func TestWith(t *testing.T) {
	base := Class{Name: "gold", Objectives: parseAll(t, "queue p99 <= 1s", "ttft p99 <= 2s", "ttft p95 <= 1s when input_tokens <= 100, output_tokens <= 5", "ttft p50 <= 1s", "success 99%")}
	for _, tt := range []struct{ name, with, want []string }{
		{[]string{"nothing"}, nil, []string{"queue p99 <= 1s", "ttft p99 <= 2s", "ttft p95 <= 1s when input_tokens <= 100, output_tokens <= 5", "ttft p50 <= 1s", "success 99%"}},
		{[]string{"replaced whatever the target"}, []string{"ttft p90 <= 3s"},
			[]string{"queue p99 <= 1s", "ttft p90 <= 3s", "ttft p95 <= 1s when input_tokens <= 100, output_tokens <= 5", "success 99%"}},
		{[]string{"by two"}, []string{"ttft p90 <= 3s", "ttft p10 <= 1ms"},
			[]string{"queue p99 <= 1s", "ttft p90 <= 3s", "ttft p10 <= 1ms", "ttft p95 <= 1s when input_tokens <= 100, output_tokens <= 5", "success 99%"}},
		{[]string{"same conditions in another order"}, []string{"ttft p90 <= 3s when output_tokens <= 5, input_tokens <= 100"},
			[]string{"queue p99 <= 1s", "ttft p99 <= 2s", "ttft p90 <= 3s when output_tokens <= 5, input_tokens <= 100", "ttft p50 <= 1s", "success 99%"}},
		{[]string{"other conditions are added"}, []string{"ttft p90 <= 3s when output_tokens <= 5", "tpot p95 <= 1s", "success 98%"},
			[]string{"queue p99 <= 1s", "ttft p99 <= 2s", "ttft p95 <= 1s when input_tokens <= 100, output_tokens <= 5", "ttft p50 <= 1s", "success 98%",
				"ttft p90 <= 3s when output_tokens <= 5", "tpot p95 <= 1s"}},
	} {
		before := textsOf(base)
		got := base.With(parseAll(t, tt.with...)...)
		if !slices.Equal(textsOf(got), tt.want) || got.Name != "gold" {
			t.Errorf("%s: %q", tt.name, textsOf(got))
		}
		got.Objectives[2].When = append(got.Objectives[2].When[:0], Condition{OutputTokens, 9})
		if !slices.Equal(textsOf(base), before) {
			t.Errorf("%s: the class itself became %q", tt.name, textsOf(base))
		}
	}
}

func TestWithout(t *testing.T) {
	base := Class{Name: "gold", Objectives: parseAll(t, "queue p99 <= 1s", "ttft p99 <= 2s", "ttft p95 <= 1s when input_tokens <= 100", "success 99%")}
	if got := textsOf(base.Without(TTFT)); !slices.Equal(got, []string{"queue p99 <= 1s", "success 99%"}) {
		t.Errorf("got %q", got)
	}
	if got := textsOf(base.Without(TPOT)); !slices.Equal(got, textsOf(base)) || len(got) != 4 {
		t.Errorf("got %q", got)
	}
}

func TestSameConditions(t *testing.T) {
	a, b, c := Condition{InputTokens, 1}, Condition{OutputTokens, 1}, Condition{InputTokens, 2}
	for _, tt := range []struct {
		x, y []Condition
		want bool
	}{
		{nil, nil, true}, {nil, []Condition{}, true}, {[]Condition{a}, nil, false}, {[]Condition{a}, []Condition{b}, false}, {[]Condition{a}, []Condition{c}, false},
		{[]Condition{a, b}, []Condition{b, a}, true}, {[]Condition{a, a}, []Condition{a, b}, false}, {[]Condition{a, b}, []Condition{a, a}, false},
	} {
		if got := sameConditions(tt.x, tt.y); got != tt.want {
			t.Errorf("%v and %v: %v", tt.x, tt.y, got)
		}
	}
}
