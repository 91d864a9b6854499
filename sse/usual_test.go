package sse

import (
	"bytes"
	"strings"
	"testing"
)

// TestUsual: what the short way takes, and that everything else is left to the
// long one with the same result.
func TestUsual(t *testing.T) {
	for in, want := range map[string]string{
		"data: x\n\n":             "x",
		"data: x\n\ndata: y\n\n":  "x",
		"data:  x\n\n":            " x",
		"data: {\"a\":1}\n\nrest": `{"a":1}`,
		"data: \n\n":              "",
		"data: x\n":               "",
		"data: x\ndata: y\n\n":    "",
		"data: x\r\n\r\n":         "",
		"data: x\ry\n\n":          "",
		"data:x\n\n":              "",
		"data":                    "",
		"":                        "",
	} {
		if got := usual([]byte(in)); string(got) != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := usual([]byte("data: " + strings.Repeat("x", 1<<20) + "\n\n")); got != nil {
		t.Errorf("a megabyte was taken the short way")
	}
}

// TestUsualWithinAnEvent: the short way must not begin within an event, nor
// forget what stands before it.
func TestUsualWithinAnEvent(t *testing.T) {
	for _, before := range []string{"", ": comment\n", "event: t\n", "id: 7\n", "data: 0\n", "event: " + strings.Repeat("t", maxField+1) + "\n", "data: 0"} {
		all := []byte("data: first\n\n" + before + "data: x\n\ndata: last\n\n")
		whole, single := events(all, len(all)), events(all, 1)
		if strings.Join(whole, "|") != strings.Join(single, "|") {
			t.Errorf("after %.20q: %q, byte by byte %q", before, whole, single)
		}
	}
}

// events parses b in pieces of so many bytes.
func events(b []byte, size int) []string {
	var p Parser
	var all []string
	for len(b) > 0 {
		piece := bytes.Clone(b[:min(size, len(b))])
		b = b[len(piece):]
		for len(piece) > 0 {
			ev, n, ok := p.Next(piece)
			piece = piece[n:]
			if ok {
				all = append(all, string(ev.Type)+"/"+string(ev.ID)+"/"+string(ev.Data)+"/"+map[bool]string{true: "over"}[ev.Oversize])
			}
		}
	}
	return all
}
