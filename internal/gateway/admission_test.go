package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/dialect"
	"github.com/weirgate/weir/internal/estimate"
	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/ledger"
	"github.com/weirgate/weir/internal/limit"
	"github.com/weirgate/weir/internal/queue"
	"github.com/weirgate/weir/internal/sim"
	"github.com/weirgate/weir/internal/spend"
)

// books is a fake for Ledger.
type books struct {
	mu     sync.Mutex
	starts []ledger.Start
	ends   []*call.Record

	amendments []*call.Amendment
	err        error // of Start
}

func (b *books) Start(s *ledger.Start) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.starts = append(b.starts, *s)
	}
	return b.err
}

func (b *books) End(rec *call.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ends = append(b.ends, rec)
}

func (b *books) Amend(a *call.Amendment) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.amendments = append(b.amendments, a)
}

// house is a gateway with everything before the upstream.
type house struct {
	*Gateway
	counted *counted
	books   *books
	limits  *limit.Pool
	queue   *queue.Queue
	options Options
}

func newHouse(t *testing.T, policy limit.Policy, q queue.Config) *house {
	t.Helper()
	h := &house{counted: new(counted), books: new(books), limits: limit.New("default", nil)}
	h.Gateway = New(h.counted)
	if err := h.limits.Apply(policy); err != nil {
		t.Fatal(err)
	}
	var err error
	if h.queue, err = queue.New("default", q); err != nil {
		t.Fatal(err)
	}
	h.options.Admission = &Admission{
		Limits: h.limits, Queue: h.queue, Ledger: h.books, Estimates: estimate.New(0, 0),
	}
	h.options.Weights = map[string]int{"interactive": 16, "batch": 1}
	return h
}

// enforced limits the whole pool.
func enforced(l call.Limits) limit.Policy {
	return limit.Policy{Mode: limit.Enforce, Rules: []limit.Rule{{Scope: limit.PerPool, Limits: l}}}
}

func (h *house) call(w http.ResponseWriter, r *http.Request, next NextFunc) *call.Record {
	c := h.Begin(r, &h.options, &Surroundings{})
	_ = c.Serve(w, next)
	return c.Record()
}

// empty fails unless nobody holds anything any more.
func (h *house) empty(t *testing.T, when string) {
	t.Helper()
	for _, u := range h.limits.Snapshot(100).Uses {
		if u.InFlight != 0 || u.Dimension == limit.Concurrency && u.Used != 0 || u.Dimension == limit.TokensInFlight && u.Used != 0 {
			t.Errorf("%s: %s %s still holds %d of %d calls, %d used", when, u.Scope, u.Dimension, u.InFlight, u.Limit, u.Used)
		}
	}
	if s := h.queue.State(); s.InFlight != 0 || s.Tokens != 0 || s.Waiting != 0 {
		t.Errorf("%s: the queue still holds %d calls, %d tokens, and %d wait", when, s.InFlight, s.Tokens, s.Waiting)
	}
}

// withKey writes keys.json with one key and returns a store of it.
func withKey(t *testing.T, entry keys.Entry, key string) *keys.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.json")
	if err := keys.Edit(path, time.Now(), func(f *keys.File) error { return f.Add(entry, key, time.Now()) }); err != nil {
		t.Fatal(err)
	}
	return keys.Open(path, time.Now())
}

const aKey = "sk-weir-0123456789abcdefghijklmnopqrstuv"

