package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/endpoint"
)

// measured is a result of a service whose times scatter by 20 %, and are so many
// times longer than usual.
func measured(t *testing.T, seed uint64, slower float64, calls int) Result {
	t.Helper()
	var r Result
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(seed, 9))
		f := &fake{answer: func(int, time.Duration) script {
			ms := func(v float64) time.Duration {
				return time.Duration(slower * v * (1 + 0.2*random.Float64()) * float64(time.Millisecond))
			}
			return script{ttft: ms(200), tpot: ms(20), tokens: 50}
		}}
		run := measure(t, start(t, config(f)), Load{Arrivals: atOnce(8), Input: fixed(10), Output: fixed(50), Calls: calls})
		r = Result{Version: 1, Streamed: true, Runs: []Run{run}, Environment: Environment{Channel: "http://a", API: endpoint.Chat, Model: "m", Profile: Weir}}
	})
	return r
}

func verdicts(r Regression) string {
	var all []string
	for _, row := range r.Rows {
		all = append(all, fmt.Sprintf("%s %s", row.Figure, row.Verdict))
	}
	return strings.Join(all, ", ")
}

// TestAgainst: what changed beyond the threshold is found, with the file alone;
// what did not change raises no alarm.
func TestAgainst(t *testing.T) {
	base := measured(t, 1, 1, 400)
	for _, c := range []struct {
		slower float64
		want   string
		failed bool
	}{
		{1, "TTFT p99 unchanged, TPOT p99 unchanged, throughput unchanged", false},
		{1.3, "TTFT p99 regressed, TPOT p99 regressed, throughput regressed", true},
		{0.7, "TTFT p99 improved, TPOT p99 improved, throughput improved", false},
	} {
		now := measured(t, 2, c.slower, 400)
		r, err := Against(throughFile(t, base), throughFile(t, now), BaselineOptions{})
		if err != nil || verdicts(r) != c.want || r.Failed != c.failed || r.Threshold != DefaultThreshold {
			t.Errorf("%v times slower: %v, %s, failed %t", c.slower, err, verdicts(r), r.Failed)
		}
		for _, row := range r.Rows {
			ratio := c.slower
			if row.Figure == throughput {
				ratio = 1 / ratio
			}
			near(t, row.Figure, row.Ratio, ratio, 0.03)
			if !(*row.Low <= row.Ratio && row.Ratio <= *row.High) || row.Load != "concurrency 8" || row.Base <= 0 {
				t.Errorf("%+v", row)
			}
		}
	}
	// Close to the threshold nothing is certain, and nothing fails.
	r, err := Against(base, measured(t, 3, 1.1, 400), BaselineOptions{})
	if err != nil || r.Failed || !strings.Contains(verdicts(r), "uncertain") {
		t.Errorf("%v: %s", err, verdicts(r))
	}
	for _, row := range r.Rows {
		if row.Verdict == Uncertain && !strings.Contains(row.Note, "reaches across 10 %") {
			t.Errorf("%s is uncertain, and why is not said: %q", row.Figure, row.Note)
		}
	}
	// A wider threshold lets more pass.
	if r, err = Against(base, measured(t, 2, 1.3, 400), BaselineOptions{Threshold: 0.5}); err != nil || r.Failed {
		t.Errorf("%v: %s", err, verdicts(r))
	}
	// A client that was too slow proves nothing.
	now := measured(t, 2, 1.3, 400)
	now.Runs[0].Median.Client = Client{Distorted: true}
	if r, err = Against(base, now, BaselineOptions{}); err != nil || r.Failed || r.Rows[0].Verdict != Uncertain || !strings.Contains(r.Rows[0].Note, "is not known") {
		t.Errorf("%v: %+v", err, r.Rows)
	}
	// Too few calls are no proof for a p99 either, and that is said.
	r, err = Against(measured(t, 1, 1, 20), measured(t, 2, 1, 20), BaselineOptions{})
	if err != nil || r.Failed || !strings.Contains(r.Rows[0].Note, "60 calls") {
		t.Errorf("%v: %+v", err, r.Rows)
	}
}

