package gateway

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

const (
	stripToken  = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":null}],\"usage\":null}\n\n"
	stripFinish = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":null}\n\n"
	stripUsage  = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n"
	stripOther  = "data: {\"choices\":[],\"moderation\":{}}\n\n"
	stripFolded = "data: {\"Choices\":[],\"Usage\":{\"prompt_tokens\":1}, \"choices\":[{}], \"usage\":{}}\n\n"
	stripDone   = "data: [DONE]\n\n"
)

// TestStrip: exactly the one usage event goes, whatever the line ends and
// however the bytes are cut.
func TestStrip(t *testing.T) {
	for name, c := range map[string]struct{ in, out string }{
		"usage event":       {stripToken + stripFinish + stripUsage + stripDone, stripToken + stripFinish + stripDone},
		"none":              {stripToken + stripFinish + stripDone, stripToken + stripFinish + stripDone},
		"only one":          {stripFinish + stripUsage + stripUsage, stripFinish + stripUsage},
		"other stays":       {stripFinish + stripOther + stripUsage + stripDone, stripFinish + stripOther + stripDone},
		"exact keys":        {stripFinish + stripFolded + stripDone, stripFinish + stripFolded + stripDone},
		"usage with choice": {stripFinish + strings.Replace(stripUsage, "[]", `[{"index":0,"delta":{}}]`, 1), stripFinish + strings.Replace(stripUsage, "[]", `[{"index":0,"delta":{}}]`, 1)},
		"comments stay":     {stripFinish + ": ping\n\n: x\n" + stripUsage + stripDone, stripFinish + ": ping\n\n: x\n" + stripDone},
		"no end":            {stripFinish + strings.TrimSpace(stripUsage), stripFinish + strings.TrimSpace(stripUsage)},
		"no blank at end":   {stripToken + stripFinish + "data: [DONE]", stripToken + stripFinish + "data: [DONE]"},
		"long event":        {stripFinish + "data: " + strings.Repeat("x", 3*maxStrip) + "\n\n" + stripUsage, stripFinish + "data: " + strings.Repeat("x", 3*maxStrip) + "\n\n"},
		"empty":             {"", ""},
	} {
		for ends, lineEnd := range map[string]string{"LF": "\n", "CRLF": "\r\n", "CR": "\r"} {
			in, want := strings.ReplaceAll(c.in, "\n", lineEnd), strings.ReplaceAll(c.out, "\n", lineEnd)
			if ends == "CR" && name == "comments stay" {
				continue // lines of comments are told by LF
			}
			if got := strip(t, in, len(in)+1); got != want {
				t.Errorf("%s, %s:\n got %q\nwant %q", name, ends, got, want)
			}
			if len(in) > 2000 {
				continue
			}
			for _, size := range []int{1, 2, 3, 7, 50} {
				// CRLF cut in two: the LF may then come after the removed
				// event and stays, as an event without a field.
				if got := strip(t, in, size); strings.ReplaceAll(got, "\r\n", "\n") != strings.ReplaceAll(want, "\r\n", "\n") &&
					strings.ReplaceAll(got, "\r\n\n", "\r\n") != want {
					t.Errorf("%s, %s, pieces of %d:\n got %q\nwant %q", name, ends, size, got, want)
				}
			}
		}
	}
}

func strip(t *testing.T, in string, size int) string {
	t.Helper()
	var s stripper
	var out bytes.Buffer
	for len(in) > 0 {
		n := min(size, len(in))
		if used, err := s.write(&out, []byte(in[:n])); used != n || err != nil {
			t.Fatalf("write: %d of %d, %v", used, n, err)
		}
		in = in[n:]
	}
	if _, err := s.finish(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestStripHoldsNothingEarly: until a choice has finished, every byte leaves
// with the write that brought it.
func TestStripHoldsNothingEarly(t *testing.T) {
	var s stripper
	var out bytes.Buffer
	for i, c := range []byte(stripToken + stripToken) {
		_, _ = s.write(&out, []byte{c})
		if out.Len() != i+1 {
			t.Fatalf("byte %d is held", i)
		}
	}
}

func TestStripBegin(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		header http.Header
		begins bool
	}{
		"stream":     {200, http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}, "Content-Length": {"5"}}, true},
		"error":      {400, http.Header{"Content-Type": {"text/event-stream"}}, false},
		"JSON":       {200, http.Header{"Content-Type": {"application/json"}, "Content-Length": {"5"}}, false},
		"compressed": {200, http.Header{"Content-Type": {"text/event-stream"}, "Content-Encoding": {"gzip"}}, false},
	} {
		var s stripper
		if got := s.begin(c.status, c.header); got != c.begins {
			t.Errorf("%s: begins %v", name, got)
		}
		if left := c.header.Get("Content-Length") != ""; left == c.begins && name != "error" && name != "compressed" {
			t.Errorf("%s: Content-Length left: %v", name, left)
		}
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestStripReportsWriteErrors(t *testing.T) {
	var s stripper
	if _, err := s.write(failing{}, []byte(stripToken)); err == nil {
		t.Error("no error")
	}
}

// FuzzStrip: but for one usage event, what goes in comes out, however it is cut.
func FuzzStrip(f *testing.F) {
	f.Add([]byte(stripToken+stripFinish+stripUsage+stripDone), uint64(1))
	f.Add([]byte("\r\n\r\ndata: x\r\r\n\n"), uint64(2))
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var s stripper
		var out bytes.Buffer
		for rest := in; len(rest) > 0; {
			n := 1 + rng.IntN(len(rest))
			if used, err := s.write(&out, rest[:n]); used != n || err != nil {
				t.Fatal(used, err)
			}
			rest = rest[n:]
		}
		_, _ = s.finish(&out)
		if !s.done && !bytes.Equal(out.Bytes(), in) {
			t.Fatalf("nothing was removed, yet\n got %q\nwant %q", out.Bytes(), in)
		}
		if s.done && (out.Len() >= len(in) || !bytes.Contains(in, []byte(`"usage"`))) {
			t.Fatalf("removed from %q left %q", in, out.Bytes())
		}
	})
}