// TestEveryPathFreesAndSettles: however a call ends, it holds nothing
// afterwards, has one record, one start and one end in the ledger, and has
// paid what it used.
func TestEveryPathFreesAndSettles(t *testing.T) {
	answer := func(tokens int, usage string) NextFunc {
		return func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", "text/event-stream")
			for range tokens {
				fmt.Fprint(w, "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n")
			}
			if usage != "" {
				fmt.Fprintf(w, "data: {\"id\":\"x\",\"choices\":[],\"usage\":%s}\n\ndata: [DONE]\n\n", usage)
			}
			return nil
		}
	}
	type end struct {
		next    NextFunc
		outcome call.Outcome
		used    int64 // of the tokens per minute, at the end
	}
	for name, e := range map[string]end{
		"completed": {answer(3, `{"prompt_tokens":40,"completion_tokens":3}`), call.Completed, 43},
		"truncated": {answer(3, ""), call.Truncated, -1},
		"upstream refused": {func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			_, err := io.WriteString(w, `{"error":{"message":"slow down"}}`)
			return err
		}, call.UpstreamError, 0},
		"upstream dead": {func(http.ResponseWriter, *http.Request) error { return errors.New("dial: connection refused") }, call.UpstreamError, 0},
		"timeout":       {func(http.ResponseWriter, *http.Request) error { return context.DeadlineExceeded }, call.Timeout, 0},
		"panic":         {func(http.ResponseWriter, *http.Request) error { panic("a fault") }, call.InternalError, 0},
		"abort": {func(w http.ResponseWriter, r *http.Request) error {
			_ = answer(2, "")(w, r)
			panic(http.ErrAbortHandler)
		}, call.UpstreamError, -1},
		"client gone": {func(w http.ResponseWriter, r *http.Request) error {
			_ = answer(2, "")(w, r)
			r.Context().Value(leaveKey{}).(func())()
			return nil
		}, call.ClientGone, -1},
		"silent prefill": {func(w http.ResponseWriter, r *http.Request) error {
			sent(r)
			r.Context().Value(leaveKey{}).(func())()
			return context.Canceled
		}, call.ClientGone, -1},
		"gone before it was sent": {func(w http.ResponseWriter, r *http.Request) error {
			r.Context().Value(leaveKey{}).(func())()
			w.WriteHeader(499) // the proxy's note
			return nil
		}, call.ClientGone, 0},
		"timeout upstream": {func(_ http.ResponseWriter, r *http.Request) error { sent(r); return context.DeadlineExceeded }, call.Timeout, -1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, enforced(call.Limits{TokensPerMinute: call.Known(100_000), Concurrency: call.Known(2), TokensInFlight: call.Known(10_000)}),
					queue.Config{Calls: 2})
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				r := chat("x", 50, "").WithContext(context.WithValue(ctx, leaveKey{}, func() { leave() }))
				var rec *call.Record
				func() {
					defer func() { _ = recover() }()
					rec = h.call(httptest.NewRecorder(), r, e.next)
				}()
				if rec == nil {
					rec = h.counted.records[0]
				}
				h.empty(t, name)
				if len(h.counted.records) != 1 || len(h.books.starts) != 1 || len(h.books.ends) != 1 {
					t.Errorf("%d records, %d starts, %d ends; want one of each", len(h.counted.records), len(h.books.starts), len(h.books.ends))
				}
				if rec.Outcome != e.outcome {
					t.Errorf("%s (%s), want %s", rec.Outcome, rec.Error, e.outcome)
				}
				want := e.used
				if want < 0 { // what was asked and what came
					want = rec.EstimatedInput.Or(0) + rec.ContentEvents.Or(0)
				}
				for _, u := range h.limits.Snapshot(100).Uses {
					if u.Dimension == limit.Tokens && u.Used != want {
						t.Errorf("%d tokens are used, want %d (reserved %d)", u.Used, want, rec.Reserved.Or(0))
					}
				}
			})
		})
	}
}

type leaveKey struct{}

// sent does what a transport does that has written the request.
func sent(r *http.Request) {
	hooks := httptrace.ContextClientTrace(r.Context())
	hooks.GetConn("")
	hooks.GotConn(httptrace.GotConnInfo{})
	hooks.WroteRequest(httptrace.WroteRequestInfo{})
}

// TestCutCallsFreeTheirSlot: calls that the process cuts at its end.
func TestCutCallsFreeTheirSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, enforced(call.Limits{Concurrency: call.Known(5)}), queue.Config{Calls: 2})
		var all sync.WaitGroup
		for i := range 4 { // two run, two wait
			all.Go(func() {
				h.call(httptest.NewRecorder(), chat(strconv.Itoa(i), 5, ""), func(_ http.ResponseWriter, r *http.Request) error {
					<-r.Context().Done()
					return r.Context().Err()
				})
			})
		}
		synctest.Wait()
		if cut, left := h.Shutdown(t.Context()); cut != 4 || left != 0 {
			t.Errorf("cut %d, left %d", cut, left)
		}
		all.Wait()
		h.empty(t, "after the cut")
		for _, rec := range h.counted.records {
			if rec.Outcome != call.GatewayShutdown {
				t.Errorf("%s", rec.Outcome)
			}
		}
	})
}

