package endpoint

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestParseBase: what people write, the URL it stands for, and where the list
// of models is looked for.
func TestParseBase(t *testing.T) {
	cases := []struct {
		text, want string
		models     string // the candidates, with a space between
		notes      int
	}{
		{"https://api.openai.com/v1", "https://api.openai.com/v1", "https://api.openai.com/v1/models https://api.openai.com/models", 0},
		{"https://api.openai.com/v1/", "https://api.openai.com/v1", "https://api.openai.com/v1/models https://api.openai.com/models", 0},
		{"https://api.openai.com", "https://api.openai.com", "https://api.openai.com/v1/models https://api.openai.com/models", 0},
		{"https://api.openai.com/", "https://api.openai.com", "https://api.openai.com/v1/models https://api.openai.com/models", 0},
		{"https://api.openai.com///", "https://api.openai.com", "https://api.openai.com/v1/models https://api.openai.com/models", 0},
		{"https://api.openai.com//v1//", "https://api.openai.com/v1", "https://api.openai.com/v1/models https://api.openai.com/models", 0},
		{"api.openai.com", "https://api.openai.com", "https://api.openai.com/v1/models https://api.openai.com/models", 1},
		{"api.openai.com/v1", "https://api.openai.com/v1", "https://api.openai.com/v1/models https://api.openai.com/models", 1},
		{"//api.openai.com/v1", "https://api.openai.com/v1", "https://api.openai.com/v1/models https://api.openai.com/models", 1},
		{"  https://api.openai.com/v1\n", "https://api.openai.com/v1", "https://api.openai.com/v1/models https://api.openai.com/models", 0},
		{`"https://api.openai.com/v1"`, "https://api.openai.com/v1", "https://api.openai.com/v1/models https://api.openai.com/models", 1},
		{"'api.openai.com'", "https://api.openai.com", "https://api.openai.com/v1/models https://api.openai.com/models", 2},
		{"HTTPS://API.OpenAI.com/v1", "https://api.openai.com/v1", "https://api.openai.com/v1/models https://api.openai.com/models", 0},
		{"https://api.openai.com/v1/v1", "https://api.openai.com/v1", "https://api.openai.com/v1/models https://api.openai.com/models", 1},
		{"https://api.openai.com/v1/v1/v1/", "https://api.openai.com/v1", "https://api.openai.com/v1/models https://api.openai.com/models", 1},
		{"https://api.openai.com/v1/chat/completions", "https://api.openai.com/v1", "https://api.openai.com/v1/models https://api.openai.com/models", 1},
		{"https://api.openai.com/v1/chat/completions/", "https://api.openai.com/v1", "https://api.openai.com/v1/models https://api.openai.com/models", 1},
		{"https://api.openai.com/v1/completions", "https://api.openai.com/v1", "https://api.openai.com/v1/models https://api.openai.com/models", 1},
		{"https://api.openai.com/v1/responses", "https://api.openai.com/v1", "https://api.openai.com/v1/models https://api.openai.com/models", 1},
		{"https://api.openai.com/v1/models", "https://api.openai.com/v1", "https://api.openai.com/v1/models https://api.openai.com/models", 1},
		{"https://api.openai.com/v1/v1/chat/completions", "https://api.openai.com/v1", "https://api.openai.com/v1/models https://api.openai.com/models", 2},
		{"https://api.openai.com/v1/chat/completions/chat/completions", "https://api.openai.com/v1", "https://api.openai.com/v1/models https://api.openai.com/models", 1},
		{"https://api.openai.com/v1/chat/completions/v1", "https://api.openai.com/v1", "https://api.openai.com/v1/models https://api.openai.com/models", 2},
		{"https://api.anthropic.com/v1/messages", "https://api.anthropic.com/v1", "https://api.anthropic.com/v1/models https://api.anthropic.com/models", 1},
		{"https://api.anthropic.com/v1/messages/count_tokens", "https://api.anthropic.com/v1", "https://api.anthropic.com/v1/models https://api.anthropic.com/models", 1},
		{"https://api.perplexity.ai/chat/completions", "https://api.perplexity.ai", "https://api.perplexity.ai/models https://api.perplexity.ai/v1/models", 1},
		{"https://taotoken.net/api", "https://taotoken.net/api", "https://taotoken.net/api/v1/models https://taotoken.net/api/models https://taotoken.net/v1/models", 0},
		{"https://taotoken.net/api/v1", "https://taotoken.net/api/v1", "https://taotoken.net/api/v1/models https://taotoken.net/api/models https://taotoken.net/v1/models", 0},
		{"https://taotoken.net/api/v1/chat/completions", "https://taotoken.net/api/v1", "https://taotoken.net/api/v1/models https://taotoken.net/api/models https://taotoken.net/v1/models", 1},
		{"https://api.groq.com/openai/v1", "https://api.groq.com/openai/v1", "https://api.groq.com/openai/v1/models https://api.groq.com/openai/models https://api.groq.com/v1/models", 0},
		{"https://api.groq.com/openai", "https://api.groq.com/openai", "https://api.groq.com/openai/v1/models https://api.groq.com/openai/models https://api.groq.com/v1/models", 0},
		{"https://generativelanguage.googleapis.com/v1beta/openai/", "https://generativelanguage.googleapis.com/v1beta/openai", "https://generativelanguage.googleapis.com/v1beta/openai/models https://generativelanguage.googleapis.com/v1beta/openai/v1/models https://generativelanguage.googleapis.com/v1/models", 0},
		{"https://open.bigmodel.cn/api/paas/v4", "https://open.bigmodel.cn/api/paas/v4", "https://open.bigmodel.cn/api/paas/v4/models https://open.bigmodel.cn/api/paas/v4/v1/models https://open.bigmodel.cn/v1/models", 0},
		{"https://open.bigmodel.cn/api/paas/v4/chat/completions", "https://open.bigmodel.cn/api/paas/v4", "https://open.bigmodel.cn/api/paas/v4/models https://open.bigmodel.cn/api/paas/v4/v1/models https://open.bigmodel.cn/v1/models", 1},
		{"https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/models https://openrouter.ai/api/models https://openrouter.ai/v1/models", 0},
		{"https://gateway.ai.example/v1/account/name/openai", "https://gateway.ai.example/v1/account/name/openai", "https://gateway.ai.example/v1/account/name/openai/models https://gateway.ai.example/v1/account/name/openai/v1/models https://gateway.ai.example/v1/models", 0},
		{"http://localhost:8000", "http://localhost:8000", "http://localhost:8000/v1/models http://localhost:8000/models", 0},
		{"localhost:8000", "http://localhost:8000", "http://localhost:8000/v1/models http://localhost:8000/models", 1},
		{"localhost", "http://localhost", "http://localhost/v1/models http://localhost/models", 1},
		{"llm.localhost:80", "http://llm.localhost:80", "http://llm.localhost:80/v1/models http://llm.localhost:80/models", 1},
		{"127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1/models http://127.0.0.1:8080/models", 1},
		{"10.1.2.3:30000", "http://10.1.2.3:30000", "http://10.1.2.3:30000/v1/models http://10.1.2.3:30000/models", 1},
		{"192.168.1.20:11434", "http://192.168.1.20:11434", "http://192.168.1.20:11434/v1/models http://192.168.1.20:11434/models", 1},
		{"172.20.0.2", "http://172.20.0.2", "http://172.20.0.2/v1/models http://172.20.0.2/models", 1},
		{"0.0.0.0:8000", "http://0.0.0.0:8000", "http://0.0.0.0:8000/v1/models http://0.0.0.0:8000/models", 1},
		{"[::1]:8000", "http://[::1]:8000", "http://[::1]:8000/v1/models http://[::1]:8000/models", 1},
		{"[fd00::2]", "http://[fd00::2]", "http://[fd00::2]/v1/models http://[fd00::2]/models", 1},
		{"8.8.8.8:8000", "https://8.8.8.8:8000", "https://8.8.8.8:8000/v1/models https://8.8.8.8:8000/models", 1},
		{"vllm:8000", "http://vllm:8000", "http://vllm:8000/v1/models http://vllm:8000/models", 1},
		{"https://127.0.0.1:8443", "https://127.0.0.1:8443", "https://127.0.0.1:8443/v1/models https://127.0.0.1:8443/models", 0},
		{"https://api.example.com/t%C3%A9am/v1", "https://api.example.com/t%C3%A9am/v1", "https://api.example.com/t%C3%A9am/v1/models https://api.example.com/t%C3%A9am/models https://api.example.com/v1/models", 0},
	}
	for _, c := range cases {
		b, err := ParseBase(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if got := b.String(); got != c.want || b.URL().String() != c.want {
			t.Errorf("%q is %s (%s), want %s", c.text, got, b.URL(), c.want)
		}
		if got := strings.Join(b.Candidates("models"), " "); got != c.models {
			t.Errorf("%q: candidates\n%s, want\n%s", c.text, got, c.models)
		}
		if got := b.Notes(); len(got) != c.notes {
			t.Errorf("%q: notes %q, want %d", c.text, got, c.notes)
		}
		again, err := ParseBase(b.String())
		if err != nil || again.String() != c.want {
			t.Errorf("%q read again is %s, %v", c.want, again, err)
		}
	}
}

// TestParseBaseRefuses: what is no base URL is refused with a hint, and nothing
// of it is shown.
func TestParseBaseRefuses(t *testing.T) {
	cases := []struct{ text, hint string }{
		{"", "it is empty"},
		{" \n", "it is empty"},
		{`""`, "it is empty"},
		{"https://", "host"},
		{"https:///v1", "host"},
		{"https://s3cret@api.example.com/v1", "user name or password"},
		{"https://user:s3cret@api.example.com/v1", "environment variable"},
		{"user:s3cret@api.example.com", "user name or password"},
		{"user:s3%zzcret@api.example.com", "user name or password"},
		{"https://api.example.com/v1?key=s3cret", "query"},
		{"https://api.example.com/v1?", "query"},
		{"https://api.example.com?api-version=s3cret", "query"},
		{"https://api.example.com/v1#s3cret", "fragment"},
		{"https://api.example.com#s3cret", "fragment"},
		{"ftp://api.example.com/s3cret", "http"},
		{"s3cret://api.example.com", "http"},
		{"https:/api.example.com/s3cret", "two slashes"},
		{"https:api.example.com", "two slashes"},
		{"https://api.example.com/s3 cret", "white space"},
		{"https://api.example.com/\x00s3cret", "control character"},
		{"https://api.example.com:s3cret/v1", "host"},
		{"https://api.example.com:99999/v1", "port"},
		{"https://api.example.com:0/v1", "port"},
		{"https://api.example.com:/v1", "port"},
		{"::1", "brackets"},
		{"https://::1:8000/v1", "brackets"},
		{"https://api.example.com/s3cret/../v1", ".."},
		{"https://api.example.com/s3cret%zz", "path"},
		{`https:\\api.example.com\s3cret`, "two slashes"},
		{`https://api.example.com\s3cret`, "path"},
		{"proxy/https://s3cret", "another URL"},
	}
	for _, c := range cases {
		b, err := ParseBase(c.text)
		if err == nil {
			t.Errorf("%q was taken for %s", c.text, b)
			continue
		}
		if !strings.Contains(err.Error(), c.hint) || strings.Contains(err.Error(), "s3") {
			t.Errorf("%q: %v, want something of %q", c.text, err, c.hint)
		}
		if b.String() != "" || b.Candidates("models") != nil {
			t.Errorf("%q: an error, and yet %s", c.text, b)
		}
	}
}

// FuzzParseBase: whatever is taken is a plain URL, stays the same when it is read again,
// and leads to candidates of that host alone.
func FuzzParseBase(f *testing.F) {
	for _, s := range []string{"https://taotoken.net/api", "localhost:8000/v1/v1", "//x//v1", "[::1]:1/models", "http://a/v1/chat/completions", "a.b/%2e%2e/v1", "'x'", "https://user@x", "x:1/v1beta1/openai"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := ParseBase(text)
		if err != nil {
			if b.String() != "" {
				t.Fatalf("%q: an error, and yet %s", text, b)
			}
			return
		}
		u, err := url.Parse(b.String())
		if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			t.Fatalf("%q became %s: %v", text, b, err)
		}
		again, err := ParseBase(b.String())
		if err != nil || again.String() != b.String() {
			t.Fatalf("%q became %s, and then %s: %v", text, b, again, err)
		}
		candidates := b.Candidates("models")
		if len(candidates) < 2 || len(candidates) > 3 || !slices.Contains(candidates, b.String()+"/models") {
			t.Fatalf("%q: candidates %q", text, candidates)
		}
		for _, c := range candidates {
			if to, err := url.Parse(c); err != nil || to.Host != u.Host || to.Scheme != u.Scheme {
				t.Fatalf("%q: candidate %s: %v", text, c, err)
			}
			if _, err := NewClient(Config{Root: strings.TrimSuffix(c, "/models"), HTTP: nil}); err != nil {
				t.Fatalf("%q: candidate %s is no root: %v", text, c, err)
			}
		}
	})
}
