package caddymodule

import (
	"io"
	"net/http"
	"runtime"
	"testing"
)

// TestRoundTrips: the kernel's figures stand in the record for every protocol
// whose clients have a connection of their own, and are absent for the other.
func TestRoundTrips(t *testing.T) {
	upstream := serve(t, http.HandlerFunc(telling))
	site := newSite(t)
	r := start(t, "", site.block("weir\nreverse_proxy "+upstream))
	r.awaitCertificate(site)
	linux := runtime.GOOS == "linux"
	for protocol, known := range map[string]bool{"http/1.1": linux, "h2c": linux, "h2": linux, "h3": false} {
		t.Run(protocol, func(t *testing.T) {
			c := client(t, protocol)
			for range 2 { // the second over a connection that is known
				run := "trip-" + protocol
				req := post(t.Context(), t, site.url(protocol, "/v1/chat/completions"), run, `{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`)
				res, err := c.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
			for _, rec := range r.recordsOf("trip-"+protocol, 2) {
				if rec.ClientRTT.IsKnown() != known {
					t.Errorf("round trip to the client: known is %v, want %v", rec.ClientRTT.IsKnown(), known)
				}
				if rec.UpstreamRTT.IsKnown() != linux {
					t.Errorf("round trip upstream: known is %v", rec.UpstreamRTT.IsKnown())
				}
				if linux && rec.Phases.UpstreamRTT.Or(0) > rec.UpstreamRTT.Or(0) {
					t.Errorf("the phase %v is longer than the round trip %v", rec.Phases.UpstreamRTT, rec.UpstreamRTT)
				}
			}
		})
	}
}
