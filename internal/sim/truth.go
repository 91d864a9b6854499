package sim

import (
	"slices"
	"time"
)

// maxTruthTokens is the number of instants kept in each list of a Truth.
const maxTruthTokens = 1 << 14

// Truth is what really happened to one call, by the engine's own clock. An
// instant that is zero did not happen.
type Truth struct {
	ID        string // the id in the response
	RequestID string // the client's X-Request-Id, else one made by the engine
	Path      string
	Model     string
	Stream    bool
	Choices   int
	Faults    string // the faults that misled it, as ParseFaults reads them
	Status    int    // the status sent; 0 when none was

	Received time.Time // the handler was entered
	Arrival  time.Time // the call entered the queue
	// Scheduled is the beginning of the step that took its first sequence out
	// of the queue. What waits for it (llama.cpp's headers, Anthropic's
	// message_start) is sent 1 µs later, when the step's batch is closed.
	Scheduled time.Time
	// FirstToken is when the first token was generated: the end of prefill.
	FirstToken time.Time
	// End is when the last sequence ended, or the call was aborted.
	End time.Time
	// Tokens are the instants at which tokens were generated, of all choices
	// together, in order: the first 16384.
	Tokens []time.Time
	// Sent are the instants at which writes that carried model output returned:
	// the first 16384.
	Sent []time.Time

	Input       int // tokens of all prompts, cached ones included
	Cached      int // of these, what was in the prefix cache
	Output      int // tokens generated, reasoning included
	Reasoning   int
	Preemptions int
	Finish      string // the finish reason of choice 0; "" when it did not end by itself
	// Aborted is whether the call ended before its last token: the client left,
	// or a fault broke the answer off.
	Aborted bool
}

// Queue is the time in the engine's queue; false when the call never left it.
func (t Truth) Queue() (time.Duration, bool) {
	return t.Scheduled.Sub(t.Arrival), !t.Scheduled.IsZero()
}

// Prefill is the time from scheduling to the first token; false without one.
func (t Truth) Prefill() (time.Duration, bool) {
	return t.FirstToken.Sub(t.Scheduled), !t.FirstToken.IsZero()
}

// Decode is the time from the first token to the last; false without any.
func (t Truth) Decode() (time.Duration, bool) {
	if len(t.Tokens) == 0 {
		return 0, false
	}
	return t.Tokens[len(t.Tokens)-1].Sub(t.FirstToken), true
}

// history keeps the calls of late, oldest first out. The engine's lock guards it.
type history struct {
	most  int
	calls []*call // a ring once it is full
	next  int
	byID  map[string]*call
}

func newHistory(most int) *history {
	return &history{most: most, byID: make(map[string]*call)}
}

// add keeps a call under both of its ids; a later call with the same id hides
// an earlier one.
func (h *history) add(c *call) {
	if len(h.calls) < h.most {
		h.calls = append(h.calls, c)
	} else {
		old := h.calls[h.next]
		for _, id := range []string{old.truth.ID, old.truth.RequestID} {
			if h.byID[id] == old {
				delete(h.byID, id)
			}
		}
		h.calls[h.next] = c
		h.next = (h.next + 1) % h.most
	}
	h.byID[c.truth.ID] = c
	h.byID[c.truth.RequestID] = c
}

// Truth returns what happened to the call with this response id or
// X-Request-Id, so far if it is still under way; false when it is not known or
// no longer kept.
func (e *Engine) Truth(id string) (Truth, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, ok := e.history.byID[id]
	if !ok {
		return Truth{}, false
	}
	return c.truth.clone(), true
}

// Truths returns what happened to all calls still kept, oldest first.
func (e *Engine) Truths() []Truth {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.history
	all := make([]Truth, 0, len(h.calls))
	for i := range h.calls {
		all = append(all, h.calls[(h.next+i)%len(h.calls)].truth.clone())
	}
	return all
}

func (t Truth) clone() Truth {
	t.Tokens = slices.Clone(t.Tokens)
	t.Sent = slices.Clone(t.Sent)
	return t
}

func appendInstant(list []time.Time, at time.Time) []time.Time {
	if len(list) < maxTruthTokens {
		list = append(list, at)
	}
	return list
}
