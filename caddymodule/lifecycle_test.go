package caddymodule

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/call"
)

// TestReload (cases row 45): streams that are open while the configuration is
// replaced, several times, end as they began, on the configuration that they
// began with. Each leaves one record and counts once; what was there before is
// still there.
func TestReload(t *testing.T) {
	up := newScript(t)
	s := newSite(t)
	config := func(class string) string {
		return s.block("weir {\nclass " + class + "\n}\nreverse_proxy " + up.address)
	}
	run := start(t, "", config("first"))
	run.awaitCertificate(s)
	begin := func(protocol, name string) (io.ReadCloser, *exchange) {
		t.Helper()
		res, x := open(t, up, client(t, protocol), post(context.Background(), t, s.url(protocol, "/v1/chat/completions"), name, streaming))
		expect(t, res.Body, chunk(0))
		return res.Body, x
	}
	end := func(body io.ReadCloser, x *exchange) {
		t.Helper()
		x.send(chunk(1) + usageEvent + done)
		x.finish()
		expect(t, body, chunk(1)+usageEvent+done)
		if rest, err := io.ReadAll(body); err != nil || len(rest) > 0 {
			t.Errorf("after the last event: %q, %v", rest, err)
		}
		body.Close()
	}

	end(begin("http/1.1", "before"))
	run.record("before")
	type stream struct {
		name string
		body io.ReadCloser
		x    *exchange
	}
	var streams []stream
	for i, class := range []string{"second", "third", "fourth"} {
		for _, protocol := range protocols {
			name := fmt.Sprint("open-", i, "-", protocol)
			body, x := begin(protocol, name)
			streams = append(streams, stream{name, body, x})
		}
		run.load("", config(class))
	}
	end(begin("http/1.1", "after"))
	for _, s := range streams {
		end(s.body, s.x)
	}
	// A connection made right after a reload may still be accepted by the server
	// that is closing, so its stream may run on the configuration before.
	classes := map[byte][]string{'0': {"first"}, '1': {"second", "first"}, '2': {"third", "second"}}
	for _, s := range streams {
		rec := run.kept(s.name)
		if want := classes[s.name[len("open-")]]; rec.Outcome != call.Completed || !slices.Contains(want, rec.Class) {
			t.Errorf("%s: %s, class %s, want completed, one of %v", s.name, rec.Outcome, rec.Class, want)
		}
		checkSum(t, rec)
	}
	if rec := run.record("after"); rec.Class != "fourth" {
		t.Errorf("a call after the reloads has class %s", rec.Class)
	}
	run.record("before")
	checkCounted(t, run, 2+len(streams))
}

// checkCounted asserts that every metric that moves once a call, or by a fixed
// figure, says that n completed calls of TestReload's kind have ended.
func checkCounted(t *testing.T, run *run, n int) {
	t.Helper()
	m := run.metrics()
	for what, got := range map[string]float64{
		"calls":     m.sum("weir_calls_total"),
		"completed": m.sum("weir_calls_total", `outcome="completed"`),
		"ttft":      m.sum("weir_ttft_seconds_count"),
		"e2e":       m.sum("weir_e2e_seconds_count"),
		"attempts":  m.sum("weir_upstream_attempts_total"),
		"input":     m.sum("weir_tokens_total", `kind="input"`) / 7,
		"output":    m.sum("weir_tokens_total", `kind="output"`) / 2,
		"gaps":      m.sum("weir_icl_seconds_count"),
		"in flight": m.sum("weir_calls_in_flight") + float64(n),
	} {
		if got != float64(n) {
			t.Errorf("%s: counted %v of %d calls", what, got, n)
		}
	}
}

// TestReloadWithoutWeir: a configuration without weir, and then one that has it
// again, while streams run: the stream that ends in between is not lost.
func TestReloadWithoutWeir(t *testing.T) {
	up := newScript(t)
	s := newSite(t)
	with, without := s.http("weir\nreverse_proxy "+up.address), s.http("reverse_proxy "+up.address)
	run := start(t, "", with)
	ask := func(name string) (*http.Response, *exchange) {
		// A connection of its own: a reload closes those that are idle, perhaps
		// just when a request goes out on one.
		return open(t, up, client(t, "http/1.1"), post(context.Background(), t, s.url("http/1.1", "/v1/chat/completions"), name, streaming))
	}
	end := func(res *http.Response, x *exchange) {
		t.Helper()
		x.send(chunk(1) + usageEvent + done)
		x.finish()
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Error(err)
		}
		res.Body.Close()
	}
	end(ask("before"))
	run.record("before")
	short, atShort := ask("short")
	long, atLong := ask("long")

	run.load("", without)
	if m := run.metrics(); m.sum("weir_calls_total") != 0 {
		t.Error("a configuration without weir shows its metrics")
	}
	end(ask("unmeasured"))
	end(short, atShort)
	run.record("short")

	run.load("", with)
	end(long, atLong)
	run.record("long")
	end(ask("after"))
	run.record("after")
	run.record("before")
	run.record("short")
	if n := len(run.records(query("run", "unmeasured"))); n != 0 {
		t.Errorf("%d records of a call that weir did not see", n)
	}
	checkCounted(t, run, 4)

	// With nothing in flight weir goes for good: what comes later begins anew.
	run.load("", without)
	run.load("", with)
	if calls := run.records(""); len(calls) != 0 {
		t.Errorf("%d records from before weir was removed", len(calls))
	}
	end(ask("again"))
	run.record("again")
	checkCounted(t, run, 1)
}

