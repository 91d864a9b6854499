package diagnose

import (
	"time"

	"github.com/weirgate/weir/internal/call"
)

// What findings of the way to and fro rest on.
var (
	bodyBytes    = &figure{name: "bytes_in", unit: InBytes, label: "request body"}
	bodySmall    = &figure{name: "bytes_in", unit: InBytes, label: "request body", why: "too small to take long on any link"}
	bodyWritten  = &figure{name: "bytes_in", unit: InBytes, label: "request body", why: "writing it upstream lies within this time"}
	bodyRate     = &figure{name: "bytes_in_per_second", unit: InBytesASecond, label: "it came with"}
	sizeUnknown  = &figure{label: "the size of the request body is not known: it may have been small", bare: true}
	sendingEnded = &figure{label: "the client was cut because it stopped sending", bare: true}
	clientTrip   = &figure{name: "client_rtt_ms", unit: InMilliseconds, label: "round trip to the client"}
	clientNear   = &figure{name: "client_rtt_ms", unit: InMilliseconds, label: "round trip to the client", why: "so it is not for distance"}
	clientFar    = &figure{name: "client_rtt_ms", unit: InMilliseconds, label: "round trip to the client", why: "the way may be at fault, and not the client"}
	upstreamTrip = &figure{name: "upstream_rtt_ms", unit: InMilliseconds, label: "round trip to the upstream"}
	handshakes   = &figure{name: "upstream_rtt_ms", unit: InMilliseconds, label: "round trip to the upstream", why: "a new connection takes one, two with TLS"}
	upstreamNear = &figure{name: "upstream_rtt_ms", unit: InMilliseconds, label: "round trip to the upstream", why: "so it is not for distance"}
	attempts     = &figure{name: "attempts", unit: InPieces, label: "attempts", why: "those before the last lie within this time"}
	oneAttempt   = &figure{name: "attempts", unit: InPieces, label: "attempts", why: "so it is not for retries"}
	replayed     = &figure{label: "sent again, for the upstream had closed the connection it kept", bare: true}
	newOnes      = &figure{name: "new_connections", unit: InPieces, label: "connections opened for it"}
	allReused    = &figure{name: "new_connections", unit: InPieces, label: "connections opened for it", why: "it waited for one that was in use, or for the upstream to take the request"}
	opening      = &figure{name: "connecting_ms", unit: InMilliseconds, label: "of it, until new connections were open"}
	tripTime     = &figure{name: "ttft_ms", unit: InMilliseconds, label: "TTFT at the gateway"}
	bytesOut     = &figure{name: "bytes_out", unit: InBytes, label: "answer"}
	cutReader    = &figure{label: "the client was cut because it did not read", bare: true}
)

// uploadStalled is the error code of a call whose client stopped sending.
const uploadStalled = "upload_stalled"

// uploads finds requests that took long to come.
func uploads(l *look, s *sheet) {
	if d, known := l.took(connect); known && l.rec.Error == uploadStalled {
		// The body was sent on while it came, so that its time is in connect.
		whole, _ := l.took(upload)
		s.span(CodeUploadStalled, call.Measured, d+whole, OfElapsed, l.elapsed)
		s.pro(sendingEnded, 0)
		return
	}
	d, known := l.took(upload)
	if !known || !stands(d, Dominant, l.whole) {
		return
	}
	n, counted := l.rec.BytesIn.Get()
	if counted && n < LargeBody {
		s.span(CodeUploadStalled, l.sources[upload], d, l.of, l.whole)
		s.pro(bodySmall, float64(n))
	} else {
		s.span(CodeUploadSlow, l.sources[upload], d, l.of, l.whole)
		if counted {
			s.pro(bodyBytes, float64(n))
			s.pro(bodyRate, float64(n)/d.Seconds())
		} else {
			s.con(sizeUnknown, 0)
		}
	}
	if trip, known := l.rec.ClientRTT.Get(); known {
		s.pro(clientTrip, milliseconds(trip))
	}
}

// connects finds time lost before the upstream had the request. Of a client that
// left meanwhile it is the time until then.
func connects(l *look, s *sheet) {
	d, known := l.took(connect)
	if !known || l.rec.Error == uploadStalled || !stands(d, Dominant, l.whole) || s.found(CodeUpstreamUnreachable) {
		return
	}
	s.span(CodeReconnects, l.sources[connect], d, l.of, l.whole)
	reaching(l, s)
	if l.rec.Attempts == 1 {
		s.con(oneAttempt, 1)
	}
	// Opening takes three round trips with TCP and TLS 1.2.
	if trip, known := l.rec.UpstreamRTT.Get(); known && trip >= d/6 {
		s.pro(handshakes, milliseconds(trip))
	} else if known {
		s.con(upstreamNear, milliseconds(trip))
	}
	if n, known := l.rec.BytesIn.Get(); known && n >= HugeBody {
		s.con(bodyWritten, float64(n))
	}
}

// reaching adds what is known of the attempts upstream.
func reaching(l *look, s *sheet) {
	if n := l.rec.Attempts; n > 1 {
		s.pro(attempts, float64(n))
	}
	if l.rec.Replayed {
		s.pro(replayed, 0)
	}
	if trail := l.rec.Trail; len(trail) > 0 {
		opened, took := 0, time.Duration(0)
		for i := range trail {
			a := &trail[i]
			if since, known := a.Connected.Minus(a.Start).Get(); known && !a.Reused {
				opened++
				took += since
			}
		}
		if opened > 0 {
			s.pro(newOnes, float64(opened))
			s.pro(opening, milliseconds(took))
		} else if l.sent() {
			s.con(allReused, 0)
		}
	}
}

// sent tells whether the upstream had the request: something followed connect.
func (l *look) sent() bool {
	return l.spans[prefill].IsKnown() || l.spans[engine].IsKnown() || l.spans[queueEngine].IsKnown()
}

// roundTrips finds ways that are longer than the work.
func roundTrips(l *look, s *sheet) {
	if d, known := l.took(upstreamRTT); known && stands(d, Dominant, l.whole) {
		s.span(CodeUpstreamRoundTrip, l.sources[upstreamRTT], d, l.of, l.whole)
		if trip, known := l.rec.UpstreamRTT.Get(); known {
			s.pro(upstreamTrip, milliseconds(trip))
		}
	}
	if trip, known := l.rec.ClientRTT.Get(); known && trip <= longest && l.split && stands(trip, Dominant, l.ttft+trip) {
		s.span(CodeClientRoundTrip, call.Measured, trip, OfTTFTAtClient, l.ttft+trip)
		s.pro(clientTrip, milliseconds(trip))
		s.pro(tripTime, milliseconds(l.ttft))
	}
}

// readers finds clients that do not take what is written to them.
func readers(l *look, s *sheet) {
	d, known := l.took(delivery)
	cut := l.rec.Outcome == call.ReaderStalled
	switch {
	case known && stands(d, Large, l.elapsed):
		s.span(CodeSlowReader, l.sources[delivery], d, OfElapsed, l.elapsed)
	case cut:
		s.condition(CodeSlowReader, l)
	default:
		return
	}
	if cut {
		s.pro(cutReader, 0)
	}
	s.pro(bytesOut, float64(l.rec.BytesOut))
	switch trip, known := l.rec.ClientRTT.Get(); {
	case known && trip >= Noticeable:
		s.con(clientFar, milliseconds(trip))
	case known:
		s.pro(clientNear, milliseconds(trip))
	}
}
