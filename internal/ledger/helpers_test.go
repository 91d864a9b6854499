package ledger

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// open opens a ledger that is closed when the test ends.
func open(t testing.TB, o Options) *Ledger {
	t.Helper()
	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "usage.db")
	}
	if o.Breaker == 0 {
		o.Breaker = time.Minute // tests of the breaker set it
	}
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(soon(t)) }) // tests that close it look at the error
	return l
}

// soon is a context that only a test that hangs sees the end of.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func flush(t testing.TB, l *Ledger) {
	t.Helper()
	if err := l.Flush(soon(t)); err != nil {
		t.Fatalf("%v; state %+v", err, l.State())
	}
}

// start and ended are a call of which little is known.
func start(id string) *Start {
	return &Start{ID: id, Time: noon, Key: "alice", Model: "m", Class: "interactive", Dialect: "openai_chat",
		EstimatedInput: call.Known(100), EstimatedOutput: call.Known(50), Reserved: call.Known(150)}
}

func ended(id string) *call.Record {
	rec := &call.Record{}
	rec.ID, rec.Time, rec.Key, rec.Model, rec.Class, rec.Dialect = id, noon, "alice", "m", "interactive", "openai_chat"
	rec.Outcome, rec.Status, rec.Attempts = call.Completed, 200, 1
	rec.UsageSource, rec.Input, rec.Output = call.UsageReported, call.Known(10), call.Known(5)
	return rec
}

var noon = time.Date(2026, 11, 2, 10, 30, 0, 0, time.UTC)

// rows returns every row of the ledger, by id.
func rows(t testing.TB, r interface {
	Calls(context.Context, Filter) ([]*call.Record, error)
}) map[string]*call.Record {
	t.Helper()
	all := make(map[string]*call.Record)
	f := Filter{Limit: MaxCalls}
	for {
		page, err := r.Calls(soon(t), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range page {
			if _, twice := all[row.ID]; twice {
				t.Fatalf("%s is there twice", row.ID)
			}
			all[row.ID] = row
			f.BeforeID = row.ID
		}
		if len(page) < MaxCalls {
			return all
		}
	}
}

// wide is a record of a streamed call as an engine with figures of its own
// leaves it.
func wide(r *rand.Rand, n int) *call.Record {
	ms := func(max int) call.Duration { return call.Lasting(time.Duration(r.IntN(max * 1e6))) }
	rec := ended(fmt.Sprintf("q7f3k2ab%013d", n))
	rec.Time = noon.Add(time.Duration(n) * time.Millisecond)
	rec.Key, rec.Model = fmt.Sprintf("key%02d", r.IntN(20)), []string{"llama-3.3-70b", "qwen3-32b", "mistral-small"}[r.IntN(3)]
	rec.ResponseModel, rec.Upstream, rec.Stream = rec.Model, "10.0.0.1:8000", true
	rec.ResponseID, rec.TraceID, rec.Path = "chatcmpl-0123456789abcdef", "0123456789abcdef0123456789abcdef", "/v1/chat/completions"
	rec.FinishReason.Set(0, "stop")
	rec.Terminated = true
	rec.Input, rec.Output, rec.Cached = call.Known(r.Int64N(4000)), call.Known(r.Int64N(1000)), call.Known(0)
	rec.ContentEvents, rec.FirstContentEvent = call.Known(r.Int64N(1000)), call.Known(1)
	rec.TTFT, rec.TTFTUpstream, rec.TTFB, rec.TTFTVisible, rec.TPOT, rec.E2E = ms(1000), ms(1000), ms(1000), ms(1000), ms(50), ms(30000)
	rec.ICLP50, rec.ICLMax, rec.ClientRTT, rec.UpstreamRTT = ms(50), ms(500), ms(50), ms(2)
	p, s := &rec.Phases, &rec.PhaseSources
	p.Upload, p.QueueGateway, p.Connect, p.Prefill, p.Decode, p.Tail, p.Delivery = ms(1), ms(1), ms(1), ms(900), ms(3000), ms(1), ms(1)
	m := call.Measured
	s.Upload, s.QueueGateway, s.Connect, s.Prefill, s.Decode, s.Tail, s.Delivery = m, m, m, call.Unattributed, m, m, m
	rec.BytesIn, rec.BytesOut, rec.ClientProtocol = call.Known(r.Int64N(20000)), r.Int64N(200000), "HTTP/2.0"
	rec.EstimatedInput, rec.EstimatedOutput, rec.Reserved = call.Known(r.Int64N(4000)), call.Known(1000), call.Known(r.Int64N(5000))
	return rec
}

// many is more than one group of rows, but for the race detector.
const many = 2*maxGroup/underRace + 10

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))
