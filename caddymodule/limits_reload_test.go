package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/limit"
)

// wasteful answers with more tokens than anybody reserved.
func wasteful(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, strings.Replace(briefAnswer, `"completion_tokens":2`, `"completion_tokens":500`, 1))
}

// steady sends a request over a connection of its own and reads the whole answer.
// Around a reload Caddy, with weir or without, closes idle connections, and some
// new ones before it has read anything; then the request is sent again.
func steady(t *testing.T, r *http.Request) answered {
	t.Helper()
	for range 10 {
		r.Body, _ = r.GetBody()
		res, err := client(t, "http/1.1").Do(r)
		if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			t.Fatalf("%v after %q", err, body)
		}
		return answered{res.StatusCode, res.Header, string(body)}
	}
	t.Fatalf("no connection to %s", r.URL)
	return answered{}
}

// status sends one steady call to a site, and returns how it was answered.
func (s site) status(t *testing.T, key, runID string) int {
	t.Helper()
	return steady(t, with(t, s, chatPath, key, runID, bounded(20))).status
}

// TestReloadKeepsDebts (cases row 45): what is used of a limit, debts included,
// outlives a reload, and so does a call's place among those at once.
func TestReloadKeepsDebts(t *testing.T) {
	up, held := newCounting(t, wasteful), newScript(t)
	s := newSite(t)
	config := func(class string) string {
		return s.http("weir {\nclass " + class + "\nlimit key {\ntokens_per_minute 100\n}\nlimit model slow {\nconcurrency 1\n}\n}\n" +
			"@held header X-Way held\nhandle @held {\nreverse_proxy " + held.address + "\n}\nhandle {\nreverse_proxy " + up.address + "\n}")
	}
	run := start(t, "", config("interactive"))
	if got := s.status(t, "sk-a", "debt"); got != 200 {
		t.Fatal(got)
	}
	run.record("debt")
	if n := run.used(limit.Tokens); n < 450 || n > 507 {
		t.Errorf("%d tokens are used, want 507 less what time has given back", n)
	}
	const slow = `{"model":"slow","stream":true,"max_tokens":9,"messages":[]}`
	res, x := open(t, held, client(t, "http/1.1"), with(t, s, chatPath, "sk-b", "held", slow, "X-Way", "held"))
	for _, class := range []string{"batch", "completion", "interactive"} {
		run.load("", config(class))
		if got := s.status(t, "sk-a", "refused"); got != 429 {
			t.Errorf("after a reload the debt is forgotten: %d", got)
		}
		if got := steady(t, with(t, s, chatPath, "sk-b", "refused", slow, "X-Way", "held")); got.status != 429 {
			t.Errorf("after a reload the call in flight is forgotten: %d", got.status)
		}
		if got := s.status(t, "sk-c"+class, ""); got != 200 {
			t.Errorf("a key without debt: %d", got)
		}
	}
	for _, rec := range run.recordsOf("refused", 6) {
		if rec.RefusedBy != "key tokens_per_minute" && rec.RefusedBy != "model concurrency" {
			t.Errorf("%+v", rec)
		}
	}
	x.send(usageEvent + done)
	x.finish()
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Error(err)
	}
	res.Body.Close()
	if rec := run.record("held"); rec.Outcome != call.Completed {
		t.Errorf("%+v", rec)
	}
	if n := run.used(limit.Concurrency); n != 0 {
		t.Errorf("%d calls are in flight", n)
	}
}