// TestAgainstLateClient: a distorted client hides only the changes that its delay
// could explain, and the row says so.
func TestAgainstLateClient(t *testing.T) {
	base, now := measured(t, 1, 1, 400), measured(t, 2, 1.3, 400)
	// About 72 ms of 240 in TTFT, 7.2 of 24 in TPOT of 50 tokens, and 23 % of the
	// throughput of calls that take 1,300 to 1,600 ms.
	for _, c := range []struct {
		delay float64
		want  string
	}{
		{3, "TTFT p99 regressed, TPOT p99 regressed, throughput regressed"},
		{100, "TTFT p99 uncertain, TPOT p99 regressed, throughput regressed"},
		{340, "TTFT p99 uncertain, TPOT p99 regressed, throughput uncertain"},
		{500, "TTFT p99 uncertain, TPOT p99 uncertain, throughput uncertain"},
	} {
		for _, side := range []*Result{&base, &now} {
			base.Runs[0].Median.Client.Distorted, now.Runs[0].Median.Client.Distorted = false, false
			base.Runs[0].Repeats[1].Client.Delay.P99, now.Runs[0].Repeats[1].Client.Delay.P99 = 0, 0
			// The worst repeat counts, whatever the median is.
			side.Runs[0].Repeats[1].Client.Delay.P99, side.Runs[0].Median.Client.Distorted = c.delay, true
			r, err := Against(base, now, BaselineOptions{})
			if err != nil || verdicts(r) != c.want {
				t.Errorf("late by %v ms: %v, %s", c.delay, err, verdicts(r))
			}
			for _, row := range r.Rows {
				if says := strings.Contains(row.Note, fmt.Sprintf("late by up to %v ms", c.delay)); says != (row.Verdict == Uncertain) {
					t.Errorf("late by %v ms, %s %s: %q", c.delay, row.Figure, row.Verdict, row.Note)
				}
			}
		}
	}
}

// throughFile writes and reads a result as a file would be.
func throughFile(t *testing.T, r Result) (back Result) {
	t.Helper()
	b, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(b, &back)
	}
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// TestAgainstRefuses results of different setups, and names what differs.
func TestAgainstRefuses(t *testing.T) {
	base := measured(t, 1, 1, 50)
	gpu := func(name string) []map[string]string { return []map[string]string{{"name": name}} }
	base.Environment.GPU = gpu("one")
	for hint, change := range map[string]func(*Result){
		"channel http://a, now http://b":      func(r *Result) { r.Environment.Channel = "http://b" },
		"API chat, now messages":              func(r *Result) { r.Environment.API = endpoint.Messages },
		"model m, now unknown":                func(r *Result) { r.Environment.Model = "" },
		"metrics profile":                     func(r *Result) { r.Environment.Profile = AIPerf },
		"streamed true, now false":            func(r *Result) { r.Streamed = false },
		"GPUs one, now two":                   func(r *Result) { r.Environment.GPU = gpu("two") },
		"other arrivals":                      func(r *Result) { r.Runs[0].Input = fixed(11) },
		`"else" is not in the baseline`:       func(r *Result) { r.Runs = append(r.Runs, Run{Load: "else"}) },
		`"concurrency 8" is only in the base`: func(r *Result) { r.Runs = append(r.Runs[:0:0], Run{Load: "else"}) },
	} {
		now := throughFile(t, base)
		change(&now)
		if _, err := Against(base, now, BaselineOptions{}); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%v does not say %q", err, hint)
		}
		r, err := Against(base, now, BaselineOptions{Force: true})
		if now.Runs[0].Load == "else" {
			if err == nil {
				t.Error("nothing in common, and no error")
			}
		} else if err != nil || len(r.Rows) != 3 || !strings.Contains(strings.Join(r.Notes, "; "), hint) {
			t.Errorf("forced: %v, %q", err, r.Notes)
		}
	}
	unread := throughFile(t, base)
	unread.Environment.GPU = nil
	unread.Environment.Engine = map[string]string{"version": "2"}
	if _, err := Against(base, unread, BaselineOptions{}); err != nil {
		t.Errorf("GPUs that could not be read: %v", err)
	}
	unread.Version = 2
	if _, err := Against(base, unread, BaselineOptions{Force: true}); err == nil {
		t.Error("another version of the form")
	}
	for _, threshold := range []float64{-1, 1, math.NaN()} {
		if _, err := Against(base, base, BaselineOptions{Threshold: threshold}); err == nil {
			t.Errorf("threshold %v", threshold)
		}
	}
}