// TestManyClientsOneLimit: case 31. Sixty-four clients against 100 tokens a
// minute: what they get in a minute is the burst and what flowed in.
func TestManyClientsOneLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := simulated(t, sim.Config{Slots: 64})
		h := newHouse(t, enforced(call.Limits{TokensPerMinute: call.Known(100)}), queue.Config{})
		start := time.Now()
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() {
				for time.Since(start) < time.Minute {
					w := httptest.NewRecorder()
					h.call(w, chat(fmt.Sprint(i, time.Since(start)), 10, ""), direct(e))
					if w.Code == http.StatusTooManyRequests {
						after, err := strconv.Atoi(w.Header().Get("Retry-After-Ms"))
						if err != nil || after <= 0 {
							t.Errorf("retry-after-ms is %q", w.Header().Get("Retry-After-Ms"))
							return
						}
						time.Sleep(time.Duration(after) * time.Millisecond)
					}
				}
			})
		}
		all.Wait()
		elapsed := time.Since(start)
		var used, admitted int64
		for _, rec := range h.counted.records {
			if rec.Outcome == call.Refused {
				if rec.RefusedBy != "pool tokens_per_minute" || rec.Attempts != 0 {
					t.Errorf("refused by %q after %d attempts", rec.RefusedBy, rec.Attempts)
				}
				continue
			}
			admitted++
			used += rec.Input.Or(0) + rec.Output.Or(0)
		}
		bound := 100 + int64(100*elapsed.Minutes()) + 64*40 // an estimate of the prompt may be short
		if admitted == 0 || used > bound {
			t.Errorf("%d calls used %d tokens in %v; the bound is %d", admitted, used, elapsed, bound)
		}
		h.empty(t, "after all")
		t.Logf("%d calls, %d tokens in %v", admitted, used, elapsed)
	})
}

