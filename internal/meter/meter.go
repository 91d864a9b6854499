package meter

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/dialect"
	"github.com/weirgate/weir/internal/inflate"
	"github.com/weirgate/weir/sse"
)

// Meter reads the answer of one call. All times are offsets from the instant
// at which the call was received. It is not safe for concurrent use; its zero
// value is not ready, use New.
type Meter struct {
	dialect *dialect.Dialect
	answer  *dialect.Response
	request *call.Request

	status      int
	mediaType   string
	framing     framing
	head        []byte // of the body, while it does not tell the framing; a few bytes
	events      sse.Parser
	lines       lines
	inflater    *inflate.Inflater
	encoded     bool // the answer is compressed
	undecodable bool // compressed in a way that cannot be read

	now       time.Duration // when the piece being read arrived
	delivered time.Duration // when the last piece had been handed over
	bytes     int64         // of the body, as handed to the client
	wrote     bool

	firstToken, firstVisible, lastToken call.Duration
	blocked                             call.Blocked
	blockedSinceToken                   time.Duration
	gaps                                *call.Gaps
	rawEvents                           int64
	content                             int64 // content-bearing events of a stream
	finished                            bool  // a finish reason was seen

	degraded degradations
	off      bool // the meter failed, or the answer cannot be read
	closed   bool
}

// meters are those that were freed.
var meters = sync.Pool{New: func() any { return new(Meter) }}

// New returns a Meter for one answer of dialect d to the request.
func New(d *dialect.Dialect, request *call.Request) *Meter {
	m := meters.Get().(*Meter) // zero, see Free
	m.dialect, m.answer, m.request = d, d.NewResponse(request), request
	return m
}

// Free gives the Meter back after Finish. It may not be used any more; the
// record that it filled in may. One that has failed is not used again.
func (m *Meter) Free() {
	if m.off || !m.closed {
		return
	}
	m.answer.Free()
	*m = Meter{} // holds on to nothing of the call
	meters.Put(m)
}

// Header takes the answer's status and header. The header is read at once and
// not kept. Informational statuses (1xx) are not answers and must not be given.
func (m *Meter) Header(status int, h http.Header) {
	defer m.guard()
	m.status = status
	m.mediaType = mediaType(h)
	m.answer.Header(h)
	encoding := strings.Join(h["Content-Encoding"], ", ")
	if encoding == "" || encoding == "identity" {
		return
	}
	m.encoded = true
	inf, err := inflate.New(encoding, m.read)
	if err != nil {
		m.degraded.add(call.EncodingUnknown)
		m.undecodable = true
		return
	}
	m.inflater = inf
}

// Write takes a piece of the body that arrived at begin and had been handed to
// the client at end. b is read before Write returns and not kept.
func (m *Meter) Write(b []byte, begin, end time.Duration) {
	m.bytes += int64(len(b))
	m.wrote = true
	m.now, m.delivered = begin, end
	if !m.off {
		m.look(b)
	}
	if m.firstToken.IsKnown() {
		m.blockedSinceToken += end - begin
	} else {
		m.blocked.BeforeFirstToken += end - begin
	}
}

// Bytes returns how many bytes of the body were handed to the client.
func (m *Meter) Bytes() int64 { return m.bytes }

// FirstToken returns when the first content-bearing event had arrived; unknown
// until then, and for answers that are not streamed.
func (m *Meter) FirstToken() call.Duration { return m.firstToken }

// FirstVisible returns the same for the first event with more than reasoning.
func (m *Meter) FirstVisible() call.Duration { return m.firstVisible }

// ContentEvents returns how many content-bearing events of a stream have come:
// the least number of tokens written so far, since each carries one or more.
func (m *Meter) ContentEvents() int64 { return m.content }

func (m *Meter) look(b []byte) {
	defer m.guard()
	switch {
	case m.undecodable:
	case m.inflater != nil:
		if err := m.inflater.Write(b); err != nil {
			m.inflateFailed(err)
		}
	default:
		m.read(b)
	}
}

// guard turns a fault of the meter into a missing measurement.
func (m *Meter) guard() {
	if recover() != nil {
		m.degraded.add(call.MeterFault)
		m.off = true
	}
}

// read takes plain bytes of the answer.
func (m *Meter) read(b []byte) {
	if m.framing == undecided {
		if b = m.decide(b); len(b) == 0 {
			return
		}
	}
	switch m.framing {
	case eventStream:
		for {
			ev, n, ok := m.events.Next(b)
			b = b[n:]
			if !ok {
				return
			}
			m.event(ev)
		}
	case lineStream:
		for {
			line, n, ok := m.lines.next(b)
			b = b[n:]
			if !ok {
				return
			}
			m.line(line)
		}
	case document:
		m.saw(m.answer.Body(b))
	case audioStream:
		m.rawEvents++
		m.saw(dialect.Seen{Content: true, Visible: true})
	}
}

func (m *Meter) event(ev sse.Event) {
	if ev.Oversize {
		m.degraded.add(call.EventTooLong)
		m.answer.SkipEvent()
		return
	}
	m.saw(m.answer.Event(ev.Type, ev.Data))
}

func (m *Meter) line(l line) {
	if l.oversize {
		m.degraded.add(call.EventTooLong)
		m.answer.SkipEvent()
		return
	}
	m.saw(m.answer.Event(nil, l.data))
}

// saw notes the instants of what an event brought.
func (m *Meter) saw(s dialect.Seen) {
	m.finished = m.finished || s.Finished
	if !s.Content || !m.streamed() {
		return
	}
	m.content++
	at := call.Lasting(m.now)
	if !m.firstToken.IsKnown() {
		m.firstToken = at
	} else {
		if m.gaps == nil {
			m.gaps = new(call.Gaps)
		}
		m.gaps.Add(m.now - m.lastToken.Or(m.now))
		m.blocked.Decode += m.blockedSinceToken
		m.blockedSinceToken = 0
	}
	m.lastToken = at
	if s.Visible && !m.firstVisible.IsKnown() {
		m.firstVisible = at
	}
}

// close reads what the end of the answer completes: an event without its blank
// line, a last line without its newline. It counts as having arrived with the
// last piece.
func (m *Meter) close() {
	if m.closed {
		return
	}
	m.closed = true
	defer m.guard()
	if m.inflater != nil {
		if err := m.inflater.Close(); err != nil {
			m.inflateFailed(err)
		}
	}
	if m.off {
		m.answer.Close() // what was read by then is a running figure
		return
	}
	m.undecidable()
	switch m.framing {
	case eventStream:
		if ev, ok := m.events.Flush(); ok {
			m.event(ev)
		}
	case lineStream:
		if l, ok := m.lines.flush(); ok {
			m.line(l)
		}
	case document:
		m.saw(m.answer.EndBody())
	}
	m.answer.Close()
}
