package gateway

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/call"
)

// TestFaultBeside: a fault in what looks on costs no call anything, and is counted.
func TestFaultBeside(t *testing.T) {
	g := New(new(counted))
	around := &Surroundings{Connection: func(*http.Request) net.Conn { panic("boom") }}
	c := g.Begin(httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(askJSON)), new(Options), around)
	w := httptest.NewRecorder()
	if err := c.Serve(w, NextFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "application/json")
		_, err := io.WriteString(w, wholeJSON)
		return err
	})); err != nil {
		t.Fatal(err)
	}
	rec := c.Record()
	if w.Body.String() != wholeJSON || rec == nil || rec.Outcome != call.Completed || rec.ClientRTT.IsKnown() {
		t.Errorf("the client has %q, the record is %+v", w.Body, rec)
	}
	if g.Faults() != 1 || g.Live().InFlight != 0 {
		t.Errorf("%d faults, %d calls in flight", g.Faults(), g.Live().InFlight)
	}
}
