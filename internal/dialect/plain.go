package dialect

import (
	"bytes"

	"github.com/weirgate/weir/internal/jsonscan"
)

// plain remembers the last event whose only news was one string of output, by
// the bytes before and after that string. The next event mostly has the same
// ones: then it is the same event with another text, and is not read at all.
// Anything else is read in full.
type plain struct {
	// around is the event's name, what stands before the text with the quote
	// that opens it, and what stands after it with the quote that closes it.
	around             []byte
	prefixAt, suffixAt int
	visible            bool
}

// maxPlain bounds the bytes remembered.
const maxPlain = 1024

// matches tells whether the event differs from the remembered one in nothing
// but its text, which is not empty.
func (p *plain) matches(name, data []byte) bool {
	if p.around == nil {
		return false
	}
	prefix, suffix := p.around[p.prefixAt:p.suffixAt], p.around[p.suffixAt:]
	n := len(data) - len(suffix)
	if n <= len(prefix) || !bytes.HasPrefix(data, prefix) || string(data[n:]) != string(suffix) ||
		string(name) != string(p.around[:p.prefixAt]) {
		return false
	}
	// The string must end where the suffix begins, not before, and the quote
	// there must not be an escaped one.
	return jsonscan.StringEnd(data[len(prefix):]) == n-len(prefix)
}

// set remembers the event whose text lies at start … end of data.
func (p *plain) set(name, data []byte, start, end int64, visible bool) {
	if len(name)+len(data)-int(end-start) > maxPlain {
		p.around = nil
		return
	}
	p.around = append(append(append(p.around[:0], name...), data[:start]...), data[end:]...)
	p.prefixAt = len(name)
	p.suffixAt = len(name) + int(start)
	p.visible = visible
}

// isPlain tells whether the event that has been read told nothing but one
// string of output.
func (r *Response) isPlain(seen Seen) bool {
	e := &r.ev
	return seen == Seen{Content: true, Visible: seen.Visible} && e.texts == 1 && !e.isRare && !e.failed && !r.d.alwaysRead &&
		e.id == nil && e.model == nil && !r.ended
}
