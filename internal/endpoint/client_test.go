package endpoint

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/sim"
)

var allQuirks = []sim.Quirks{sim.VLLM, sim.SGLang, sim.LlamaCPP}

// TestFiguresAreTheEngines: what a call measures is what the engine did, to the nanosecond.
func TestFiguresAreTheEngines(t *testing.T) {
	for _, quirks := range allQuirks {
		for _, api := range APIs {
			t.Run(fmt.Sprintf("%s/%s", quirks, api), func(t *testing.T) {
				withEngine(t, sim.Config{Quirks: quirks, OutputMin: 40, OutputMax: 40}, Config{}, func(t *testing.T, e *sim.Engine, c *Client) {
					time.Sleep(time.Second) // offsets are not of the engine's start
					body := bodyOf(t, plainAsk(api, 40))
					r := c.Call(t.Context(), api, body, "call-1", nil)
					if r.Failed != "" || r.Err != nil {
						t.Fatalf("failed: %s: %v", r.Failed, r.Err)
					}
					truth, ok := e.Truth("call-1")
					if !ok {
						t.Fatal("the engine knows nothing of the call")
					}
					since := func(at time.Time) time.Duration { return at.Sub(truth.Received) }
					if !r.Start.Equal(truth.Received) {
						t.Errorf("start %v, want %v", r.Start, truth.Received)
					}
					// What the client can see are the writes.
					first, last := since(truth.Sent[0]), since(truth.Sent[len(truth.Sent)-1])
					if got := r.Record.TTFT; got != call.Lasting(first) {
						t.Errorf("TTFT %v, want %v", got, first)
					}
					if want := call.Lasting((last - first) / time.Duration(truth.Output-1)); r.Record.TPOT != want {
						t.Errorf("TPOT %v, want %v", r.Record.TPOT, want)
					}
					if first != since(truth.Tokens[0]) || last != since(truth.Tokens[len(truth.Tokens)-1]) {
						t.Errorf("tokens were sent at %v … %v, and made at %v … %v", first, last, since(truth.Tokens[0]), since(truth.Tokens[len(truth.Tokens)-1]))
					}
					if want := since(truth.End); r.Record.E2E != call.Lasting(want) || r.End != want {
						t.Errorf("E2E %v, end %v, want %v", r.Record.E2E, r.End, want)
					}
					if r.Record.Input != call.Known(int64(truth.Input)) || r.Record.Output != call.Known(int64(truth.Output)) {
						t.Errorf("usage %+v, want %d and %d", r.Record.Usage, truth.Input, truth.Output)
					}
					if r.Record.Outcome != call.Completed || !r.Record.Stream || r.Status != 200 || r.Record.RequestID != "call-1" {
						t.Errorf("record %+v", r.Record)
					}
					if got := firstWith(t, r.Events, Content); got != first {
						t.Errorf("first content event at %v, want %v", got, first)
					}
					if got := lastWith(r.Events, Content); got != last {
						t.Errorf("last content event at %v, want %v", got, last)
					}
					if got, want := call.Known(int64(marked(r.Events, Content))), r.Record.ContentEvents; got != want {
						t.Errorf("%v content events, the record has %v", got, want)
					}
					if marked(r.Events, Done) != 1 || r.Events[len(r.Events)-1].Mark&Done == 0 {
						t.Errorf("the last event is not the only end: %v", r.Events)
					}
					if got := lastOutput(r.Events); got != int32(truth.Output) {
						t.Errorf("the last usage says %d, want %d", got, truth.Output)
					}
				})
			})
		}
	}
}

func lastOutput(events []Event) (n int32) {
	for _, e := range events {
		if e.Output > 0 {
			n = e.Output
		}
	}
	return n
}

