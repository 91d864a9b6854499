package command

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/weirgate/weir/internal/bench"
	"github.com/weirgate/weir/internal/call"
)

// secret is the key. An endpoint may send it back in anything that it says, so
// all texts of its making go through hide before they are shown.
type secret string

// leastSecret is the length below which a key is a placeholder ("-", "x"), which
// would be found everywhere.
const leastSecret = 4

func (s secret) hide(text string) string {
	if len(s) < leastSecret {
		return text
	}
	return strings.ReplaceAll(text, string(s), "[key]")
}

// hideError returns err, or its text without the key where that stands in it.
func (s secret) hideError(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if clean := s.hide(text); clean != text {
		return reworded(err, clean)
	}
	return err
}

// hideIn takes the key out of what the endpoint, and a file of the user's, say of
// the environment.
func (s secret) hideIn(e *bench.Environment) {
	e.Model, e.Channel, e.Gateway = s.hide(e.Model), s.hide(e.Channel), s.hide(e.Gateway)
	for _, facts := range append(e.GPU, e.Engine) {
		for name, value := range facts {
			facts[name] = s.hide(value)
		}
	}
	for name, value := range e.Given {
		e.Given[name] = s.hideAny(value)
	}
}

func (s secret) hideAny(v any) any {
	switch v := v.(type) {
	case string:
		return s.hide(v)
	case map[string]any:
		for name, inner := range v {
			v[name] = s.hideAny(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = s.hideAny(inner)
		}
	}
	return v
}

// shown is a name from outside as it can be put into a message: short, and in
// quotes where it has something in it that is not printable.
func shown(name string) string {
	name = call.NameOf(name)
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}
