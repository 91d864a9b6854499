package gateway

import (
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/weirgate/weir/internal/call"
)

// policy asks the upstream for usage, where the directive wants that and the
// client has not spoken.
func (c *Call) policy(look *look) {
	edit, unsaid := look.edit()
	c.hidesUsage = unsaid || c.wants.IncludeUsage == call.No
	if !unsaid || c.options.Usage == Passthrough || c.options.Usage == "" || !c.body.complete() || len(c.degraded) > 0 {
		return
	}
	held := c.body.held
	if edit.Offset < 0 || edit.Delete < 0 || edit.Offset+edit.Delete > int64(len(held)) {
		return
	}
	if signed(c.request.Header) || !c.body.budget.take(int64(len(held)+len(edit.Insert))) {
		return // the body must stay as it is, or there is no room for another
	}
	c.body.taken += int64(len(held) + len(edit.Insert))
	edited := make([]byte, 0, len(held)+len(edit.Insert))
	edited = append(edited, held[:edit.Offset]...)
	edited = append(edited, edit.Insert...)
	edited = append(edited, held[edit.Offset+edit.Delete:]...)
	c.body.sends = edited
	c.hidesUsage = false
}

// signed tells whether the request says something of its body's bytes, which a
// change would make untrue.
func signed(h http.Header) bool {
	for _, name := range [...]string{"Content-Digest", "Digest", "Content-Md5", "X-Amz-Content-Sha256", "Signature"} {
		if len(h[name]) > 0 {
			return true
		}
	}
	return false
}

// outgoing makes the request that next sees: the client's, with a body that can
// be read more than once and a context that knows the attempts. It is a copy
// with a URL and header map of its own, so that a second run of next begins
// from what the client sent.
func (c *Call) outgoing() *http.Request {
	c.trace.body.Store(nil)
	u, attempt := &c.first.url, &c.first.attempt
	if c.replayed { // a transport may still be reading for the run that was given up
		if c.attempt != nil {
			c.attempt.letGo(true)
		}
		u, attempt = new(url.URL), new(attemptBody)
	}
	r := c.request.WithContext(c.traced)
	*u = *c.request.URL
	r.URL = u
	r.Header = maps.Clone(c.request.Header)
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	c.span.Propagate(r.Header, !c.options.Private)
	if len(r.Header["Accept-Encoding"]) == 0 {
		// Without this the transport asks for gzip by itself and unpacks the
		// answer, so that neither headers nor bytes are the upstream's own.
		r.Header.Set("Accept-Encoding", "identity")
	}
	if c.body.sends != nil {
		if r.ContentLength >= 0 {
			r.ContentLength = int64(len(c.body.sends))
		}
		if first(r.Header, "Content-Length") != "" {
			r.Header.Set("Content-Length", strconv.Itoa(len(c.body.sends)))
		}
		if c.options.Usage == InjectAndStrip {
			r.Header.Set("Accept-Encoding", "identity")
			c.tap.strip = new(stripper)
		}
	}
	if r.Body != nil && r.Body != http.NoBody {
		attempt.body = c.body
		c.attempt = attempt
		c.trace.body.Store(c.attempt)
		r.Body = c.attempt
		r.GetBody = nil
	}
	return r
}

// run runs next, and once more when the first run met a stale keep-alive
// connection.
func (c *Call) run(r *http.Request, next Next) error {
	var before Restorer
	if !c.options.NoReplay {
		c.header.take(c.tap.w.Header())
		if c.around.Checkpoint != nil {
			before = c.around.Checkpoint(r)
		}
	}
	err := next.ServeHTTP(&c.tap, r)
	c.count()
	if err == nil || c.options.NoReplay || !c.stale(err) {
		return err
	}
	if before != nil {
		c.traced = before.Restore(c.traced)
	}
	c.header.restore(c.tap.w.Header())
	c.replayed = true
	err = next.ServeHTTP(&c.tap, c.outgoing())
	c.count()
	return err
}

// count adds the attempts of a run that has returned. The hooks tell of too
// many where a handler behind asks another server first (forward_auth), and on
// HTTP/2, whose transport announces one attempt twice; the proxy's own count is
// the bound.
func (c *Call) count() {
	n := c.trace.take()
	if n > 0 {
		c.connected = true
	}
	if n > 1 && c.around.Retries != nil {
		if retries, ok := c.around.Retries(c.request); ok {
			n = min(n, retries+1)
		}
	}
	c.attempts += n
}
