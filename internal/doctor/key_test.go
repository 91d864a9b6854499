package doctor

import (
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/sim"
)

const goodKey = "weir-test-0123456789abcdef"

// locked is an engine that takes one key in one header.
func locked(t *testing.T, header, value string, status int) string {
	t.Helper()
	engine := start(t, quick(sim.VLLM))
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(header) != value && r.Method != http.MethodHead {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"error":{"message":"no","type":"invalid_request_error","code":"invalid_api_key"}}`)
			return
		}
		engine.ServeHTTP(w, r)
	})) + "/v1"
}

// jwt is a token as identity providers make them.
func jwt() string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + part([]byte(`{"sub":"someone"}`)) + "." + part([]byte("signature-of-it"))
}

func TestKey(t *testing.T) {
	bearer := locked(t, "Authorization", "Bearer "+goodKey, 401)
	forbidden := locked(t, "Authorization", "Bearer "+goodKey, 403)
	apiKey := locked(t, "X-Api-Key", goodKey, 401)
	azure := locked(t, "Api-Key", goodKey, 401)
	for _, c := range []struct {
		name, base, key string
		api             endpoint.API
		level           Level
		parts           []string
	}{
		{"good", bearer, goodKey, "", Green, []string{"takes the key"}},
		{"none", bearer, "", "", Red, []string{"none is given (401)", "invalid_api_key", "set TEST_KEY", "--key-env TEST_KEY"}},
		{"none, 403", forbidden, "", "", Red, []string{"without a key (403)", "set TEST_KEY"}},
		{"wrong", bearer, "weir-test-another-one-0123", "", Red, []string{"does not take the key (401)", "Authorization: Bearer <key>", "without the word Bearer", "not revoked"}},
		{"of another provider", bearer, "sk-ant-api03-abcdefghijklmnop", "", Red, []string{"a key of Anthropic", "of this endpoint"}},
		{"blank before", bearer, " " + goodKey, "", Yellow, []string{"white space", "set TEST_KEY again, without it"}},
		{"newline", bearer, goodKey + "\n", "", Red, []string{"line break", "takes it without", "tr -d"}},
		{"newline, and wrong", bearer, "weir-test-another-one\r\n", "", Red, []string{"line break", "without, either", "check that it is of this endpoint"}},
		{"quotes", bearer, `"` + goodKey + `"`, "", Red, []string{"quotes", "takes it without", "without them"}},
		{"Bearer", bearer, "Bearer " + goodKey, "", Red, []string{"the word Bearer", "to the key alone"}},
		{"header line", bearer, "Authorization: Bearer " + goodKey, "", Red, []string{"a header's name", "to the key alone"}},
		{"invisible", bearer, "\ufeff" + goodKey, "", Red, []string{"invisible", "copied anew"}},
		{"line break within", bearer, "weir-test\n0123456789", "", Red, []string{"line break or another control character within", "as one line"}},
		{"typographic", bearer, "weir–test–0123456789", "", Red, []string{"typographic", "copied anew"}},
		{"only blanks", bearer, " \n", "", Red, []string{"is blank"}},
		{"placeholder", bearer, "sk-...", "", Red, []string{"placeholder", "set TEST_KEY to a key"}},
		{"placeholder in words", bearer, "<your-api-key>", "", Red, []string{"placeholder"}},
		{"token of Claude", bearer, "sk-ant-oat01-abcdefghijklmnop", "", Red, []string{"OAuth token", "API key at the provider's console"}},
		{"JWT", bearer, jwt(), "", Red, []string{"OAuth token"}},
		{"not allowed", forbidden, "weir-test-another-one-0123", "", Red, []string{"403", "invalid_api_key", "what the key may use"}},
		{"header of Anthropic", apiKey, goodKey, endpoint.Chat, Red, []string{"in the header x-api-key", "--api"}},
		{"header of Azure", azure, goodKey, endpoint.Chat, Red, []string{"in the header api-key"}},
		{"header of OpenAI", bearer, goodKey, endpoint.Messages, Red, []string{"in the header Authorization: Bearer"}},
		{"Anthropic", apiKey, goodKey, endpoint.Messages, Green, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := of(c.base)
			cfg.Key, cfg.API = c.key, c.api
			findings := run(t, cfg)
			want(t, findings, "key", c.level, c.parts...)
			if !strings.Contains(find(t, findings, "key").Detail, "go on like that") && c.level == Red {
				want(t, findings, "answer", Grey, "not checked because")
			}
			if c.level != Red {
				want(t, findings, "answer", Green)
			}
		})
	}
}

// TestNoKeyNamed: where no variable was named, the flag that names one is.
func TestNoKeyNamed(t *testing.T) {
	for _, status := range []int{401, 403} {
		cfg := of(locked(t, "Authorization", "Bearer "+goodKey, status))
		cfg.KeyName = ""
		want(t, run(t, cfg), "key", Red, "--key-env VARIABLE")
	}
}

// TestNoKeyNeeded: a placeholder is all right where nobody looks at it.
func TestNoKeyNeeded(t *testing.T) {
	base := engineAt(t, quick(sim.VLLM))
	for _, key := range []string{"", "EMPTY"} {
		cfg := of(base)
		cfg.Key = key
		want(t, run(t, cfg), "key", Green)
	}
}

func TestBareKey(t *testing.T) {
	for key, want := range map[string]string{
		"":                            "",
		"abc":                         "abc",
		" abc\n":                      "abc",
		`"abc"`:                       "abc",
		"'abc' ":                      "abc",
		"Bearer abc":                  "abc",
		"bearer  abc":                 "abc",
		"Authorization: Bearer 'abc'": "abc",
		"x-api-key:abc":               "abc",
		"\ufeff\u200babc\u00a0":       "abc",
		"a b":                         "a b",
		`"abc`:                        `"abc`,
		`""`:                          "",
		"Bearer Bearer abc":           "abc",
		"bearerabc":                   "bearerabc",
	} {
		if got := bareKey(key); got != want {
			t.Errorf("bareKey(%q) = %q, want %q", key, got, want)
		}
		if again := bareKey(bareKey(key)); again != want {
			t.Errorf("bareKey twice of %q = %q, want %q", key, again, want)
		}
	}
}

func FuzzBareKey(f *testing.F) {
	for _, key := range []string{"", `"Bearer x"`, "\xff'", "Authorization:x-api-key: \" \""} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		bare := bareKey(key)
		if !strings.Contains(key, bare) || bareKey(bare) != bare {
			t.Errorf("bareKey(%q) = %q", key, bare)
		}
		flawOf(key)
	})
}

func TestKinds(t *testing.T) {
	for key, want := range map[string]bool{"sk-...": true, "YOUR_API_KEY": true, "$OPENAI_API_KEY": true, "changeme": true, "sk-xxxxxxxx": true, "EMPTY": true,
		"sk-proj-Ab3dEf6hIj9lMn2p": false, "weir-test-0123": false, goodKey: false} {
		if got := isPlaceholder(key); got != want {
			t.Errorf("isPlaceholder(%q) = %v", key, got)
		}
	}
	for key, want := range map[string]bool{jwt(): true, "ya29.a0Af": true, "sk-ant-oat01-x": true, "sk-ant-api03-x": false, "a.b.c": false, "x.y": false, "": false} {
		if got := isOAuth(key); got != want {
			t.Errorf("isOAuth(%q) = %v", key, got)
		}
	}
}
