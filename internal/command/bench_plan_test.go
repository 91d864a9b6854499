package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/weirgate/weir/internal/bench"
)

// planned is what flags come to, without a run.
func planned(t *testing.T, args ...string) (*benchmark, benchPlan, error) {
	t.Helper()
	b := &benchmark{now: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)}
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	b.register(flags)
	if err := flags.Parse(args); err != nil {
		return b, benchPlan{}, err
	}
	if len(flags.Args()) > 0 {
		return b, benchPlan{}, noWords(nil, flags.Args())
	}
	if err := b.readFile(flags); err != nil {
		return b, benchPlan{}, err
	}
	p, err := b.plan(t.Context())
	return b, p, err
}

// inWords is a plan as the tables below have it. Zero stands for the defaults of
// bench.Load.
func inWords(p benchPlan) []string {
	say := func(arrivals any, l *bench.Load) string {
		s := fmt.Sprintf("%v | %v in, %v out", arrivals, l.Input, l.Output)
		for _, part := range []struct {
			name  string
			value any
			shown bool
		}{
			{"calls", l.Calls, l.Calls != 0}, {"for", l.Duration, l.Duration != 0}, {"warmup", l.Warmup, l.Warmup != 0},
			{"discard", l.Discard, l.Discard != 0}, {"repeat", l.Repeats, l.Repeats != 0}, {"pause", l.Pause, l.Pause != time.Second},
			{"window", l.Window, l.Thermal}, {"shared", l.Sharing, l.Sharing.Tokens != 0}, {"rows", len(l.Trace), l.Trace != nil},
		} {
			if part.shown {
				s += fmt.Sprintf(", %s %v", part.name, part.value)
			}
		}
		return s
	}
	var all []string
	if p.stairs != nil {
		all = append(all, fmt.Sprintf("stairs to %g/s of %v, TTFT %v, ", p.stairs.Target, p.stairs.Each, p.stairs.Objective)+
			say(fmt.Sprint("max ", p.stairs.Load.Arrivals.Concurrency), &p.stairs.Load))
	}
	for i := range p.loads {
		all = append(all, say(p.loads[i].Arrivals, &p.loads[i]))
	}
	if p.ladder {
		all = append(all, fmt.Sprintf("ladder with headroom %g", p.saturation.Headroom))
	}
	return all
}

