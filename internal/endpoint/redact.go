package endpoint

import (
	"bytes"
	"errors"
	"net/http"
	"strings"

	"github.com/weirgate/weir/internal/call"
)

// leastSecret is the length below which a key is a placeholder ("-", "x") that
// is not looked for in texts: it would be found everywhere.
const leastSecret = 4

// redacted stands in texts where a key stood.
const redacted = "[key]"

// secret is a key that must not be shown.
type secret string

// hides tells whether there is anything to look for.
func (s secret) hides() bool { return len(s) >= leastSecret }

// text returns t without the key.
func (s secret) text(t string) string {
	if !s.hides() {
		return t
	}
	return strings.ReplaceAll(t, string(s), redacted)
}

// head returns at most n bytes of the beginning of b without the key, as a
// copy. b should hold n bytes and as many as the key has beyond them, so that a
// key across the cut is seen whole; what begins before the cut is replaced.
func (s secret) head(b []byte, n int) []byte {
	var out []byte
	for s.hides() {
		at := bytes.Index(b, []byte(s))
		if at < 0 || at >= n {
			break
		}
		out = append(append(out, b[:at]...), redacted...)
		taken := at + len(s)
		b, n = b[taken:], max(n-taken, 0)
	}
	return append(out, b[:min(n, len(b))]...)
}

// header takes the key out of a header's values.
func (s secret) header(h http.Header) http.Header {
	if !s.hides() {
		return h
	}
	for _, values := range h {
		for i, v := range values {
			values[i] = s.text(v)
		}
	}
	return h
}

// err returns err, or its text alone without the key where that stands in it.
func (s secret) err(err error) error {
	if err == nil {
		return nil
	}
	if t := err.Error(); s.text(t) != t {
		return errors.New(s.text(t))
	}
	return err
}

// record takes the key out of what a record has from the answer.
func (s secret) record(rec *call.Record) {
	if !s.hides() {
		return
	}
	rec.Error, rec.ResponseID, rec.ResponseModel = s.text(rec.Error), s.text(rec.ResponseID), s.text(rec.ResponseModel)
	reasons := rec.FinishReason.First()
	if rec.FinishReason.Multiple() {
		all, err := rec.FinishReason.MarshalJSON()
		if err != nil {
			all = []byte(s) // what cannot be looked at is not shown
		}
		reasons = string(all)
	}
	if strings.Contains(reasons, string(s)) {
		rec.FinishReason = call.Finish{}
	}
}
