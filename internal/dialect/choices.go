package dialect

import (
	"bytes"

	"github.com/weirgate/weir/internal/call"
)

// maxOutputs is the number of choices whose tokens are counted apart.
const maxOutputs = 128

// outputs are the running counts of output tokens of an answer's choices.
type outputs struct {
	first  call.Count
	others []call.Count // of choice 1 and on
}

// set keeps the newest count of a choice.
func (o *outputs) set(choice int, n call.Count) {
	switch {
	case !n.IsKnown() || choice < 0 || choice >= maxOutputs:
	case choice == 0:
		newest(&o.first, n, false)
	default:
		for len(o.others) < choice {
			o.others = append(o.others, call.Count{})
		}
		newest(&o.others[choice-1], n, false)
	}
}

// choices returns how many choices have a count.
func (o *outputs) choices() int {
	n := 0
	if o.first.IsKnown() {
		n++
	}
	for _, c := range o.others {
		if c.IsKnown() {
			n++
		}
	}
	return n
}

// sum adds the counts up.
func (o *outputs) sum() call.Count {
	all := o.first
	for _, c := range o.others {
		all = all.Plus(c)
	}
	return all
}

// texts follows texts that come whole each time, and longer, by choice. A
// server set to send them in pieces is known by one that does not go on from
// the one before.
type texts struct {
	first  text
	others []text
	pieces bool
}

// headBytes is how much of a text is compared.
const headBytes = 8

// text is what is remembered of a choice's text.
type text struct {
	size int64 // bytes, as escaped
	head [headBytes]byte
	n    uint8 // bytes in head
}

// grew takes a choice's newest text, of which raw is the beginning and size the
// length, and tells whether it brings anything new.
func (t *texts) grew(choice int, raw []byte, size int64) bool {
	last := &t.first
	switch {
	case choice < 0 || choice >= maxOutputs:
		return size > 0
	case choice > 0:
		for len(t.others) < choice {
			t.others = append(t.others, text{})
		}
		last = &t.others[choice-1]
	}
	if size < last.size || !bytes.HasPrefix(raw, last.head[:last.n]) {
		t.pieces = true
	}
	new := t.pieces && size > 0 || size > last.size
	last.size = size
	if int(last.n) < len(last.head) {
		last.n = uint8(copy(last.head[:], raw))
	}
	return new
}