// TestFirstCallIsAdmitted: case 32. A call that does not bound its output fits
// a limit smaller than what is usually reserved.
func TestFirstCallIsAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := simulated(t, sim.Config{})
		h := newHouse(t, enforced(call.Limits{TokensPerMinute: call.Known(100)}), queue.Config{})
		r := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`))
		if rec := h.call(httptest.NewRecorder(), r, direct(e)); rec.Outcome != call.Completed || rec.Reserved.Or(0) > 100 {
			t.Errorf("%s by %q, reserved %v", rec.Outcome, rec.RefusedBy, rec.Reserved)
		}
	})
}

// TestShadowTouchesNothing: the same calls, once with limits that only watch and
// once without any: the same bytes at the same instants, nothing added. What
// shadow counts is what enforce refuses.
func TestShadowTouchesNothing(t *testing.T) {
	policy := enforced(call.Limits{TokensPerMinute: call.Known(60), RequestsPerMinute: call.Known(3)})
	run := func(t *testing.T, mode limit.Mode, bare bool) (bodies []string, headers []http.Header, recs []*call.Record) {
		synctest.Test(t, func(t *testing.T) {
			e := simulated(t, sim.Config{Seed: 7})
			p := policy
			p.Mode = mode
			h := newHouse(t, p, queue.Config{Calls: 1})
			if bare {
				h.options.Admission = nil
			}
			for i := range 12 {
				time.Sleep(2 * time.Second)
				w := httptest.NewRecorder()
				rec := h.call(w, chat(fmt.Sprint("n", i), 10, ""), direct(e))
				bodies, headers, recs = append(bodies, w.Body.String()), append(headers, w.Header()), append(recs, rec)
			}
		})
		return bodies, headers, recs
	}
	bodies, headers, bare := run(t, limit.Off, true)
	shadowed, theirs, shadow := run(t, limit.Shadow, false)
	_, _, enforce := run(t, limit.Enforce, false)
	var would, refused []int
	for i := range bodies {
		if bodies[i] != shadowed[i] || fmt.Sprint(headers[i]) != fmt.Sprint(theirs[i]) {
			t.Errorf("call %d is not the same under shadow:\n%v\n%v", i, headers[i], theirs[i])
		}
		if bare[i].TTFT != shadow[i].TTFT || bare[i].E2E != shadow[i].E2E || bare[i].Outcome != shadow[i].Outcome {
			t.Errorf("call %d took %v and %v under shadow, %v and %v without", i, shadow[i].TTFT, shadow[i].E2E, bare[i].TTFT, bare[i].E2E)
		}
		if shadow[i].WouldRefuse != "" {
			would = append(would, i)
		}
		if enforce[i].Outcome == call.Refused {
			refused = append(refused, i)
		}
	}
	if len(would) == 0 || fmt.Sprint(would) != fmt.Sprint(refused) {
		t.Errorf("shadow would have refused %v, enforce refused %v", would, refused)
	}
}

// TestQueueHasItsOwnClock: case 38. A call may wait as long as the queue allows,
// and then run for much longer.
func TestQueueHasItsOwnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, limit.Policy{Mode: limit.Enforce}, queue.Config{Calls: 1, MaxWait: 10 * time.Second})
		long := func(w http.ResponseWriter, _ *http.Request) error {
			time.Sleep(9 * time.Second)
			_, err := io.WriteString(w, wholeJSON)
			return err
		}
		var all sync.WaitGroup
		recs := make([]*call.Record, 3)
		answers := make([]*httptest.ResponseRecorder, 3)
		for i := range recs {
			time.Sleep(time.Millisecond)
			answers[i] = httptest.NewRecorder()
			all.Go(func() { recs[i] = h.call(answers[i], chat(strconv.Itoa(i), 5, ""), long) })
		}
		all.Wait()
		if recs[1].Outcome != call.Completed && recs[1].Outcome != call.Unrecognised || recs[1].Phases.QueueGateway.Or(0) < 8*time.Second {
			t.Errorf("the second call: %s after %v in the queue", recs[1].Outcome, recs[1].Phases.QueueGateway)
		}
		if e := recs[1].Phases.Sum(); e < 17*time.Second {
			t.Errorf("the second call took %v in all", e)
		}
		if answers[2].Code != http.StatusServiceUnavailable || recs[2].RefusedBy != "queue waited" || answers[2].Header().Get("Retry-After") == "" {
			t.Errorf("the third call: %d by %q, Retry-After %q", answers[2].Code, recs[2].RefusedBy, answers[2].Header().Get("Retry-After"))
		}
		h.empty(t, "after all")
	})
}

// TestClientLeavesTheQueue: its place is free at once, and nothing is paid.
func TestClientLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, enforced(call.Limits{TokensPerMinute: call.Known(1000), RequestsPerMinute: call.Known(10)}), queue.Config{Calls: 1})
		release := make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			h.call(httptest.NewRecorder(), chat("runs", 5, ""), func(http.ResponseWriter, *http.Request) error {
				<-release
				return errors.New("dial: refused")
			})
		})
		synctest.Wait()
		ctx, leave := context.WithCancel(t.Context())
		var rec *call.Record
		all.Go(func() {
			rec = h.call(httptest.NewRecorder(), chat("waits", 5, "").WithContext(ctx), func(http.ResponseWriter, *http.Request) error {
				t.Error("the call was sent")
				return nil
			})
		})
		synctest.Wait()
		if n := h.queue.State().Waiting; n != 1 {
			t.Fatalf("%d wait", n)
		}
		leave()
		synctest.Wait()
		if n := h.queue.State().Waiting; n != 0 {
			t.Errorf("%d wait after the client has left", n)
		}
		if rec == nil || rec.Outcome != call.ClientGone {
			t.Errorf("the record is %+v", rec)
		}
		close(release)
		all.Wait()
		h.empty(t, "after all")
		for _, u := range h.limits.Snapshot(10).Uses {
			if u.Used != 0 {
				t.Errorf("%s: %d used by calls that were never sent", u.Dimension, u.Used)
			}
		}
		if len(h.books.starts) != 1 {
			t.Errorf("the ledger has %d starts, want that of the call that ran", len(h.books.starts))
		}
	})
}

// stuckWriter takes nothing until its write deadline.
type stuckWriter struct {
	*httptest.ResponseRecorder
	cut chan struct{}
}

func (w stuckWriter) Write([]byte) (int, error) {
	<-w.cut
	return 0, os.ErrDeadlineExceeded
}
func (w stuckWriter) SetWriteDeadline(time.Time) error { close(w.cut); return nil }

// TestStalledReaderIsCut: a client that takes nothing is cut after the time-out
// and not before, and its slot is free.
func TestStalledReaderIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, enforced(call.Limits{Concurrency: call.Known(1)}), queue.Config{})
		h.options.Admission.ReaderTimeout = time.Minute
		start := time.Now()
		rec := h.call(stuckWriter{httptest.NewRecorder(), make(chan struct{})}, chat("x", 5, ""), func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", "text/event-stream")
			_, err := io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
			return err
		})
		if took := time.Since(start); took != time.Minute {
			t.Errorf("cut after %v", took)
		}
		if rec.Outcome != call.ReaderStalled {
			t.Errorf("%s (%s)", rec.Outcome, rec.Error)
		}
		h.empty(t, "after the cut")
	})
}

// TestSlowReaderIsNotCut: one that takes something now and then is only slow.
func TestSlowReaderIsNotCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, limit.Policy{}, queue.Config{})
		h.options.Admission.ReaderTimeout = time.Minute
		rec := h.call(httptest.NewRecorder(), chat("x", 5, ""), func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 5 {
				time.Sleep(50 * time.Second) // longer than the time-out in all
				_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
			}
			_, err := io.WriteString(w, "data: [DONE]\n\n")
			return err
		})
		time.Sleep(time.Hour) // no timer is left that would cut something later
		if rec.Outcome != call.Completed {
			t.Errorf("%s (%s)", rec.Outcome, rec.Error)
		}
	})
}

// TestCallers: who may call, and as whom a call counts.
func TestCallers(t *testing.T) {
	serve := func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "application/json")
		_, err := io.WriteString(w, wholeJSON)
		return err
	}
	entry := func(change func(*keys.Entry)) keys.Entry {
		e := keys.Entry{Alias: "team-a"}
		change(&e)
		return e
	}
	yesterday := keys.Moment{Time: time.Now().Add(-24 * time.Hour)}
	for name, c := range map[string]struct {
		entry   keys.Entry
		key     string
		require bool
		header  string
		status  int
		by, as  string
		class   string
	}{
		"known":               {entry(func(*keys.Entry) {}), aKey, true, "", 200, "", "team-a", "interactive"},
		"none":                {entry(func(*keys.Entry) {}), "", true, "", 401, "key", "", "interactive"},
		"unknown":             {entry(func(*keys.Entry) {}), "sk-other-0123456789abcdef", true, "", 401, "key", "", "interactive"},
		"unknown, all may":    {entry(func(*keys.Entry) {}), "sk-other-0123456789abcdef", false, "", 200, "", "", "interactive"},
		"expired":             {entry(func(e *keys.Entry) { e.Expires = yesterday }), aKey, true, "", 401, "key", "team-a", "interactive"},
		"revoked":             {entry(func(e *keys.Entry) { e.Revoked = yesterday }), aKey, true, "", 401, "key", "team-a", "interactive"},
		"model allowed":       {entry(func(e *keys.Entry) { e.Models = []string{"m*"} }), aKey, false, "", 200, "", "team-a", "interactive"},
		"model not allowed":   {entry(func(e *keys.Entry) { e.Models = []string{"other"} }), aKey, false, "", 403, "model", "team-a", "interactive"},
		"class of the key":    {entry(func(e *keys.Entry) { e.Class = "batch" }), aKey, false, "", 200, "", "team-a", "batch"},
		"lower by header":     {entry(func(*keys.Entry) {}), aKey, false, "batch", 200, "", "team-a", "batch"},
		"not higher":          {entry(func(e *keys.Entry) { e.Class = "batch" }), aKey, false, "interactive", 200, "", "team-a", "batch"},
		"unknown by header":   {entry(func(*keys.Entry) {}), aKey, false, "vip", 200, "", "team-a", "interactive"},
		"bench":               {entry(func(e *keys.Entry) { e.Bench = true }), aKey, false, "", 200, "", "team-a", "interactive"},
		"unknown, other form": {entry(func(*keys.Entry) {}), aKey + " ", true, "", 200, "", "team-a", "interactive"}, // blanks are no part of a key
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, limit.Policy{Mode: limit.Enforce}, queue.Config{})
			h.SetSecretSource(func() []byte { return []byte("secret") })
			h.options.Class = "interactive"
			a := h.options.Admission
			a.Keys, a.RequireKey = withKey(t, c.entry, aKey), c.require
			r := chat("x", 5, "")
			if c.key != "" {
				r.Header.Set("Authorization", "Bearer "+c.key)
			}
			if c.header != "" {
				r.Header.Set("X-Weir-Class", c.header)
			}
			w := httptest.NewRecorder()
			sent := false
			rec := h.call(w, r, func(w http.ResponseWriter, r *http.Request) error { sent = true; return serve(w, r) })
			as := c.as
			if as == "" {
				as = h.keyID(strings.TrimSpace(c.key))
			}
			if w.Code != c.status || rec.RefusedBy != c.by || rec.Key != as || rec.Class != c.class || rec.Bench != c.entry.Bench {
				t.Errorf("%d by %q as %q, class %q, bench %v: %s", w.Code, rec.RefusedBy, rec.Key, rec.Class, rec.Bench, w.Body)
			}
			if sent != (c.status == 200) {
				t.Errorf("sent upstream: %v", sent)
			}
			if strings.Contains(fmt.Sprint(w.Header(), w.Body), "sk-") {
				t.Errorf("the answer shows the key: %v %s", w.Header(), w.Body)
			}
			stranger := c.by == "key" && c.as == ""
			if kept := len(h.books.ends); kept == 1 == stranger {
				t.Errorf("%d rows in the ledger", kept)
			}
			h.empty(t, name)
		})
	}
}

// TestPathsWithDialect: a directive that names the dialect does not open every
// path.
func TestPathsWithDialect(t *testing.T) {
	h := newHouse(t, limit.Policy{}, queue.Config{})
	h.options.Dialect = dialect.ByName("openai.chat")
	a := h.options.Admission
	a.Keys, a.RequireKey, a.AllowPaths = withKey(t, keys.Entry{Alias: "team-a"}, aKey), true, []string{"/infer"}
	for path, status := range map[string]int{"/infer": 200, "/v1/chat/completions": 200, "/pause": 403, "/infer/../pause": 403, "//pause": 403} {
		r := httptest.NewRequest("POST", "/x", strings.NewReader(`{"messages":[]}`))
		r.URL.Path = path
		r.Header.Set("Authorization", "Bearer "+aKey)
		w := httptest.NewRecorder()
		h.call(w, r, func(w http.ResponseWriter, _ *http.Request) error { w.WriteHeader(200); return nil })
		if w.Code != status {
			t.Errorf("%s: %d, want %d", path, w.Code, status)
		}
	}
}

// TestBudget: what a key has spent is refused as OpenAI's clients know it, and
// they are told not to try again.
func TestBudget(t *testing.T) {
	h := newHouse(t, limit.Policy{Mode: limit.Enforce}, queue.Config{})
	a := h.options.Admission
	a.Keys = withKey(t, keys.Entry{Alias: "team-a", Budget: budgetOf(t, `{"tokens":"15","per":"day"}`)}, aKey)
	a.Budgets = spend.NewBudgets(func() *spend.Prices { return nil })
	ask := func() (*httptest.ResponseRecorder, *call.Record) {
		r := chat("x", 5, "")
		r.Header.Set("X-Api-Key", aKey)
		w := httptest.NewRecorder()
		return w, h.call(w, r, func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", "application/json")
			_, err := io.WriteString(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":6}}`)
			return err
		})
	}
	if w, rec := ask(); w.Code != 200 || rec.Outcome != call.Completed {
		t.Fatalf("the first call: %d, %s", w.Code, rec.Outcome)
	}
	h.limits.SetOverride(true)
	if w, rec := ask(); w.Code != 200 || rec.WouldRefuse != "budget" {
		t.Errorf("only measured, a spent budget answers %d, would refuse by %q", w.Code, rec.WouldRefuse)
	}
	h.limits.SetOverride(false)
	w, rec := ask()
	var answer struct {
		Error struct{ Code, Type, Message string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	if w.Code != 429 || answer.Error.Code != "insufficient_quota" || answer.Error.Type != "insufficient_quota" ||
		w.Header().Get("X-Should-Retry") != "false" || rec.RefusedBy != "budget" || rec.Outcome != call.Refused {
		t.Errorf("%d %s %v by %q", w.Code, w.Body, w.Header(), rec.RefusedBy)
	}
}

func budgetOf(t *testing.T, text string) *keys.EntryBudget {
	t.Helper()
	b := new(keys.EntryBudget)
	if err := json.Unmarshal([]byte(text), b); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestLedgerFailsClosed: where calls that cannot be recorded are to be refused,
// they are, and hold nothing.
func TestLedgerFailsClosed(t *testing.T) {
	h := newHouse(t, enforced(call.Limits{TokensPerMinute: call.Known(1000), Concurrency: call.Known(1)}), queue.Config{Calls: 1})
	h.books.err = errors.New("the disk is full")
	w := httptest.NewRecorder()
	rec := h.call(w, chat("x", 5, ""), func(http.ResponseWriter, *http.Request) error { t.Error("sent"); return nil })
	if w.Code != 503 || rec.RefusedBy != "ledger" || w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), "disk") {
		t.Errorf("%d %s by %q", w.Code, w.Body, rec.RefusedBy)
	}
	h.empty(t, "refused")
	for _, u := range h.limits.Snapshot(10).Uses {
		if u.Used != 0 {
			t.Errorf("%s: %d used", u.Dimension, u.Used)
		}
	}
}

