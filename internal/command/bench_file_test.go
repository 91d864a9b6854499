package command

import (
	"strings"
	"testing"
)

// TestBenchFile: what files come to, and what the command line has in their place.
func TestBenchFile(t *testing.T) {
	const groups = `
		repeat = 2
		input = 64
		[[load]]
		concurrency = [1, 4]
		output = [8, "uniform 8-16"]
		calls = 20
		shared-prefix = 16
		prefix-groups = 2
		[[load]]
		rate = [2.5, "60/min", "burst 3 at 1/s"]
		duration = "10s"
		[[load]]
		concurrency = 2
		input = "lognormal 256 sd 64"
	`
	const eight = `repeat = 2
		concurrency = 8
		input = "uniform 10-20"
		calls = 7`
	const matrix = "--matrix"
	for name, tt := range map[string]struct{ file, args, want string }{
		"config": {eight, "", "concurrency 8 | uniform 10-20 in, 128 out, calls 7, repeat 2"},
		"flags count over it": {eight, "--concurrency 2 --calls 3 --output 5",
			"concurrency 2 | uniform 10-20 in, 5 out, calls 3, repeat 2"},
		"a way to load too":  {eight, "--rate 3/s", "poisson 3/s | uniform 10-20 in, 128 out, calls 7, repeat 2"},
		"one of several":     {"ladder = [1, 2]\ncalls = 3", "--concurrency 5", "concurrency 5 | 256 in, 128 out, calls 3"},
		"ladder as a list":   {"ladder = [1, 2]\ncalls = 3", "", "concurrency 1 | 256 in, 128 out, calls 3; concurrency 2 | 256 in, 128 out, calls 3; ladder with headroom 0.25"},
		"a bound is kept":    {"rate = 4\nconcurrency = 9", "--rate 5/s", "poisson 5/s max 9 | 256 in, 128 out, calls 100"},
		"a bound is changed": {"rate = 4\nconcurrency = 9", "--concurrency 3", "poisson 4/s max 3 | 256 in, 128 out, calls 100"},
		"words":              {`load = "constant 2/s"`, "--concurrency 3", "constant 2/s max 3 | 256 in, 128 out, calls 100"},
		"other words":        {`load = "constant 2/s"`, "--load=poisson_3/s", "poisson 3/s | 256 in, 128 out, calls 100"},
		"no groups":          {groups, "--concurrency 3", "concurrency 3 | 64 in, 128 out, calls 100, repeat 2"},
		"groups": {groups, "", "concurrency 1 | 64 in, 8 out, calls 20, repeat 2, shared {16 2}; concurrency 1 | 64 in, uniform 8-16 out, calls 20, repeat 2, shared {16 2}; " +
			"concurrency 4 | 64 in, 8 out, calls 20, repeat 2, shared {16 2}; concurrency 4 | 64 in, uniform 8-16 out, calls 20, repeat 2, shared {16 2}; " +
			"poisson 2.5/s | 64 in, 128 out, for 10s, repeat 2; poisson 1/s | 64 in, 128 out, for 10s, repeat 2; burst 3 at 1/s | 64 in, 128 out, for 10s, repeat 2; " +
			"concurrency 2 | lognormal 256 sd 64 in, 128 out, calls 100, repeat 2"},
		"groups with flags": {groups, "--calls 3 --output 5 --input 30 --shared-prefix 7", "concurrency 1 | 30 in, 5 out, calls 3, repeat 2, shared {7 1}; concurrency 4 | 30 in, 5 out, calls 3, repeat 2, shared {7 1}; " +
			"poisson 2.5/s | 30 in, 5 out, calls 3, repeat 2, shared {7 1}; poisson 1/s | 30 in, 5 out, calls 3, repeat 2, shared {7 1}; burst 3 at 1/s | 30 in, 5 out, calls 3, repeat 2, shared {7 1}; " +
			"concurrency 2 | 30 in, 5 out, calls 3, repeat 2, shared {7 1}"},
		"a matrix": {"[[load]]\nconcurrency = 1", matrix, "concurrency 1 | 256 in, 128 out, calls 100, warmup 30, discard 0.1"},
		"a matrix of its own mind": {"warmup = 2\ndiscard = 0\npause = \"0\"\n[[load]]\nconcurrency = 1", matrix + " --warmup 4",
			"concurrency 1 | 256 in, 128 out, calls 100, warmup 4, pause -1ns"},
		"stairs": {"staircase = 6\nobjective = \"ttft=1s\"", "", "stairs to 6/s of 2m0s, TTFT 1s, max 0 | 256 in, 128 out"},
		"none":   {"", "--concurrency 1", "concurrency 1 | 256 in, 128 out, calls 100"},
	} {
		args := strings.Fields(strings.ReplaceAll(tt.args, "_", " "))
		if strings.HasPrefix(tt.args, "--load=") {
			args = []string{strings.ReplaceAll(tt.args, "_", " ")}
		}
		flag := "--config"
		if len(args) > 0 && args[0] == matrix {
			flag, args = matrix, args[1:]
		}
		_, p, err := planned(t, append(args, "--url", "h", flag, writeText(t, "bench.toml", tt.file))...)
		if got := strings.Join(inWords(p), "; "); got != tt.want || err != nil {
			t.Errorf("%s:\n got %s (%v)\nwant %s", name, got, err, tt.want)
		}
	}
}

