package doctor

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weirgate/weir/internal/call"
)

// What is shorter than this is not hidden in texts of our own: it would tear
// words apart, and is no secret anyway.
const (
	leastSecret  = 8
	leastForeign = 4 // in texts from outside, where no word of ours can suffer
)

// maxForeign is how many bytes are shown of any text from outside; of one that is
// longer than longForeign, none.
const (
	maxForeign  = 100
	longForeign = 4096
)

const hidden = "[hidden]"

// secrets are texts that must not be shown in any of the forms in which servers
// and libraries repeat what they were given.
type secrets struct {
	forms []string // in lower case, longest first
}

// add takes a secret. An empty one is none.
func (s *secrets) add(value string) {
	inner := bareKey(value)
	for _, v := range []string{value, strings.TrimSpace(value), inner} {
		s.addForms(v)
		if fields := strings.Fields(v); len(fields) > 1 {
			for _, f := range fields {
				s.addForms(f) // a library may have cut it at the blank
			}
		}
	}
	slices.SortFunc(s.forms, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	s.forms = slices.Compact(s.forms)
}

func (s *secrets) addForms(v string) {
	if len(v) < leastForeign || strings.EqualFold(v, "bearer") {
		return
	}
	quoted, err := json.Marshal(v)
	if err != nil {
		quoted = []byte(`""`) // a string always marshals
	}
	goQuoted := strconv.Quote(v)
	forms := []string{
		v, url.QueryEscape(v), url.PathEscape(v), html.EscapeString(v),
		string(quoted[1 : len(quoted)-1]), goQuoted[1 : len(goQuoted)-1], hex.EncodeToString([]byte(v)),
	}
	for offset := range 3 {
		forms = append(forms, base64Core(base64.RawStdEncoding, v, offset), base64Core(base64.RawURLEncoding, v, offset))
	}
	for _, f := range forms {
		if len(f) >= leastForeign {
			s.forms = append(s.forms, lower(f))
		}
	}
}

// base64Core is what the encoding of any text has in it that holds v at an
// offset of so many bytes modulo 3: the characters that depend on v alone.
func base64Core(enc *base64.Encoding, v string, offset int) string {
	all := enc.EncodeToString(append(make([]byte, offset), v...))
	from := (offset*8 + 5) / 6
	to := (offset + len(v)) * 8 / 6
	if to-from < 6 {
		return ""
	}
	return all[from:to]
}

// hide replaces every form of a secret that has at least so many bytes.
func (s *secrets) hide(text string, least int) string {
	for _, form := range s.forms {
		if len(form) < least {
			break // the rest is shorter still
		}
		folded := lower(text)
		var out strings.Builder
		at := 0
		for {
			i := strings.Index(folded[at:], form)
			if i < 0 {
				break
			}
			out.WriteString(text[at:at+i] + hidden)
			at += i + len(form)
		}
		if at > 0 {
			text = out.String() + text[at:]
		}
	}
	return text
}

// foreign prepares a text from outside for being shown: without secrets, on one
// line, and not long.
func (s *secrets) foreign(text string) string {
	if len(text) > longForeign {
		return fmt.Sprintf("(a text of %d bytes)", len(text))
	}
	// What OneLine takes out may have stood within a secret.
	text = s.hide(call.OneLine(s.hide(text, leastForeign)), leastForeign)
	if len(text) > maxForeign {
		cut := maxForeign
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return text
}

// clean is the last look at a finding before it leaves.
func (s *secrets) clean(f Finding) Finding {
	for _, text := range []*string{&f.Title, &f.Detail, &f.Next} {
		*text = s.hide(call.OneLine(s.hide(*text, leastSecret)), leastSecret)
	}
	return f
}

// lower folds ASCII only, so that all offsets stay.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
