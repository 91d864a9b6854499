package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// gatewaySays is an admin endpoint that answers with records.
func gatewaySays(handler http.HandlerFunc) *http.Client {
	return &http.Client{Transport: inMemory{handler}}
}

func records(list ...call.Record) string {
	b, err := json.Marshal(map[string]any{"calls": list})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func record(id string, ttft, tpot, e2e float64, in, out int64) call.Record {
	var r call.Record
	r.RequestID, r.Run = id, "run"
	r.TTFT, r.TPOT, r.E2E = call.Milliseconds(ttft), call.Milliseconds(tpot), call.Milliseconds(e2e)
	r.Input, r.Output = call.Known(in), call.Known(out)
	return r
}

func sample(id string, ttft, tpot, e2e float64, in, out int64) Sample {
	return Sample{Run: "run", ID: id, Start: time.Now(), TTFT: call.Milliseconds(ttft), TPOT: call.Milliseconds(tpot), E2E: call.Milliseconds(e2e),
		Input: call.Known(in), Output: call.Known(out)}
}

// TestCompare joins both sides by the call's id, though records come late.
func TestCompare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		client := gatewaySays(func(w http.ResponseWriter, r *http.Request) {
			if q := r.URL.Query(); r.URL.Path != "/weir/calls" || q.Get("run") != "run" || q.Get("since") == "" || q.Get("limit") == "" || len(q) != 3 {
				t.Errorf("asked %s", r.URL)
			}
			asked++
			list := []call.Record{record("a", 100.2, 20, 500, 10, 20), record("else", 1, 1, 1, 1, 1)}
			if asked > 2 {
				list = append(list, record("b", 100, 21.5, 520, 10, 21), record("c", 100, 20, 500, 10, 20))
			}
			fmt.Fprint(w, records(list...))
		})
		warm, broken, foreign := sample("w", 1, 1, 1, 1, 1), sample("f", 1, 1, 1, 1, 1), sample("x", 1, 1, 1, 1, 1)
		warm.Warmup, broken.Failed, foreign.Run = true, "timeout", "other"
		fresh := sample("c", 130, 20, 530, 10, 20)
		fresh.Connected = call.Milliseconds(29)
		other := sample("b", 7, 7, 7, 10, 20) // of another profile
		other.ours = &Values{TTFT: call.Milliseconds(99.5), TPOT: call.Milliseconds(21), E2E: call.Milliseconds(520)}
		c, err := Compare(t.Context(), client, "admin.test:2019", "run", []Sample{sample("a", 100, 20, 500, 10, 20), other, fresh, warm, broken, foreign})
		if err != nil {
			t.Fatal(err)
		}
		if c.Calls != 3 || c.Found != 3 || asked != 3 || c.TokensEqual != 2 || c.TokensDiffer != 1 || c.TTFT.N != 3 {
			t.Errorf("%+v after %d questions", c, asked)
		}
		near(t, "TTFT p50", c.TTFT.P50, 0.5, 1e-9)
		near(t, "TTFT max", c.TTFT.Max, 30, 1e-9)
		near(t, "TPOT max", c.TPOT.Max, 0.5, 1e-9)
		if len(c.Differences) != 3 || c.Differences[0].ID != "b" || c.Differences[0].Client != "10/20" || c.Differences[0].Gateway != "10/21" || c.Differences[1].ID != "c" {
			t.Errorf("differences %+v", c.Differences)
		}
		if c.Note != "1 calls opened a connection, whose time is in the client's TTFT and E2E alone" {
			t.Errorf("note %q", c.Note)
		}
	})
}

// TestCompareMissing: what the gateway does not have is said, after a few
// seconds, not waited for.
func TestCompareMissing(t *testing.T) {
	many := make([]Sample, 1500)
	var kept []call.Record
	for i := range many {
		many[i] = sample(fmt.Sprint(i), 1, 1, 1, 1, 1)
		if i >= 500 {
			kept = append(kept, record(fmt.Sprint(i), 1, 1, 1, 1, 1))
		}
	}
	for _, c := range []struct {
		samples []Sample
		records []call.Record
		found   int
		note    string
		waits   bool
	}{
		{many, kept, 1000, "500 calls were not compared: the gateway answers with its latest 1000 only", false},
		{many[:3], nil, 0, "X-Weir-Run", true},
		{many[498:502], kept, 2, "no record of 2 calls", true},
		{nil, kept, 0, "nothing to compare", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			client := gatewaySays(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, records(c.records...)) })
			got, err := Compare(t.Context(), client, "http://admin.test", "run", c.samples)
			if err != nil || got.Found != c.found || got.Calls != len(c.samples) || !strings.Contains(got.Note, c.note) {
				t.Errorf("%v: %d of %d found, %q", err, got.Found, got.Calls, got.Note)
			}
			if took := time.Since(begin); c.waits != (took == compareWithin) || !c.waits && took != 0 {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestCompareFails(t *testing.T) {
	for _, c := range []struct {
		admin, hint string
		handler     http.HandlerFunc
	}{
		{"http://admin.test", "admin address", http.NotFound},
		{"http://admin.test", "403", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }},
		{"http://admin.test", "JSON", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }},
		{"http://user:secret@admin.test/?k=secret", "502", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) }},
		{"ftp://admin.test", "not a URL", nil},
		{"http://%zz", "not a URL", nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, err := Compare(t.Context(), gatewaySays(c.handler), c.admin, "run", []Sample{sample("a", 1, 1, 1, 1, 1)})
			if err == nil || !strings.Contains(err.Error(), c.hint) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v does not say %q", err, c.hint)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Compare(ctx, gatewaySays(http.NotFound), "http://admin.test", "run", []Sample{sample("a", 1, 1, 1, 1, 1)}); err == nil {
		t.Error("no error when it is over before it began")
	}
}

// TestTokensUnknown: tokens that a side does not know are neither equal nor not.
func TestTokensUnknown(t *testing.T) {
	var none call.Count
	one, two := call.Known(1), call.Known(2)
	for _, c := range []struct {
		in, out, gin, gout call.Count
		equal, differ      bool
	}{
		{one, two, one, two, true, false}, {one, two, one, one, false, true}, {one, none, one, two, true, false},
		{none, none, one, two, false, false}, {one, one, none, two, false, true}, {none, one, one, none, false, false},
	} {
		equal, differ := tokensEqual(&Sample{Input: c.in, Output: c.out}, &gatewayCall{Input: c.gin, Output: c.gout})
		if equal != c.equal || differ != c.differ {
			t.Errorf("%+v: %t, %t", c, equal, differ)
		}
	}
}
