package meter

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/dialect"
)

// A read is one read of a capture: bytes of the body that came at one time.
type read struct {
	at   time.Duration
	body []byte
}

// readCapture returns the body of a recorded answer, cut as it was read from
// the connection. The .raw file holds all bytes received, the .txt file the
// time and size of each read.
func readCapture(t *testing.T, name string) []read {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "captures", name+".raw"))
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join("testdata", "captures", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	// Where the body's bytes lie within raw: behind the header, in chunks.
	inBody := make([]bool, len(raw))
	at := bytes.Index(raw, []byte("\r\n\r\n")) + 4
	for {
		line := bytes.Index(raw[at:], []byte("\r\n"))
		size, err := strconv.ParseInt(string(raw[at:at+line]), 16, 32)
		if err != nil {
			t.Fatalf("%s: chunk size: %v", name, err)
		}
		if size == 0 {
			break
		}
		at += line + 2
		for i := range int(size) {
			inBody[at+i] = true
		}
		at += int(size) + 2
	}
	var reads []read
	from := 0
	for _, m := range regexp.MustCompile(`(?m)^ *([0-9.]+) ms +([0-9]+) B `).FindAllSubmatch(log, -1) {
		ms, _ := strconv.ParseFloat(string(m[1]), 64)
		n, _ := strconv.Atoi(string(m[2]))
		r := read{at: time.Duration(ms * float64(time.Millisecond))}
		for i := from; i < from+n; i++ {
			if inBody[i] {
				r.body = append(r.body, raw[i])
			}
		}
		from += n
		if len(r.body) > 0 {
			reads = append(reads, r)
		}
	}
	if from != len(raw) {
		t.Fatalf("%s: the reads make %d bytes, the capture has %d", name, from, len(raw))
	}
	return reads
}

// TestCaptures: first and last token of answers recorded from running engines.
// The expected values were computed from the recordings by another program.
func TestCaptures(t *testing.T) {
	b, err := os.ReadFile("testdata/captures/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]struct {
		First  *float64 `json:"first_token_ms"`
		Last   *float64 `json:"last_token_ms"`
		Events int64    `json:"content_events"`
		Output *int64   `json:"output_tokens"`
	}
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 15 {
		t.Fatalf("only %d captures", len(all))
	}
	for name, want := range all {
		path := "/v1/chat/completions"
		switch {
		case strings.Contains(name, "messages"):
			path = "/v1/messages"
		case strings.Contains(name, "responses"):
			path = "/v1/responses"
		case strings.Contains(name, "native"):
			path = "/completion"
		}
		m := New(dialect.ByPath(path)[0], &call.Request{Stream: true})
		m.Header(200, map[string][]string{"Content-Type": {"text/event-stream"}})
		var end time.Duration
		for _, r := range readCapture(t, name) {
			m.Write(r.body, r.at, r.at)
			end = r.at
		}
		var rec call.Record
		m.Finish(&rec, End{At: end, Status: 200})
		within := func(what string, got call.Duration, want *float64) {
			d, known := got.Get()
			if known != (want != nil) {
				t.Errorf("%s: %s known: %v", name, what, known)
			} else if known {
				if diff := d - time.Duration(*want*float64(time.Millisecond)); diff.Abs() > time.Millisecond {
					t.Errorf("%s: %s is %v, want %v ms", name, what, d, *want)
				}
			}
		}
		within("first token", rec.Instants.FirstToken, want.First)
		within("last token", rec.Instants.LastToken, want.Last)
		if got, _ := rec.ContentEvents.Get(); got != want.Events {
			t.Errorf("%s: %d content events, want %d", name, got, want.Events)
		}
		if got, known := rec.Output.Get(); known != (want.Output != nil) || known && got != *want.Output {
			t.Errorf("%s: %d output tokens (known %v)", name, got, known)
		}
		outcome := call.Completed
		if strings.Contains(name, "ERROR") {
			outcome = call.StreamError
		}
		if rec.Outcome != outcome {
			t.Errorf("%s: outcome %s", name, rec.Outcome)
		}
	}
}
