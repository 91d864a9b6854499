package dialect

import (
	"bytes"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/jsonscan"
)

// event is what one event, or one JSON body, has told so far. Nothing of it
// counts before the whole event has been read, so that a malformed one leaves
// no trace. Byte slices in it live as long as the event.
type event struct {
	visible   bool // carries output that is not reasoning
	reasoning bool // carries reasoning
	own       bool // is of the dialect
	failed    bool // says that the call failed
	terminal  bool // ends the answer
	total     bool // its usage stands for the whole answer, zeros included
	multiple  bool // more than one choice wrote in it
	token     bool // is one token, with text or without
	whole     bool // carries all of the output, which repeats a stream's
	echoes    bool // its text begins as the prompt does
	isRare    bool // something is in the Response's rare
	choices   int  // choices in it; the last one's number and content are below
	index     int
	choice    content
	finish    []byte // the last choice's finish reason
	wrote     int    // 1 + the choice that wrote in it; 0 is none
	part      part
	// texts is how many strings made it content; the last one lies at
	// textStart … textEnd of the event's data.
	texts              int
	textStart, textEnd int64

	id, model, kind []byte
}

// content tells what kinds of output a choice carries.
type content struct{ visible, reasoning bool }

// part is one element of an array of typed parts.
type part struct {
	text    bool // has text
	thought bool // is marked as reasoning
	special bool // is marked as not being text
}

// rare is what few events carry.
type rare struct {
	figures     figures
	engine      call.Engine
	code        []byte // top-level code
	status      []byte // what the answer says of its state
	errorType   []byte
	errorCode   []byte
	errorStatus []byte
	bare        bool // the event is itself an error object
	finishes    []finish
	echoed      uint64     // choices whose first text came in this event
	stamps      [3]float64 // a dialect's own points in time
	prompts     int64      // sum of a batch's prompt tokens
	head        []byte     // beginning of a cumulative text, and its length
	size        int64
}

// finish is the finish reason of one choice.
type finish struct {
	choice int
	reason []byte
}

// rare returns where the event keeps what is not usual.
func (r *Response) rare() *rare {
	r.ev.isRare = true
	if r.scarce == nil {
		r.scarce = new(rare)
	}
	return r.scarce
}

// text notes a string of output; it tells whether the value is one.
func (r *Response) text(v *jsonscan.Value) bool {
	if !v.Text() {
		return false
	}
	r.ev.texts++
	r.ev.textStart, r.ev.textEnd = v.Offset, v.Offset+v.Len
	return true
}

// output notes a string, or an object with members, of visible output.
func (r *Response) output(v *jsonscan.Value) {
	if r.text(v) {
		r.ev.visible = true
	} else if v.Kind == jsonscan.EndObject && !v.Empty {
		r.ev.visible = true
		r.ev.texts += 2 // not a plain string
	}
}

// thinking notes a string of reasoning.
func (r *Response) thinking(v *jsonscan.Value) {
	if r.text(v) {
		r.ev.reasoning = true
	}
}

// keep returns raw for use until the event ends.
func (r *Response) keep(raw []byte) []byte {
	if !r.inBody {
		return raw
	}
	// The piece of the body goes, its event stays.
	from := len(r.kept)
	r.kept = append(r.kept, raw...)
	return r.kept[from:len(r.kept):len(r.kept)]
}

// finished notes a choice's finish reason.
func (r *Response) finished(choice int, reason []byte) {
	if len(reason) > 0 {
		c := r.rare()
		c.finishes = append(c.finishes, finish{choice, reason})
	}
}

// wroteIn adds the content of the event's current choice to the event.
func (r *Response) wroteIn() {
	e := &r.ev
	e.visible = e.visible || e.choice.visible
	e.reasoning = e.reasoning || e.choice.reasoning
	e.multiple = e.multiple || e.wrote != 0 && e.wrote != e.index+1
	e.wrote = e.index + 1
}

// fail notes that the call failed.
func (r *Response) fail() { r.ev.failed = true }

// is tells whether the value is the given string.
func is(v *jsonscan.Value, s string) bool {
	return v.Kind == jsonscan.String && string(v.Raw) == s
}

// name makes a name of a string's raw bytes.
func name(raw []byte) string {
	return call.Name(unescaped(raw))
}

// unescaped returns the text of a string that is still escaped; it may be raw
// itself.
func unescaped(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') >= 0 {
		return jsonscan.Unescape(nil, raw)
	}
	return raw
}

// errorCode is the short code of a failed event: what the error calls itself,
// never its message. A word is preferred to a number.
func (r *Response) errorCode() string {
	if !r.ev.isRare {
		return "error"
	}
	c := r.scarce
	all := [...][]byte{c.errorType, nil, c.errorCode, c.errorStatus, c.code}
	if c.bare {
		all[1] = r.ev.kind
	}
	number := []byte(nil)
	for _, raw := range all {
		switch code, digits := isCode(raw); {
		case code && !digits:
			return string(raw)
		case code && number == nil:
			number = raw
		}
	}
	if number != nil {
		return string(number)
	}
	return "error"
}

// maxCode is the length of an error code; what is longer may be prose.
const maxCode = 64

// isCode tells whether raw looks like a code and not like a sentence, which
// might quote the prompt, and whether it is a number.
func isCode(raw []byte) (code, digits bool) {
	digits = true
	for _, c := range raw {
		switch {
		case '0' <= c && c <= '9':
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_', c == '-', c == '.':
			digits = false
		default:
			return false, false
		}
	}
	return len(raw) > 0 && len(raw) <= maxCode, digits
}