// TestRefusalForms: a limit's refusal as two families of clients read it.
func TestRefusalForms(t *testing.T) {
	for path, want := range map[string]struct{ body, header string }{
		"/v1/chat/completions": {`{"error":{"message":"the limit of requests per minute for the pool default is reached: limit 1, used 1, requested 1; try again in 1m0s","type":"requests","param":null,"code":"rate_limit_exceeded"}}`, "X-Ratelimit-Remaining-Requests"},
		"/v1/messages":         {`{"type":"error","error":{"type":"rate_limit_error","message":"the limit of requests per minute for the pool default is reached: limit 1, used 1, requested 1; try again in 1m0s"}}`, "Anthropic-Ratelimit-Requests-Remaining"},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t, enforced(call.Limits{RequestsPerMinute: call.Known(1)}), queue.Config{})
			var w *httptest.ResponseRecorder
			for range 2 {
				w = httptest.NewRecorder()
				r := httptest.NewRequest("POST", path, strings.NewReader(`{"model":"m","max_tokens":5,"messages":[]}`))
				h.call(w, r, func(w http.ResponseWriter, _ *http.Request) error { w.WriteHeader(200); return nil })
			}
			if w.Code != 429 || w.Body.String() != want.body || w.Header().Get("Retry-After") != "60" || w.Header().Get("Retry-After-Ms") != "60000" ||
				w.Header().Get(want.header) != "0" {
				t.Errorf("%s: %d %v\n got %s\nwant %s", path, w.Code, w.Header(), w.Body, want.body)
			}
		})
	}
}

