package doctor

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/endpoint"
)

// What tells a stream that is held back from one that is quick.
const (
	leastEvents = 4                     // fewer tell nothing
	clump       = 2.5                   // events in one read, on average
	heldGap     = 20 * time.Millisecond // between reads: an engine that writes several events at once is quicker
	tellable    = 50 * time.Millisecond // what an answer must take longer for its tokens, to be judged
)

// flow is how the content of one stream came.
type flow struct {
	events  int           // with output
	reads   int           // that brought them
	largest int           // of one read
	first   time.Duration // when the first came, since the request was handed over, less connecting
	gap     time.Duration // median between reads, 0 without
	tokens  int64         // reported; 0 is unknown
}

func flowOf(r *endpoint.Reply) flow {
	var f flow
	f.tokens = r.Record.Output.Or(0)
	connected := r.Connected.Or(0)
	var gaps []time.Duration
	at, size := time.Duration(-1), 0
	for _, e := range r.Events {
		if e.Mark&endpoint.Content == 0 {
			continue
		}
		if e.At != at {
			if f.reads > 0 {
				gaps = append(gaps, e.At-at)
			} else {
				f.first = e.At - connected
			}
			f.reads++
			at, size = e.At, 0
		}
		f.events++
		size++
		f.largest = max(f.largest, size)
	}
	if len(gaps) > 0 {
		slices.Sort(gaps)
		f.gap = gaps[len(gaps)/2]
	}
	return f
}

// clumped tells whether events came several at a time with pauses in between.
func (f flow) clumped() bool {
	return f.events >= leastEvents && f.reads > 1 && float64(f.events)/float64(f.reads) >= clump && f.gap >= heldGap
}

// lump tells whether nearly all came at once.
func (f flow) lump() bool { return f.events >= leastEvents && 4*f.largest >= 3*f.events }

// checkBuffering says whether tokens come as they are made. A quick engine and a
// stream that is held back look alike, so that a lump is believed only when the
// time to the first token is that of all tokens.
func checkBuffering(ctx context.Context, v *visit) Finding {
	r := v.stream(ctx)
	f := flowOf(r)
	if f.events < leastEvents {
		return grey("not judged because the stream was too short")
	}
	suspects := v.suspects(r)
	if f.lump() {
		short, known := v.oneToken(ctx)
		if !known {
			return grey("not judged because a shorter call was not answered")
		}
		if held(f.first, short, min(v.plain(ctx).End, r.End)) {
			return red("the stream is held back and comes all at once",
				fmt.Sprintf("Its first token came after %s, as late as a whole answer; one token alone takes %s.", shortMS(f.first), shortMS(short)), suspects)
		}
		return green("tokens come as they are made, faster than can be told apart")
	}
	if f.clumped() {
		if g := flowOf(v.usageStream(ctx)); g.events < leastEvents || g.clumped() {
			return yellow("tokens come in clumps", fmt.Sprintf("%d events came in %d pieces, one each %s.", f.events, f.reads, shortMS(f.gap)), suspects)
		}
	}
	if per := float64(f.tokens) / float64(f.events); f.tokens > 0 && per >= 1.5 {
		return green("events come as they are made", fmt.Sprintf("Each carries %.1f tokens: the engine writes several at a time (stream interval, speculative decoding). TPOT goes by the tokens; gaps are between events.", per))
	}
	return green("tokens come as they are made")
}

// oneToken is how long an answer of one token takes: the quicker of two, since a
// busy engine may keep one waiting.
func (v *visit) oneToken(ctx context.Context) (least time.Duration, known bool) {
	for _, name := range []string{"one", "one-more"} {
		r := v.reply(ctx, callOf{name: name, tokens: 1})
		if took := r.End - r.Connected.Or(0); r.Status == http.StatusOK && (!known || took < least) {
			least, known = took, true
		}
	}
	return least, known
}

// held tells whether the first token came as late as all of them would, by the
// times of an answer of one token and of a whole one.
func held(first, one, all time.Duration) bool {
	return all-one >= tellable && 10*(first-one) >= 6*(all-one)
}

// suspects is what may hold a stream back, the likely one first.
func (v *visit) suspects(r *endpoint.Reply) string {
	all := "let what stands on the way pass streams at once: nginx by proxy_buffering off (or the engine by the header X-Accel-Buffering: no), compression not for text/event-stream, a CDN by a rule for the path; scanners of traffic hold streams back, too"
	switch server := lower(r.Header.Get("Server")); {
	case strings.Contains(server, "nginx"), strings.Contains(server, "openresty"):
		return "nginx answers: set proxy_buffering off (or have the engine send X-Accel-Buffering: no), and gzip not for text/event-stream"
	case strings.Contains(server, "cloudflare"):
		return "Cloudflare answers: see its rules for caching and compression of the path; and " + all
	}
	return all
}
