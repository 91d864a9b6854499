package caddymodule

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/gateway"
)

// names lists the runs of records, in their order.
func names(records []*call.Record) string {
	var runs []string
	for _, rec := range records {
		runs = append(runs, rec.Run)
	}
	return strings.Join(runs, " ")
}

// TestCallsFilters asks for calls by each filter, alone and together.
func TestCallsFilters(t *testing.T) {
	up := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Header.Get("X-Weir-Run") == "d" {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, chunk(0)+done)
	}))
	s := newSite(t)
	run := start(t, "", s.http("weir\nreverse_proxy "+up))
	c := client(t, "http/1.1")
	var third time.Time
	for _, ask := range []struct{ run, model, key string }{
		{"a", "m1", "sk-one"}, {"b", "m2", "sk-one"}, {"c", "m1", "sk-two"}, {"d", "m1", "sk-two"}, {"e", "m2", ""}, {"a", "m1", "sk-one"},
	} {
		if ask.run == "c" {
			third = time.Now()
		}
		r := post(context.Background(), t, s.url("http/1.1", "/v1/chat/completions"), ask.run, strings.Replace(streaming, `"m"`, `"`+ask.model+`"`, 1))
		r.Header.Del("Authorization")
		if ask.key != "" {
			r.Header.Set("Authorization", "Bearer "+ask.key)
		}
		fetch(t, c, r)
		until(t, "record of "+ask.run, func() bool { // one after the other, so that their order is known
			all := run.records("")
			return len(all) > 0 && all[0].Run == ask.run && (ask.run != "a" || len(all) != 5)
		})
	}
	first := run.records(query("run", "b"))[0]
	keyOne, keyTwo := first.Key, run.records(query("run", "c"))[0].Key
	slowest := slices.MaxFunc(run.records("model=m1&outcome=completed"), func(a, b *call.Record) int { return int(a.TTFT.Or(0) - b.TTFT.Or(0)) })
	for filter, want := range map[string]string{
		"":                                   "a e d c b a",
		"limit=1":                            "a",
		"limit=4":                            "a e d c",
		"limit=100000":                       "a e d c b a",
		"run=a":                              "a a",
		"run=A":                              "",
		"run=a&limit=1":                      "a",
		"id=" + first.ID:                     "b",
		"id=none":                            "",
		"model=m1":                           "a d c a",
		"model=m":                            "",
		"key=" + keyOne:                      "a b a",
		"key=" + keyTwo:                      "d c",
		"key=sk-one":                         "",
		"outcome=completed":                  "a e c b a",
		"outcome=upstream_error":             "d",
		"outcome=crashed":                    "",
		"failed=true":                        "d",
		"failed=false":                       "a e d c b a",
		"failed=1&model=m2":                  "",
		"since=1h":                           "a e d c b a",
		query("since", stamp(third)):         "a e d c",
		query("since", stamp(first.Time)):    "a e d c b",
		"since=2999-01-01T00:00:00Z":         "",
		"min_ttft_ms=0":                      "a e d c b a",
		"min_ttft_ms=3600000":                "",
		"min_ttft_ms=0.000001":               "a e c b a",
		"min_ttft_ms=1e-6&model=m1&limit=2":  "a c",
		"model=m1&key=" + keyOne + "&run=a":  "a a",
		"model=m1&outcome=completed&limit=9": "a c a",
		"key=" + keyTwo + "&" + query("since", stamp(third)) + "&failed=true&outcome=upstream_error&model=m1": "d",
	} {
		if got := names(run.records(filter)); got != want {
			t.Errorf("%q: %q, want %q", filter, got, want)
		}
	}
	at := fmt.Sprintf("min_ttft_ms=%v&id=%s", slowest.TTFT.MillisecondsFloat(), slowest.ID)
	if got := run.records(at); len(got) != 1 {
		t.Errorf("%s: a call's own TTFT does not pick it", at)
	}
	if keyOne == keyTwo || keyOne == "" {
		t.Errorf("keys %q and %q", keyOne, keyTwo)
	}
}

func stamp(at time.Time) string { return at.Format(time.RFC3339Nano) }

