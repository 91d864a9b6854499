package gateway

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/call"
)

// The cases below are what other gateways got wrong in public when they passed
// an answer on. The name says where it was reported.

// lockstep sends pieces one by one, each only after the client has had the one
// before: a gateway that holds anything back never comes to the end. It returns
// what the upstream was asked, and the call's record.
func lockstep(t *testing.T, options Options, ask, mediaType string, pieces []string, want func(i int) string) (asked string, rec *call.Record) {
	t.Helper()
	next := make(chan struct{})
	body := make(chan []byte, 1)
	g := newRig(t, func(c net.Conn, _ *http.Request, b []byte) {
		body <- b
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n", mediaType)
		for _, p := range pieces {
			fmt.Fprintf(c, "%x\r\n%s\r\n", len(p), p)
			<-next
		}
		_, _ = io.WriteString(c, "0\r\n\r\n")
	})
	g.options = options
	r, _ := http.NewRequest("POST", "http://"+g.address+"/v1/chat/completions", strings.NewReader(ask))
	res, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for i := range pieces {
		got := make([]byte, len(want(i)))
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != want(i) {
			t.Fatalf("piece %d: %q, %v; want %q", i, got, err, want(i))
		}
		next <- struct{}{}
	}
	if rest, err := io.ReadAll(res.Body); err != nil || len(rest) > 0 {
		t.Errorf("at the end: %q, %v", rest, err)
	}
	return string(<-body), g.record()
}

