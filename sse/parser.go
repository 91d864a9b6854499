package sse

import "bytes"

// DefaultLimit is the limit of a Parser whose Limit is not set: 1 MiB.
const DefaultLimit = 1 << 20

const (
	// maxField bounds the values of event, id and retry, in bytes.
	maxField = 256
	// keepBuffer is the largest buffer an idle parser holds on to, in bytes.
	// With a type and an ID of maxField each it stays under 4 KiB.
	keepBuffer = 3 << 10
	// overhead is what a kept line may take beyond its value: a byte order
	// mark, the longest field name, its colon and one space.
	overhead = len(byteOrderMark) + len("event: ")
)

const byteOrderMark = "\xef\xbb\xbf"

// Event is one dispatched event. Its slices are valid until the next call of
// Next, Flush or Reset and must not be written to: Data may be part of the
// bytes that were given to Next.
type Event struct {
	// Type is the event field; nil for an event without one, which the
	// standard calls "message".
	Type []byte
	// Data is all data fields joined by line feeds; never empty, unless
	// Oversize is set.
	Data []byte
	// ID is the last event ID: the latest id field of this event or of those
	// before it; nil if there was none or it was empty.
	ID []byte
	// Oversize tells that the data was longer than Parser.Limit, or the type
	// longer than 256 bytes. The event happened, but Data is nil.
	Oversize bool
}

// Parser turns the bytes of one stream into events. Its zero value is ready.
type Parser struct {
	// Limit is the number of bytes of one event's data that are kept; 0 and
	// below stand for DefaultLimit. It must not change while a stream is read.
	Limit int

	// The event so far. Its data is view if that is not nil, else buf[:size];
	// while over is set it is neither. A view aliases the argument of Next, or
	// buf, and is never kept from one call of Next to the following one.
	view   []byte
	buf    []byte
	size   int  // bytes of data, also of data that was not kept
	fields int  // data fields seen
	over   bool // the event is oversize
	typ    []byte
	id     []byte // outlives the event, as the standard has it

	// The line so far, where a call of Next ended within one: buf[mark:],
	// unless skip says that the rest of the line does not matter.
	partial bool
	skip    bool
	mark    int

	started bool // the first line, which may open with a byte order mark, is over
	skipLF  bool // a line feed that comes next belongs to the last line's end
	retry   retry
}

// Next reads b up to and including the end of the next event and returns that
// event and the number of bytes it took. With ok false there was no further
// end of an event, all of b is used up (n is len(b)), and the next call takes
// what follows in the stream; the parser then holds no reference to b.
//
// A carriage return ends a line at once: an event is never held back to see
// whether a line feed follows.
func (p *Parser) Next(b []byte) (ev Event, n int, ok bool) {
	if p.skipLF && len(b) > 0 {
		p.skipLF = false
		if b[0] == '\n' {
			n = 1
		}
	}
	if p.started && !p.partial && !p.over && p.fields == 0 && len(p.typ) == 0 {
		if data := usual(b[n:]); len(data) > 0 && len(data) <= p.limit() {
			ev = Event{Data: data}
			if len(p.id) > 0 {
				ev.ID = p.id[:len(p.id):len(p.id)]
			}
			return ev, n + len(usualStart) + len(data) + len("\n\n"), true
		}
	}
	for n < len(b) {
		rest := b[n:]
		end := lineEnd(rest)
		if end < 0 {
			p.keepPartial(rest)
			return Event{}, len(b), false
		}
		n += end + 1
		if rest[end] == '\r' {
			if n == len(b) {
				p.skipLF = true
			} else if b[n] == '\n' {
				n++
			}
		}
		line := rest[:end]
		if p.partial {
			p.keepPartial(line)
			if line = p.endPartial(); line == nil {
				continue
			}
		}
		if p.takeLine(line) && p.size > 0 {
			return p.dispatch(), n, true
		}
	}
	p.spill()
	return Event{}, n, false
}

// Flush tells that the stream has ended. It returns the event that no blank
// line had closed, if there is one with data; a last line without a line end
// counts. A second call returns nothing. Before another stream, call Reset.
func (p *Parser) Flush() (Event, bool) {
	if p.partial {
		if line := p.endPartial(); line != nil {
			p.takeLine(line)
		}
	}
	p.skipLF = false
	if p.size == 0 {
		p.clearEvent()
		return Event{}, false
	}
	return p.dispatch(), true
}

// Reset makes the parser ready for the start of another stream. The last event
// ID and the reconnection time are forgotten; Limit and small buffers stay.
func (p *Parser) Reset() {
	p.clearEvent()
	*p = Parser{Limit: p.Limit, buf: p.buf, typ: p.typ, id: p.id[:0]}
}

// takeLine interprets one whole line without its end and reports whether it
// was blank, which closes an event. A blank line without data closes nothing:
// it clears the event.
func (p *Parser) takeLine(line []byte) (blank bool) {
	if !p.started {
		p.started = true
		line = bytes.TrimPrefix(line, []byte(byteOrderMark))
	}
	if len(line) == 0 {
		if p.size == 0 {
			p.clearEvent()
		}
		return true
	}
	switch field, value := splitLine(line); field {
	case fieldData:
		p.takeData(value)
	case fieldEvent:
		if len(value) > maxField {
			p.typ = p.typ[:0]
			p.dropData()
		} else {
			p.typ = append(p.typ[:0], value...)
		}
	case fieldID:
		if len(value) <= maxField && bytes.IndexByte(value, 0) < 0 {
			p.id = append(p.id[:0], value...)
		}
	case fieldRetry:
		p.retry.set(value)
	}
	return false
}

// takeData adds one data field to the event. A first one is only looked at
// where it lies; the copy is made when a second comes, or the piece ends.
func (p *Parser) takeData(value []byte) {
	p.spill()
	if p.fields > 0 {
		p.size++
	}
	p.size += len(value)
	p.fields++
	switch {
	case p.over:
	case p.size > p.limit():
		p.dropData()
	case p.fields == 1:
		p.view = value
	default:
		// value may lie further back in buf itself; append copes with that.
		p.buf = append(append(p.grow(p.buf, 1+len(value)), '\n'), value...)
	}
}

// dispatch hands out the event and starts the next one. A buffer that grew is
// let go at once: from here on only the caller holds it.
func (p *Parser) dispatch() Event {
	ev := Event{Oversize: p.over}
	if !p.over {
		ev.Data = p.view[:len(p.view):len(p.view)]
		if ev.Data == nil {
			ev.Data = p.buf[:p.size:p.size]
		}
	}
	if len(p.typ) > 0 {
		ev.Type = p.typ[:len(p.typ):len(p.typ)]
	}
	if len(p.id) > 0 {
		ev.ID = p.id[:len(p.id):len(p.id)]
	}
	p.clearEvent()
	return ev
}

// clearEvent forgets the event but not its bytes, which may just have been
// handed out: they are overwritten by the next call at the earliest.
func (p *Parser) clearEvent() {
	p.view, p.size, p.fields, p.over = nil, 0, 0, false
	p.buf = p.buf[:0]
	p.typ = p.typ[:0]
	p.release()
}

// dropData makes the event oversize: its data is not kept any longer.
func (p *Parser) dropData() {
	p.over = true
	p.view = nil
	p.buf = p.buf[:0]
	p.release()
}

func (p *Parser) release() {
	if cap(p.buf) > keepBuffer {
		p.buf = nil
	}
}

func (p *Parser) limit() int {
	if p.Limit > 0 {
		return p.Limit
	}
	return DefaultLimit
}
