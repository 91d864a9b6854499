package gateway

import (
	"maps"
	"net/http"
)

// first returns the first value of a field, "" when there is none. The name must
// be in canonical form: Header.Get would make it so anew each time.
func first(h http.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// encoded tells whether a header says that its body is not plain.
func encoded(h http.Header) bool {
	e := first(h, "Content-Encoding")
	return e != "" && e != "identity"
}

// headerMark remembers an answer's header as it was before a run of the next
// handler, so that a second run finds it so. It holds the usual few fields
// itself, which are Server and Alt-Svc; its zero value remembers an empty header.
type headerMark struct {
	names  [3]string
	values [3][]string
	n      int
	many   http.Header // all of them, when they are more
}

// take remembers h.
func (m *headerMark) take(h http.Header) {
	m.n, m.many = 0, nil
	if len(h) > len(m.names) {
		m.many = maps.Clone(h)
		return
	}
	for name, values := range h {
		m.names[m.n], m.values[m.n] = name, values
		m.n++
	}
}

// restore makes h what it was.
func (m *headerMark) restore(h http.Header) {
	clear(h)
	maps.Copy(h, m.many)
	for i := range m.n {
		h[m.names[i]] = m.values[i]
	}
}