func TestRemarks(t *testing.T) {
	base, now := Result{Environment: Environment{Engine: map[string]string{"version": "1", "n_ctx": "8"}, Weir: "v1"}}, Result{Interrupted: true}
	now.Environment = Environment{Engine: map[string]string{"version": "2", "n_ctx": "8", "new": "x"}, Weir: "v2", Gateway: "weir"}
	now.Runs = []Run{{Repeats: []Figures{{Calls: 10, Good: 8}}}}
	got := strings.Join(remarks(&base, &now), "\n")
	for _, want := range []string{"engine version was 1, now 2", "gateway was unknown, now weir", "measured by weir v1, now by v2", "this result was interrupted", "in this result 2 of 10 calls failed"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
	if strings.Contains(got, "n_ctx") {
		t.Error(got)
	}
}

// TestSlices: work is spread over the time it took, and none is lost.
func TestSlices(t *testing.T) {
	raw := Raw{Of: 40, Seconds: 10}
	for i := range 20 { // two of four calls were kept, each of half a second and 10 tokens
		raw.At, raw.E2E, raw.Tokens = append(raw.At, float32(i*500)), append(raw.E2E, 500), append(raw.Tokens, 10)
	}
	all := slicesOf(&Run{Raw: []Raw{raw, {}, {Of: 1, Seconds: 1, At: Series{0}, E2E: Series{900}, Tokens: Series{1}}}}, true)
	if len(all) != mostSlices {
		t.Fatalf("%d slices", len(all))
	}
	for _, v := range all {
		near(t, "tokens/s", v, 40, 1e-6)
	}
	nan := float32(math.NaN())
	broken := Raw{Of: 2, Seconds: 100, At: Series{nan, 5}, E2E: Series{1, 1, 1}, Tokens: Series{1, nan}}
	for _, v := range slicesOf(&Run{Raw: []Raw{broken}}, true) {
		if math.IsNaN(v) {
			t.Error("a broken file makes a throughput")
		}
	}
}

// TestRaw: of many calls a uniform sample is kept, and unknown figures stay so.
func TestRaw(t *testing.T) {
	var points []point
	for i := range 500 {
		p := one(i*10, i*10+100)
		p.index = int32(i)
		if i%2 == 1 {
			p.ttft, p.output = unknown, -1
		}
		points = append(points, p)
	}
	points[0].discarded, points[1].failed = true, endpoint.FailedServer
	tk := taken(points...)
	r := tk.raw(1000)
	if r.Of != 498 || len(r.At) != 498 || r.At[0] != 10 || r.TTFT[0] != 10 || !math.IsNaN(float64(r.TTFT[1])) || r.Tokens[0] != 150 || !math.IsNaN(float64(r.Tokens[1])) || r.Output[0] != 50 || !math.IsNaN(float64(r.Output[1])) {
		t.Errorf("%d of %d: %v", len(r.At), r.Of, r.At[:3])
	}
	r = tk.raw(100)
	if r.Of != 498 || len(r.At) != 100 || len(r.TPOT) != 100 {
		t.Errorf("%d of %d", len(r.At), r.Of)
	}
	for i := range r.At[1:] {
		if r.At[i+1] <= r.At[i] {
			t.Fatal("not in the order of their ends")
		}
	}
	back := Raw{}
	b, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(b, &back)
	}
	if err != nil || len(back.TTFT) != 100 || strings.Count(string(b), "null") == 0 {
		t.Fatalf("%v: %s", err, b)
	}
	for i, v := range r.TTFT {
		if w := back.TTFT[i]; v != w && !(math.IsNaN(float64(v)) && math.IsNaN(float64(w))) {
			t.Errorf("%v came back as %v", v, w)
		}
	}
	if tk := taken(failed(0, 1)); tk.raw(10).Of != 0 {
		t.Error("failed calls are kept")
	}
}
