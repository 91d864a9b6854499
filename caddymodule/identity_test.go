package caddymodule

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sample is one case of the wire corpus.
type sample struct {
	File    string            `json:"file"`
	Dialect string            `json:"dialect"`
	Headers map[string]string `json:"headers"`
	Splits  []int             `json:"splits"`
	Expect  struct {
		Outcome string `json:"outcome"`
	} `json:"expect"`

	body []byte
}

const wireDir = "../internal/dialect/testdata/wire"

func samples(t *testing.T) []sample {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(wireDir, "corpus.json"))
	if err != nil {
		t.Fatal(err)
	}
	var corpus struct{ Cases []sample }
	if err := json.Unmarshal(b, &corpus); err != nil {
		t.Fatal(err)
	}
	for i, c := range corpus.Cases {
		if corpus.Cases[i].body, err = os.ReadFile(filepath.Join(wireDir, c.File)); err != nil {
			t.Fatal(err)
		}
	}
	if len(corpus.Cases) < 80 {
		t.Fatalf("only %d samples", len(corpus.Cases))
	}
	return corpus.Cases
}

// ask returns the path and body of a request that a sample answers.
func (c *sample) ask() (path, body string) {
	const msg = `"model":"m1","messages":[{"role":"user","content":"hello"}]`
	switch strings.TrimSuffix(c.Dialect, ".json") {
	case "openai.completions":
		return "/v1/completions", `{"model":"m1","prompt":"hello","stream":true}`
	case "openai.responses":
		return "/v1/responses", `{"model":"m1","input":"hello","stream":true}`
	case "openai.embeddings":
		return "/v1/embeddings", `{"model":"m1","input":"hello"}`
	case "openai.speech":
		return "/v1/audio/speech", `{"model":"m1","input":"hello","stream_format":"sse"}`
	case "anthropic.messages":
		return "/v1/messages", `{` + msg + `,"max_tokens":64,"stream":` + strconv.FormatBool(!strings.HasSuffix(c.Dialect, ".json")) + `}`
	case "ollama.chat":
		return "/api/chat", `{` + msg + `}`
	case "sglang.generate":
		return "/generate", `{"text":"hello","stream":` + strconv.FormatBool(!strings.HasSuffix(c.Dialect, ".json")) + `}`
	case "tgi.generate_stream":
		return "/generate_stream", `{"inputs":"hello"}`
	case "llamacpp.completion":
		return "/completion", `{"prompt":"hello","stream":true}`
	case "cohere.rerank":
		return "/v1/rerank", `{"model":"m1","query":"q","documents":["a"]}`
	case "gemini.native":
		return "/v1beta/models/m1:streamGenerateContent?alt=sse", `{"contents":[]}`
	}
	return "/v1/chat/completions", `{` + msg + `,"stream":` + strconv.FormatBool(!strings.HasSuffix(c.Dialect, ".json")) + `}`
}

func (c *sample) contentType() string {
	switch {
	case c.Headers["Content-Type"] != "":
		return c.Headers["Content-Type"]
	case strings.HasPrefix(c.Dialect, "ollama"):
		return "application/x-ndjson"
	case strings.HasSuffix(c.File, ".json"):
		return "application/json"
	}
	return "text/event-stream"
}

// answerSamples serves each sample's bytes, cut at its splits, by number in the
// header X-Case, and keeps the header of the request it saw.
func answerSamples(cases []sample, saw func(http.Header)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		saw(r.Header.Clone())
		n, _ := strconv.Atoi(r.Header.Get("X-Case"))
		c := cases[n]
		for k, v := range c.Headers {
			w.Header().Set(k, v)
		}
		w.Header().Set("Content-Type", c.contentType())
		w.Header().Set("Date", "Mon, 30 Nov 2026 00:00:00 GMT")
		w.Header().Set("X-Ratelimit-Remaining-Tokens", "7")
		control := http.NewResponseController(w)
		at := 0
		for _, cut := range append(slices.Sorted(slices.Values(c.Splits)), len(c.body)) {
			if cut > at {
				_, _ = w.Write(c.body[at:cut])
				_ = control.Flush()
				at = cut
			}
		}
	})
}