// TestReservation: what is reserved follows the request's own words.
func TestReservation(t *testing.T) {
	for body, want := range map[string]int64{
		`{"messages":[],"max_tokens":10}`:                            10,
		`{"messages":[],"max_tokens":10,"n":3}`:                      30,
		`{"messages":[],"max_tokens":5,"max_completion_tokens":8}`:   8,
		`{"messages":[]}`:                                            DefaultOutput,
		`{"messages":[],"n":2}`:                                      2 * DefaultOutput,
		`{"messages":[],"max_tokens":9000000000000000,"n":90000000}`: limit.MaxLimit,
	} {
		h := newHouse(t, limit.Policy{}, queue.Config{})
		h.options.Admission.Limits, h.options.Admission.Queue = nil, nil
		r := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(body))
		c := h.Begin(r, &h.options, &Surroundings{})
		var got int64
		_ = c.Serve(httptest.NewRecorder(), NextFunc(func(w http.ResponseWriter, _ *http.Request) error {
			got = c.entry.output
			w.WriteHeader(200)
			return nil
		}))
		if got != want {
			t.Errorf("%s reserves %d, want %d", body, got, want)
		}
	}
	// Embeddings write nothing.
	h := newHouse(t, limit.Policy{}, queue.Config{})
	c := h.Begin(httptest.NewRequest("POST", "/v1/embeddings", strings.NewReader(`{"input":"a"}`)), &h.options, &Surroundings{})
	_ = c.Serve(httptest.NewRecorder(), NextFunc(func(w http.ResponseWriter, _ *http.Request) error {
		if c.entry.output != 0 {
			t.Errorf("an embedding reserves %d tokens of output", c.entry.output)
		}
		w.WriteHeader(200)
		return nil
	}))
}
