package slo

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

func TestParseObjective(t *testing.T) {
	with := func(o Objective, when ...Condition) Objective {
		o.When = when
		return o
	}
	input, output := Condition{InputTokens, 8000}, Condition{OutputTokens, 500}
	for in, want := range map[string]Objective{
		"ttft p99 <= 2s":      timed(TTFT, 990_000, 2*time.Second),
		"ttft p99<=2s":        timed(TTFT, 990_000, 2*time.Second),
		" ttft\tp99  ≤  2s ":  timed(TTFT, 990_000, 2*time.Second),
		"ttft p99≤2s":         timed(TTFT, 990_000, 2*time.Second),
		"tpot p95 <= 40ms":    timed(TPOT, 950_000, 40*ms),
		"icl_max p99.9 <= 1m": timed(ICLMax, 999_000, time.Minute),
		"e2e p50 <= 0.5d":     timed(E2E, 500_000, 12*time.Hour),
		"network p99 <= 1ns":  timed(Network, 990_000, 1),
		"queue p99 <= 1d":     timed(Queue, 990_000, 24*time.Hour),
		"e2e p95 <= 1.5m":     timed(E2E, 950_000, 90*time.Second),
		"success 99.9%":       timed(Success, 999_000, 0),
		"success 99.9 %":      timed(Success, 999_000, 0),
		"goodput 95%":         timed(Goodput, 950_000, 0),
		"prefill p99 <= 10s else ttft_upstream": {
			Number: Prefill, Target: 990_000, Threshold: 10 * time.Second, Fallback: TTFTUpstream},
		"ttft p95 <= 1.5s when input_tokens <= 8000, output_tokens <= 500": with(timed(TTFT, 950_000, 1500*ms), input, output),
		"ttft p95 <= 1.5s when output_tokens<=500,input_tokens ≤ 8k":       with(timed(TTFT, 950_000, 1500*ms), output, input),
		"success 99% when input_tokens <= 1.5M":                            with(timed(Success, 990_000, 0), Condition{InputTokens, 1_500_000}),
		"prefill p99 <= 10s else e2e when input_tokens <= 8_000": {
			Number: Prefill, Target: 990_000, Threshold: 10 * time.Second, Fallback: E2E, When: []Condition{input}},
	} {
		if got, err := ParseObjective(in); !reflect.DeepEqual(got, want) || err != nil {
			t.Errorf("ParseObjective(%q) = %+v, %v; want %+v", in, got, err, want)
		}
	}
}