// TestClientLeaves: a client that goes cancels the upstream, be it before the
// first byte of an answer or within the stream.
func TestClientLeaves(t *testing.T) {
	up := newScript(t)
	s := newSite(t)
	run := start(t, "", s.block("weir\nreverse_proxy "+up.address))
	run.awaitCertificate(s)
	for _, protocol := range protocols {
		c := client(t, protocol)
		for _, when := range []string{"prefill", "stream"} {
			name := when + " " + protocol
			ctx, leave := context.WithCancel(context.Background())
			r := post(ctx, t, s.url(protocol, "/v1/chat/completions"), name, streaming)
			gone := make(chan error, 1)
			var x *exchange
			if when == "prefill" {
				go func() {
					_, err := c.Do(r)
					gone <- err
				}()
				x = up.next(t)
				until(t, name+" in flight and awaited", func() bool {
					m := run.metrics()
					return m.sum("weir_calls_in_flight") == 1 && m.sum("weir_calls_awaiting_first_token") == 1
				})
			} else {
				var res *http.Response
				res, x = open(t, up, c, r)
				expect(t, res.Body, chunk(0))
				go func() {
					_, err := io.Copy(io.Discard, res.Body)
					gone <- err
				}()
			}
			leave()
			if err := await(t, gone, "end of "+name); err == nil {
				t.Errorf("%s: the client did not leave", name)
			}
			await(t, x.left(), "cancelled upstream: "+name)
			x.finish()
			rec := run.kept(name)
			wantStatus := 200
			if when == "prefill" {
				wantStatus = rec.Status // 499 of Caddy's own, or nothing
			}
			if rec.Outcome != call.ClientGone || rec.Error != "" || rec.E2E.IsKnown() || rec.Status != wantStatus ||
				rec.TTFT.IsKnown() != (when == "stream") || rec.Attempts != 1 || rec.Replayed {
				t.Errorf("%s: %+v", name, rec)
			}
			checkSum(t, rec)
		}
	}
	if m := run.metrics(); m.sum("weir_calls_in_flight") != 0 || m.sum("weir_calls_total", `outcome="client_gone"`) != float64(2*len(protocols)) {
		t.Errorf("%v in flight, %v client_gone", m.sum("weir_calls_in_flight"), m.sum("weir_calls_total", `outcome="client_gone"`))
	}
	if failed := run.records("failed=true"); len(failed) != 0 {
		t.Errorf("%d clients that left are kept as failed calls", len(failed))
	}
}

// TestClientLeavesAfterTheEnd: a client that goes after the terminal event, but
// before the upstream has closed the answer, has had all of it.
func TestClientLeavesAfterTheEnd(t *testing.T) {
	up := newScript(t)
	s := newSite(t)
	run := start(t, "", s.block("weir\nreverse_proxy "+up.address))
	run.awaitCertificate(s)
	for _, protocol := range protocols {
		ctx, leave := context.WithCancel(context.Background())
		name := "after " + protocol
		res, x := open(t, up, client(t, protocol), post(ctx, t, s.url(protocol, "/v1/chat/completions"), name, streaming))
		x.send(usageEvent + done)
		expect(t, res.Body, chunk(0)+usageEvent+done)
		leave()
		await(t, x.left(), "cancelled upstream")
		x.finish()
		res.Body.Close()
		rec := run.kept(name)
		if rec.Outcome != call.Completed || !rec.Terminated || !rec.E2E.IsKnown() || rec.Output.Or(-1) != 2 || len(rec.Degraded) > 0 {
			t.Errorf("%s: %+v", name, rec)
		}
		checkSum(t, rec)
	}
	if m := run.metrics(); m.sum("weir_calls_total", `outcome="completed"`) != float64(len(protocols)) {
		t.Error("not all counted as completed")
	}
}

// TestUpstreamBreaksOff: the client sees an answer break off in the same way
// with weir and without.
func TestUpstreamBreaksOff(t *testing.T) {
	up := newScript(t)
	metered, bare := newSite(t), newSite(t)
	run := start(t, "", metered.block("weir\nreverse_proxy "+up.address)+bare.block("reverse_proxy "+up.address))
	run.awaitCertificate(metered)
	for _, protocol := range protocols {
		c := client(t, protocol)
		name := "broken " + protocol
		var got [2]string
		for i, s := range []site{bare, metered} {
			res, x := open(t, up, c, post(context.Background(), t, s.url(protocol, "/v1/chat/completions"), name, streaming))
			expect(t, res.Body, chunk(0))
			x.abort()
			rest, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err == nil {
				t.Errorf("%s: the answer ends as if it were whole", name)
				continue
			}
			// Stream numbers and addresses differ between any two answers.
			kind, _, _ := strings.Cut(err.Error(), " ID ")
			got[i] = fmt.Sprintf("%q %s %T", rest, kind, err)
		}
		if got[0] != got[1] && protocol != "h3" {
			t.Errorf("%s: without weir %s, with weir %s", name, got[0], got[1])
		}
		rec := run.kept(name)
		if rec.Outcome != call.UpstreamError || rec.Error != "connection_lost" || rec.Status != 200 || rec.Terminated || !rec.TTFT.IsKnown() {
			t.Errorf("%s: %+v", name, rec)
		}
		checkSum(t, rec)
	}
	if failed := run.records("failed=true"); len(failed) != len(protocols) {
		t.Errorf("%d failed calls are kept, want %d", len(failed), len(protocols))
	}
}