func TestPublicCases(t *testing.T) {
	frames := []string{stripToken, stripToken, stripToken, stripFinish, stripUsage, stripDone}
	same := func(pieces []string) func(int) string { return func(i int) string { return pieces[i] } }
	completed := func(t *testing.T, rec *call.Record) {
		t.Helper()
		if rec.Outcome != call.Completed || rec.ContentEvents.Or(0) == 0 {
			t.Errorf("%s %q, %v content events", rec.Outcome, rec.Error, rec.ContentEvents)
		}
	}
	for name, run := range map[string]func(t *testing.T){
		"5 a frame does not wait for the next one (new-api 7005)": func(t *testing.T) {
			_, rec := lockstep(t, Options{}, askStream, "text/event-stream", frames, same(frames))
			completed(t, rec)
		},
		"9 a role alone passes (bifrost 6523)": func(t *testing.T) {
			role := "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n"
			pieces := append([]string{role}, frames...)
			_, rec := lockstep(t, Options{}, askStream, "text/event-stream", pieces, same(pieces))
			completed(t, rec)
		},
		"10 content with a finish reason stays one frame (bifrost 5604)": func(t *testing.T) {
			pieces := []string{strings.Replace(stripToken, "null}],", `"stop"}],`, 1), stripDone}
			_, rec := lockstep(t, Options{}, askStream, "text/event-stream", pieces, same(pieces))
			completed(t, rec)
		},
		"11 nothing is held to the end, whatever the type (bifrost 4542)": func(t *testing.T) {
			for _, mediaType := range []string{"text/event-stream", "application/x-ndjson", "application/json", "text/plain", "application/octet-stream"} {
				_, rec := lockstep(t, Options{}, askStream, mediaType, frames, same(frames))
				if rec.BytesOut != int64(len(strings.Join(frames, ""))) {
					t.Errorf("%s: %d bytes", mediaType, rec.BytesOut)
				}
			}
			var bytewise []string
			for _, b := range []byte(stripToken + stripFinish + stripDone) {
				bytewise = append(bytewise, string(b))
			}
			_, rec := lockstep(t, Options{}, askStream, "text/event-stream", bytewise, same(bytewise))
			completed(t, rec)
		},
		"12 comments pass verbatim and at once (llm-gateway 2053)": func(t *testing.T) {
			pieces := []string{": PROCESSING\n\n", ":\n", ": PROCESSING\r\n\r\n", stripToken, ": ping\n\n", stripFinish, ": ping\n\n", stripUsage, stripDone}
			_, rec := lockstep(t, Options{}, askStream, "text/event-stream", pieces, same(pieces))
			completed(t, rec)
			if rec.FirstContentEvent != call.Known(0) || rec.ParseErrors != 0 {
				t.Errorf("first content event %v, %d parse errors", rec.FirstContentEvent, rec.ParseErrors)
			}
		},
		"12 comments pass at once while the usage event is kept back": func(t *testing.T) {
			pieces := []string{": PROCESSING\n\n", stripToken, stripFinish, ": ping\n\n", stripUsage, ": ping\n\n", stripDone}
			_, rec := lockstep(t, Options{Usage: InjectAndStrip}, askStream, "text/event-stream", pieces, func(i int) string {
				if pieces[i] == stripUsage {
					return ""
				}
				return pieces[i]
			})
			completed(t, rec)
			if rec.Output != call.Known(1) || len(rec.Degraded) > 0 {
				t.Errorf("%v tokens, degraded %v", rec.Output, rec.Degraded)
			}
		},
		"14 nothing is injected into silence or data (llmgateway 2334)": func(t *testing.T) {
			for _, policy := range []UsagePolicy{"", Passthrough, Inject} {
				pieces := []string{"", stripToken, "\n\n\n", stripDone, "data: after the end\n\n"}
				asked, rec := lockstep(t, Options{Usage: policy}, askStream, "text/event-stream", pieces[1:], same(pieces[1:]))
				completed(t, rec)
				if policy != Inject && asked != askStream {
					t.Errorf("%q: the upstream was asked %s", policy, asked)
				}
			}
		},
		"19 any framing to any client (gateway-api-inference-extension 2993)": func(t *testing.T) {
			whole := strings.Join(frames, "")
			for head, body := range map[string]string{
				"Transfer-Encoding: chunked\r\nKeep-Alive: timeout=5": fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(whole), whole),
				fmt.Sprintf("Content-Length: %d", len(whole)):         whole,
				"Connection: close": whole,
			} {
				for _, version := range []string{"HTTP/1.0", "HTTP/1.1"} {
					g := newRig(t, func(c net.Conn, _ *http.Request, _ []byte) {
						fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%s\r\n\r\n%s", head, body)
					})
					c := g.dial()
					fmt.Fprintf(c, "POST /v1/chat/completions %s\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", version, len(askStream), askStream)
					raw, err := io.ReadAll(c)
					c.Close()
					header, got, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
					if bytes.Contains(header, []byte("chunked")) {
						got = dechunk(t, got)
					}
					if err != nil || string(got) != whole || bytes.Contains(header, []byte("Keep-Alive")) {
						t.Errorf("%s, %s: %q %q, %v", version, head, header, got, err)
					}
					completed(t, g.record())
				}
			}
		},
		"20 each piece is flushed through writers around it (caddy 6293)": func(t *testing.T) {
			g := New(new(counted))
			w := &flushes{header: http.Header{}}
			g.call(w, chat("x", 5, ""), func(w http.ResponseWriter, _ *http.Request) error {
				w.Header().Set("Content-Type", "text/event-stream")
				for _, f := range frames {
					_, _ = io.WriteString(w, f) // a proxy that flushes late, or never
				}
				return nil
			})
			if !slices.Equal(w.out, frames) {
				t.Errorf("flushed in pieces %q", w.out)
			}
		},
		"30 the client's own word on usage stands (headroom 2026)": func(t *testing.T) {
			for _, word := range []string{`{"include_usage":false}`, `{"include_usage":true}`, `{"include_usage":null}`} {
				ask := strings.Replace(askStream, `"stream":true`, `"stream":true,"stream_options":`+word, 1)
				for _, policy := range []UsagePolicy{Passthrough, Inject, InjectAndStrip} {
					if policy != Passthrough && strings.Contains(word, "null") {
						continue // says nothing: it may be asked for
					}
					asked, rec := lockstep(t, Options{Usage: policy}, ask, "text/event-stream", frames, same(frames))
					completed(t, rec)
					if asked != ask {
						t.Errorf("%s under %s: the upstream was asked %s", word, policy, asked)
					}
				}
			}
		},
	} {
		t.Run(name, run)
	}
}

func dechunk(t *testing.T, b []byte) (body []byte) {
	t.Helper()
	for {
		var size int
		line, rest, ok := bytes.Cut(b, []byte("\r\n"))
		if _, err := fmt.Sscanf(string(line), "%x", &size); !ok || err != nil {
			t.Fatalf("chunk size %q: %v", line, err)
		}
		if size == 0 {
			return body
		}
		body = append(body, rest[:size]...)
		b = rest[size+2:]
	}
}

// flushes is a writer that hands on what it has only when it is flushed, as one
// that compresses does.
type flushes struct {
	header http.Header
	held   []byte
	out    []string
}

func (f *flushes) Header() http.Header         { return f.header }
func (f *flushes) WriteHeader(int)             {}
func (f *flushes) Write(b []byte) (int, error) { f.held = append(f.held, b...); return len(b), nil }
func (f *flushes) Flush()                      { f.out = append(f.out, string(f.held)); f.held = nil }
