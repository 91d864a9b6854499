package engine

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// page is a page of metrics as an engine writes it.
func page(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func share(x float64) Share { return Share{X: x, Known: true} }

func TestReadGauges(t *testing.T) {
	n := exactly
	for name, want := range map[string]Gauges{
		"vllm.txt": {Kind: VLLM, Model: "river", Running: n(11), Waiting: n(5), KVUse: share(0.75), KVMean: share(0.5), KVTokens: n(1103040),
			Preemptions: n(2), PrefixQueries: n(1200), PrefixHits: n(80), Prompt: n(1234570), Generated: n(42),
			Start: time.Unix(1796112180, 0).UTC(), RankCount: 2, Ranks: []Rank{
				{Name: "0", Model: "river", Running: n(3), Waiting: n(0), KVUse: share(0.25), KVTokens: n(551520)},
				{Name: "1", Model: "river", Running: n(8), Waiting: n(5), KVUse: share(0.75), KVTokens: n(551520)}}},
		// Its prefix counters count blocks: they are not read.
		"vllm_v0.txt": {Kind: VLLM, Model: "brook", Running: n(3), Waiting: n(2), Swapped: n(1), KVUse: share(0.5), KVTokens: n(184960), RankCount: 1},
		// Priorities and tensor-parallel ranks repeat what the others say.
		"sglang.txt": {Kind: SGLang, Model: "lake", Running: n(11), Waiting: n(2), KVUse: share(0.875), KVMean: share(0.5), KVTokens: n(524288),
			Preemptions: n(48), PrefixHits: n(15), Prompt: n(8128902), Generated: n(7557572), RankCount: 2, Ranks: []Rank{
				{Name: "0", Model: "lake", Running: n(4), Waiting: n(0), KVUse: share(0.125), KVTokens: n(262144)},
				{Name: "1", Model: "lake", Running: n(7), Waiting: n(2), KVUse: share(0.875), KVTokens: n(262144)}}},
		"sglang_first.txt": {Kind: SGLang, Model: "/models/pond/", Running: n(12), Waiting: n(0), MaxSeqs: n(2231), KVTokens: n(570979), RankCount: 1},
		"tgi.txt":          {Kind: TGI, Running: n(4), Waiting: n(7), RankCount: 1},
		"llamacpp.txt": {Kind: LlamaCPP, Running: n(2), Waiting: n(4), PrefixHits: n(500), Prompt: Figure{1234570, true, 5}, Generated: n(39080),
			Process: "52260001443", RankCount: 1},
		"llamacpp_2024.txt": {Kind: LlamaCPP, Running: n(1), Waiting: n(0), KVUse: share(0.63), Process: "52260001443", RankCount: 1},
	} {
		headers := []string{"Process-Start-Time-Unix", "52260001443"}
		address := serve(t, page(t, name), headers...)
		for _, kind := range []Kind{"", Auto, want.Kind} {
			began := time.Now()
			got, err := ReadGauges(t.Context(), nil, address, kind)
			ended := time.Now()
			if err != nil {
				t.Errorf("%s as %q: %v", name, kind, err)
				continue
			}
			if got.began().Before(began) || got.Time.After(ended) || got.Took < 0 {
				t.Errorf("%s: read at %v in %v, which was between %v and %v", name, got.Time, got.Took, began, ended)
			}
			want.Time, want.Took = got.Time, got.Took
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s as %q:\n got %+v\nwant %+v", name, kind, got, want)
			}
		}
		for _, kind := range Kinds {
			if kind == want.Kind {
				continue
			}
			_, err := ReadGauges(t.Context(), nil, address, kind)
			if err == nil || !strings.Contains(err.Error(), "the page is "+string(want.Kind)+"'s, not "+string(kind)+"'s") {
				t.Errorf("%s as %q: error %v", name, kind, err)
			}
		}
	}
}

func TestReadGaugesErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		kind Kind
		want string
	}{
		"no engine":     {"# TYPE go_goroutines gauge\ngo_goroutines 7\n", Auto, "is this the engine's own address"},
		"empty":         {"", Auto, "is this the engine's own address"},
		"a page":        {"<html>\n<body>vllm</body>\n", VLLM, "is this the engine's own address"},
		"gauges off":    {"vllm:prompt_tokens_total 1\n", Auto, "metrics of vllm without the requests that run"},
		"TGI, fresh":    {"tgi_request_count 0\n", TGI, "TGI from its first request on"},
		"two engines":   {"vllm:num_requests_running 1\nsglang:num_queue_reqs 1\n", Auto, "gauges of both vllm and sglang"},
		"neither of it": {"tgi_queue_size 1\n", LlamaCPP, "the page is tgi's, not llamacpp's"},
		"cut off":       {"vllm:num_requests_running{engine=\"0\n", Auto, "not in Prometheus' text format"},
		"all odd":       {"tgi_queue_size -1\ntgi_batch_current_size 0.5\n", Auto, "tgi_batch_current_size is 0.5, which is not a count; tgi_queue_size is -1"},
		"too many": {strings.Repeat("vllm:num_requests_running 1\n", maxSamples+1), Auto,
			"more than 4096 samples"},
		"longer than we read": {strings.Repeat("#", maxBody+1), Auto, "longer than 16 MiB"},
		"a long secret":       {"vllm:num_requests_running " + strings.Repeat("9", 1<<20) + "x\n", Auto, "not in Prometheus"},
	} {
		address := serve(t, tt.text)
		_, err := ReadGauges(t.Context(), nil, address, tt.kind)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), address+"/metrics") || len(err.Error()) > 1024 {
			t.Errorf("%s: error %.2000v does not say %q", name, err, tt.want)
		}
	}
	// Of two engines on a page the one that is named is read.
	g, err := ReadGauges(t.Context(), nil, serve(t, "vllm:num_requests_running 1\nsglang:num_queue_reqs 2\n"), SGLang)
	if err != nil || g.Kind != SGLang || g.Waiting != exactly(2) || g.Running.Known {
		t.Errorf("got %+v (%v)", g, err)
	}
}

// TestOddFigures: what cannot be true is unknown, is named, and does not hide
// what can be.
func TestOddFigures(t *testing.T) {
	const w = "vllm:num_requests_waiting 2\n"
	for name, tt := range map[string]struct {
		text string
		want Gauges
	}{
		"a fraction":     {"vllm:num_requests_running 1.5\n" + w, Gauges{Odd: []string{"vllm:num_requests_running is 1.5, which is not a count"}}},
		"negative":       {"vllm:num_requests_running -1\n" + w, Gauges{Odd: []string{"vllm:num_requests_running is -1, which is not a count"}}},
		"not a number":   {"vllm:num_requests_running NaN\n" + w, Gauges{Odd: []string{"vllm:num_requests_running is NaN, which is not a count"}}},
		"endless":        {"vllm:num_requests_running +Inf\n" + w, Gauges{Odd: []string{"vllm:num_requests_running is +Inf, which is not a count"}}},
		"beyond counts":  {"vllm:num_requests_running 1e300\n" + w, Gauges{Odd: []string{"vllm:num_requests_running is 1e+300, which is not a count"}}},
		"twice":          {"vllm:num_requests_running 1\nvllm:num_requests_running 2\n" + w, Gauges{Odd: []string{"vllm:num_requests_running is there twice with the same labels"}}},
		"twice, labels":  {"vllm:num_requests_running{a=\"1\",b=\"2\"} 1\nvllm:num_requests_running{b=\"2\",a=\"1\"} 1\n" + w, Gauges{Odd: []string{"vllm:num_requests_running is there twice with the same labels"}}},
		"fuller than it": {"vllm:kv_cache_usage_perc 1.01\n" + w, Gauges{Odd: []string{"vllm:kv_cache_usage_perc is 1.01, which is no share of a whole"}}},
		"full, rounded":  {"vllm:kv_cache_usage_perc 1.0000000001\n" + w, Gauges{KVUse: share(1)}},
		"no blocks yet":  {"vllm:cache_config_info{num_gpu_blocks=\"None\",block_size=\"16\"} 1\n" + w, Gauges{}},
		"hostile blocks": {"vllm:cache_config_info{num_gpu_blocks=\"9000000000000000\",block_size=\"9000000000000000\"} 1\n" + w, Gauges{}},
		"negative block": {"vllm:cache_config_info{num_gpu_blocks=\"-3\",block_size=\"-16\"} 1\n" + w, Gauges{}},
	} {
		got, err := parseGauges([]byte(tt.text), Auto)
		tt.want.Kind, tt.want.Waiting, tt.want.RankCount = VLLM, exactly(2), 1
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s:\n got %+v (%v)\nwant %+v", name, got, err, tt.want)
		}
	}
	// One rank's bad value leaves the sum unknown and the other ranks as they are.
	got, err := parseGauges([]byte("vllm:num_requests_running{engine=\"0\"} -1\nvllm:num_requests_running{engine=\"1\"} 4\nvllm:num_requests_waiting{engine=\"0\"} 1\n"), Auto)
	if err != nil || got.Running.Known || got.Waiting != exactly(1) || len(got.Ranks) != 2 || got.Ranks[0].Running.Known || got.Ranks[1].Running != exactly(4) {
		t.Errorf("got %+v (%v)", got, err)
	}
}