// TestWholeAnswer: an answer that is not streamed has figures and no events.
func TestWholeAnswer(t *testing.T) {
	for _, api := range APIs {
		t.Run(string(api), func(t *testing.T) {
			withEngine(t, sim.Config{OutputMin: 40, OutputMax: 40}, Config{KeepBody: true, KeepReads: true}, func(t *testing.T, e *sim.Engine, c *Client) {
				ask := plainAsk(api, 40)
				ask.Stream = false
				r := c.Call(t.Context(), api, bodyOf(t, ask), "whole", make([]Event, 5))
				truth, _ := e.Truth("whole")
				if r.Failed != "" || len(r.Events) != 0 || r.Record.Stream || r.Record.TTFT.IsKnown() || r.Record.TPOT.IsKnown() {
					t.Errorf("%s %v: %d events, record %+v", r.Failed, r.Err, len(r.Events), r.Record)
				}
				if want := truth.End.Sub(truth.Received); r.Record.E2E != call.Lasting(want) {
					t.Errorf("E2E %v, want %v", r.Record.E2E, want)
				}
				if r.Record.Output != call.Known(int64(truth.Output)) {
					t.Errorf("output %v, want %d", r.Record.Output, truth.Output)
				}
				if len(r.Body) == 0 || int64(len(r.Body)) != r.Record.BytesOut {
					t.Errorf("%d bytes of %d were kept", len(r.Body), r.Record.BytesOut)
				}
				sum := 0
				for _, read := range r.Reads {
					sum += read.Bytes
				}
				if int64(sum) != r.Record.BytesOut {
					t.Errorf("reads add up to %d bytes, want %d", sum, r.Record.BytesOut)
				}
			})
		})
	}
}

// TestPhasesAddUp: the phases of this side partition the call as the gateway's do.
func TestPhasesAddUp(t *testing.T) {
	withEngine(t, sim.Config{}, Config{}, func(t *testing.T, _ *sim.Engine, c *Client) {
		r := c.Call(t.Context(), Chat, bodyOf(t, plainAsk(Chat, 10)), "p", nil)
		p := r.Record.Phases
		sum := time.Duration(0)
		for _, d := range []call.Duration{p.Upload, p.QueueGateway, p.Connect, p.UpstreamRTT, p.QueueEngine, p.Frontend, p.Prefill, p.Engine, p.Decode, p.Tail, p.Delivery} {
			sum += d.Or(0)
		}
		if want := r.Record.Instants.Ended.Or(-1); sum != want {
			t.Errorf("phases add up to %v, want %v: %+v", sum, want, p)
		}
	})
}

// TestEventsGoBack: the memory of one call's events serves the next.
func TestEventsGoBack(t *testing.T) {
	withEngine(t, sim.Config{}, Config{}, func(t *testing.T, _ *sim.Engine, c *Client) {
		body := bodyOf(t, plainAsk(Chat, 20))
		first := c.Call(t.Context(), Chat, body, "a", nil)
		second := c.Call(t.Context(), Chat, body, "b", first.Events)
		if len(second.Events) != len(first.Events) || &second.Events[0] != &first.Events[0] {
			t.Errorf("%d events in new memory, want %d in the old", len(second.Events), len(first.Events))
		}
	})
}

func TestUnknownAPI(t *testing.T) {
	c := handled(t, nil, Config{})
	r := c.Call(t.Context(), "telepathy", nil, "x", nil)
	if r.Failed != FailedRequest || r.Err == nil {
		t.Errorf("%q %v", r.Failed, r.Err)
	}
}

// TestTargets: where calls go, whatever the root's path.
func TestTargets(t *testing.T) {
	for root, want := range map[string]string{
		"http://host:8000":            "/chat/completions",
		"http://host:8000/":           "/chat/completions",
		"http://host:8000/v1":         "/v1/chat/completions",
		"http://host:8000/v1/":        "/v1/chat/completions",
		"https://host/t%C3%A9am/v4//": "/t%C3%A9am/v4/chat/completions",
		"https://host/a%2Fb/v1":       "/a%2Fb/v1/chat/completions",
	} {
		c, err := NewClient(Config{Root: root})
		if err != nil {
			t.Errorf("%s: %v", root, err)
			continue
		}
		if got := c.targets[Chat].url.RequestURI(); got != want {
			t.Errorf("%s: calls go to %s, want %s", root, got, want)
		}
		c.Close()
	}
}
