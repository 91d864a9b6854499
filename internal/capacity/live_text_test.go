package capacity

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weirgate/weir/internal/call"
)

// results are one of each kind.
func results(t *testing.T) map[string]Result {
	t.Helper()
	records := made(900, rising(900), nil)
	given := Options{TTFT: Objective{Limit: 2 * time.Second}, TPOT: Objective{Limit: 60 * time.Millisecond}, TargetCallsPerSecond: 40, Rounds: 20,
		Engines: map[string]Limits{upstream: {MaxNumSeqs: call.Known(12), KVTokens: call.Known(100000), GPUs: call.Known(2)}}}
	unknown := given
	unknown.Engines = nil
	list := map[string]Result{}
	for name, o := range map[string]Options{"estimate": given, "lower_bound": unknown, "refused": {}} {
		r, err := Estimate(records, o)
		if err != nil {
			t.Fatal(err)
		}
		list[name] = r
	}
	r, err := Estimate(nil, given)
	if err != nil {
		t.Fatal(err)
	}
	list["nothing"] = r
	return list
}

// TestText holds the words to files; run with WEIR_GOLDEN=1 to write them anew.
func TestText(t *testing.T) {
	for name, r := range results(t) {
		var b bytes.Buffer
		if err := Text(&b, r); err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(b.String(), "\n") {
			if utf8.RuneCountInString(line) > 79 || strings.TrimRight(line, " ") != line {
				t.Errorf("%s, line %d: %q", name, i+1, line)
			}
		}
		file := filepath.Join("testdata", "live_"+name+".txt")
		if os.Getenv("WEIR_GOLDEN") != "" {
			if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if b.String() != string(want) {
			t.Errorf("%s is\n%s\nand not\n%s", name, b.String(), want)
		}
	}
}

// unitless are JSON fields of numbers that are counts of what their name says, or quantiles.
var unitless = regexp.MustCompile(`^(calls.*|replicas.*|.*_replicas|.*gpus.*|.*_over_calls|.*_fitted|.*_quantile|watermark|derate|value|difference|share_of_engine)$`)

var unit = regexp.MustCompile(`_(ms|ms_per_sequence|us_per_token|calls_per_second|calls_per_second_per_replica|tokens_per_second|calls|share|sequences|p5_sequences|p95_sequences|tokens|residual_median|residual_p95|drift_busiest_third)$`)

// TestJSON: every number names its unit, and the whole can be read again.
func TestJSON(t *testing.T) {
	for name, r := range results(t) {
		var b bytes.Buffer
		if err := JSON(&b, r); err != nil {
			t.Fatal(err)
		}
		var back Result
		if err := json.Unmarshal(b.Bytes(), &back); err != nil {
			t.Fatal(err)
		}
		var again bytes.Buffer
		if err := JSON(&again, back); err != nil || again.String() != b.String() {
			t.Errorf("%s: read and written again it is %v\n%s\nand was\n%s", name, err, again.String(), b.String())
		}
		var tree map[string]any
		if err := json.Unmarshal(b.Bytes(), &tree); err != nil {
			t.Fatal(err)
		}
		var walk func(v any, key string)
		walk = func(v any, key string) {
			switch v := v.(type) {
			case map[string]any:
				for k, w := range v {
					walk(w, k)
				}
			case []any:
				for _, w := range v {
					walk(w, key)
				}
			case float64:
				if !unitless.MatchString(key) && !unit.MatchString(key) {
					t.Errorf("%s: %q does not name its unit", name, key)
				}
			case nil:
				t.Errorf("%s: %q is null", name, key)
			}
		}
		walk(tree, "")
	}
}

type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteFails(t *testing.T) {
	if err := Text(full{}, Result{}); !errors.Is(err, errFull) {
		t.Error(err)
	}
	if err := JSON(full{}, Result{}); !errors.Is(err, errFull) {
		t.Error(err)
	}
}

// TestHostileNames: what comes from outside cannot write to a terminal.
func TestHostileNames(t *testing.T) {
	r := Result{Calls: 1, Class: "a\x1b[31m", Upstreams: []Upstream{{Upstream: "u\x1b]0;x\a", Model: "m\u202e\n\x00", Label: Refused, Notes: []string{"\x1b[2J"}}}, Fleets: []Fleet{{Model: "\r"}}}
	var b bytes.Buffer
	if err := Text(&b, r); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b\a\r\x00\u202e") {
		t.Errorf("%q", b.String())
	}
}

func TestWords(t *testing.T) {
	for want, got := range map[string]string{
		"0": liveNumber(0), "12.3": liveNumber(12.345), "0.00123": liveNumber(0.0012345), "1234": liveNumber(1234.4), "-2.5": liveNumber(-2.5), "unknown": liveFigure(call.Number{}, " x"),
		"1.6 s": liveSpan(call.Lasting(1600 * time.Millisecond)), "45 ms": liveSpan(call.Lasting(45 * time.Millisecond)), "364 µs": liveSpan(call.Lasting(364 * time.Microsecond)), "0 ms": liveSpan(call.Lasting(0)),
		"1 call": liveCalls(1), "2 replicas": liveReplicas(2), "1 replica": liveReplicas(1),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
