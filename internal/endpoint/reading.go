package endpoint

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/dialect"
	"github.com/weirgate/weir/internal/meter"
)

// Bounds of what a Reply holds.
const (
	maxFailedBody = 4 << 10  // of an answer that is not a success
	maxKeptBody   = 64 << 10 // of any, with KeepBody
	maxEvents     = 1 << 19  // 8 MiB: more than any model writes
	maxReads      = 1 << 16
)

// reading is one call while its answer is read.
type reading struct {
	client  *Client
	to      target
	request call.Request
	meter   *meter.Meter
	pass    pass
	trace   connection
	reply   Reply
	head    []byte // the beginning of the body, and as much more as the key is long
	keep    int    // bytes of head that may be shown
	bytesIn int
	headed  call.Duration // when the header was there
	plain   bool          // the answer is not compressed
	at      time.Duration // now, since the start
}

func newReading(c *Client, to target, body []byte, id string, events []Event) *reading {
	look := dialect.NewLook([]*dialect.Dialect{to.dialect}, to.url.Path, "", "application/json")
	look.Write(body)
	_, request, malformed := look.Done(true)
	look.Free()
	r := &reading{client: c, to: to, request: request, keep: maxFailedBody, bytesIn: len(body)}
	if c.keepBody {
		r.keep = maxKeptBody
	}
	r.meter = meter.New(to.dialect, &r.request)
	if malformed {
		r.meter.Degrade(call.BodyMalformed)
	}
	r.pass = newPass(to.dialect.Name, r.meter, events)
	r.reply.Record.Identity = call.Identity{
		ID: id, RequestID: call.NameOf(id), Run: call.NameOf(c.run), Model: request.Model,
		Dialect: to.dialect.Name, Path: call.NameOf(to.url.Path),
	}
	return r
}

// header takes the answer's status and header.
func (r *reading) header(response *http.Response) {
	r.headed = call.Lasting(r.at)
	r.reply.Status = response.StatusCode
	r.reply.Header = r.client.secret.header(response.Header)
	encoding := response.Header.Get("Content-Encoding")
	r.plain = encoding == "" || encoding == "identity"
	r.meter.Header(response.StatusCode, response.Header)
	r.reply.Record.ClientProtocol = response.Proto
}

// read reads the body to its end. The time of a piece is taken as soon as the
// read that brought it has returned, before anything is done with it.
func (r *reading) read(body io.Reader) error {
	buffer := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	for {
		n, err := body.Read(buffer[:])
		r.at = r.client.now().Sub(r.reply.Start)
		if n > 0 {
			r.piece(buffer[:n])
		}
		switch {
		case err == io.EOF: // itself: one that is wrapped is no proper end
			return nil
		case err != nil:
			return err
		}
	}
}

func (r *reading) piece(b []byte) {
	if room := r.keep + len(r.client.secret) - len(r.head); room > 0 {
		r.head = append(r.head, b[:min(room, len(b))]...)
	}
	if r.client.keepReads && len(r.reply.Reads) < maxReads {
		r.reply.Reads = append(r.reply.Reads, Read{At: r.at, Bytes: len(b)})
	}
	if r.plain {
		r.pass.write(b, r.at)
	} else {
		r.meter.Write(b, r.at, r.at)
	}
}

// end closes the call. err is why it broke off, nil when the answer came whole.
func (r *reading) end(ctx context.Context, err error) Reply {
	reply, rec := &r.reply, &r.reply.Record
	facts := r.trace.facts(r.headed)
	kind := KindOf(err)
	if err != nil && ctx.Err() != nil {
		kind = KindOf(ctx.Err()) // whatever it looked like from within
		err = ctx.Err()
	}
	if kind == FailedReset && facts.stranded {
		kind = FailedConnect // a proxy that refused, for one
	}
	e := meter.End{At: r.at, Status: reply.Status, Instants: call.Instants{
		BodyRead: call.Lasting(0), Admitted: call.Lasting(0), Sent: facts.sent, FirstByte: facts.firstByte,
	}}
	switch kind {
	case "":
		e.Cause = meter.Answered
	case FailedCancelled:
		e.Cause = meter.ClientLeft
	case FailedTimeout:
		e.Cause = meter.TimedOut
	default:
		e.Cause, e.Error = meter.UpstreamLost, string(kind)
	}
	rec.Time = reply.Start
	content := r.meter.ContentEvents()
	r.meter.Finish(rec, e)
	reply.Events, reply.Dropped = r.pass.end(rec.Stream && r.plain, r.meter.ContentEvents() > content)
	bytesOut := r.meter.Bytes()
	r.meter.Free()

	rec.Attempts = facts.attempts
	rec.Upstream = r.client.host
	rec.BytesIn = call.Known(int64(r.bytesIn))
	r.client.secret.record(rec)
	reply.End = rec.Instants.Ended.Or(r.at)
	reply.Connected, reply.Reused = facts.connected, facts.reused
	if reply.Failed = failed(rec, kind, bytesOut); reply.Failed != "" {
		reply.Err = r.failure(err)
	}
	if reply.Failed != "" || r.client.keepBody {
		reply.Body = r.client.secret.head(r.head, r.keep)
	}
	return *reply
}