// TestByteIdentity sends every sample directly and through the gateway, over
// each protocol, alone and under encode gzip, and compares bodies and headers
// with those of the same site without weir.
func TestByteIdentity(t *testing.T) {
	cases := samples(t)
	headers := make(chan http.Header, 1)
	up := serve(t, answerSamples(cases, func(h http.Header) { headers <- h }))
	metered, bare := newSite(t), newSite(t)
	meteredGzip, bareGzip := newSite(t), newSite(t)
	proxy := "reverse_proxy " + up
	run := start(t, "", metered.block("weir\n"+proxy)+bare.block(proxy)+
		meteredGzip.block("encode gzip\nweir\n"+proxy)+bareGzip.block("encode gzip\n"+proxy))

	run.awaitCertificate(metered)

	direct := client(t, "http/1.1")
	for _, protocol := range protocols {
		c := client(t, protocol)
		for _, encode := range []bool{false, true} {
			with, without := metered, bare
			if encode {
				with, without = meteredGzip, bareGzip
			}
			name := fmt.Sprintf("%s/encode=%v", protocol, encode)
			for i, s := range cases {
				path, body := s.ask()
				runID := fmt.Sprintf("identity-%s-%v-%d", strings.ReplaceAll(protocol, "/", ""), encode, i)
				fetch := func(c *http.Client, url string) ([sha256.Size]byte, http.Header, http.Header) {
					r := post(context.Background(), t, url, runID, body)
					r.Header.Set("X-Case", strconv.Itoa(i))
					r.Header.Set("User-Agent", "identity")
					compressed := s.Headers["Content-Encoding"] != ""
					if encode || compressed { // without it bare Caddy asks for gzip and unpacks
						r.Header.Set("Accept-Encoding", "gzip")
					}
					res, err := c.Do(r)
					if err != nil {
						t.Fatalf("%s %s: %v", name, s.File, err)
					}
					defer res.Body.Close()
					got, err := io.ReadAll(res.Body)
					if err != nil {
						t.Fatalf("%s %s: %v", name, s.File, err)
					}
					if res.Header.Get("Content-Encoding") == "gzip" && !compressed {
						if len(s.body) == 0 {
							got = nil // encode itself may flush a gzip header before it knows of the empty body
						} else {
							got = gunzip(t, name+" "+s.File, got)
						}
					}
					return sha256.Sum256(got), res.Header, <-headers
				}
				want, _, _ := fetch(direct, "http://"+up+path)
				if want != sha256.Sum256(s.body) {
					t.Fatalf("%s: the upstream of this test does not send the sample", s.File)
				}
				bareSum, bareAnswer, bareAsked := fetch(c, without.url(protocol, path))
				gotSum, gotAnswer, gotAsked := fetch(c, with.url(protocol, path))
				if gotSum != want || bareSum != want {
					t.Errorf("%s %s: body differs (weir same: %v, bare same: %v)", name, s.File, gotSum == want, bareSum == want)
				}
				if !encode || len(s.body) > 0 {
					diffHeaders(t, name+" "+s.File+" answer", bareAnswer, gotAnswer, "Alt-Svc")
				}
				// The one header that a request may gain: without it the
				// transport would ask for gzip and unpack it by itself.
				if !encode && s.Headers["Content-Encoding"] == "" {
					if gotAsked.Get("Accept-Encoding") != "identity" {
						t.Errorf("%s %s: upstream was asked for %q", name, s.File, gotAsked.Get("Accept-Encoding"))
					}
					gotAsked.Del("Accept-Encoding")
					bareAsked.Del("Accept-Encoding")
				}
				diffHeaders(t, name+" "+s.File+" request", bareAsked, gotAsked, "X-Forwarded-Host")
				if rec := run.record(runID); string(rec.Outcome) != s.Expect.Outcome {
					t.Errorf("%s %s: outcome %s, want %s (%s)", name, s.File, rec.Outcome, s.Expect.Outcome, rec.Error)
				}
			}
		}
	}
}

// diffHeaders reports every difference but for names that differ between any
// two sites.
func diffHeaders(t *testing.T, what string, want, got http.Header, but ...string) {
	t.Helper()
	for _, h := range []http.Header{want, got} {
		for _, name := range but {
			h.Del(name)
		}
	}
	for name, w := range want {
		if !slices.Equal(w, got[name]) {
			t.Errorf("%s: header %s is %q, without weir %q", what, name, got[name], w)
		}
	}
	for name, g := range got {
		if _, there := want[name]; !there {
			t.Errorf("%s: header %s: %q only with weir", what, name, g)
		}
	}
}

// TestLockstep: chunk n+1 is sent only after the client has chunk n, so that a
// gateway that holds anything back never ends.
func TestLockstep(t *testing.T) {
	const chunks = 50
	next := make(chan struct{})
	up := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", r.Header.Get("X-Type"))
		control := http.NewResponseController(w)
		for i := range chunks {
			_, _ = io.WriteString(w, chunk(i))
			_ = control.Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
	}))
	plain, gzip, injects, h2cUp := newSite(t), newSite(t), newSite(t), newSite(t)
	run := start(t, "", plain.block("log\nweir\nreverse_proxy "+up)+
		gzip.block("encode gzip\nweir\nreverse_proxy "+up)+
		injects.block("weir {\nusage_policy inject_and_strip\n}\nreverse_proxy "+up)+
		h2cUp.block("weir\nreverse_proxy h2c://"+up))
	run.awaitCertificate(plain)
	for _, protocol := range protocols {
		c := client(t, protocol)
		for name, s := range map[string]site{"plain": plain, "encode": gzip, "strip": injects, "h2c upstream": h2cUp} {
			for _, mediaType := range []string{"text/event-stream", "application/x-ndjson"} {
				// A gateway that holds a chunk back would wait for ever: the
				// deadline only turns that into a failure.
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				r := post(ctx, t, s.url(protocol, "/v1/chat/completions"), "lockstep", `{"model":"m","stream":true,"messages":[]}`)
				r.Header.Set("X-Type", mediaType)
				if name == "encode" {
					r.Header.Set("Accept-Encoding", "gzip")
				}
				res, err := c.Do(r)
				if err != nil {
					t.Fatalf("%s %s: %v", protocol, name, err)
				}
				var body io.Reader = res.Body
				if res.Header.Get("Content-Encoding") == "gzip" {
					body = gunzipReader(t, res.Body)
				}
				for i := range chunks {
					want := chunk(i)
					got := make([]byte, len(want))
					if _, err := io.ReadFull(body, got); err != nil || string(got) != want {
						t.Fatalf("%s %s %s: chunk %d: %q, %v", protocol, name, mediaType, i, got, err)
					}
					next <- struct{}{}
				}
				res.Body.Close()
				cancel()
			}
		}
	}
}

func chunk(i int) string {
	return fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%d\"},\"finish_reason\":null}]}\n\n", i)
}

func gunzip(t *testing.T, what string, b []byte) []byte {
	t.Helper()
	plain, err := io.ReadAll(gunzipReader(t, bytes.NewReader(b)))
	if err != nil {
		t.Fatalf("%s: %v (%d bytes)", what, err, len(b))
	}
	return plain
}
