package keys

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestFromRequest(t *testing.T) {
	long := strings.Repeat("k", 100_000)
	for _, tt := range []struct {
		name   string
		header []string // pairs
		query  string
		want   string
	}{
		{name: "nothing"},
		{name: "bearer", header: []string{"Authorization", "Bearer sk-1"}, want: "sk-1"},
		{name: "lower case bearer", header: []string{"authorization", "bearer sk-1"}, want: "sk-1"},
		{name: "upper case bearer", header: []string{"AUTHORIZATION", "BEARER sk-1"}, want: "sk-1"},
		{name: "spaces and tabs", header: []string{"Authorization", " Bearer \t sk-1 \t"}, want: "sk-1"},
		{name: "no space", header: []string{"Authorization", "Bearersk-1"}},
		{name: "no scheme", header: []string{"Authorization", "sk-1"}},
		{name: "no token", header: []string{"Authorization", "Bearer"}},
		{name: "empty token", header: []string{"Authorization", "Bearer "}},
		{name: "empty", header: []string{"Authorization", ""}},
		{name: "basic", header: []string{"Authorization", "Basic c2stMTpzay0x"}},
		{name: "other scheme that begins alike", header: []string{"Authorization", "BearerToken sk-1"}},
		{name: "token with spaces", header: []string{"Authorization", "Bearer sk 1"}, want: "sk 1"},
		{name: "a bearer after another scheme", header: []string{"Authorization", "Basic eA==", "Authorization", "Bearer sk-1"}, want: "sk-1"},
		{name: "two bearers", header: []string{"Authorization", "Bearer sk-1", "Authorization", "Bearer sk-2"}, want: "sk-1"},
		{name: "very long", header: []string{"Authorization", "Bearer " + long}, want: long},
		{name: "x-api-key", header: []string{"x-api-key", " sk-2 "}, want: "sk-2"},
		{name: "api-key", header: []string{"api-key", "sk-3"}, want: "sk-3"},
		{name: "x-goog-api-key", header: []string{"x-goog-api-key", "sk-4"}, want: "sk-4"},
		{name: "several values", header: []string{"x-api-key", "", "x-api-key", "sk-2"}, want: "sk-2"},
		{name: "a bearer in the wrong header", header: []string{"x-api-key", "Bearer sk-2"}, want: "Bearer sk-2"},
		{name: "query", query: "alt=sse&key=sk-5&key=sk-6", want: "sk-5"},
		{name: "query, escaped", query: "k%65y=sk%2d5+x", want: "sk-5 x"},
		{name: "query, empty then full", query: "key=&key&key=sk-5", want: "sk-5"},
		{name: "query, malformed then well", query: "key=%zz&key=a;b&%=&key=sk-5", want: "sk-5"},
		{name: "query, others", query: "keys=1&Key=2&akey=3&key2=4&=5&&"},
		{name: "query, value with equals signs", query: "key=a=b=", want: "a=b="},
		{name: "order 1", header: []string{"x-goog-api-key", "4", "api-key", "3", "x-api-key", "2", "Authorization", "Bearer 1"}, query: "key=5", want: "1"},
		{name: "order 2", header: []string{"x-goog-api-key", "4", "api-key", "3", "x-api-key", "2", "Authorization", "Basic 1"}, query: "key=5", want: "2"},
		{name: "order 3", header: []string{"x-goog-api-key", "4", "api-key", "3"}, query: "key=5", want: "3"},
		{name: "order 4", header: []string{"x-goog-api-key", "4"}, query: "key=5", want: "4"},
	} {
		h := make(http.Header)
		for i := 0; i < len(tt.header); i += 2 {
			h.Add(tt.header[i], tt.header[i+1])
		}
		if got := FromRequest(h, tt.query); got != tt.want {
			t.Errorf("%s: got %.50q, want %.50q", tt.name, got, tt.want)
		}
	}
	if got := FromRequest(nil, ""); got != "" {
		t.Errorf("no header at all: %q", got)
	}
}

func TestFromRequestDoesNotAllocate(t *testing.T) {
	h := http.Header{"Authorization": {"Basic x", "Bearer sk-1"}}
	none := http.Header{"Accept": {"*/*"}}
	for name, f := range map[string]func(){
		"bearer": func() { FromRequest(h, "a=b") },
		"query":  func() { FromRequest(none, "alt=sse&keys=2&key=sk-5") },
		"none":   func() { FromRequest(none, "alt=sse&pageToken=%20x") },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// FuzzQuery compares with the standard library's reading of a query.
func FuzzQuery(f *testing.F) {
	for _, q := range []string{"", "key=1", "a=b&key=1", "k%65y=%31", "key=%zz&key=2", "key=a;b&key=3", "key=&key=4", "%6b%65%79=5", "key=a+b", "&&=&key", "ke+y=1", "%4Bey=1", "key=%00"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		if strings.Count(query, "&") > 1000 {
			return // the standard library gives up on queries with many more
		}
		values, _ := url.ParseQuery(query) // an error still leaves the pairs that are well formed
		want := ""
		for _, v := range values["key"] {
			if v != "" {
				want = v
				break
			}
		}
		if got := fromQuery(query); got != want {
			t.Errorf("%q: got %q, want %q", query, got, want)
		}
	})
}

func BenchmarkFromRequest(b *testing.B) {
	h := http.Header{"X-Goog-Api-Key": {"sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"}, "Accept": {"*/*"}}
	b.ReportAllocs()
	for b.Loop() {
		FromRequest(h, "alt=sse")
	}
}
