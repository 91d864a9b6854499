package meter

import (
	"net/http"
	"slices"
	"testing"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/dialect"
	"github.com/weirgate/weir/internal/inflate"
)

// TestFault: wherever the reading of an answer panics, the meter is out, the
// call has its times and its outcome, and nothing half read is given as a figure.
func TestFault(t *testing.T) {
	for name, c := range map[string]struct {
		fail    func(*Meter) // breaks it after its first token
		outcome call.Outcome
		code    string
	}{
		"in an event":     {func(m *Meter) { m.answer = new(dialect.Response) }, call.Completed, ""},
		"in the inflater": {func(m *Meter) { m.inflater = new(inflate.Inflater) }, call.Completed, ""},
		"at the end":      {func(m *Meter) { m.answer = nil }, call.InternalError, "meter_fault"},
	} {
		m := New(dialect.ByName("openai.chat"), &call.Request{Stream: true})
		m.Header(200, stream("text/event-stream"))
		m.Write([]byte(role+delta("a")), at(10), at(11))
		c.fail(m)
		m.Write([]byte(delta("b")+usage), at(20), at(21))
		m.Write([]byte(stop+done), at(30), at(31))
		var rec call.Record
		m.Finish(&rec, End{At: at(40), Status: 200})
		if !slices.Equal(rec.Degraded, []call.Degradation{call.MeterFault}) || rec.Outcome != c.outcome || rec.Error != c.code || rec.Status != 200 {
			t.Errorf("%s: %s", name, text(&rec))
		}
		if rec.ContentEvents.IsKnown() || rec.TPOT.IsKnown() || rec.UsageSource == call.UsageReported || rec.BytesOut == 0 {
			t.Errorf("%s: claims what was not read: %s", name, text(&rec))
		}
		if rec.Phases.Sum() != rec.Instants.Ended.Or(-1) || rec.Instants.Ended.Or(0) < at(31) {
			t.Errorf("%s: phases make %v of %v", name, rec.Phases.Sum(), rec.Instants.Ended)
		}
	}
}

// TestFaultInHeader: the same before the first byte.
func TestFaultInHeader(t *testing.T) {
	m := New(&dialect.Dialect{Name: "never registered"}, &call.Request{})
	m.Header(200, http.Header{"X-Queue-Time": {"1"}})
	m.Write([]byte(`{"a":1}`), at(1), at(1))
	var rec call.Record
	m.Finish(&rec, End{At: at(2), Status: 200})
	if !slices.Equal(rec.Degraded, []call.Degradation{call.MeterFault}) || rec.Outcome != call.Completed || rec.Usage != (call.Usage{}) {
		t.Errorf("got %s", text(&rec))
	}
}
