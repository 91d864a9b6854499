package caddymodule

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/limit"
)

// counting is an upstream that keeps what it was asked: method and target of
// every request, in the order in which they came.
type counting struct {
	address string
	mu      sync.Mutex
	seen    []string
}

// newCounting serves answer, or brief when that is nil.
func newCounting(t *testing.T, answer http.HandlerFunc) *counting {
	if answer == nil {
		answer = brief
	}
	c := new(counting)
	c.address = serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.seen = append(c.seen, r.Method+" "+r.RequestURI)
		c.mu.Unlock()
		answer(w, r)
	}))
	return c
}

// take returns what came since it was last called.
func (c *counting) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen
	c.seen = nil
	return seen
}

// brief answers any call with two tokens for seven: as a stream where that is
// asked for, in the form of the path's API.
func brief(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch {
	case strings.HasSuffix(r.URL.Path, "/messages"):
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"m1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":7,"output_tokens":2}}`)
	case bytes.Contains(body, []byte(`"stream":true`)):
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, chunk(0)+usageEvent+done)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, briefAnswer)
	}
}

const briefAnswer = `{"id":"c1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],` +
	`"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}`

// bounded is a chat request whose output is bounded by n tokens.
func bounded(n int) string {
	return fmt.Sprintf(`{"model":"m","max_tokens":%d,"messages":[{"role":"user","content":"hello"}]}`, n)
}

const (
	chatPath     = "/v1/chat/completions"
	messagesPath = "/v1/messages"
)

// with makes a request for a run with a key, "" for none; header holds names and
// values in turn.
func with(t *testing.T, s site, path, key, runID, body string, header ...string) *http.Request {
	t.Helper()
	r := post(context.Background(), t, s.url("http/1.1", path), runID, body)
	r.Header.Del("Authorization")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// limits asks the admin endpoint how a pool stands.
func (r *run) limits(pool string) poolState {
	r.t.Helper()
	status, body := r.get("/weir/limits")
	var state struct{ Pools []poolState }
	if err := json.Unmarshal(body, &state); err != nil || status != http.StatusOK {
		r.t.Fatalf("GET /weir/limits: %d %s, %v", status, body, err)
	}
	for _, p := range state.Pools {
		if p.Pool == pool {
			return p
		}
	}
	r.t.Fatalf("no pool %s in %s", pool, body)
	return poolState{}
}

// used is what the default pool's limits of a dimension have in use, all subjects
// together.
func (r *run) used(d limit.Dimension) (sum int64) {
	r.t.Helper()
	for _, u := range r.limits(DefaultPool).Uses {
		if u.Dimension == d {
			sum += u.Used
		}
	}
	return sum
}

// ask sends a request with a body to the admin endpoint.
func (r *run) ask(method, path, body string) (status int, answer string) {
	r.t.Helper()
	q, err := http.NewRequest(method, "http://"+r.admin+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	got := fetch(r.t, http.DefaultClient, q)
	return got.status, got.body
}

// fault is an error body in the forms of OpenAI and Anthropic.
type fault struct {
	Type  string
	Error struct {
		Message, Type string
		Param         *string
		Code          any
	}
}

func faultOf(t *testing.T, a answered) (f fault) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), &f); err != nil {
		t.Fatalf("%d %q: %v", a.status, a.body, err)
	}
	return f
}

