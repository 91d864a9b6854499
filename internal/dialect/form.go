package dialect

import (
	"bytes"
	"mime"
	"strings"

	"github.com/weirgate/weir/internal/call"
)

// Bounds on what is kept of a form.
const (
	maxFormHeader = 2048 // bytes of one part's header
	maxFormField  = 256  // bytes of a field's value
)

// form reads a multipart/form-data body as it passes, and keeps a few short
// fields of it. Files are passed over.
type form struct {
	mark  []byte // what ends a part: CRLF, two hyphens, the boundary
	match int    // how much of mark the last bytes are
	state formState
	text  []byte // of the part's header, or of the wanted field
	want  *string

	model, stream string
	broken        bool
}

type formState uint8

const (
	formPreamble formState = iota
	formAfterMark
	formHeader
	formBody
	formEnd
)

// formBoundary returns the boundary of a form's content type, "" when it is none.
func formBoundary(contentType string) string {
	if len(contentType) < len("multipart/") || !strings.EqualFold(contentType[:len("multipart/")], "multipart/") {
		return ""
	}
	kind, params, err := mime.ParseMediaType(contentType)
	if b := params["boundary"]; err == nil && kind == "multipart/form-data" && len(b) <= 70 {
		return b
	}
	return ""
}

func newForm(boundary string) *form {
	// The first mark has no line before it, so it begins matched.
	return &form{mark: []byte("\r\n--" + boundary), match: 2}
}

// write reads the next piece.
func (f *form) write(b []byte) {
	for i := 0; i < len(b) && !f.broken; {
		switch f.state {
		case formPreamble, formBody:
			i += f.skipTo(b[i:])
		case formAfterMark:
			i += f.afterMark(b[i])
		case formHeader:
			f.header(b[i])
			i++
		case formEnd:
			return
		}
	}
}

// skipTo reads a part's body up to the mark, and returns how many bytes it read.
// The mark begins with CR and has no other, so a match that fails can only
// begin anew at a CR.
func (f *form) skipTo(b []byte) int {
	for i := 0; i < len(b); i++ {
		if f.match == 0 {
			n := bytes.IndexByte(b[i:], '\r')
			if n < 0 {
				f.value(b[i:])
				return len(b)
			}
			f.value(b[i : i+n])
			i += n
		}
		if b[i] == f.mark[f.match] {
			if f.match++; f.match == len(f.mark) {
				f.match = 0
				f.endPart()
				f.state = formAfterMark
				return i + 1
			}
			continue
		}
		f.value(f.mark[:f.match])
		if f.match = 0; b[i] == '\r' {
			f.match = 1
			continue
		}
		f.value(b[i : i+1])
	}
	return len(b)
}

// afterMark reads what follows a mark: a line's end, or the hyphens of the last.
func (f *form) afterMark(c byte) int {
	switch c {
	case '-':
		f.state = formEnd
	case '\n':
		f.state = formHeader
		f.text = f.text[:0]
	case '\r', ' ', '\t':
	default:
		f.broken = true
	}
	return 1
}

// header reads one byte of a part's header.
func (f *form) header(c byte) {
	if len(f.text) >= maxFormHeader {
		f.broken = true
		return
	}
	f.text = append(f.text, c)
	if bytes.HasSuffix(f.text, []byte("\n\r\n")) || bytes.HasSuffix(f.text, []byte("\n\n")) || string(f.text) == "\r\n" {
		f.want = f.field(f.text)
		f.text = f.text[:0]
		f.state = formBody
		f.match = 0
	}
}

// field returns where to put the value of the part with the given header.
func (f *form) field(header []byte) *string {
	for line := range bytes.Lines(header) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		if !strings.EqualFold(string(key), "Content-Disposition") {
			continue
		}
		_, params, err := mime.ParseMediaType(string(bytes.TrimSpace(value)))
		if _, file := params["filename"]; err != nil || file {
			return nil
		}
		switch params["name"] {
		case "model":
			return &f.model
		case "stream":
			return &f.stream
		}
	}
	return nil
}

// value takes bytes of a part's body.
func (f *form) value(b []byte) {
	if f.want != nil {
		f.text = append(f.text, b[:min(len(b), maxFormField-len(f.text))]...)
	}
}

func (f *form) endPart() {
	if f.want != nil {
		*f.want = string(f.text)
		f.want = nil
	}
}

// fill says in req what the form said.
func (f *form) fill(req *call.Request) {
	req.Multipart = true
	req.Model = call.Name([]byte(f.model))
	switch strings.ToLower(f.stream) {
	case "true", "1":
		req.Stream = true
	}
}

// malformed tells whether the body is not a form, or is cut off though complete.
func (f *form) malformed(complete bool) bool { return f.broken || complete && f.state != formEnd }
