package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/slo"
)

// promised is a gateway whose interactive calls have objectives.
func promised(t *testing.T, objectives ...string) (*Gateway, *slo.Tracker) {
	t.Helper()
	class := slo.Class{Name: "interactive"}
	for _, line := range objectives {
		o, err := slo.ParseObjective(line)
		if err != nil {
			t.Fatal(err)
		}
		class = class.With(o)
	}
	cfg, _, err := slo.Config{Classes: []slo.Class{class}}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	tracker := slo.New()
	if err := tracker.Configure(cfg, time.Now()); err != nil {
		t.Fatal(err)
	}
	g := New(new(counted))
	g.Judge(tracker)
	return g, tracker
}

// sums returns the counts of each objective over all models.
func sums(tracker *slo.Tracker) map[string]slo.Counts {
	all := make(map[string]slo.Counts)
	for _, o := range tracker.Status(time.Now()).Objectives {
		if o.Model == slo.AllModels {
			all[o.Objective.Name] = o.Counts
		}
	}
	return all
}

func wantSums(t *testing.T, tracker *slo.Tracker, want map[string]slo.Counts) {
	t.Helper()
	got := sums(tracker)
	for name, counts := range want {
		if got[name] != counts {
			t.Errorf("%s: %+v, want %+v", name, got[name], counts)
		}
	}
}

var options = &Options{Class: "interactive"}

func chatRequest(stream bool) *http.Request {
	body := `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
	if stream {
		body = `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hello"}]}`
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return r
}

// streams answers with a token after a while, then another, then the end.
func streams(first, gap time.Duration) NextFunc {
	return func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		for i, wait := range []time.Duration{first, gap} {
			time.Sleep(wait)
			_, _ = w.Write([]byte(`data: {"choices":[{"index":0,"delta":{"content":"word"},"finish_reason":` + []string{"null", `"stop"`}[i] + "}]}\n\n"))
		}
		_, _ = w.Write([]byte("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,\"total_tokens\":7}}\n\ndata: [DONE]\n\n"))
		return nil
	}
}

// TestJudgedWhenDecided: a call without a first token is bad when the threshold
// passes, long before it ends.
func TestJudgedWhenDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, tracker := promised(t, "ttft p99 <= 2s", "e2e p95 <= 5s", "success 99.9%", "goodput 95%")
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = g.Begin(chatRequest(true), options, &Surroundings{}).Serve(httptest.NewRecorder(), streams(20*time.Second, time.Second))
		}()
		time.Sleep(1999 * time.Millisecond)
		tracker.Tick(time.Now())
		wantSums(t, tracker, map[string]slo.Counts{"ttft_p99": {}, "goodput": {}})
		time.Sleep(2 * time.Millisecond)
		tracker.Tick(time.Now())
		wantSums(t, tracker, map[string]slo.Counts{"ttft_p99": {Bad: 1}, "e2e_p95": {}, "success": {}, "goodput": {Bad: 1}})
		time.Sleep(4 * time.Second)
		tracker.Tick(time.Now())
		wantSums(t, tracker, map[string]slo.Counts{"ttft_p99": {Bad: 1}, "e2e_p95": {Bad: 1}, "success": {}})
		<-done
		wantSums(t, tracker, map[string]slo.Counts{"ttft_p99": {Bad: 1}, "e2e_p95": {Bad: 1}, "success": {Good: 1}, "goodput": {Bad: 1}})
	})
}