// TestReloadChangesLimits: a limit that a reload raises, lowers, adds or takes
// away holds at once, also for calls that are in flight.
func TestReloadChangesLimits(t *testing.T) {
	up, held := newCounting(t, nil), newScript(t)
	s := newSite(t)
	config := func(options string) string {
		return s.http("weir {\n" + options + "}\n@held header X-Way held\nhandle @held {\nreverse_proxy " + held.address + "\n}\nhandle {\nreverse_proxy " + up.address + "\n}")
	}
	run := start(t, "", config("limit key {\nrequests_per_minute 1\n}\n"))
	for i, step := range []struct {
		options string // "" leaves the configuration
		key     string
		want    int
	}{
		{"", "sk-a", 200}, {"", "sk-a", 429},
		{"mode shadow\nlimit key {\nrequests_per_minute 1\n}\n", "sk-a", 200},
		{"mode off\nlimit key {\nrequests_per_minute 1\n}\n", "sk-a", 200},
		{"limit key {\nrequests_per_minute 1\n}\n", "sk-a", 429},
		{"limit key {\nrequests_per_minute 1\n}\nlimit key sk-other {\nrequests_per_minute 5\n}\n", "sk-a", 429},
		// From many to one: one more passes, and no second.
		{"limit key {\nrequests_per_minute 600\n}\n", "sk-b", 200},
		{"limit key {\nrequests_per_minute 1\n}\n", "sk-b", 200}, {"", "sk-b", 429},
		{"limit key {\nrequests_per_minute 1\n}\nlimit pool {\nrequests_per_minute 0\n}\n", "sk-c", 429},
		{"limit key {\nrequests_per_minute 1\n}\n", "sk-c", 200},
	} {
		if step.options != "" {
			run.load("", config(step.options))
		}
		if got := s.status(t, step.key, ""); got != step.want {
			t.Errorf("step %d, %q: %d, want %d", i, step.options, got, step.want)
		}
	}
	// From one a minute to ten a second: what was used stays used, and comes back
	// at the new rate.
	run.load("", config("limit key {\nrequests_per_minute 600\n}\n"))
	got := steady(t, with(t, s, chatPath, "sk-a", "", bounded(20)))
	if got.status == 429 {
		checkRetry(t, got, 0, 100*time.Millisecond)
	}
	until(t, "the raised limit lets calls pass", func() bool { return s.status(t, "sk-a", "") == 200 })
	// Two calls in flight under a cap of two; one of one then lets no other in
	// until both have ended.
	run.load("", config("limit key {\nconcurrency 2\n}\n"))
	var streams []*http.Response
	var ends []*exchange
	for i := range 2 {
		res, x := open(t, held, client(t, "http/1.1"), with(t, s, chatPath, "sk-b", fmt.Sprint("held-", i), streaming, "X-Way", "held"))
		streams, ends = append(streams, res), append(ends, x)
	}
	end := func(i int) {
		t.Helper()
		ends[i].send(usageEvent + done)
		ends[i].finish()
		if _, err := io.ReadAll(streams[i].Body); err != nil {
			t.Error(err)
		}
		streams[i].Body.Close()
		run.record(fmt.Sprint("held-", i))
	}
	run.load("", config("limit key {\nconcurrency 1\n}\n"))
	if got := s.status(t, "sk-b", ""); got != 429 {
		t.Errorf("beside two: %d", got)
	}
	end(0)
	if got := s.status(t, "sk-b", ""); got != 429 {
		t.Errorf("beside one: %d", got)
	}
	end(1)
	if got := s.status(t, "sk-b", ""); got != 200 {
		t.Errorf("alone: %d", got)
	}
}

