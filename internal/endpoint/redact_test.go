package endpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestKeyIsNotShown: a server that repeats the key everywhere does not bring it
// into anything that is kept or shown.
func TestKeyIsNotShown(t *testing.T) {
	event := `data: {"id":"KEY","model":"KEY","choices":[{"index":0,"delta":{"content":"KEY"},"finish_reason":"KEY"}]}` + "\n\n"
	second := `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"},{"index":1,"delta":{},"finish_reason":"KEY"}]}` + "\n\n"
	cases := []struct {
		name, kind, body string
		status           int
		failed           Kind
	}{
		{"refused", jsonKind, `{"error":{"message":"no key KEY","type":"KEY","code":"KEY"}}`, 401, FailedAuth},
		{"page", htmlKind, "<p>KEY", 200, FailedShape},
		{"error in a stream", "text/event-stream", event + `data: {"error":{"message":"KEY","code":"KEY"}}` + "\n\n", 200, FailedStream},
		{"cut off", "text/event-stream", strings.ReplaceAll(event, `"finish_reason":"KEY"`, `"finish_reason":null`), 200, FailedTruncated},
		{"fine", "text/event-stream", event + "data: [DONE]\n\n", 200, ""},
		{"several choices", "text/event-stream", event + second + "data: [DONE]\n\n", 200, ""},
		{"redirect", jsonKind, "", 308, FailedShape},
	}
	for _, c := range cases {
		for _, keep := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", c.name, keep), func(t *testing.T) {
				client := handled(t, func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", c.kind)
					w.Header().Set("X-Echo", r.Header.Get("Authorization"))
					w.Header().Set("Location", "https://other.test/"+testKey)
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, strings.ReplaceAll(c.body, "KEY", testKey))
				}, Config{KeepBody: keep})
				r := client.Call(t.Context(), Chat, bodyOf(t, plainAsk(Chat, 5)), "k", nil)
				if r.Failed != c.failed {
					t.Fatalf("%q: %v", r.Failed, r.Err)
				}
				record, err := json.Marshal(r.Record)
				if err != nil {
					t.Fatal(err)
				}
				shows(t, "the record", string(record))
				shows(t, "the header", fmt.Sprint(r.Header))
				shows(t, "the body", string(r.Body))
				for err := r.Err; err != nil; err = errors.Unwrap(err) {
					shows(t, "the error", fmt.Sprintf("%v %+v", err, err))
				}
				if got := r.Header.Get("X-Echo"); got != "Bearer [key]" {
					t.Errorf("the header is %q", got)
				}
				if keep && c.body != "" && !strings.Contains(string(r.Body), redacted) {
					t.Errorf("the body is %s", r.Body)
				}
			})
		}
	}
}

// TestSecretHead: no part of a key stands at the end of a body that is cut,
// wherever the cut falls.
func TestSecretHead(t *testing.T) {
	const n = 100
	key := secret(testKey)
	for before := range n + 2*len(key) {
		for _, text := range []string{
			strings.Repeat("x", before) + testKey + strings.Repeat("y", 200),
			strings.Repeat("x", before) + testKey + testKey + testKey,
			testKey + strings.Repeat("x", before) + testKey,
			strings.Repeat("x", before) + testKey,
		} {
			kept := text[:min(len(text), n+len(key))] // as a reading keeps it
			got := string(key.head([]byte(kept), n))
			if strings.Contains(got, testKey[:leastSecret]) {
				t.Fatalf("%s became %s", text, got)
			}
			if before > n && !strings.HasPrefix(text, testKey) && got != text[:n] {
				t.Fatalf("%s became %s", text, got)
			}
		}
	}
	if got := secret("-").text("a-b"); got != "a-b" {
		t.Errorf("a placeholder was taken out: %s", got)
	}
	if got := string(secret("").head([]byte("abc"), 2)); got != "ab" {
		t.Errorf("without a key: %s", got)
	}
}

// TestBodyIsBounded: of a large answer only the beginning is kept.
func TestBodyIsBounded(t *testing.T) {
	for _, keep := range []bool{false, true} {
		client := handled(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusBadGateway)
			for range 100 {
				_, _ = io.WriteString(w, strings.Repeat("z", 10_000))
			}
		}, Config{KeepBody: keep, KeepReads: true})
		r := client.Call(t.Context(), Chat, bodyOf(t, plainAsk(Chat, 5)), "b", nil)
		want := maxFailedBody
		if keep {
			want = maxKeptBody
		}
		if len(r.Body) != want || r.Record.BytesOut != 1_000_000 || r.Failed != FailedServer {
			t.Errorf("%d bytes of %d kept, want %d: %v", len(r.Body), r.Record.BytesOut, want, r.Err)
		}
	}
}
