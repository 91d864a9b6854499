package meter

import "bytes"

// maxLine is the number of bytes kept of a line that comes in pieces.
const maxLine = 1 << 20

// idleLine is the largest buffer kept between lines.
const idleLine = 4 << 10

// line is one line of a body. data is valid until the next call.
type line struct {
	data     []byte
	oversize bool // longer than maxLine: data is nil
}

// lines cuts a body into lines that are not blank. Its zero value is ready.
type lines struct {
	held []byte // the part of a line that came in earlier pieces
	over bool   // the line in progress has passed maxLine
}

// next returns the next line of b and how many bytes were used. ok is false
// when b is used up.
func (l *lines) next(b []byte) (got line, n int, ok bool) {
	l.rest()
	for n < len(b) {
		end := bytes.IndexByte(b[n:], '\n')
		if end < 0 {
			l.hold(b[n:])
			return line{}, len(b), false
		}
		part := b[n : n+end]
		n += end + 1
		switch {
		case l.over:
			l.over = false
			l.held = nil
			return line{oversize: true}, n, true
		case len(l.held) > 0:
			if l.hold(part); l.over {
				l.over = false
				return line{oversize: true}, n, true
			}
			if part = bytes.TrimSpace(l.held); len(part) > 0 {
				got = line{data: part}
				l.held = l.held[:0]
				return got, n, true
			}
			l.held = l.held[:0]
		default:
			if len(part) > maxLine {
				return line{oversize: true}, n, true
			}
			if part = bytes.TrimSpace(part); len(part) > 0 {
				return line{data: part}, n, true
			}
		}
	}
	return line{}, n, false
}

// flush returns the last line, when no newline ended it.
func (l *lines) flush() (line, bool) {
	if l.over {
		l.over = false
		return line{oversize: true}, true
	}
	data := bytes.TrimSpace(l.held)
	l.held = nil
	return line{data: data}, len(data) > 0
}

func (l *lines) hold(b []byte) {
	if l.over || len(l.held)+len(b) > maxLine {
		l.over = true
		l.held = nil
		return
	}
	l.held = append(l.held, b...)
}

// rest lets go of a large buffer once its line has been read.
func (l *lines) rest() {
	if len(l.held) == 0 && cap(l.held) > idleLine {
		l.held = nil
	}
}
