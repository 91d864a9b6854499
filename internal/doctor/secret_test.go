package doctor

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/weirgate/weir/internal/endpoint"
)

// echoes are the forms in which servers repeat what they were given.
func echoes(key string) []string {
	key = strings.TrimSpace(key)
	return []string{
		key, strings.ToUpper(key), "Bearer " + key, fmt.Sprintf("%q", key), html.EscapeString(key),
		base64.StdEncoding.EncodeToString([]byte(key)), base64.URLEncoding.EncodeToString([]byte("x:" + key)),
		base64.StdEncoding.EncodeToString([]byte("Bearer " + key)), url.QueryEscape(key), url.PathEscape(key), fmt.Sprintf("%x", key),
	}
}

// reveals says in which form a text shows a key, "" when it does not. It finds
// out in ways of its own: by undoing, where that can be undone.
func reveals(text, key string) string {
	for _, k := range []string{key, strings.TrimSpace(key), bareKey(key)} {
		if len(k) < leastSecret {
			continue
		}
		k = strings.ToLower(k)
		undone := map[string]string{"plain": text, "html": html.UnescapeString(text)}
		if u, err := url.QueryUnescape(escapable.ReplaceAllString(text, "")); err == nil {
			undone["query"] = u
		}
		if u, err := url.PathUnescape(escapable.ReplaceAllString(text, "")); err == nil {
			undone["path"] = u
		}
		for form, u := range undone {
			if strings.Contains(strings.ToLower(u), k) {
				return form
			}
		}
		for _, word := range words.FindAllString(text, -1) {
			if b, err := hex.DecodeString(word[:len(word)/2*2]); err == nil && strings.Contains(strings.ToLower(string(b)), k) {
				return "hex"
			}
			word = strings.NewReplacer("-", "+", "_", "/").Replace(word)
			for cut := range min(4, len(word)) { // words may stick together
				w := word[cut:]
				if len(w)%4 == 1 {
					w = w[:len(w)-1]
				}
				if b, err := base64.RawStdEncoding.DecodeString(w); err == nil && strings.Contains(strings.ToLower(string(b)), k) {
					return "base64"
				}
			}
		}
	}
	return ""
}

var (
	words     = regexp.MustCompile(`[A-Za-z0-9+/_-]{8,}`)
	escapable = regexp.MustCompile(`%($|[^0-9A-Fa-f]|[0-9A-Fa-f]($|[^0-9A-Fa-f]))`)
)

func TestReveals(t *testing.T) {
	for _, key := range secretKeys {
		for _, echo := range echoes(key) {
			if reveals("a "+echo+" b", key) == "" && !strings.Contains(echo, `\`) {
				t.Errorf("%q is not found to show the key", echo)
			}
		}
	}
	if form := reveals("an innocent text of 100% nothing, eyJhbGciOi", secretKeys[0]); form != "" {
		t.Errorf("an innocent text shows the key as %s", form)
	}
}

var secretKeys = []string{
	"sk-Ab3dEf6hIj9lMn2pQr5t",
	`k+/=&%20"<q>'w\x41y z`,
	" weir_0123456789abcdefXYZ\n",
	`"Bearer quoted-Key-0123456789"`,
	"your-api-key-0123456789",
	"sk-ant-oat01-abcdefghijklmnop",
	"hunter22",
}

// revealing is a server that repeats its caller's key wherever it can; mode says
// what else it does.
func revealing(key string, mode int) http.HandlerFunc {
	all := strings.Join(echoes(key), " ")
	header := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, all)
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_' {
			return r
		}
		return -1
	}, key)
	quoted := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			return `""`
		}
		return string(b)
	}
	one := quoted(strings.TrimSpace(key))
	failure := fmt.Sprintf(`{"error":{"message":%s,"type":%s,"code":%s,"param":%s},"id":%s}`, quoted("model not found "+all+answerText+prompt), one, one, one, one)
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		for _, n := range []string{"Server", "Via", "Retry-After", "X-Request-Id", "Www-Authenticate", "X-Ratelimit-Limit-Tokens"} {
			h.Set(n, header)
		}
		h.Set("X-Ratelimit-Limit-"+name, "10")
		h.Set("X-Ratelimit-Remaining-"+name, "0")
		h.Set("Content-Type", "application/json")
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		statuses := []int{0, 400, 401, 403, 404, 429, 500, 503, 307}
		if status := statuses[mode%len(statuses)]; status != 0 && (r.Method == http.MethodPost || mode >= len(statuses)) {
			h.Set("Location", "https://elsewhere.example/"+url.PathEscape(key)+"?key="+url.QueryEscape(key))
			w.WriteHeader(status)
			_, _ = io.WriteString(w, failure)
			return
		}
		switch {
		case strings.HasSuffix(r.URL.Path, "/weir/calls"):
			fmt.Fprintf(w, `{"calls":[{"request_id":%s,"outcome":%s,"degraded":[%s],"refused_by":%s}]}`, one, one, one, one)
		case strings.Contains(r.URL.Path, "/config/"):
			fmt.Fprintf(w, `{"a":[{"handler":"weir"},{"handler":"reverse_proxy","flush_interval":%s,"headers":{"request":{"set":{"Authorization":[%s]}}}}]}`, one, one)
		case strings.HasSuffix(r.URL.Path, "/metrics"):
			fmt.Fprintf(w, "# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total{a=%s} x%s\n", one, header)
		case r.Method != http.MethodPost:
			fmt.Fprintf(w, `{"data":[{"id":%s,"owned_by":%s}]}`, quoted(all), one)
		case bytes.Contains(body, []byte(`"stream":true`)):
			h.Set("Content-Type", "text/event-stream; k="+header)
			fmt.Fprintf(w, "event: %s\ndata: {\"id\":%s,\"model\":%s,\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n: %s\n\n", name, one, one, quoted(all), header)
			fmt.Fprintf(w, "data: %s\n\ndata: {\"choices\":[{\"index\":0,\"finish_reason\":%s}]}\n\ndata: [DONE]\n\n", failure, one)
		default:
			fmt.Fprintf(w, `{"id":%s,"model":%s,"choices":[{"index":0,"message":{"content":%s},"finish_reason":%s}]}`, one, one, quoted(all+answerText+prompt), one)
		}
	}
}