// TestJudged: what calls count for, by how they end.
func TestJudged(t *testing.T) {
	all := []string{"ttft p99 <= 2s", "tpot p95 <= 40ms", "e2e p95 <= 5s", "queue p99 <= 1s", "success 99.9%", "goodput 95%"}
	good, bad, unknown := slo.Counts{Good: 1}, slo.Counts{Bad: 1}, slo.Counts{Unknown: 1}
	status := func(code int, after time.Duration) NextFunc {
		return func(w http.ResponseWriter, _ *http.Request) error {
			time.Sleep(after)
			w.WriteHeader(code)
			_, _ = w.Write([]byte(`{"error":{"message":"no"}}`))
			return nil
		}
	}
	for name, c := range map[string]struct {
		stream bool
		next   NextFunc
		want   map[string]slo.Counts
	}{
		"good": {true, streams(time.Second, 30*time.Millisecond), map[string]slo.Counts{
			"ttft_p99": good, "tpot_p95": good, "e2e_p95": good, "queue_p99": good, "success": good, "goodput": good}},
		"perhaps queued": {true, streams(1500*time.Millisecond, 30*time.Millisecond), map[string]slo.Counts{
			"ttft_p99": good, "tpot_p95": good, "e2e_p95": good, "queue_p99": unknown, "success": good, "goodput": unknown}},
		"slow tokens": {true, streams(time.Second, 50*time.Millisecond), map[string]slo.Counts{
			"ttft_p99": good, "tpot_p95": bad, "success": good, "goodput": bad}},
		"client's error": {true, status(http.StatusBadRequest, 0), map[string]slo.Counts{
			"ttft_p99": {}, "tpot_p95": {}, "e2e_p95": {}, "queue_p99": {}, "success": {}, "goodput": {}}},
		"overload": {true, status(http.StatusTooManyRequests, 0), map[string]slo.Counts{
			"ttft_p99": {}, "e2e_p95": {}, "success": bad, "goodput": bad}},
		"quick error": {false, status(http.StatusBadGateway, 0), map[string]slo.Counts{
			"ttft_p99": {}, "e2e_p95": {}, "success": bad, "goodput": bad}},
		"late error": {true, status(http.StatusBadRequest, 3*time.Second), map[string]slo.Counts{
			"ttft_p99": bad, "e2e_p95": {}, "success": {}, "goodput": bad}},
		"no tokens to a JSON answer": {false, func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"choices":[{"index":0,"message":{"content":"word"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`))
			return nil
		}, map[string]slo.Counts{"ttft_p99": {}, "tpot_p95": {}, "e2e_p95": good, "success": good}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, tracker := promised(t, all...)
				_ = g.Begin(chatRequest(c.stream), options, &Surroundings{}).Serve(httptest.NewRecorder(), c.next)
				wantSums(t, tracker, c.want)
				if got := sums(tracker); len(got) != len(all) {
					t.Errorf("objectives %v", got)
				}
			})
		})
	}
}

// TestNotJudged: load tests, probes and the faults of a tracker's own touch nothing.
func TestNotJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, tracker := promised(t, "ttft p99 <= 2s", "success 99.9%")
		r := chatRequest(true)
		name, word := g.ProbeHeader()
		r.Header.Set(name, word)
		c := g.Begin(r, options, &Surroundings{})
		var upstream http.Header
		_ = c.Serve(httptest.NewRecorder(), NextFunc(func(w http.ResponseWriter, r *http.Request) error {
			upstream = r.Header.Clone()
			return streams(3*time.Second, 0)(w, r)
		}))
		if rec := c.Record(); !rec.Probe || rec.Outcome != call.Completed || upstream.Get(name) != "" {
			t.Errorf("probe %t, outcome %s, the upstream got %q", rec.Probe, rec.Outcome, upstream.Get(name))
		}
		r = chatRequest(true)
		r.Header.Set(name, "a guess")
		c = g.Begin(r, options, &Surroundings{})
		_ = c.Serve(httptest.NewRecorder(), NextFunc(func(w http.ResponseWriter, r *http.Request) error {
			upstream = r.Header.Clone()
			return streams(0, 0)(w, r)
		}))
		if rec := c.Record(); rec.Probe || upstream.Get(name) != "a guess" {
			t.Errorf("a guessed mark: probe %t, the upstream got %q", rec.Probe, upstream.Get(name))
		}
		wantSums(t, tracker, map[string]slo.Counts{"ttft_p99": {Good: 1}, "success": {Good: 1}})
	})
}

// TestEndings: whose an outcome is.
func TestEndings(t *testing.T) {
	for _, c := range []struct {
		outcome call.Outcome
		status  int
		by      string
		want    slo.Ending
	}{
		{call.Completed, 200, "", slo.Answered},
		{call.ClientGone, 0, "", slo.Left},
		{call.ReaderStalled, 200, "", slo.Excused},
		{call.UpstreamError, 500, "", slo.Failed},
		{call.UpstreamError, 503, "", slo.Failed},
		{call.UpstreamError, 429, "", slo.Failed},
		{call.UpstreamError, 404, "", slo.Excused},
		{call.UpstreamError, 0, "", slo.Failed},
		{call.UpstreamError, 413, "", slo.Excused},
		{call.Timeout, 504, "", slo.Failed},
		{call.Timeout, 408, "", slo.Excused},
		{call.Timeout, 200, "", slo.Failed},
		{call.StreamError, 200, "", slo.Failed},
		{call.Truncated, 200, "", slo.Failed},
		{call.Unrecognised, 200, "", slo.Failed},
		{call.GatewayShutdown, 200, "", slo.Failed},
		{call.InternalError, 500, "", slo.Failed},
		{call.Refused, 429, "key tokens_per_minute", slo.Excused},
		{call.Refused, 429, "key_model requests_per_minute", slo.Excused},
		{call.Refused, 429, "budget", slo.Excused},
		{call.Refused, 429, "pool tokens_per_minute", slo.Failed},
		{call.Refused, 429, "model concurrency", slo.Failed},
		{call.Refused, 503, "queue full", slo.Failed},
		{call.Refused, 503, "queue full_key", slo.Excused},
		{call.Refused, 503, "ledger", slo.Failed},
		{call.Refused, 401, "key", slo.Excused},
		{call.Refused, 403, "model", slo.Excused},
	} {
		rec := new(call.Record)
		rec.Outcome, rec.Status, rec.RefusedBy = c.outcome, c.status, c.by
		if got := endingOf(rec); got != c.want {
			t.Errorf("%s %d %q: ending %d, want %d", c.outcome, c.status, c.by, got, c.want)
		}
	}
}

// TestFacts: what is unknown is not good.
func TestFacts(t *testing.T) {
	ms := func(n int) call.Duration { return call.Lasting(time.Duration(n) * time.Millisecond) }
	rec := new(call.Record)
	rec.Outcome, rec.Stream = call.Completed, true
	rec.Instants.Sent, rec.Instants.Ended, rec.ContentEvents = ms(1), ms(900), call.Known(5)
	rec.Phases.QueueGateway, rec.Phases.Prefill, rec.PhaseSources.Prefill = ms(100), ms(300), call.Unattributed
	f := factsOf(rec, time.Unix(0, 0), true)
	second := time.Second
	for n, want := range map[slo.Number]slo.Verdict{
		slo.Queue: slo.UnknownKept, slo.Prefill: slo.UnknownKept, slo.Network: slo.UnknownKept, slo.TPOT: slo.UnknownKept, slo.TTFT: slo.NotCounted,
	} {
		if got := f.Values[n].Against(second); got != want {
			t.Errorf("%s: verdict %d, want %d", n, got, want)
		}
	}
	if f.Values[slo.Queue].Against(50*time.Millisecond) != slo.Bad {
		t.Error("the gateway's own queue of 100 ms keeps a threshold of 50 ms")
	}
	if f.Input != -1 || f.Output != -1 {
		t.Errorf("tokens %d and %d are not unknown", f.Input, f.Output)
	}
	rec.QueueBound = ms(200) // by the gauges, and prefill then is inferred
	rec.PhaseSources.Prefill = call.Inferred
	rec.ClientRTT, rec.Output, rec.TPOT = ms(10), call.Known(5), ms(30)
	f = factsOf(rec, time.Unix(0, 0), true)
	for n, want := range map[slo.Number]slo.Verdict{slo.Queue: slo.Good, slo.Prefill: slo.Good, slo.Network: slo.Good, slo.TPOT: slo.Good} {
		if got := f.Values[n].Against(second); got != want {
			t.Errorf("%s: verdict %d, want %d", n, got, want)
		}
	}
	if f.Values[slo.Queue].Against(250*time.Millisecond) != slo.UnknownKept {
		t.Error("a bound of 300 ms says something of a threshold of 250 ms")
	}
	rec.Phases.QueueEngine, rec.PhaseSources.QueueEngine, rec.QueueBound = ms(500), call.FromEngine, call.Duration{}
	f = factsOf(rec, time.Unix(0, 0), true)
	if f.Values[slo.Queue].Against(599*time.Millisecond) != slo.Bad || f.Values[slo.Queue].Against(600*time.Millisecond) != slo.Good {
		t.Error("100 ms of ours and 500 ms of the engine's are not 600 ms")
	}
}

// TestKept: what a record tells agrees with what was judged while the call ran.
func TestKept(t *testing.T) {
	lines := []string{"ttft p99 <= 2s", "e2e p95 <= 5s", "success 99.9%"}
	for name, c := range map[string]struct {
		next NextFunc
		want map[string]slo.Verdict
	}{
		"good":       {streams(time.Second, 0), map[string]slo.Verdict{"ttft_p99": slo.Good, "e2e_p95": slo.Good, "success": slo.Good}},
		"late token": {streams(3*time.Second, 0), map[string]slo.Verdict{"ttft_p99": slo.Bad, "e2e_p95": slo.Good, "success": slo.Good}},
		"time-out": {func(w http.ResponseWriter, _ *http.Request) error {
			time.Sleep(time.Minute)
			w.WriteHeader(http.StatusGatewayTimeout)
			return nil
		}, map[string]slo.Verdict{"ttft_p99": slo.Bad, "e2e_p95": slo.Bad, "success": slo.Bad}},
		"quick error": {func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusBadGateway)
			return nil
		}, map[string]slo.Verdict{"ttft_p99": slo.NotCounted, "e2e_p95": slo.NotCounted, "success": slo.Bad}},
		"client's error": {func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusNotFound)
			return nil
		}, map[string]slo.Verdict{"ttft_p99": slo.NotCounted, "e2e_p95": slo.NotCounted, "success": slo.NotCounted}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, tracker := promised(t, lines...)
				call := g.Begin(chatRequest(true), options, &Surroundings{})
				_ = call.Serve(httptest.NewRecorder(), c.next)
				for _, o := range tracker.Status(time.Now()).Objectives {
					if o.Model != slo.AllModels {
						continue
					}
					want, judged := c.want[o.Objective.Name], slo.NotCounted
					switch {
					case o.Good == 1:
						judged = slo.Good
					case o.Bad == 1:
						judged = slo.Bad
					}
					if got := Kept(call.Record(), &o.Objective); got != want || judged != want {
						t.Errorf("%s: kept %d, judged %d, want %d", o.Objective.Name, got, judged, want)
					}
				}
			})
		})
	}
}
