package keys

import (
	"net/http"
	"net/url"
	"strings"
)

// keyHeaders are the headers that bring a key as it is, in canonical form.
var keyHeaders = [...]string{
	"X-Api-Key",      // Anthropic
	"Api-Key",        // Azure OpenAI
	"X-Goog-Api-Key", // Gemini
}

// FromRequest returns the API key that a request brings, or "" if it brings
// none. It looks for a bearer token in Authorization, then in the headers
// x-api-key, api-key and x-goog-api-key, then for the parameter key in the raw
// query; the first that is not empty counts. Of a header sent several times the
// first usable value counts.
//
// An Authorization of another scheme, or a token without one, is not a key. The
// header's names must be in canonical form, as net/http has them.
func FromRequest(h http.Header, rawQuery string) (key string) {
	for _, value := range h["Authorization"] {
		if key := bearer(value); key != "" {
			return key
		}
	}
	for _, name := range keyHeaders {
		for _, value := range h[name] {
			if key := trim(value); key != "" {
				return key
			}
		}
	}
	return fromQuery(rawQuery)
}

// bearer returns the token of "Bearer token". The scheme's case does not
// matter (RFC 9110, section 11.1).
func bearer(value string) string {
	const scheme = "bearer"
	value = trim(value)
	if len(value) <= len(scheme) || !strings.EqualFold(value[:len(scheme)], scheme) {
		return ""
	}
	rest := value[len(scheme):]
	if rest[0] != ' ' && rest[0] != '\t' {
		return ""
	}
	return trim(rest)
}

func trim(s string) string { return strings.Trim(s, " \t") }

// fromQuery returns the first value of the parameter key that is not empty. It
// reads the query as url.ParseQuery does, pairs that are malformed left out,
// but makes no map.
func fromQuery(query string) string {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, value, _ := strings.Cut(pair, "=")
		if value == "" || strings.Contains(pair, ";") {
			continue
		}
		if name != "key" {
			// The name may be escaped, too; each of its three bytes takes at most three.
			if len(name) > 9 || !strings.Contains(name, "%") {
				continue
			}
			if plain, err := url.QueryUnescape(name); err != nil || plain != "key" {
				continue
			}
		}
		if plain, err := url.QueryUnescape(value); err == nil {
			return plain
		}
	}
	return ""
}