// TestReloadChangesTheQueue: calls that wait are let in by a reload that makes
// room, and by one that takes the queue away.
func TestReloadChangesTheQueue(t *testing.T) {
	up := newScript(t)
	s := newSite(t)
	config := func(options string) string {
		return s.http("weir {\n" + options + "}\nreverse_proxy " + up.address)
	}
	run := start(t, "", config("queue {\ncalls 1\n}\n"))
	for i, next := range []string{"queue {\ncalls 2\n}\n", "limit key {\nconcurrency 100\n}\n"} {
		run.load("", config("queue {\ncalls 1\n}\n"))
		first, x := open(t, up, client(t, "http/1.1"), with(t, s, chatPath, "sk-a", "", streaming))
		for run.limits(DefaultPool).Queue.InFlight == 0 {
			// The server of the configuration before accepts once more after a
			// reload, and that one may have no queue.
			x.send(usageEvent + done)
			x.finish()
			_, _ = io.ReadAll(first.Body)
			first.Body.Close()
			first, x = open(t, up, client(t, "http/1.1"), with(t, s, chatPath, "sk-a", "", streaming))
		}
		statuses := make(chan int, 1)
		c, r := client(t, "http/1.1"), with(t, s, chatPath, "sk-a", fmt.Sprint("waits-", i), streaming)
		go func() {
			res, err := c.Do(r)
			if err != nil {
				statuses <- 0
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			statuses <- res.StatusCode
		}()
		until(t, "one waiting", func() bool { return run.limits(DefaultPool).Queue.Waiting == 1 })
		run.load("", config(next))
		y := up.next(t)
		for _, x := range []*exchange{x, y} {
			x.send(usageEvent + done)
			x.finish()
		}
		if got := await(t, statuses, "answer to the call that waited"); got != 200 {
			t.Errorf("%q: %d", next, got)
		}
		_, _ = io.ReadAll(first.Body)
		first.Body.Close()
		if rec := run.record(fmt.Sprint("waits-", i)); rec.Outcome != call.Completed {
			t.Errorf("%+v", rec)
		}
	}
}

// TestFailedReloadLeavesLimits: a configuration that cannot be loaded changes
// nothing of the limits that hold, wherever it fails, nor of what is used of them.
func TestFailedReloadLeavesLimits(t *testing.T) {
	up := newCounting(t, nil)
	s := newSite(t)
	occupied, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer occupied.Close()
	blocked := site{plain: occupied.Addr().String()}.http("respond ok")
	const rules = "limit key {\nrequests_per_minute 2\n}\nlimit model m {\nrequests_per_minute 100\n}\n"
	run := start(t, "", s.http("weir {\n"+rules+"}\nreverse_proxy "+up.address))
	for _, tc := range []struct{ name, globals, sites string }{
		{"another module", "", s.http("weir {\nlimit key {\nrequests_per_minute 600\n}\n}\nreverse_proxy " + up.address + " {\nlb_policy header X {\nfallback header Y\n}\n}\nheader @none X-A b\n@none expression `not an expression`")},
		{"contradiction", "", s.http("weir {\nlimit key {\nrequests_per_minute 600\n}\n}\nreverse_proxy "+up.address) + newSite(t).http("weir {\nlimit key {\nrequests_per_minute 700\n}\n}")},
		{"prices", "weir {\nprices " + run.dir + "/none.json\n}", s.http("weir {\nlimit key {\nrequests_per_minute 600\n}\n}\nreverse_proxy " + up.address)},
		{"ledger that cannot be", "weir {\nledger sqlite " + run.dir + "/usage.db {\nmax_spill 1\n}\n}", s.http("weir {\nlimit key {\nrequests_per_minute 600\n}\n}\nreverse_proxy " + up.address)},
		{"port taken, limits raised", "", s.http("weir {\nlimit key {\nrequests_per_minute 600\n}\n}\nreverse_proxy "+up.address) + blocked},
		{"port taken, mode off", "", s.http("weir {\nmode off\n}\nreverse_proxy "+up.address) + blocked},
		{"port taken, limits taken away", "", s.http("weir {\nlimit model m {\nrequests_per_minute 100\n}\n}\nreverse_proxy "+up.address) + blocked},
		{"port taken, no weir", "", s.http("reverse_proxy "+up.address) + blocked},
	} {
		for range 2 {
			if got := s.status(t, "sk-"+tc.name, ""); got != 200 {
				t.Fatalf("%s: %d", tc.name, got)
			}
		}
		// Apps start in no particular order: some of the attempts find weir
		// started before the port is found taken, some after.
		for range 8 {
			if err := run.tryLoad(tc.globals, tc.sites); err == nil {
				t.Fatalf("%s: the configuration was loaded", tc.name)
			}
		}
		if got := s.status(t, "sk-"+tc.name, ""); got != 429 {
			t.Errorf("%s: a call beyond the limit is answered %d", tc.name, got)
		}
		p := run.limits(DefaultPool)
		if p.Mode != limit.Enforce {
			t.Errorf("%s: mode %s", tc.name, p.Mode)
		}
		for _, u := range p.Uses {
			if want := map[limit.Scope]int64{limit.PerKey: 2, limit.PerModel: 100}[u.Scope]; u.Limit != want {
				t.Errorf("%s: %+v", tc.name, u)
			}
		}
	}
	// What was good goes on from where it was.
	run.load("", s.http("weir {\n"+rules+"class batch\n}\nreverse_proxy "+up.address))
	if got := s.status(t, "sk-port taken, no weir", ""); got != 429 {
		t.Errorf("a reload after the failed ones: %d", got)
	}
}

// TestPools: directives of one pool share its limits and must say the same of
// them, or nothing; pools of other names know nothing of each other.
func TestPools(t *testing.T) {
	up := newCounting(t, nil)
	a, b, c, d := newSite(t), newSite(t), newSite(t), newSite(t)
	const one = "limit pool {\nrequests_per_minute 1\n}\n"
	block := func(s site, options string) string {
		return s.http("weir {\n" + options + "}\nreverse_proxy " + up.address)
	}
	run := start(t, "", block(a, one)+block(b, one)+block(c, "pool default\n")+block(d, "pool other\n"+one))
	if got := a.status(t, "sk-a", ""); got != 200 {
		t.Errorf("the first: %d", got)
	}
	for name, s := range map[string]site{"alike": b, "joined by name": c, "itself": a} {
		if got := s.status(t, "sk-b", ""); got != 429 {
			t.Errorf("%s: %d", name, got)
		}
	}
	for i, want := range []int{200, 429} {
		if got := d.status(t, "sk-a", ""); got != want {
			t.Errorf("the other pool, call %d: %d", i, got)
		}
	}
	// A bare directive beside them is limited by nothing.
	bare := newSite(t)
	run.load("", block(a, one)+block(bare, ""))
	if got := bare.status(t, "sk-a", ""); got != 200 {
		t.Errorf("bare: %d", got)
	}
	if got := a.status(t, "sk-a", ""); got != 429 {
		t.Errorf("the first after the reload: %d", got)
	}
	for name, other := range map[string]string{
		"another limit": "limit pool {\nrequests_per_minute 2\n}\n",
		"another scope": "limit key {\nrequests_per_minute 1\n}\n",
		"another mode":  "mode shadow\n" + one,
		"replicas":      "replicas 2\n" + one,
		"a queue":       one + "queue {\ncalls 1\n}\n",
		"only a queue":  "queue {\ncalls 1\n}\n",
	} {
		for order, sites := range map[string]string{"after": block(a, one) + block(b, other), "before": block(b, other) + block(a, one)} {
			if err := run.tryLoad("", sites); err == nil || !strings.Contains(err.Error(), `of pool "default"`) || !strings.Contains(err.Error(), "pool other") {
				t.Errorf("%s, %s: %v", name, order, err)
			}
		}
		if err := run.tryLoad("", block(a, one)+block(b, "pool apart\n"+other)); err != nil {
			t.Errorf("%s in a pool of its own: %v", name, err)
		}
		run.load("", block(a, one))
		if got := a.status(t, "sk-a", ""); got != 429 {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// TestReloadsUnderLoad: configurations change while calls come; every call is
// either answered or refused by a limit of one of them, and leaves one record.
func TestReloadsUnderLoad(t *testing.T) {
	up := newCounting(t, nil)
	s := newSite(t)
	config := func(n int) string {
		return s.http(fmt.Sprintf("weir {\nlimit key {\nrequests_per_minute %d\nconcurrency %d\n}\nqueue {\ncalls %d\n}\n}\nreverse_proxy %s", 1000*n, 2+n%3, 1+n%2, up.address))
	}
	run := start(t, "", config(1))
	const workers, each = 4, 30
	results := make(chan string, workers)
	for w := range workers {
		go func() {
			tr := &http.Transport{DisableKeepAlives: true}
			defer tr.CloseIdleConnections()
			c, bad, answered := &http.Client{Transport: tr}, "", 0
			for answered < each {
				r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.url("http/1.1", chatPath), strings.NewReader(bounded(5)))
				if err != nil {
					bad = err.Error()
					break
				}
				r.Header.Set("Authorization", fmt.Sprint("Bearer sk-", w%2))
				r.Header.Set("X-Weir-Run", fmt.Sprint("load-", w))
				res, err := c.Do(r)
				if err != nil {
					continue // Caddy closes some new connections around a reload
				}
				_, err = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if answered++; err != nil || res.StatusCode != 200 && res.StatusCode != 429 {
					bad = fmt.Sprint(res.StatusCode, err)
				}
			}
			results <- bad
		}()
	}
	left := workers
	for n := 2; left > 0; n++ {
		select {
		case bad := <-results:
			if left--; bad != "" {
				t.Error(bad)
			}
		default:
			run.load("", config(n))
		}
	}
	for w := range workers {
		run.recordsOf(fmt.Sprint("load-", w), each)
	}
	p := run.limits(DefaultPool)
	if n := run.used(limit.Concurrency); n != 0 || p.Queue == nil || p.Queue.InFlight != 0 || p.Queue.Waiting != 0 {
		t.Errorf("%d calls are in flight, queue %+v", n, p.Queue)
	}
	if m := run.metrics(); m.sum("weir_calls_total") != workers*each {
		t.Errorf("%v calls are counted", m.sum("weir_calls_total"))
	}
}
