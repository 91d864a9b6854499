package sse

import "bytes"

// spill copies data that is only looked at into the parser's own buffer.
func (p *Parser) spill() {
	if p.view != nil {
		// view may lie further back in buf itself.
		p.buf = append(p.grow(p.buf[:0], len(p.view)), p.view...)
		p.view = nil
	}
}

// keepPartial keeps a piece of a line, unless the line's beginning shows that
// nothing of it will be needed.
func (p *Parser) keepPartial(piece []byte) {
	if !p.partial {
		p.partial = true
		p.spill()
		p.mark = len(p.buf)
	}
	if p.skip {
		return
	}
	// Take the beginning first: it tells how much of the rest is wanted.
	if have := len(p.buf) - p.mark; have < overhead {
		head := piece[:min(overhead-have, len(piece))]
		p.buf = append(p.grow(p.buf, len(head)), head...)
		piece = piece[len(head):]
		if len(piece) == 0 {
			return
		}
	}
	start := p.buf[p.mark:]
	if !p.started {
		start = bytes.TrimPrefix(start, []byte(byteOrderMark))
	}
	f, value := splitLine(start)
	room := maxField - len(value)
	switch f {
	case fieldOther:
		room = -1
	case fieldData:
		room = p.limit() - p.size - len(value)
		if p.fields > 0 {
			room--
		}
		if p.over {
			room = -1
		}
	}
	if len(piece) <= room {
		p.buf = append(p.grow(p.buf, len(piece)), piece...)
		return
	}
	p.skip = true
	p.buf = p.buf[:p.mark]
	switch f {
	case fieldData:
		p.size += len(value) + len(piece)
		p.fields++
		p.dropData()
	case fieldEvent:
		p.typ = p.typ[:0]
		p.dropData()
	}
}

// endPartial returns the line whose last piece has been kept, and takes it out
// of the data's way: it stays readable in buf until something is added. It
// returns nil for a line that was skipped.
func (p *Parser) endPartial() (line []byte) {
	p.partial = false
	if p.skip {
		p.skip = false
		p.started = true
		return nil
	}
	line = p.buf[p.mark:]
	p.buf = p.buf[:p.mark]
	return line
}

// grow makes room for n more bytes. It doubles, but never beyond what one
// event at its limit can take; small events share one size that idle parsers
// may keep.
func (p *Parser) grow(b []byte, n int) []byte {
	need := len(b) + n
	if need <= cap(b) {
		return b
	}
	size := 512
	for size < need {
		size *= 2
	}
	if size > keepBuffer && need <= keepBuffer {
		size = keepBuffer
	}
	size = max(need, min(size, p.limit()+1+maxField+overhead))
	grown := make([]byte, len(b), size)
	copy(grown, b)
	return grown
}