// TestCacheOfOneRank: older versions leave the rank out where there is one only.
func TestCacheOfOneRank(t *testing.T) {
	const cache = "vllm:cache_config_info{num_gpu_blocks=\"10\",block_size=\"16\"} 1\n"
	got, err := parseGauges([]byte("vllm:num_requests_running{engine=\"0\"} 1\n"+cache), Auto)
	if err != nil || got.KVTokens != exactly(160) {
		t.Errorf("got %+v (%v)", got, err)
	}
	// Of two ranks nobody can say whose it is.
	got, err = parseGauges([]byte("vllm:num_requests_running{engine=\"0\"} 1\nvllm:num_requests_running{engine=\"1\"} 1\n"+cache), Auto)
	if err != nil || got.KVTokens.Known || got.Running != exactly(2) {
		t.Errorf("got %+v (%v)", got, err)
	}
}

// TestPrioritiesAlone: where no sum over priorities is shown, it is made.
func TestPrioritiesAlone(t *testing.T) {
	got, err := parseGauges([]byte("sglang:num_queue_reqs{priority=\"1\"} 2\nsglang:num_queue_reqs{priority=\"2\"} 3\n"), Auto)
	if err != nil || got.Waiting != exactly(5) {
		t.Errorf("got %+v (%v)", got, err)
	}
}

func TestParseKind(t *testing.T) {
	for _, kind := range append([]Kind{Auto}, Kinds...) {
		if got, err := ParseKind(string(kind)); got != kind || err != nil {
			t.Errorf("%q is %q (%v)", kind, got, err)
		}
	}
	if got, err := ParseKind(""); got != Auto || err != nil {
		t.Errorf("nothing is %q (%v)", got, err)
	}
	if _, err := ParseKind("ollama"); err == nil || !strings.Contains(err.Error(), "write vllm, sglang, tgi, llamacpp or auto") {
		t.Errorf("error %v", err)
	}
}

// TestGaugesJSON: what is unknown is left out, what is 0 is not.
func TestGaugesJSON(t *testing.T) {
	b, err := json.Marshal(Gauges{Kind: TGI, Waiting: exactly(0), KVUse: share(0)})
	if want := `{"engine":"tgi","time":"0001-01-01T00:00:00Z","waiting":0,"kv_use":0,"rank_count":0}`; err != nil || string(b) != want {
		t.Errorf("got %s (%v)\nwant %s", b, err, want)
	}
	g, err := parseGauges([]byte(page(t, "vllm.txt")), Auto)
	if err != nil {
		t.Fatal(err)
	}
	b, err = json.Marshal(g)
	var back Gauges
	if err := errors.Join(err, json.Unmarshal(b, &back)); err != nil || !reflect.DeepEqual(back, g) {
		t.Errorf("%s was read as %+v (%v)", b, back, err)
	}
	for _, bad := range []string{`"1"`, `2`, `-0.5`, `[]`} {
		if err := new(Share).UnmarshalJSON([]byte(bad)); err == nil {
			t.Errorf("%s was read as a share", bad)
		}
	}
	var s Share
	if b, err := s.MarshalJSON(); err != nil || string(b) != "null" || s.UnmarshalJSON(b) != nil || s.Known {
		t.Errorf("unknown is %s (%v)", b, err)
	}
}