// ours lists the headers by which the gateway tells of limits and refusals.
func ours(h http.Header) (names []string) {
	for name := range h {
		for _, prefix := range []string{"X-Ratelimit-", "Anthropic-Ratelimit-", "Retry-After", "X-Should-Retry"} {
			if strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// TestRefusals (cases row 40): a refusal has the dialect's own form, and headers
// from which clients learn when to come again; who passes is told how the limit
// stands; and the upstream sees nothing of what was refused.
func TestRefusals(t *testing.T) {
	up := newCounting(t, nil)
	s, tight := newSite(t), newSite(t)
	run := start(t, "", s.http("weir {\nlimit key {\nrequests_per_minute 1\ntokens_per_minute 10k\n}\n}\nreverse_proxy "+up.address)+
		tight.http("weir {\npool tight\nlimit key {\ntokens_per_minute 100\n}\n}\nreverse_proxy "+up.address))
	c := client(t, "http/1.1")

	t.Run("openai", func(t *testing.T) {
		const key = "sk-openai-client"
		passed := fetch(t, c, with(t, s, chatPath, key, "openai-1", bounded(20)))
		if passed.status != 200 || passed.body != briefAnswer {
			t.Fatalf("%d %s", passed.status, passed.body)
		}
		h := passed.header
		if h.Get("X-Ratelimit-Limit-Requests") != "1" || h.Get("X-Ratelimit-Remaining-Requests") != "0" || h.Get("X-Ratelimit-Limit-Tokens") != "10000" {
			t.Errorf("passed: %v", h)
		}
		if reset, err := time.ParseDuration(h.Get("X-Ratelimit-Reset-Requests")); err != nil || reset <= 55*time.Second || reset > time.Minute || reset%time.Millisecond != 0 {
			t.Errorf("reset %q", h.Get("X-Ratelimit-Reset-Requests"))
		}
		if n, err := strconv.Atoi(h.Get("X-Ratelimit-Remaining-Tokens")); err != nil || n < 9900 || n > 9980 {
			t.Errorf("remaining tokens %q", h.Get("X-Ratelimit-Remaining-Tokens"))
		}
		if len(ours(h)) != 6 {
			t.Errorf("passed: %v", ours(h))
		}
		up.take()

		got := fetch(t, c, with(t, s, chatPath, key, "openai-2", bounded(20), "X-Stainless-Retry-Count", "1"))
		f := faultOf(t, got)
		if got.status != 429 || got.header.Get("Content-Type") != "application/json" || f.Error.Type != "requests" || f.Error.Code != "rate_limit_exceeded" || f.Error.Param != nil ||
			!strings.Contains(got.body, `"param":null`) {
			t.Errorf("%d %v %s", got.status, got.header, got.body)
		}
		for _, part := range []string{"requests per minute", "limit 1,", "used 1,", "requested 1;", "try again in "} {
			if !strings.Contains(f.Error.Message, part) {
				t.Errorf("message %q has no %q", f.Error.Message, part)
			}
		}
		checkRetry(t, got, 55*time.Second, time.Minute)
		if got.header.Get("X-Ratelimit-Limit-Requests") != "1" || got.header.Get("X-Ratelimit-Remaining-Requests") != "0" {
			t.Errorf("%v", got.header)
		}
		if seen := up.take(); len(seen) > 0 {
			t.Errorf("the upstream saw %v", seen)
		}
		rec := run.record("openai-2")
		if rec.Outcome != call.Refused || rec.Status != 429 || rec.RefusedBy != "key requests_per_minute" || rec.Attempts != 0 || rec.ClientRetries != 1 ||
			rec.BytesOut != int64(len(got.body)) || rec.Upstream != "" || rec.UsageSource != call.UsageNone {
			t.Errorf("%+v", rec)
		}
		checkSum(t, run.kept("openai-2"))
	})

	t.Run("anthropic", func(t *testing.T) {
		const key = "sk-anthropic-client"
		passed := fetch(t, c, with(t, s, messagesPath, key, "anthropic-1", bounded(20)))
		h := passed.header
		if passed.status != 200 || h.Get("Anthropic-Ratelimit-Requests-Limit") != "1" || h.Get("Anthropic-Ratelimit-Requests-Remaining") != "0" ||
			h.Get("Anthropic-Ratelimit-Tokens-Limit") != "10000" || len(ours(h)) != 6 {
			t.Errorf("%d %v", passed.status, h)
		}
		if at, err := time.Parse(time.RFC3339, h.Get("Anthropic-Ratelimit-Requests-Reset")); err != nil || time.Until(at) < 50*time.Second || time.Until(at) > 61*time.Second {
			t.Errorf("reset %q", h.Get("Anthropic-Ratelimit-Requests-Reset"))
		}
		up.take()
		got := fetch(t, c, with(t, s, messagesPath, key, "anthropic-2", bounded(20)))
		if f := faultOf(t, got); got.status != 429 || f.Type != "error" || f.Error.Type != "rate_limit_error" || !strings.Contains(f.Error.Message, "limit 1,") {
			t.Errorf("%d %s", got.status, got.body)
		}
		checkRetry(t, got, 55*time.Second, time.Minute)
		if len(up.take()) > 0 {
			t.Error("the upstream saw the refused call")
		}
	})

	t.Run("too large", func(t *testing.T) {
		got := fetch(t, c, with(t, tight, chatPath, "sk-greedy", "large", bounded(1000)))
		f := faultOf(t, got)
		if got.status != 429 || f.Error.Type != "tokens" || !strings.Contains(f.Error.Message, "too large") || got.header.Get("X-Should-Retry") != "false" ||
			got.header.Get("Retry-After") != "" || got.header.Get("Retry-After-Ms") != "" {
			t.Errorf("%d %v %s", got.status, got.header, got.body)
		}
		// Row 32: a call that does not bound its output is not refused for a guess.
		if got := fetch(t, c, with(t, tight, chatPath, "sk-modest", "unbounded", `{"model":"m","messages":[{"role":"user","content":"hello"}]}`)); got.status != 200 {
			t.Errorf("%d %s", got.status, got.body)
		}
	})

	for _, name := range []string{"anthropic-2", "large", "unbounded"} {
		run.record(name)
	}
	m := run.metrics()
	for what, sum := range map[string][2]float64{
		"by requests":        {m.sum("weir_refusals_total", `by="key requests_per_minute"`), 2},
		"by tokens":          {m.sum("weir_refusals_total", `by="key tokens_per_minute"`), 1},
		"retries":            {m.sum("weir_client_retries_total"), 1},
		"refused":            {m.sum("weir_calls_total", `outcome="refused"`), 3},
		"limited upstream":   {m.sum("weir_upstream_limited_total"), 0},
		"limit of one key":   {m.sum("weir_limit", `pool="default"`, `dimension="requests_per_minute"`, `subject="`+run.record("openai-1").Key+`"`), 1},
		"calls in flight":    {m.sum("weir_calls_in_flight"), 0},
		"requests of a pool": {m.sum("weir_limit", `scope="pool"`), 0},
	} {
		if sum[0] != sum[1] {
			t.Errorf("metrics, %s: %v, want %v", what, sum[0], sum[1])
		}
	}
}

// checkRetry asserts that both headers name one time, within bounds.
func checkRetry(t *testing.T, a answered, from, to time.Duration) {
	t.Helper()
	seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
	ms, err2 := strconv.Atoi(a.header.Get("Retry-After-Ms"))
	after := time.Duration(ms) * time.Millisecond
	if err != nil || err2 != nil || after <= from || after > to || time.Duration(seconds)*time.Second < after || time.Duration(seconds-1)*time.Second >= after ||
		a.header.Get("X-Should-Retry") != "" {
		t.Errorf("Retry-After %q, Retry-After-Ms %q", a.header.Get("Retry-After"), a.header.Get("Retry-After-Ms"))
	}
}

// TestUpstreamsOwnRefusal (cases row 40): an upstream's own 429 passes as it is,
// with headers of its own and nothing of ours beside them, also where limits of
// ours apply; and so does its word on limits with a good answer.
func TestUpstreamsOwnRefusal(t *testing.T) {
	up := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		h := w.Header()
		h.Set("Content-Type", "application/json")
		status := http.StatusTooManyRequests
		switch r.Header.Get("X-Way") {
		case "full":
			h["x-ratelimit-limit-requests"], h["x-ratelimit-remaining-requests"], h["x-ratelimit-reset-requests"] = []string{"500"}, []string{"0"}, []string{"120ms"}
			h["retry-after"], h["retry-after-ms"], h["x-should-retry"] = []string{"7"}, []string{"6543"}, []string{"true"}
		case "anthropic":
			h["anthropic-ratelimit-requests-limit"], h["retry-after"] = []string{"50"}, []string{"30"}
		case "plain":
			h["retry-after"] = []string{"3"}
		case "bare":
		case "good":
			h["x-ratelimit-remaining-tokens"] = []string{"149984"}
			status = http.StatusOK
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"error":{"message":"slow  down","code":"upstream"}}`)
	}))
	limited, bare := newSite(t), newSite(t)
	run := start(t, "", limited.http("weir {\nlimit key {\nrequests_per_minute 100\ntokens_per_minute 100k\n}\n}\nreverse_proxy "+up)+bare.http("reverse_proxy "+up))
	c := client(t, "http/1.1")
	for i, way := range []string{"full", "anthropic", "plain", "bare", "good"} {
		for _, path := range []string{chatPath, messagesPath} {
			want := fetch(t, c, with(t, bare, path, "sk-a", "", bounded(5), "X-Way", way))
			got := fetch(t, c, with(t, limited, path, "sk-a", fmt.Sprint(way, path), bounded(5), "X-Way", way))
			if got.status != want.status || got.body != want.body {
				t.Errorf("%s: %d %q, without weir %d %q", way, got.status, got.body, want.status, want.body)
			}
			diffHeaders(t, way+" "+path, want.header, got.header, "Date")
			rec := run.record(fmt.Sprint(way, path))
			if rec.RefusedBy != "" || rec.Status != want.status || (want.status == 429) != (rec.Outcome == call.UpstreamError) {
				t.Errorf("%s: %+v", way, rec)
			}
			if i == 0 && run.used(limit.Tokens) > 0 {
				t.Errorf("a call that the upstream refused cost %d tokens", run.used(limit.Tokens))
			}
		}
	}
	if m := run.metrics(); m.sum("weir_upstream_limited_total") != 8 || m.sum("weir_refusals_total") != 0 {
		t.Errorf("%v calls limited by the upstream, %v by us", m.sum("weir_upstream_limited_total"), m.sum("weir_refusals_total"))
	}
}

// TestPassiveUnlessEnforced: without limits, with mode off, with mode shadow, and
// with a queue beside either, an answer is byte for byte and header for header
// what it is without weir, and no call is refused. Mode shadow counts what it
// would have refused.
func TestPassiveUnlessEnforced(t *testing.T) {
	up := newCounting(t, nil)
	bare := newSite(t)
	const rules = "limit key {\nrequests_per_minute 2\nconcurrency 1\n}\nlimit pool {\ntokens_per_minute 50\n}\n"
	sites := map[string]string{
		"bare weir":    "",
		"off":          "mode off\n" + rules,
		"off queue":    "mode off\nqueue {\ncalls 1\nmax_waiting 0\n}\n",
		"shadow":       "mode shadow\n" + rules,
		"shadow queue": "mode shadow\n" + rules + "queue {\ncalls 1\nmax_waiting 0\n}\n",
	}
	at := make(map[string]site)
	text := bare.http("reverse_proxy " + up.address)
	for name, options := range sites {
		at[name] = newSite(t)
		text += at[name].http("weir {\npool " + strings.ReplaceAll(name, " ", "_") + "\n" + options + "}\nreverse_proxy " + up.address)
	}
	run := start(t, "", text)
	c := client(t, "http/1.1")
	const calls = 5
	for _, body := range []string{bounded(20), streaming} {
		want := fetch(t, c, with(t, bare, chatPath, "sk-a", "", body))
		for name, s := range at {
			for i := range calls {
				got := fetch(t, c, with(t, s, chatPath, "sk-a", name, body))
				if got.status != 200 || bodySum([]byte(got.body)) != bodySum([]byte(want.body)) {
					t.Errorf("%s, call %d: %d %s", name, i, got.status, got.body)
				}
				diffHeaders(t, name, want.header, got.header, "Date")
			}
		}
	}
	if n := len(up.take()); n != 2+2*calls*len(sites) {
		t.Errorf("the upstream saw %d calls", n)
	}
	for name := range at {
		would := 0
		for _, rec := range run.recordsOf(name, 2*calls) {
			if rec.WouldRefuse != "" {
				would++
			}
			if rec.RefusedBy != "" || rec.Outcome != call.Completed {
				t.Errorf("%s: %+v", name, rec)
			}
		}
		// Two calls a minute, and fifty tokens of which each takes over twenty:
		// two pass, and what would have been refused takes nothing.
		if want := map[bool]int{true: 2*calls - 2}[strings.HasPrefix(name, "shadow")]; would != want {
			t.Errorf("%s: %d calls would have been refused, want %d", name, would, want)
		}
	}
	if m := run.metrics(); m.sum("weir_would_refuse_total") != 2*(2*calls-2) || m.sum("weir_refusals_total") != 0 {
		t.Errorf("%v would have been refused, %v were", m.sum("weir_would_refuse_total"), m.sum("weir_refusals_total"))
	}
	for _, name := range []string{"shadow", "shadow_queue"} {
		var n int64
		for _, r := range run.limits(name).Refused {
			if r.Mode != limit.Shadow || r.Key == "" {
				t.Errorf("%+v", r)
			}
			n += r.Calls
		}
		if n != 2*calls-2 {
			t.Errorf("/weir/limits: %d calls of pool %s would have been refused", n, name)
		}
	}
}

// TestMeasureOnly: the runtime switch keeps limits from refusing anything, of one
// pool or of all, and gives them back their force, without a reload.
func TestMeasureOnly(t *testing.T) {
	up := newCounting(t, nil)
	one, two := newSite(t), newSite(t)
	run := start(t, "", one.http("weir {\nlimit pool {\nrequests_per_minute 1\n}\n}\nreverse_proxy "+up.address)+
		two.http("weir {\npool other\nlimit pool {\nrequests_per_minute 1\n}\n}\nreverse_proxy "+up.address))
	statuses := func() (got [2]int) {
		for i, s := range []site{one, two} {
			got[i] = s.status(t, "sk-a", "")
		}
		return got
	}
	expect := func(when string, want [2]int) {
		t.Helper()
		if got := statuses(); got != want {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	set := func(body string) {
		t.Helper()
		if status, answer := run.ask(http.MethodPost, "/weir/limits", body); status != 200 || !strings.Contains(answer, `"pools"`) {
			t.Fatalf("%s: %d %s", body, status, answer)
		}
	}
	expect("first", [2]int{200, 200})
	expect("used up", [2]int{429, 429})
	set(`{"measure_only": true, "pool": "other"}`)
	expect("one measures", [2]int{429, 200})
	if m := run.metrics(); m.sum("weir_limits_measure_only", `pool="other"`) != 1 || m.sum("weir_limits_measure_only", `pool="default"`) != 0 {
		t.Error("the metric does not tell which pool only measures")
	}
	set(`{"measure_only": true}`)
	before := run.metrics().sum("weir_would_refuse_total")
	got := steady(t, with(t, one, chatPath, "sk-a", "measured", bounded(5)))
	if got.status != 200 || len(ours(got.header)) > 0 {
		t.Errorf("%d %v", got.status, got.header)
	}
	if rec := run.record("measured"); rec.WouldRefuse != "pool requests_per_minute" || run.metrics().sum("weir_would_refuse_total") != before+1 {
		t.Errorf("%+v", rec)
	}
	if p := run.limits("default"); !p.MeasureOnly || p.Mode != limit.Enforce {
		t.Errorf("%+v", p)
	}
	run.load("", one.http("weir {\nlimit pool {\nrequests_per_minute 1\n}\n}\nreverse_proxy "+up.address)+
		two.http("weir {\npool other\nlimit pool {\nrequests_per_minute 1\n}\n}\nreverse_proxy "+up.address))
	expect("all measure, after a reload as well", [2]int{200, 200})
	set(`{"measure_only": false}`)
	expect("back", [2]int{429, 429})

	for body, want := range map[string]string{
		`{"measure_only": true, "pool": "none"}`: `no pool \"none\"`,
		`{}`:                                     "measure_only is missing",
		`{"measure": true}`:                      "unknown field",
		`on`:                                     "read the request",
	} {
		if status, answer := run.ask(http.MethodPost, "/weir/limits", body); status != 400 || !strings.Contains(answer, want) {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
	if status, answer := run.ask(http.MethodDelete, "/weir/limits", ""); status != 405 || !strings.Contains(answer, "GET or POST") {
		t.Errorf("%d %s", status, answer)
	}
	expect("after requests that were wrong", [2]int{429, 429})
}

// TestSlotIsFreed (cases rows 33 and 35): while a call runs it holds its place
// among the calls at once, however long that is, and gives it back on every path
// by which a call can end.
func TestSlotIsFreed(t *testing.T) {
	up, dead := newScript(t), freeAddress(t)
	s := newSite(t)
	config := s.http("weir {\nreader_timeout 300ms\nlimit key {\nconcurrency 1\ntokens_in_flight 1k\n}\n}\n" +
		"@dead header X-Way dead\nhandle @dead {\nreverse_proxy " + dead + "\n}\n" +
		"@panic header X-Way panic\nhandle @panic {\nweirtest_panic\n}\n@late header X-Way late\nhandle @late {\nweirtest_panic late\n}\n" +
		"handle {\nreverse_proxy " + up.address + "\n}")
	run := start(t, "", config)
	const body = `{"model":"m","stream":true,"max_tokens":100,"messages":[{"role":"user","content":"hello"}]}`
	ask := func(name string) *http.Request { return with(t, s, chatPath, "sk-a", name, body, "X-Way", name) }
	held := func(name string) {
		t.Helper()
		until(t, name+" holds its place", func() bool { return run.used(limit.Concurrency) == 1 })
		if n := run.used(limit.TokensInFlight); n < 100 {
			t.Errorf("%s: %d tokens in flight", name, n)
		}
		got := steady(t, with(t, s, chatPath, "sk-a", "", body))
		if f := faultOf(t, got); got.status != 429 || f.Error.Type != "requests" || !strings.Contains(f.Error.Message, "concurrency") || got.header.Get("Retry-After") == "" {
			t.Errorf("beside %s: %d %s", name, got.status, got.body)
		}
	}
	// do sends a call whose answer may break off.
	do := func(r *http.Request) {
		t.Helper()
		res, err := client(t, "http/1.1").Do(r)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	stream := func(name string, r *http.Request) (*http.Response, *exchange) {
		t.Helper()
		res, x := open(t, up, client(t, "http/1.1"), r)
		expect(t, res.Body, chunk(0))
		held(name)
		return res, x
	}
	ways := []struct {
		name    string
		run     func(name string)
		outcome call.Outcome
	}{
		{"completed", func(name string) {
			res, x := stream(name, ask(name))
			x.send(usageEvent + done)
			x.finish()
			expect(t, res.Body, usageEvent+done)
			_, _ = io.ReadAll(res.Body)
			res.Body.Close()
		}, call.Completed},
		{"gone mid-stream", func(name string) {
			ctx, leave := context.WithCancel(context.Background())
			res, x := stream(name, ask(name).WithContext(ctx))
			leave()
			await(t, x.left(), "cancelled upstream")
			x.finish()
			res.Body.Close()
		}, call.ClientGone},
		{"gone in prefill", func(name string) {
			ctx, leave := context.WithCancel(context.Background())
			gone := make(chan error, 1)
			go func() {
				_, err := client(t, "http/1.1").Do(ask(name).WithContext(ctx))
				gone <- err
			}()
			x := up.next(t)
			held(name)
			leave()
			await(t, gone, "end of the call")
			await(t, x.left(), "cancelled upstream")
			x.finish()
		}, call.ClientGone},
		{"dead", func(name string) { do(ask(name)) }, call.UpstreamError},
		{"aborts", func(name string) {
			res, x := stream(name, ask(name))
			x.abort()
			_, _ = io.ReadAll(res.Body)
			res.Body.Close()
		}, call.UpstreamError},
		{"aborts in prefill", func(name string) {
			over := make(chan struct{})
			go func() { defer close(over); do(ask(name)) }()
			x := up.next(t)
			held(name)
			x.abort()
			await(t, over, "end of the call")
		}, call.UpstreamError},
		{"panic", func(name string) { do(ask(name)) }, call.InternalError},
		{"late", func(name string) { do(ask(name)) }, call.InternalError},
		{"reader stalls", func(name string) {
			conn, err := net.Dial("tcp", s.plain)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer sk-a\r\nX-Weir-Run: %s\r\nContent-Length: %d\r\n\r\n%s", chatPath, s.plain, name, len(body), body)
			x := up.next(t)
			x.send(chunk(0))
			held(name)
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				big := strings.Repeat(chunk(1), 1000)
				for {
					select {
					case x.steps <- func(w http.ResponseWriter) { _, _ = io.WriteString(w, big) }:
					case <-x.left():
						return
					}
				}
			}()
			await(t, stopped, "cut of the reader")
			x.finish()
		}, call.ReaderStalled},
		{"reload", func(name string) {
			res, x := stream(name, ask(name))
			run.load("", config)
			held(name + " after the reload")
			x.send(usageEvent + done)
			x.finish()
			expect(t, res.Body, usageEvent+done)
			_, _ = io.ReadAll(res.Body)
			res.Body.Close()
		}, call.Completed},
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			way.run(way.name)
			rec := run.kept(way.name)
			if rec.Outcome != way.outcome {
				t.Errorf("%s (%s)", rec.Outcome, rec.Error)
			}
			checkSum(t, rec)
			if calls, tokens := run.used(limit.Concurrency), run.used(limit.TokensInFlight); calls != 0 || tokens != 0 {
				t.Fatalf("%d calls and %d tokens are still in flight", calls, tokens)
			}
		})
	}
	// And the place is good for the next.
	res, x := open(t, up, client(t, "http/1.1"), ask("last"))
	x.send(usageEvent + done)
	x.finish()
	_, _ = io.ReadAll(res.Body)
	res.Body.Close()
	if rec := run.record("last"); rec.Outcome != call.Completed {
		t.Errorf("%+v", rec)
	}
}

// TestRefusedConsumesNothing: whoever comes again and again while a limit stands
// in the way pushes nothing further away: not the wall that it met, nor another.
func TestRefusedConsumesNothing(t *testing.T) {
	up := newCounting(t, nil)
	s := newSite(t)
	run := start(t, "", s.http("weir {\nlimit key {\nrequests_per_minute 2\ntokens_per_minute 10k\nconcurrency 5\n}\nlimit pool {\nrequests_per_minute 50\n}\n}\nreverse_proxy "+up.address))
	c := client(t, "http/1.1")
	for i := range 2 {
		if got := fetch(t, c, with(t, s, chatPath, "sk-a", fmt.Sprint("good-", i), bounded(20))); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		run.record(fmt.Sprint("good-", i))
	}
	tokens := run.used(limit.Tokens)
	for i := range 20 {
		got := fetch(t, c, with(t, s, chatPath, "sk-a", "again", bounded(20), "X-Stainless-Retry-Count", fmt.Sprint(i)))
		if got.status != 429 {
			t.Fatalf("call %d: %d", i, got.status)
		}
		checkRetry(t, got, 20*time.Second, 30*time.Second)
	}
	run.recordsOf("again", 20)
	// The key's two and the pool's two of the calls that passed, less what time has given back.
	if n := run.used(limit.Requests); n > 4 {
		t.Errorf("%d requests are used, of which 4 passed", n)
	}
	if n := run.used(limit.Tokens); n > tokens {
		t.Errorf("%d tokens are used, %d before", n, tokens)
	}
	if n := run.used(limit.Concurrency); n != 0 {
		t.Errorf("%d calls are in flight", n)
	}
	if n := len(up.take()); n != 2 {
		t.Errorf("the upstream saw %d calls", n)
	}
	if m := run.metrics(); m.sum("weir_client_retries_total") != 19 {
		t.Errorf("%v retries", m.sum("weir_client_retries_total"))
	}
}

// TestParallelCallsKeepTheLimit (cases row 31): calls that come at once are
// admitted as if they came one after another.
func TestParallelCallsKeepTheLimit(t *testing.T) {
	up := newCounting(t, nil)
	s := newSite(t)
	run := start(t, "", s.http("weir {\nlimit key {\ntokens_per_minute 100\n}\n}\nreverse_proxy "+up.address))
	c := client(t, "http/1.1")
	const clients, reserve = 64, 30
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			res, err := c.Do(with(t, s, chatPath, "sk-a", "parallel", bounded(reserve)))
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		})
	}
	all.Wait()
	var charged int64
	passed := 0
	for _, rec := range run.recordsOf("parallel", clients) {
		if rec.Outcome == call.Completed {
			passed++
			charged += rec.Input.Or(0) + rec.Output.Or(0)
		}
	}
	if n := len(up.take()); n != passed || passed == 0 {
		t.Errorf("%d passed, the upstream saw %d", passed, n)
	}
	// What a minute's limit holds, and what time may have added meanwhile: a whole
	// minute of it, to be sure on a slow machine.
	if charged > 200 {
		t.Errorf("%d tokens passed a limit of 100 a minute", charged)
	}
}