func TestParseObjectiveErrors(t *testing.T) {
	for in, want := range map[string][]string{
		"":                                         {"it is empty", "ttft p99 <= 2s"},
		" , ":                                      {`unknown number ","`},
		"latency p99 <= 2s":                        {`unknown number "latency"; use one of ttft,`, "ttft p99 <= 2s"},
		"TTFT p99 <= 2s":                           {`unknown number "TTFT"`},
		"ttft":                                     {"it has no target", "ttft p99 <= 2s"},
		"ttft <= 2s":                               {"it has no target", "ttft p99 <= 2s"},
		"ttft 99% <= 2s":                           {`"99%" is not how a time has its target`, "p99"},
		"ttft 99 <= 2s":                            {`"99" is not a target`, "p99"},
		"ttft p100 <= 2s":                          {"no call that may fail", "p99"},
		"ttft p99":                                 {"<= is missing after p99", "ttft p99 <= 2s"},
		"ttft p99 2s":                              {"<= is missing after p99", "ttft p99 <= 2s"},
		"ttft p99 < 2s":                            {"<= is missing after p99"},
		"ttft p99 =< 2s":                           {"<= is missing after p99"},
		"ttft p99 <=":                              {"the time is missing", "40ms"},
		"ttft p99 <= 2":                            {`"2" is not a time`, "40ms"},
		"ttft p99 <= fast":                         {`"fast" is not a time`, "40ms"},
		"ttft p99 <= wednesday":                    {`"wednesday" is not a time: before d`, "40ms"},
		"ttft p99 <= 0s":                           {`"0s" is not a time above 0`},
		"ttft p99 <= -2s":                          {`"-2s" is not a time above 0`},
		"ttft p99 <= -1d":                          {"before d"},
		"ttft p99 <= 1d-1s":                        {"not a time above 0"},
		"ttft p99 <= 99999999d":                    {"too large"},
		"ttft p99 <= 10000d2562047h":               {"63 bits"},
		"ttft p99 <= 25h":                          {"a threshold of 25h is longer than any call; use at most 24h"},
		"ttft p99 <= 2s fast":                      {`"fast" does not belong there`},
		"ttft p99 <= 2s, tpot p95 <= 1s":           {`"," does not belong there`},
		"ttft p99 <= 2s else ttft":                 {"names the number itself"},
		"ttft p99 <= 2s else":                      {`else: unknown number ""`},
		"prefill p99 <= 2s else ttft":              {"ttft cannot stand in for prefill", "use ttft_upstream"},
		"prefill p99 <= 2s else tpot":              {"tpot cannot stand in for prefill", "ttft_upstream"},
		"ttft p99 <= 2s else prefill":              {"prefill cannot stand in for ttft"},
		"e2e p99 <= 2s else ttft":                  {"ttft cannot stand in for e2e"},
		"queue p99 <= 2s else success":             {"success cannot stand in for queue"},
		"success":                                  {"it has no target", "success 99.9%"},
		"success p99":                              {`"p99" is not how success has its target`, "success 99.9%"},
		"success 99.9% <= 2s":                      {"success is no time and has no threshold", "success 99.9%"},
		"success 99.9% else ttft":                  {"success is always known"},
		"goodput 100%":                             {"no call that may fail"},
		"ttft p99 <= 2s when":                      {`when: unknown quantity ""; use input_tokens or output_tokens`, "when input_tokens <= 8000"},
		"ttft p99 <= 2s when tokens <= 8":          {`unknown quantity "tokens"`, "when input_tokens <= 8000"},
		"ttft p99 <= 2s when input_tokens 8000":    {"<= is missing after input_tokens"},
		"ttft p99 <= 2s when input_tokens <=":      {"the number of tokens is missing"},
		"ttft p99 <= 2s when input_tokens <= ,":    {"the number of tokens is missing"},
		"ttft p99 <= 2s when input_tokens <= many": {`"many" is not a number of tokens such as 8000 or 8k`},
		"ttft p99 <= 2s when input_tokens <= 1.5":  {"not a whole number"},
		"ttft p99 <= 2s when input_tokens <= 1.00000000000000001":      {"not a whole number"},
		"ttft p99 <= 2s when input_tokens <= 0":                        {"0 tokens: use 1 to"},
		"ttft p99 <= 2s when input_tokens <= 2G":                       {"2000000000 tokens: use 1 to 1000000000"},
		"ttft p99 <= 2s when input_tokens <= 9999999999T":              {"too large"},
		"ttft p99 <= 2s when input_tokens <= 8, input_tokens <= 9":     {"input_tokens is there twice"},
		"ttft p99 <= 2s when input_tokens <= 8,":                       {`unknown quantity ""`},
		"prefill p99 <= 2s when input_tokens <= 8 else ttft_upstream":  {`"else" does not belong there`, "and then when"},
		"ttft p99 <= 2s" + strings.Repeat(" ", maxLine):                {"longer than 500 bytes"},
		"ttft p99 <= 2s when input_tokens <= 8 output_tokens <= 5":     {`"output_tokens" does not belong there`},
		"ttft p99 <= 2s when input_tokens <= 8, valid <= 5":            {`unknown quantity "valid"`},
		"goodput 95% when input_tokens <= 8000 when output_tokens < 1": {`"when" does not belong there`},
	} {
		got, err := ParseObjective(in)
		if err == nil || !reflect.DeepEqual(got, Objective{}) {
			t.Errorf("ParseObjective(%q) = %+v, %v", in, got, err)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("ParseObjective(%q) says %q; want %q", in, err, part)
			}
		}
	}
}

// TestErrorsDoNotRepeatWhatIsNoObjective: a key in the wrong place is not shown whole.
func TestErrorsDoNotRepeatWhatIsNoObjective(t *testing.T) {
	const secret = "sk-weir-0123456789abcdefghij"
	_, objective := ParseObjective(secret + " p99 <= 2s")
	_, envelope := ParseEnvelope(secret)
	_, number := ParseObjective("ttft p99 <= 2s when " + secret + " <= 8")
	for _, err := range []error{objective, envelope} {
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("the error is %v", err)
		}
	}
	if number == nil {
		t.Error("a key was read as a quantity")
	}
}

