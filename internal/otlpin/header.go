package otlpin

import (
	"net/http"
	"slices"
	"strings"
)

// hopByHop are the headers of one connection (RFC 9110, section 7.6.1), and those
// that each request makes for itself.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Host", "Content-Length", "Accept-Encoding", "Expect",
	"Content-Type", "Content-Encoding",
}

// outgoing is the header that goes on with a batch: the engine's own, such as a
// tenant's name, and what is set for the collector.
func outgoing(in, extra http.Header) http.Header {
	out := http.Header{}
	for name, values := range in {
		if !slices.Contains(hopByHop, name) {
			out[name] = values
		}
	}
	for _, list := range in["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			out.Del(strings.TrimSpace(name))
		}
	}
	for name, values := range extra {
		out[http.CanonicalHeaderKey(name)] = values
	}
	return out
}

// plain tells whether a value may stand in a header of HTTP and of gRPC.
func plain(values []string) bool {
	for _, v := range values {
		for i := range len(v) {
			if v[i] < ' ' || v[i] > '~' {
				return false
			}
		}
	}
	return true
}