// TestQueue: who does not fit waits, and passes in the order of arrival; who
// leaves while waiting gives up the place; a full queue says when to come again;
// and how long one may wait has nothing to do with how long a call may run
// (cases row 38).
func TestQueue(t *testing.T) {
	up := newScript(t)
	s, hasty := newSite(t), newSite(t)
	run := start(t, "", s.http("weir {\nqueue {\ncalls 1\nmax_waiting 3\nmax_per_class 3\nmax_per_key 3\n}\n}\nreverse_proxy "+up.address)+
		hasty.http("weir {\npool hasty\nqueue {\ncalls 1\nmax_wait 50ms\n}\n}\nreverse_proxy "+up.address))
	type answer struct {
		name string
		answered
	}
	answers := make(chan answer, 8)
	// enter sends a call that will wait, and returns how to leave.
	waiting := func(n int) {
		t.Helper()
		until(t, fmt.Sprint(n, " waiting"), func() bool { return run.limits(DefaultPool).Queue.Waiting == n })
	}
	enter := func(name string, n int, header ...string) (leave func()) {
		t.Helper()
		ctx, leave := context.WithCancel(context.Background())
		r := with(t, s, chatPath, "sk-a", name, streaming, header...).WithContext(ctx)
		c := client(t, "http/1.1")
		go func() {
			res, err := c.Do(r)
			if err != nil {
				answers <- answer{name, answered{}}
				return
			}
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			answers <- answer{name, answered{res.StatusCode, res.Header, string(body)}}
		}()
		waiting(n)
		return leave
	}
	end := func(x *exchange, name string) {
		t.Helper()
		if got := x.request.Header.Get("X-Weir-Run"); got != name {
			t.Fatalf("the upstream has %s, want %s", got, name)
		}
		x.send(chunk(0) + usageEvent + done)
		x.finish()
		if a := await(t, answers, "answer to "+name); a.name != name || a.status != 200 || a.body != chunk(0)+usageEvent+done {
			t.Fatalf("%s: %d %s", a.name, a.status, a.body)
		}
	}

	enter("first", 0)
	x := up.next(t)
	enter("second", 1)
	leave := enter("leaves", 2)
	enter("third", 3)
	full := fetch(t, client(t, "http/1.1"), with(t, s, chatPath, "sk-a", "full", streaming))
	if f := faultOf(t, full); full.status != 503 || f.Error.Code != "overloaded" || !strings.Contains(f.Error.Message, "capacity") {
		t.Errorf("%d %s", full.status, full.body)
	}
	checkRetry(t, full, 0, time.Minute)
	anthropic := fetch(t, client(t, "http/1.1"), with(t, s, messagesPath, "sk-a", "full anthropic", streaming))
	if f := faultOf(t, anthropic); anthropic.status != 503 || f.Type != "error" || f.Error.Type != "overloaded_error" {
		t.Errorf("%d %s", anthropic.status, anthropic.body)
	}
	leave()
	waiting(2)
	if a := await(t, answers, "end of the call that leaves"); a.name != "leaves" || a.status != 0 {
		t.Errorf("%+v", a)
	}
	enter("fourth", 3) // in the place that was left
	if n := run.metrics().sum("weir_queue_waiting", `pool="default"`, `class="interactive"`); n != 3 {
		t.Errorf("the metric says that %v wait", n)
	}
	for _, name := range []string{"first", "second", "third", "fourth"} {
		end(x, name)
		if name != "fourth" {
			x = up.next(t)
		}
	}
	for name, want := range map[string]call.Outcome{"first": call.Completed, "second": call.Completed, "leaves": call.ClientGone, "full": call.Refused} {
		rec := run.kept(name)
		if rec.Outcome != want || name == "full" && (rec.RefusedBy != "queue full" || rec.Status != 503) || name == "leaves" && rec.Attempts != 0 {
			t.Errorf("%s: %+v", name, rec)
		}
		if queued, known := rec.Phases.QueueGateway.Get(); name == "second" && (!known || queued <= 0) {
			t.Errorf("%s: queued %v, %v", name, queued, known)
		}
		checkSum(t, rec)
	}
	m := run.metrics()
	if m.sum("weir_queue_left_total", `pool="default"`) != 1 || m.sum("weir_queue_wait_seconds_count", `pool="default"`) != 4 || m.sum("weir_refusals_total", `by="queue full"`) != 2 ||
		m.sum("weir_queue_in_flight", `pool="default"`) != 0 {
		t.Error("the metrics of the queue tell otherwise")
	}

	// An interactive call overtakes a batch call that came before.
	enter("holds", 0, "X-Weir-Class", "batch")
	x = up.next(t)
	enter("batch", 1, "X-Weir-Class", "batch")
	enter("interactive", 2)
	end(x, "holds")
	end(up.next(t), "interactive")
	end(up.next(t), "batch")

	// Waiting is over after 50 ms, while the call before runs on as it likes.
	res, x := open(t, up, client(t, "http/1.1"), with(t, hasty, chatPath, "sk-a", "runs on", streaming))
	for i := range 2 {
		late := fetch(t, client(t, "http/1.1"), with(t, hasty, chatPath, "sk-a", fmt.Sprint("late-", i), streaming))
		if late.status != 503 || late.header.Get("Retry-After") == "" {
			t.Errorf("%d %s", late.status, late.body)
		}
		if rec := run.record(fmt.Sprint("late-", i)); rec.RefusedBy != "queue waited" {
			t.Errorf("%+v", rec)
		}
	}
	x.send(usageEvent + done)
	x.finish()
	expect(t, res.Body, chunk(0)+usageEvent+done)
	if _, err := io.ReadAll(res.Body); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
	res.Body.Close()
	if rec := run.record("runs on"); rec.Outcome != call.Completed {
		t.Errorf("%+v", rec)
	}
}
