package command

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/weirgate/weir/internal/bench"
	"github.com/weirgate/weir/internal/endpoint"
)

// benchFlags are the flags as they were given, and what a file says for those
// that were not.
type benchFlags struct {
	url, api, model, keyEnv string
	system, extra           string
	temperature             float64
	stream, ignoreEOS       bool
	timeout                 time.Duration

	load                  string
	concurrency           int
	rate, input, output   string
	shared, groups        int
	calls, warmup, repeat int
	discard               float64
	duration, pause       string
	thermal               bool
	window                string
	seed                  uint64
	replay, replayLedger  string
	since                 string
	speed                 float64

	ladder, ladderRate string
	headroom           float64
	staircase          string
	stair              string
	matrix, config     string
	groupsOfLoads      []loadGroup // of the file

	objective       string
	profile         string
	environment     string
	admin           string
	compare         bool
	baseline        string
	threshold       float64
	force           bool
	save            string
	json, csv       string
	markdown, html  string
	raw             string
	quiet, noColour bool
}

// stdout stands for standard output where a file is named.
const stdout = "-"

// register makes the flags. Their names are those of the configuration file too.
func (b *benchFlags) register(f *pflag.FlagSet) {
	f.StringVar(&b.url, "url", "", "base `URL` of the endpoint")
	f.StringVar(&b.api, "api", string(endpoint.Chat), "`API` to speak: chat, completions, responses or messages (Anthropic)")
	f.StringVar(&b.model, "model", "", "`model` to ask for; when empty the only one that is served")
	f.StringVar(&b.keyEnv, "key-env", "", "environment `variable` that holds the key; no key is sent when empty")
	f.StringVar(&b.system, "system", "", "system prompt of every call, a `text`; none when empty")
	f.StringVar(&b.extra, "extra", "", "`JSON` object whose members are added to each request, or replace those of it; null takes one out")
	f.Float64Var(&b.temperature, "temperature", 0, "temperature, a `number`; below 0 sends none")
	f.BoolVar(&b.stream, "stream", true, "ask for streams; --stream=false for whole answers")
	f.BoolVar(&b.ignoreEOS, "ignore-eos", false, "make the engine write as many tokens as --output says (vLLM, SGLang and llama.cpp know this)")
	f.DurationVar(&b.timeout, "timeout", 10*time.Minute, "longest `time` that one call may take; 0 is no bound")

	f.StringVar(&b.load, "load", "", "the load in `words`: 'concurrency 8', 'poisson 4/s', 'constant 240/min', 'burst 10 at 2/s'")
	f.IntVar(&b.concurrency, "concurrency", 0, "`number` of calls at a time; with a rate or a replay the most in flight, where 0 is no bound")
	f.StringVar(&b.rate, "rate", "", "`rate` of an open loop, like 4/s or 240/min: arrivals are independent (Poisson)")
	f.StringVar(&b.input, "input", "", "`length` of prompts in tokens: 512, 'uniform 64-512', 'lognormal 256 sd 128 max 2048', or trace; 256 when empty, or trace in a replay")
	f.StringVar(&b.output, "output", "", "`length` of answers, likewise; it bounds them, and with --ignore-eos it is exact. 0 leaves the end to the model; 128 when empty, or trace in a replay")
	f.IntVar(&b.shared, "shared-prefix", 0, "`tokens` that prompts have in common at their beginning, to exercise prefix caches")
	f.IntVar(&b.groups, "prefix-groups", 1, "`number` of different shared beginnings, by turns")
	f.IntVar(&b.calls, "calls", 0, "`number` of measured calls of each repeat; 0 is 100, or no bound with --duration, or all of a trace")
	f.StringVar(&b.duration, "duration", "", "how long each repeat sends calls, a `time` like 2m; no bound when empty")
	f.IntVar(&b.warmup, "warmup", -1, "`number` of calls that are sent before each repeat and left out; -1 is one for each call at a time and at least 5, in a matrix 30")
	f.Float64Var(&b.discard, "discard", -1, "`share` of a repeat's first calls that is left out too, like 0.1; -1 is 0, in a matrix and in a staircase 0.1")
	f.IntVar(&b.repeat, "repeat", 0, "`number` of repeats of each load; 0 is 3, with --thermal 1; a staircase has none")
	f.StringVar(&b.pause, "pause", "1s", "`time` between repeats and between loads; a staircase has none")
	f.BoolVar(&b.thermal, "thermal", false, "run for --duration, 30m by default, and compare its first with its last --window")
	f.StringVar(&b.window, "window", "5m", "length of those windows, a `time`")
	f.Uint64Var(&b.seed, "seed", 1, "decides lengths and arrivals, a `number`; prompts differ from run to run all the same")
	f.StringVar(&b.replay, "replay", "", "replay this `file`: --raw of an earlier run, Caddy's access log in JSON, or a trace (JSONL)")
	f.StringVar(&b.replayLedger, "replay-ledger", "", "replay the calls in this `file`, the gateway's ledger, since --since")
	f.StringVar(&b.since, "since", "1h", "`time` in the ledger at which the replay begins, like 1h or 2026-11-01T09:00:00Z; it lasts as long as --duration, or to the end")
	f.Float64Var(&b.speed, "speed", 1, "`factor` on the speed of a replay")

	f.StringVar(&b.ladder, "ladder", "", "`loads` of a ladder by concurrency, like 1,4,8,16,32: the knee is found and explained")
	f.StringVar(&b.ladderRate, "ladder-rate", "", "`loads` of a ladder by rate, in calls a second, like 1,2,4,8")
	f.Float64Var(&b.headroom, "headroom", 25, "`percent` of a ladder's last good load that the recommendation leaves free")
	f.StringVar(&b.staircase, "staircase", "", "target `rate`, like 6/s: climbs from half of it until TTFT p99 passes 80 % of its objective")
	f.StringVar(&b.stair, "stair", "2m", "`time` that each stair lasts")
	f.StringVar(&b.matrix, "matrix", "", "TOML `file` with groups of loads, as above; warm-up 30, discard 0.1 unless it says otherwise")
	f.StringVar(&b.config, "config", "", "TOML `file` with any of these flags, and groups of loads; flags that are given count over it")

	f.StringVar(&b.objective, "objective", "", "`objectives` of a good call, like ttft=2s,tpot=50ms,e2e=30s; none when empty")
	f.StringVar(&b.profile, "metrics-profile", string(bench.Weir), "`whose` definitions the figures follow: weir, vllm_bench, sglang_bench, guidellm, aiperf or genai_bench")
	f.StringVar(&b.environment, "env", "", "JSON `file` of what HTTP cannot tell (CUDA, commit, dtype …), to be kept with the result")
	f.StringVar(&b.admin, "admin", "", "admin `URL` of the gateway in between, like http://127.0.0.1:2019")
	f.BoolVar(&b.compare, "compare", false, "set the gateway's records of these calls beside the client's; needs --admin, and sends one call more to see that they go through it")
	f.StringVar(&b.baseline, "baseline", "", "earlier result, a `file` of --save, to compare with; a regression ends with status 3")
	f.Float64Var(&b.threshold, "threshold", 10, "`percent` by which a figure may get worse than in the baseline")
	f.BoolVar(&b.force, "force", false, "compare with the baseline of another setup too")
	f.StringVar(&b.save, "save", "", "write the result to this `file`, for --baseline")
	f.StringVar(&b.json, "json", "", "write the result as JSON to this `file`, as in --json=result.json; alone or with - to standard output, in place of the table")
	f.StringVar(&b.csv, "csv", "", "the same as CSV, a line for each repeat and their median: a `file` or standard output")
	f.StringVar(&b.markdown, "markdown", "", "the same as Markdown: a `file` or standard output")
	f.StringVar(&b.html, "html", "", "the same as one HTML page with plots: a `file`, or - for standard output")
	f.StringVar(&b.raw, "raw", "", "write each call as a line of JSON to this `file`")
	f.BoolVar(&b.quiet, "quiet", false, "show no progress")
	f.BoolVar(&b.noColour, "no-color", false, "use no colours; also NO_COLOR in the environment")
	for _, name := range []string{"json", "csv", "markdown"} {
		f.Lookup(name).NoOptDefVal = stdout
	}
}