func TestParseEnvelope(t *testing.T) {
	for in, want := range map[string]Envelope{
		"input_tokens p95 <= 8000, output_tokens p95 <= 500, rate <= 2/s": {
			Terms: []Term{{InputTokens, 950_000, 8000}, {OutputTokens, 950_000, 500}}, CallsPerMinute: 120},
		"rate≤90/min,input_tokens p50≤1k,input_tokens p99≤8k": {
			Terms: []Term{{InputTokens, 500_000, 1000}, {InputTokens, 990_000, 8000}}, CallsPerMinute: 90},
		"rate <= 0.5/s":   {CallsPerMinute: 30},
		"rate <= 0.05/s":  {CallsPerMinute: 3},
		"rate <= 1/min":   {CallsPerMinute: 1},
		"rate <= 1.2k/h":  {CallsPerMinute: 20},
		"rate <= 60/h":    {CallsPerMinute: 1},
		"rate <= 1k/s":    {CallsPerMinute: 60_000},
		"rate <= 2.0/min": {CallsPerMinute: 2},
	} {
		if got, err := ParseEnvelope(in); !reflect.DeepEqual(got, want) || err != nil {
			t.Errorf("ParseEnvelope(%q) = %+v, %v; want %+v", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"":                          "a part is missing",
		"rate <= 2/s,":              "a part is missing",
		"rate <= 2/s rate <= 3/s":   `a comma is missing before "rate"`,
		"rate <= 2/s, rate <= 3/s":  "two rates",
		"rate 2/s":                  "<= is missing after rate",
		"rate <=":                   `"" is not a rate`,
		"rate <= 2":                 "write it like 2/s",
		"rate <= 2/d":               "write it like 2/s",
		"rate <= /s":                "does not begin with a number",
		"rate <= -2/s":              "does not begin with a number",
		"rate <= 0/s":               "less than one call a minute",
		"rate <= 0.01/s":            "less than one call a minute",
		"rate <= 59/h":              "less than one call a minute",
		"rate <= 0.5/min":           "less than one call a minute",
		"rate <= 100/h":             "it lies between 1/min and 2/min",
		"rate <= 0.33/s":            "it lies between 19/min and 20/min",
		"rate <= 1G/s":              "60000000000 calls a minute: use 1 to",
		"rate <= 9999999999T/s":     "too large",
		"speed <= 2/s":              `unknown quantity "speed"; use input_tokens or output_tokens, or rate`,
		"input_tokens <= 8000":      "needs a percentile such as p95",
		"input_tokens":              "needs a percentile such as p95",
		"input_tokens 95% <= 8000":  "needs a percentile such as p95",
		"input_tokens p95 8000":     "<= is missing after input_tokens p95",
		"input_tokens p100 <= 8000": "no call that may fail",
		"input_tokens p95 <= x":     "not a number of tokens",
		"input_tokens p95 <= 0":     "0 tokens: use 1",
		"input_tokens p95 <= 1, input_tokens p95 <= 2":       "input_tokens p95 is there twice",
		strings.Repeat("input_tokens p95 <= 1, ", 40):        "longer than 500 bytes",
		"input_tokens p1 <= 1" + manyTerms(MaxTerms, ", "):   "9 percentiles are too many",
		"valid while input_tokens p95 <= 8000, rate <= 2/s":  `unknown quantity "valid"`,
		"input_tokens p95 <= 8000 and output_tokens p5 <= 3": `a comma is missing before "and"`,
	} {
		got, err := ParseEnvelope(in)
		if err == nil || !reflect.DeepEqual(got, Envelope{}) || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseEnvelope(%q) = %+v, %v; want %q", in, got, err, want)
		}
	}
}

// manyTerms returns n different percentiles, each after a separator.
func manyTerms(n int, separator string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(separator + "input_tokens p" + string(rune('2'+i)) + "0 <= 1")
	}
	return b.String()
}
