package doctor

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// keepAdvice is what helps against connections that are closed while idle.
const keepAdvice = "let the client be the first to close: in Caddy, transport http { keepalive 4s } within reverse_proxy; Weir sends a call that meets a closed connection again, once"

// checkKeepAlive looks at what became of the connections of the answers so far.
func checkKeepAlive(ctx context.Context, v *visit) Finding {
	v.stream(ctx)
	if !sleep(ctx, v.grace) {
		return grey("not checked because the doctor was stopped")
	}
	k := judgeServed(v.wires.all(), v.grace)
	switch {
	case v.calls.stale > 0 || k.dropped > 0:
		after := "an answer"
		if k.streams == k.dropped {
			after = "a stream"
		}
		detail := "The next call on such a connection fails, and a plain proxy answers 502."
		if k.dropped > 0 {
			detail = fmt.Sprintf("%d of %d connections ended %s, and nothing announced it. ", k.dropped, k.kept+k.dropped, soon(k.slowest)+after) + detail
		}
		return yellow("the endpoint drops connections after "+after+" without saying so", detail, "let Weir stand before it, which sends such a call again, once; for clients without it, no keep-alive")
	case k.announced > 0 && k.kept == 0:
		if v.base.Scheme == "https" || v.rtt > 5*time.Millisecond {
			return yellow("the endpoint closes each connection after its answer, and says so", "Each call pays for a new one.", "let the server, or what stands before it, keep connections alive")
		}
		return green("the endpoint closes each connection after its answer, and says so")
	case k.kept == 0:
		return grey("not known because no answer came to its end")
	}
	if !v.Slow {
		return green("connections are kept alive", "Idle ones were not watched for long: --slow.")
	}
	return v.idleAway(ctx)
}

// idleAway watches an idle connection.
func (v *visit) idleAway(ctx context.Context) Finding {
	x := v.request(ctx, http.MethodHead, v.base.String(), nil)
	began := time.Now()
	all := v.wires.all()
	if x.err != nil || len(all) == 0 {
		return grey("not known because a request without content was not answered")
	}
	last := all[len(all)-1]
	for time.Since(began) < v.idle && last.wire.closedAt().IsZero() {
		if !sleep(ctx, min(50*time.Millisecond, v.idle)) {
			return grey("not checked because the doctor was stopped")
		}
	}
	if closed := last.wire.closedAt(); !closed.IsZero() && !last.announced {
		return yellow(fmt.Sprintf("the endpoint closes connections that idle for %.1f s", closed.Sub(began).Seconds()),
			"A call that is sent at that very moment fails.", keepAdvice)
	}
	return green(fmt.Sprintf("connections are kept alive, also while idle for %s", v.idle))
}

// keeping is what became of connections after answers.
type keeping struct {
	kept, dropped, announced int
	streams                  int           // of dropped, those after a stream
	slowest                  time.Duration // of dropped, the longest from the end of the answer
}

// judgeServed counts. A connection counts once, by the last answer that it
// brought; one that was closed long after it was idle, and not dropped.
func judgeServed(all []served, grace time.Duration) keeping {
	var k keeping
	last := map[*wire]served{}
	var order []*wire
	for _, s := range all {
		if _, known := last[s.wire]; !known {
			order = append(order, s.wire)
		}
		last[s.wire] = s
	}
	for _, w := range order {
		s := last[w]
		closed := w.closedAt()
		switch {
		case s.ended.IsZero():
		case s.announced:
			k.announced++
		case !closed.IsZero() && closed.Sub(s.ended) <= grace:
			k.dropped++
			k.slowest = max(k.slowest, closed.Sub(s.ended)) // the end may be seen before the last byte is handed on
			if s.stream {
				k.streams++
			}
		default:
			k.kept++
		}
	}
	return k
}

func soon(d time.Duration) string {
	if d < time.Millisecond {
		return "at once after "
	}
	return "within " + shortMS(d) + " after "
}

// sleep waits; false when ctx was done first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