// TestCallsRefuses: a query that would be misunderstood is refused, with a hint.
func TestCallsRefuses(t *testing.T) {
	s := newSite(t)
	run := start(t, "", s.http("weir\nrespond ok"))
	for _, c := range []struct {
		query, hint string
	}{
		{"limit=0", "above 0"}, {"limit=-1", "above 0"}, {"limit=ten", "above 0"}, {"limit=", "above 0"},
		{"outcome=complete", "client_gone"}, {"since=yesterday", "RFC"}, {"min_ttft_ms=fast", "milliseconds"},
		{"min_ttft_ms=NaN", "milliseconds"}, {"min_ttft_ms=-1", "milliseconds"}, {"min_ttft_ms=1e300", "milliseconds"},
		{"failed=maybe", "true or false"}, {"modle=m", "model"}, {"limit=5&colour=red", "colour"}, {"limit=%zz", "query"},
		{"model=a&model=b", "once"},
	} {
		status, body := run.get("/weir/calls?" + c.query)
		var answer struct{ Error string }
		if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", c.query, status, body)
		} else if hint := c.hint; hint != "RFC" && !strings.Contains(answer.Error, hint) ||
			hint == "RFC" && (!strings.Contains(answer.Error, "15m") || !strings.Contains(answer.Error, "T08:00:00Z")) {
			t.Errorf("%s: %q does not say %q", c.query, answer.Error, c.hint)
		}
	}
	for path, want := range map[string]int{"/weir/calls": 405, "/weir/live": 405, "/weir/ready": 405} {
		for _, method := range []string{http.MethodPost, http.MethodDelete, http.MethodPut} {
			r, err := http.NewRequestWithContext(context.Background(), method, "http://"+run.admin+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := fetch(t, client(t, "http/1.1"), r); got.status != want || got.header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d, Allow %q", method, path, got.status, got.header.Get("Allow"))
			}
		}
	}
}

// TestCallsEmpty: before the first call, and in a Caddy whose configuration has
// no weir, the answer is an empty list, not null and not an error.
func TestCallsEmpty(t *testing.T) {
	s := newSite(t)
	run := start(t, "", s.http("weir\nrespond ok"))
	for _, config := range []string{s.http("weir\nrespond ok"), s.http("respond ok")} {
		run.load("", config)
		for _, query := range []string{"", "?failed=true", "?limit=1"} {
			status, body := run.get("/weir/calls" + query)
			if status != http.StatusOK || strings.TrimSpace(string(body)) != `{"calls":[]}` {
				t.Errorf("%s: %d %s", query, status, body)
			}
		}
	}
	res, err := http.Head("http://" + run.admin + "/weir/calls")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("HEAD: %d, %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
}

// TestAdminProbes: live says that the process lives, ready that weir runs.
func TestAdminProbes(t *testing.T) {
	s := newSite(t)
	with, without := s.http("weir\nrespond ok"), s.http("respond ok")
	run := start(t, "", with)
	for range 3 {
		for config, ready := range map[string]int{with: 200, without: 503} {
			run.load("", config)
			if status, body := run.get("/weir/live"); status != 200 || string(body) != "ok\n" {
				t.Errorf("live: %d %q", status, body)
			}
			if status, _ := run.get("/weir/ready"); status != ready {
				t.Errorf("ready: %d, want %d", status, ready)
			}
		}
	}
}

// TestRings: the latest calls are kept up to a number, and as many failed ones
// beside them, which calls that went well do not push out.
func TestRings(t *testing.T) {
	s := newSite(t)
	run := start(t, "", s.http("weir\n@fail header X-Weir-Run fail*\nrespond @fail 503\nrespond `{\"object\":\"chat.completion\",\"choices\":[{\"index\":0,\"message\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}`"))
	c := client(t, "http/1.1")
	send := func(name string) {
		t.Helper()
		fetch(t, c, post(context.Background(), t, s.url("http/1.1", "/v1/chat/completions"), name, `{"model":"m","messages":[]}`))
	}
	const over = 20
	send("failed-first")
	for i := range gateway.RingSize + over {
		send(fmt.Sprint("well-", i))
	}
	last := fmt.Sprint("well-", gateway.RingSize+over-1)
	run.record(last)
	all := run.records("limit=5000")
	if len(all) != gateway.RingSize || all[0].Run != last || all[len(all)-1].Run != fmt.Sprint("well-", over) {
		t.Errorf("%d calls are kept, from %s to %s", len(all), all[0].Run, all[len(all)-1].Run)
	}
	if n := len(run.records("")); n != defaultLimit {
		t.Errorf("%d calls are shown by default", n)
	}
	if got := names(run.records("failed=true")); got != "failed-first" {
		t.Errorf("failed: %q", got)
	}
	for i := range gateway.RingSize {
		send(fmt.Sprint("fail-", i))
	}
	run.record(fmt.Sprint("fail-", gateway.RingSize-1))
	failed := run.records("failed=true&limit=5000")
	if len(failed) != gateway.RingSize || failed[len(failed)-1].Run != "fail-0" {
		t.Errorf("%d failed calls are kept, the oldest %s", len(failed), failed[len(failed)-1].Run)
	}
}