// TestBenchFileFlags: each kind of value arrives.
func TestBenchFileFlags(t *testing.T) {
	b, _, err := planned(t, "--model", "mine", "--config", writeText(t, "bench.toml", `
		url = "http://h:1"
		model = "theirs"
		concurrency = 1
		temperature = 0.7
		stream = false
		seed = 9
		timeout = "30s"
		since = 2026-11-01T09:00:00Z
		key-env = "SOME_KEY"
		csv = "out.csv"
		extra = '{"top_k": 1}'
	`))
	if err != nil || b.url != "http://h:1" || b.model != "mine" || b.temperature != 0.7 || b.stream || b.seed != 9 || b.timeout.Seconds() != 30 ||
		b.since != "2026-11-01T09:00:00Z" || b.keyEnv != "SOME_KEY" || b.csv != "out.csv" || b.extra == "" {
		t.Errorf("got %+v (%v)", b.benchFlags, err)
	}
}

// TestBenchFileErrors: each names the file and what is wrong in it.
func TestBenchFileErrors(t *testing.T) {
	for _, tt := range []struct{ file, want string }{
		{"concurency = 8", `there is no "concurency"; did you mean concurrency`},
		{"xyzzyxyzzyxyzzyxyzzy = 8", `there is no "xyzzyxyzzyxyzzyxyzzy"; what may stand here`},
		{"config = \"other.toml\"", `there is no "config"`},
		{"help = true", `there is no "help"`},
		{"concurrency = 4.5", `concurrency must be a whole number, and "4.5" is not`},
		{"concurrency = [1, 2]", "concurrency must be a whole number"},
		{"seed = -1", "seed must be a whole number from 0 on"},
		{"stream = \"perhaps\"", "stream must be true or false"},
		{"temperature = \"hot\"", "temperature must be a number"},
		{"timeout = 30", `timeout must be a time like "5m"`},
		{"[concurrency]\nx = 1", "concurrency is a table"},
		{"[[concurrency]]\nx = 1", "concurrency is a table"},
		{"concurrency = ", "toml: line 1"},
		{"concurrency = 1\nconcurrency = 2", "toml"},
		{"load = 5", "load is neither a text nor a group"},
		{"[load]\nconcurrency = 1", "begin each group with [[load]], in two brackets"},
		{"load = [1]", "[[load]]: "},
		{"[[load]]\nconcurency = 1", "[[load]] has no concurency; it has concurrency, rate"},
		{"[[load]]\noutput = 1", "[[load]] number 1: give it either concurrency or rate"},
		{"[[load]]\nconcurrency = 1\nrate = 1", "give it either concurrency or rate"},
		{"[[load]]\nconcurrency = 1\n[[load]]\nconcurrency = 0", "[[load]] number 2: concurrency: 0 is not within"},
		{"[[load]]\nconcurrency = \"many\"", "many is a text, where a whole number is wanted"},
		{"[[load]]\nconcurrency = [1, 2.5]", "2.5 is a number, where a whole number is wanted"},
		{"[[load]]\nconcurrency = [true]", "true is true or false, where"},
		{"[[load]]\nconcurrency = [[1]]", "is a list, where"},
		{"[[load]]\nconcurrency = []", "a list is empty"},
		{"[[load]]\nrate = \"fast\"", "rate: read arrivals"},
		{"[[load]]\nconcurrency = 1\ninput = [1, \"x\"]", "input: read length"},
		{"[[load]]\nconcurrency = 1\noutput = [true]", "output: read length"},
		{"[[load]]\nconcurrency = 1\ncalls = \"x\"", "[[load]]: "},
		{"[[load]]\nconcurrency = 1\ncalls = -1", "cannot be below 0"},
		{"[[load]]\nconcurrency = 1\nduration = \"soon\"", "duration: "},
		{"[[load]]\nconcurrency = 1\nshared-prefix = 999", "cannot have 999 in common"},
		{"concurrency = 1\n[[load]]\nconcurrency = 1", "exclude each other: that has numbers of its own"},
		{"rate = 1\n[[load]]\nconcurrency = 1", "exclude each other"},
		{"ignore-eos = true\n[[load]]\nconcurrency = 1\noutput = 0", "concurrency 1, 256 in, none out: --ignore-eos needs"},
		{"[[load]]\nconcurrency = 1\ninput = [" + strings.Repeat("1,", 1001) + "]", "1001 combinations"},
		{strings.Repeat("[[load]]\nconcurrency = 1\ninput = ["+strings.Repeat("1,", 400)+"]\n", 3), "more than 1000 combinations"},
	} {
		_, _, err := planned(t, "--url", "h", "--config", writeText(t, "bench.toml", tt.file))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.200s: error %v does not say %q", tt.file, err, tt.want)
		}
	}
	for _, tt := range []struct{ file, args, want string }{
		{"concurrency = 1", "", "it has no loads"},
		{"[[load]]\nconcurrency = 1", "--concurrency 2", "--concurrency and [[load]] groups of a file exclude each other"},
		{"[[load]]\nconcurrency = 1", "--ladder 2", "exclude each other"},
	} {
		_, _, err := planned(t, append(strings.Fields(tt.args), "--url", "h", "--matrix", writeText(t, "loads.toml", tt.file))...)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s with %s: error %v does not say %q", tt.file, tt.args, err, tt.want)
		}
	}
}

// FuzzBenchFile: whatever stands in a file, there is a plan or an error, and a plan
// is one that can be carried out.
func FuzzBenchFile(f *testing.F) {
	for _, seed := range []string{matrixExample, "concurrency = 8", "ladder = [1,2]", "[[load]]\nrate = [1, \"burst 2 at 1/s\"]\nduration = \"1s\"", "load = \"poisson 1/s\"", "[load]", "load = {}", "load = [[]]", "since = 1979-05-27"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "replay") {
			return // other files
		}
		_, p, err := planned(t, "--url", "h", "--config", writeText(t, "bench.toml", text))
		if err != nil {
			return
		}
		if len(p.loads) == 0 && p.stairs == nil {
			t.Fatalf("no loads and no error for %q", text)
		}
		for i := range p.loads {
			if err := p.loads[i].Validate(); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}
