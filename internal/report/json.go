package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"

	"github.com/weirgate/weir/internal/bench"
)

// JSON writes r as one indented object, the same bytes for the same result. All
// that is not printable is escaped, so that it can be shown in a terminal or put
// into a page. An error is that of w, or of a figure that JSON cannot hold (not a
// number, or infinite).
func JSON(w io.Writer, r bench.Result) error { return writeJSON(w, r) }

func writeJSON(w io.Writer, doc any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b) // it escapes <, > and &
	e.SetIndent("", "  ")
	if err := e.Encode(doc); err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	out := bufio.NewWriter(w)
	writeEscaped(out, b.Bytes())
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// writeEscaped writes JSON with all that is not printable as \u escapes. It is
// found within strings only: outside of them JSON is printable ASCII and new lines.
func writeEscaped(out *bufio.Writer, doc []byte) {
	for _, r := range string(doc) {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(out, `\u%04x`, r)
		}
	}
}
