package doctor

import (
	"context"
	"fmt"
	"net/http"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/endpoint"
)

// checkCompression looks at a stream whose client accepts gzip: whether it comes
// compressed, and if so, whether token by token.
func checkCompression(ctx context.Context, v *visit) Finding {
	r := v.gzipStream(ctx)
	encoding := v.foreign(r.Header.Get("Content-Encoding"))
	next := "exclude text/event-stream from compression in what stands before the engine, or have it flush after each event"
	switch {
	case r.Status == http.StatusTooManyRequests:
		return grey("not judged because the endpoint answers 429")
	case !unpacks(r):
		return red("a client that accepts gzip gets a stream that it cannot unpack", "Its Content-Encoding is "+encoding+".", next)
	case r.Status != http.StatusOK || r.Failed != "":
		v.goOn()
		return red("a client that accepts gzip gets no proper stream", fmt.Sprintf("One that does not gets it. The status is %d.", r.Status), next)
	case encoding == "" || encoding == "identity":
		return green("streams are not compressed, even for clients that accept it")
	}
	events := r.Record.ContentEvents.Or(0)
	pieces := readsWithin(r.Reads, r.Record.Instants.FirstToken, r.Record.Instants.LastToken)
	plain := flowOf(v.stream(ctx))
	held := events >= leastEvents && float64(events) >= clump*float64(pieces)
	if held && !plain.lump() && !plain.clumped() {
		return yellow("streams come compressed ("+encoding+"), and tokens are held back for it",
			fmt.Sprintf("%d events came in %d pieces; without compression they come one by one.", events, pieces), next)
	}
	return green("streams come compressed ("+encoding+"), token by token", "Weir passes them as they are, and reads a copy.")
}

// readsWithin counts the pieces of a body that came from the first token to the last.
func readsWithin(reads []endpoint.Read, first, last call.Duration) int {
	n := 0
	for _, r := range reads {
		if from, ok := first.Get(); ok && r.At >= from && r.At <= last.Or(from) {
			n++
		}
	}
	return n
}