// answerText is what the model says, and nobody is to read.
const answerText = "the-words-of-the-model"

// TestNoSecretIsShown: whatever a server repeats, in whatever form, no finding
// shows the key, nor prompt or answer.
func TestNoSecretIsShown(t *testing.T) {
	for _, key := range secretKeys {
		for mode := range 18 {
			t.Run(fmt.Sprintf("%q %d", key, mode), func(t *testing.T) {
				t.Parallel()
				server := serve(t, revealing(key, mode))
				cfg := of(server + "/v1")
				cfg.Key, cfg.Admin, cfg.grace = key, server, time.Millisecond
				cfg.API = endpoint.APIs[mode%len(endpoint.APIs)]
				if mode%3 == 0 {
					cfg.Model = "m"
				}
				if mode%5 == 0 {
					cfg.Metrics = server
				}
				findings := Run(t.Context(), cfg, nil)
				var text, coloured, program bytes.Buffer
				if err := Text(&text, findings, 0, false); err != nil {
					t.Fatal(err)
				}
				if err := Text(&coloured, findings, 999, true); err != nil {
					t.Fatal(err)
				}
				if err := JSON(&program, findings); err != nil {
					t.Fatal(err)
				}
				for _, out := range []string{text.String(), coloured.String(), program.String()} {
					if strings.Contains(out, answerText) || strings.Contains(out, prompt) {
						t.Fatalf("prompt or answer is shown:\n%s", out)
					}
					if form := reveals(out, key); form != "" {
						t.Fatalf("the key is shown (%s):\n%s", form, out)
					}
				}
			})
		}
	}
}

// TestSecretsOfAddresses: what stands in a base URL or a proxy's is as secret as a key.
func TestSecretsOfAddresses(t *testing.T) {
	secret := "hunter2hunter2"
	for _, base := range []string{"http://u:" + secret + "@127.0.0.1:1/v1", "http://127.0.0.1:1/v1?api_key=" + secret, "127.0.0.1:1/#" + secret, "ftp://" + secret} {
		cfg := of(base)
		cfg.Environ = environs("HTTP_PROXY", "http://u:"+secret+"@127.0.0.1:1", "NO_PROXY", "a b")
		var out bytes.Buffer
		if err := JSON(&out, Run(t.Context(), cfg, nil)); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), secret) {
			t.Errorf("%s is shown:\n%s", base, out.String())
		}
	}
	for _, base := range []string{"http://10.1.2.3:1/v1", "https://api.example.com"} {
		cfg := of(base)
		cfg.Environ = environs("HTTP_PROXY", "http://u:"+secret+"@127.0.0.1:1", "https_proxy", "socks5://u:"+secret+"@127.0.0.1:1", "NO_PROXY", secret+" b")
		var out bytes.Buffer
		if err := JSON(&out, Run(t.Context(), cfg, nil)); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), secret) {
			t.Errorf("with a proxy's password, %s:\n%s", base, out.String())
		}
	}
}

// TestForeign: texts from outside are short, of one line, and plain.
func TestForeign(t *testing.T) {
	var s secrets
	s.add("topsecretkey")
	for text, want := range map[string]string{
		"":                                "",
		"a\nb\tc\x1b[31md":                "a b c[31md",
		"x topsecretkey y":                "x [hidden] y",
		"x TopSecret\u200bKey":            "x [hidden]",
		"tops\x00ecretkey":                "[hidden]",
		strings.Repeat("é", 60):           strings.Repeat("é", 50) + "…",
		"\xff\xfe":                        "",
		strings.Repeat("x", 5000):         "(a text of 5000 bytes)",
		strings.Repeat("topsecretkey", 2): "[hidden][hidden]",
	} {
		if got := s.foreign(text); got != want {
			t.Errorf("foreign(%q) = %q, want %q", text, got, want)
		}
	}
	var short secrets
	short.add("x")
	short.add("")
	if got := short.foreign("mixtral"); got != "mixtral" {
		t.Errorf("a key of one letter tears a name apart: %q", got)
	}
}

func FuzzForeign(f *testing.F) {
	for _, key := range secretKeys {
		for _, echo := range echoes(key) {
			f.Add(key, echo)
		}
	}
	f.Fuzz(func(t *testing.T, key, text string) {
		var s secrets
		s.add(key)
		got := s.foreign(text)
		trimmed := strings.TrimSpace(key)
		if len(trimmed) >= leastSecret && !strings.Contains(hidden, lower(trimmed)) && strings.Contains(got, trimmed) {
			t.Errorf("foreign(%q) shows %q: %q", text, key, got)
		}
		if len(got) > maxForeign+len("…") || strings.ContainsAny(got, "\n\r\x1b") {
			t.Errorf("foreign(%q) = %q", text, got)
		}
	})
}
