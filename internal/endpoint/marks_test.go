package endpoint

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/sim"
)

const (
	chatTools     = `[{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]`
	responseTools = `[{"type":"function","name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}]`
	messageTools  = `[{"name":"weather","input_schema":{"type":"object","properties":{"city":{"type":"string"}}}}]`
)

// TestMarks: reasoning, text and tool calls are told apart in every API that
// has them, and the first and last of each come when the engine wrote them.
func TestMarks(t *testing.T) {
	asks := []struct {
		api   API
		extra map[string]json.RawMessage
		want  []Mark // what must come, in this order
	}{
		{Chat, map[string]json.RawMessage{"reasoning_effort": raw(`"high"`)}, []Mark{Reasoning, Text}},
		{Chat, map[string]json.RawMessage{"reasoning_effort": raw(`"high"`), "tools": raw(chatTools)}, []Mark{Reasoning, Tool}},
		{Chat, map[string]json.RawMessage{"tools": raw(chatTools)}, []Mark{Tool}},
		{Completions, nil, []Mark{Text}},
		{Responses, map[string]json.RawMessage{"reasoning": raw(`{"effort":"high"}`)}, []Mark{Reasoning, Text}},
		{Responses, map[string]json.RawMessage{"tools": raw(responseTools)}, []Mark{Tool}},
		{Messages, map[string]json.RawMessage{"thinking": raw(`{"type":"enabled"}`)}, []Mark{Reasoning, Text}},
		{Messages, map[string]json.RawMessage{"tools": raw(messageTools)}, []Mark{Tool}},
	}
	for _, quirks := range allQuirks {
		for _, a := range asks {
			t.Run(fmt.Sprintf("%s/%s/%v", quirks, a.api, a.want), func(t *testing.T) {
				withEngine(t, sim.Config{Quirks: quirks, OutputMin: 60, OutputMax: 60}, Config{}, func(t *testing.T, e *sim.Engine, c *Client) {
					ask := Ask{API: a.api, Model: "m", Prompt: "What is the weather like?", Stream: true, Usage: true, MaxTokens: 200, Extra: a.extra}
					r := c.Call(t.Context(), a.api, bodyOf(t, ask), "m", nil)
					if r.Failed != "" {
						t.Fatal(r.Err)
					}
					truth, _ := e.Truth("m")
					last := time.Duration(-1)
					for _, mark := range a.want {
						first := firstWith(t, r.Events, mark|Content|First)
						if first <= last {
							t.Errorf("%b begins at %v, what comes before it ended at %v", mark, first, last)
						}
						last = lastWith(r.Events, mark)
					}
					// Each content event is of one of these kinds, and no other is.
					const kinds = Text | Reasoning | Tool
					for _, ev := range r.Events {
						content, kind := ev.Mark&Content != 0, ev.Mark&kinds
						if content != (kind != 0) || kind&(kind-1) != 0 {
							t.Errorf("marks %09b", ev.Mark)
						}
					}
					if got, want := firstWith(t, r.Events, Content), truth.FirstToken.Sub(truth.Received); got != want {
						t.Errorf("first content at %v, want %v", got, want)
					}
					if r.Record.TTFT != call.Lasting(firstWith(t, r.Events, Content)) {
						t.Errorf("TTFT %v", r.Record.TTFT)
					}
				})
			})
		}
	}
}

// TestRoleChunk: the role chunk that an engine sends when it accepts a call has
// choices and no content: that is the difference between two definitions of
// the time to first token.
func TestRoleChunk(t *testing.T) {
	withEngine(t, sim.Config{EarlyRole: true, PrefillBase: 3 * time.Second}, Config{}, func(t *testing.T, e *sim.Engine, c *Client) {
		r := c.Call(t.Context(), Chat, bodyOf(t, plainAsk(Chat, 10)), "r", nil)
		if first := firstWith(t, r.Events, Choices); first != 0 || r.Events[0].Mark != Choices|First {
			t.Errorf("the role chunk came after %v: %09b", first, r.Events[0].Mark)
		}
		truth, _ := e.Truth("r")
		want := truth.FirstToken.Sub(truth.Received)
		if got := firstWith(t, r.Events, Content); got != want || want < 3*time.Second {
			t.Errorf("the first content came after %v, want %v", got, want)
		}
	})
}

// TestUsageEvents: usage comes on an event of its own, or grows on every one.
func TestUsageEvents(t *testing.T) {
	withEngine(t, sim.Config{}, Config{}, func(t *testing.T, _ *sim.Engine, c *Client) {
		r := c.Call(t.Context(), Chat, bodyOf(t, plainAsk(Chat, 12)), "u", nil)
		if n := marked(r.Events, Usage); n != 1 {
			t.Fatalf("%d events with usage, want 1", n)
		}
		e := r.Events[len(r.Events)-2]
		if e.Mark != Usage || e.Output != 12 {
			t.Errorf("the usage event is %+v", e)
		}
	})
	withEngine(t, sim.Config{}, Config{}, func(t *testing.T, _ *sim.Engine, c *Client) {
		ask := plainAsk(Chat, 12)
		ask.Extra = map[string]json.RawMessage{"stream_options": raw(`{"include_usage":true,"continuous_usage_stats":true}`)}
		r := c.Call(t.Context(), Chat, bodyOf(t, ask), "u", nil)
		n := int32(0)
		for _, e := range r.Events {
			if e.Mark&Content == 0 {
				continue
			}
			if n++; e.Output != n || e.Mark&Usage == 0 {
				t.Errorf("content event %d says %d: %09b", n, e.Output, e.Mark)
			}
		}
		if n != 12 {
			t.Errorf("%d content events, want 12", n)
		}
	})
}

// TestChoices: of several choices each event says whether it is of the first.
func TestChoices(t *testing.T) {
	withEngine(t, sim.Config{}, Config{}, func(t *testing.T, _ *sim.Engine, c *Client) {
		ask := plainAsk(Chat, 10)
		ask.Extra = map[string]json.RawMessage{"n": raw("2")}
		r := c.Call(t.Context(), Chat, bodyOf(t, ask), "n", nil)
		if all, first := marked(r.Events, Content), marked(r.Events, Content|First); all != 20 || first != 10 {
			t.Errorf("%d content events, %d of the first choice, want 20 and 10", all, first)
		}
		if r.Record.TPOT.IsKnown() {
			t.Errorf("TPOT %v of two choices", r.Record.TPOT)
		}
	})
}