func writeText(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// someTrace has three calls, one of them without figures.
const someTrace = `{"at_ms": 100, "input_tokens": 900, "output_tokens": 120}
{"at_ms": 300, "input_tokens": 30, "output_tokens": 12}
{"at_ms": 400}
`

// TestPlan: what flags come to.
func TestPlan(t *testing.T) {
	trace := writeText(t, "trace.jsonl", someTrace)
	for _, tt := range []struct{ args, want string }{
		{"--concurrency 8", "concurrency 8 | 256 in, 128 out, calls 100"},
		{"--concurrency 8 --duration 2m", "concurrency 8 | 256 in, 128 out, for 2m0s"},
		{"--concurrency 8 --duration 2m --calls 7", "concurrency 8 | 256 in, 128 out, calls 7, for 2m0s"},
		{"--concurrency 2 --warmup 0 --discard 0.2 --repeat 5 --pause 0", "concurrency 2 | 256 in, 128 out, calls 100, warmup -1, discard 0.2, repeat 5, pause -1ns"},
		{"--concurrency 2 --warmup 9 --pause 1m", "concurrency 2 | 256 in, 128 out, calls 100, warmup 9, pause 1m0s"},
		{"--rate 4/s", "poisson 4/s | 256 in, 128 out, calls 100"},
		{"--rate 4", "poisson 4/s | 256 in, 128 out, calls 100"},
		{"--rate 240/min --concurrency 64", "poisson 4/s max 64 | 256 in, 128 out, calls 100"},
		{"--load=burst_10_at_2/s --concurrency 64", "burst 10 at 2/s max 64 | 256 in, 128 out, calls 100"},
		{"--load=constant_4/s_max_3", "constant 4/s max 3 | 256 in, 128 out, calls 100"},
		{"--concurrency 1 --input=uniform_64-512 --output 0", "concurrency 1 | uniform 64-512 in, none out, calls 100"},
		{"--concurrency 1 --input=lognormal_256_sd_128_max_2048 --shared-prefix 64 --prefix-groups 3", "concurrency 1 | lognormal 256 sd 128 max 2048 in, 128 out, calls 100, shared {64 3}"},
		{"--concurrency 1 --prefix-groups 3", "concurrency 1 | 256 in, 128 out, calls 100"},
		{"--concurrency 4 --thermal", "concurrency 4 | 256 in, 128 out, window 5m0s"},
		{"--concurrency 4 --thermal --duration 1h --window 10m", "concurrency 4 | 256 in, 128 out, for 1h0m0s, window 10m0s"},
		{"--ladder 1,8", "concurrency 1 | 256 in, 128 out, calls 100; concurrency 8 | 256 in, 128 out, calls 100; ladder with headroom 0.25"},
		{"--ladder-rate 0.5,2/s --concurrency 9 --headroom 40 --calls 5", "poisson 0.5/s max 9 | 256 in, 128 out, calls 5; poisson 2/s max 9 | 256 in, 128 out, calls 5; ladder with headroom 0.4"},
		{"--staircase 6/s --objective ttft=2s --stair 30s --concurrency 50", "stairs to 6/s of 30s, TTFT 2s, max 50 | 256 in, 128 out"},
		{"--replay TRACE", "replay 1x | trace in, trace out, calls 3, rows 3"},
		{"--replay TRACE --speed 2 --concurrency 4 --calls 2", "replay 2x max 4 | trace in, trace out, calls 2, rows 3"},
		{"--replay TRACE --input 100 --output trace --calls 9", "replay 1x | 100 in, trace out, calls 3, rows 3"},
		{"--replay TRACE --load=concurrency_2 --input trace", "concurrency 2 | trace in, 128 out, calls 3, rows 3"},
		{"--replay TRACE --load=replay_3x --input 9 --output 9", "replay 3x | 9 in, 9 out, calls 3, rows 3"},
		{"--replay TRACE --ladder 1,2 --output=trace_max_99 --calls 2", "concurrency 1 | 256 in, trace max 99 out, calls 2, rows 3; concurrency 2 | 256 in, trace max 99 out, calls 2, rows 3; ladder with headroom 0.25"},
	} {
		args := strings.Fields(strings.ReplaceAll(tt.args, "TRACE", trace))
		for i := range args {
			if strings.HasPrefix(args[i], "--") {
				args[i] = strings.ReplaceAll(args[i], "_", " ")
			}
		}
		_, p, err := planned(t, append(args, "--url", "http://h")...)
		got := strings.Join(inWords(p), "; ")
		if err != nil || got != tt.want {
			t.Errorf("%s\n got %s (%v)\nwant %s", tt.args, got, err, tt.want)
		}
	}
}

// TestPlanAsk: what each call will ask for.
func TestPlanAsk(t *testing.T) {
	_, p, err := planned(t, "--url", "h", "--concurrency", "1", "--api", "completions", "--system", "Be brief.", "--extra", `{"top_p": 0.5, "max_tokens": null}`,
		"--ignore-eos", "--temperature", "0.5", "--objective", "ttft=2s, TPOT=50ms,e2e=1m30s", "--metrics-profile", "GuideLLM")
	if err != nil {
		t.Fatal(err)
	}
	p.ask.Prompt, p.ask.MaxTokens, p.ask.Model = "Hi", 9, "m"
	body, err := p.ask.Body()
	const want = `{"ignore_eos":true,"model":"m","prompt":"Be brief.\n\nHi","stream":true,"stream_options":{"include_usage":true},"temperature":0.5,"top_p":0.5}`
	if string(body) != want || err != nil {
		t.Errorf("got %s (%v)\nwant %s", body, err, want)
	}
	if o := p.objectives; o != (bench.Objectives{TTFT: 2 * time.Second, TPOT: 50 * time.Millisecond, E2E: 90 * time.Second}) || p.saturation.TPOT != o.TPOT || p.profile != bench.GuideLLM {
		t.Errorf("got %+v %+v %v", o, p.saturation, p.profile)
	}
	_, p, err = planned(t, "--url", "h", "--concurrency", "1", "--stream=false", "--temperature", "-1")
	if err != nil || p.ask.Stream || p.ask.Temperature != nil || p.ask.IgnoreEOS {
		t.Errorf("got %+v (%v)", p.ask, err)
	}
}

// TestPlanErrors: each says what is wrong by the name of the flag, and what to do.
func TestPlanErrors(t *testing.T) {
	trace := writeText(t, "trace.jsonl", someTrace)
	silent := writeText(t, "silent.jsonl", `{"at_ms": 1}`)
	for _, tt := range []struct{ args, want string }{
		{"--concurrency 1", "--url is missing"},
		{"--url h", "say how to load the endpoint: --concurrency 8"},
		{"--url h --concurrency -1", "--concurrency -1 is below 0"},
		{"--url h --concurrency 1000000", "concurrency 1000000: plan: arrivals"},
		{"--url h --concurrency 1 --api chats", "choose chat, completions"},
		{"--url h --concurrency 1 --calls -1", "--calls -1"},
		{"--url h --concurrency 1 --warmup -2", "--warmup -2"},
		{"--url h --concurrency 1 --repeat -2", "--repeat -2"},
		{"--url h --concurrency 1 --discard 1", "--discard 1 is no share"},
		{"--url h --concurrency 1 --discard NaN", "--discard NaN"},
		{"--url h --concurrency 1 --speed 0", "--speed 0"},
		{"--url h --concurrency 1 --headroom 0", "--headroom 0"},
		{"--url h --concurrency 1 --headroom 100", "--headroom 100"},
		{"--url h --concurrency 1 --threshold 0", "--threshold 0"},
		{"--url h --concurrency 1 --threshold 100", "--threshold 100"},
		{"--url h --concurrency 1 --timeout -1s", "--timeout -1s"},
		{"--url h --concurrency 1 --temperature +Inf", "the temperature is +Inf"},
		{"--url h --concurrency 1 --force", "--force goes with --baseline"},
		{"--url h --concurrency 1 --compare", "--admin http://127.0.0.1:2019"},
		{"--url h --concurrency 1 --metrics-profile x", "--metrics-profile: unknown metrics profile"},
		{"--url h --concurrency 1 --objective ttft", "--objective: ttft:"},
		{"--url h --concurrency 1 --objective tftt=1s", `"tftt=1s" is no objective`},
		{"--url h --concurrency 1 --objective ttft=1s,ttft=2s", "ttft is there twice"},
		{"--url h --concurrency 1 --objective ttft=0", "longer than nothing"},
		{"--url h --concurrency 1 --extra [1]", "--extra is not a JSON object: it is a value of another kind"},
		{"--url h --concurrency 1 --extra null", "--extra is not a JSON object"},
		{"--url h --concurrency 1 --extra {", "--extra is not a JSON object: unexpected end"},
		{`--url h --concurrency 1 --extra {"stream":false}`, "say it with --stream"},
		{`--url h --concurrency 1 --extra {"model":"m"}`, "say it with --model"},
		{"--url h --concurrency 1 --input none", "no input length given"},
		{"--url h --concurrency 1 --input 0", "--input: read length"},
		{"--url h --concurrency 1 --input trace", "need a trace, and there is none"},
		{"--url h --concurrency 1 --output many", "--output: read length"},
		{"--url h --concurrency 1 --output 0 --ignore-eos", "--ignore-eos needs a length of answers"},
		{"--url h --concurrency 1 --duration 2", "--duration: "},
		{"--url h --concurrency 1 --pause soon", "--pause: "},
		{"--url h --concurrency 1 --shared-prefix 256", "cannot have 256 in common"},
		{"--url h --concurrency 1 --shared-prefix -1", "common beginning"},
		{"--url h --concurrency 1 --thermal --duration 3s", "has no two windows of 5m0s"},
		{"--url h --concurrency 1 --thermal --calls 3", "--thermal and --calls"},
		{"--url h --ladder 1,2 --thermal", "--thermal and --ladder exclude each other"},
		{"--url h --ladder 1,2 --concurrency 3", "--concurrency and --ladder exclude each other"},
		{"--url h --ladder 1,2 --ladder-rate 3", "--ladder and --ladder-rate exclude each other"},
		{"--url h --ladder 1,,2", `--ladder: "" is no number`},
		{"--url h --ladder 1,2,1", "concurrency 1 twice"},
		{"--url h --ladder 0", `"0" is no number`},
		{"--url h --ladder-rate 1,fast", `--ladder-rate: "fast" is no rate`},
		{"--url h --ladder-rate 0", "no rate"},
		{"--url h --rate 4/d", "--rate: "},
		{"--url h --rate 4/s --load poisson", "--rate and --load exclude each other"},
		{"--url h --load poisson", "--load: read arrivals"},
		{"--url h --load replay", "need a trace"},
		{"--url h --load=constant_1/s_max_2 --concurrency 2", "and so does --concurrency"},
		{"--url h --staircase 6/s", "--objective ttft=2s"},
		{"--url h --staircase 6/s --objective ttft=2s --stream=false", "--staircase needs streams"},
		{"--url h --staircase 6/s --objective ttft=2s --duration 1m", "--stair says how long"},
		{"--url h --staircase 6/s --objective ttft=2s --calls 1", "--stair says how long"},
		{"--url h --staircase 6/s --objective ttft=2s --repeat 2", "climbed once"},
		{"--url h --staircase 6/s --objective ttft=2s --stair 0", "--stair must be"},
		{"--url h --staircase 6/s --objective ttft=2s --stair x", "--stair: "},
		{"--url h --staircase x --objective ttft=2s", `--staircase: "x" is no rate`},
		{"--url h --staircase 6/s --objective ttft=2s --input trace", "need a trace"},
		{"--url h --staircase 6/s --objective ttft=2s --shared-prefix 300", "the first stair: plan"},
		{"--url h --staircase 6/s --objective ttft=2s --output 0 --ignore-eos", "--ignore-eos needs"},
		{"--url h --replay TRACE --rate 4/s", "take the lengths with --input trace"},
		{"--url h --replay TRACE --replay-ledger x", "--replay and --replay-ledger"},
		{"--url h --replay nowhere.jsonl", "--replay: open nowhere.jsonl"},
		{"--url h --replay SILENT", "give an input length"},
		{"--url h --replay-ledger nowhere.db", "--replay-ledger: no ledger"},
		{"--url h --replay-ledger nowhere.db --since yesterday", "--since: "},
		{"--url h --matrix a.toml --config b.toml", "--config and --matrix exclude each other"},
		{"--url h --matrix nowhere.toml", "read nowhere.toml: open"},
		{"--url h --json out.json", "--json=result.json"},
	} {
		args := strings.Fields(strings.NewReplacer("TRACE", trace, "SILENT", silent).Replace(tt.args))
		for i := range args {
			if strings.HasPrefix(args[i], "--load=") {
				args[i] = strings.ReplaceAll(args[i], "_", " ")
			}
		}
		if _, _, err := planned(t, args...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v does not say %q", tt.args, err, tt.want)
		}
	}
}

// TestBenchExamples: the examples of the help are plans, and so is its file.
func TestBenchExamples(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"loads.toml": matrixExample, "calls.jsonl": someTrace} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("OPENAI_API_KEY", "sk-something")
	lines := strings.Split(build(t, "bench").Example, "\n")
	for _, line := range lines {
		_, flags, ok := strings.Cut(line, "weir bench ")
		if !ok {
			t.Errorf("no example: %s", line)
		}
		b, p, err := planned(t, strings.Fields(flags)...)
		if err != nil || len(p.loads) == 0 && p.stairs == nil || b.readKey() != nil {
			t.Errorf("%s: %v", line, err)
		}
		if strings.Contains(line, "loads.toml") && (len(p.loads) != 8 || p.loads[0].Warmup != 30 || p.loads[0].Discard != 0.1 || p.loads[0].Calls != 200 || p.loads[7].Duration != 2*time.Minute || p.loads[7].Calls != 0 || !b.ignoreEOS) {
			t.Errorf("the file of the help: %s", strings.Join(inWords(p), "\n"))
		}
	}
	if len(lines) < 6 || !strings.Contains(build(t, "bench").Long, `concurrency = [1, 8, 32]`) {
		t.Error("the help has lost its examples")
	}
}
