package endpoint

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Base is the base URL of an endpoint as somebody wrote it, put in order. Its
// zero value stands for none. It holds no secret.
type Base struct {
	scheme, host string   // host with its port
	path         []string // segments, escaped, without a /v1 at their end
	versioned    bool     // it was written with /v1
	cut          bool     // it was cut back from the URL of an API
	exact        bool     // which was without /v1
	notes        []string
}

// baseExample is what a base URL looks like, for error texts.
const baseExample = "https://api.example.com/v1"

// apiPaths are the ends of URLs that are cut back to the root below which they
// stand, the longer before the shorter.
var apiPaths = [][]string{{"chat", "completions"}, {"messages", "count_tokens"}, {"completions"}, {"responses"}, {"messages"}, {"models"}, {"embeddings"}}

// ParseBase reads a base URL as people write it: with or without a scheme, with
// or without /v1, with slashes at its end, with a path of its own, or as the
// whole URL of an API such as …/v1/chat/completions, which is cut back.
//
// Without a scheme it is http for names without a dot (localhost, vllm:8000), which
// only a network of one's own can resolve, and for addresses that are not
// public (127.0.0.1, 10.1.2.3, 192.168.1.2, [::1], 0.0.0.0 and the like), and
// https for everything else. User information, a query and a fragment are
// refused: keys do not belong in a URL, where logs would show them. Errors show
// nothing of the text for the same reason.
func ParseBase(text string) (Base, error) {
	b, err := parseBase(text)
	if err != nil {
		return Base{}, fmt.Errorf("read the base URL: %w", err)
	}
	return b, nil
}

func parseBase(text string) (Base, error) {
	var b Base
	text = strings.TrimSpace(text)
	if n := len(text); n >= 2 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] {
		text = strings.TrimSpace(text[1 : n-1])
		b.note("the quotes around it were taken off")
	}
	if text == "" {
		return b, errors.New("it is empty: write it like " + baseExample)
	}
	for _, c := range text {
		if c <= ' ' || c == 0x7f {
			return b, errors.New("it has white space or a control character in it: write it like " + baseExample)
		}
	}
	rest, err := b.takeScheme(text)
	if err != nil {
		return b, err
	}
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?#\\"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	switch {
	case strings.Contains(authority, "@"):
		return b, errors.New("it has a user name or password in it: leave them out, and give the key by an environment variable")
	case strings.Contains(path, "?"):
		return b, errors.New("it has a query (after the ?): leave it out; a key is given by an environment variable")
	case strings.Contains(path, "#"):
		return b, errors.New("it has a fragment (after the #): leave it out")
	}
	if b.host, err = hostOf(authority); err != nil {
		return b, err
	}
	if b.scheme == "" {
		b.scheme = "https"
		if isLocal(b.host) {
			b.scheme = "http"
		}
		b.note("no scheme was given: " + b.scheme + ":// was taken")
	}
	if err := b.takePath(path); err != nil {
		return b, err
	}
	return b, nil
}

// takeScheme takes the scheme off the text, if there is one.
func (b *Base) takeScheme(text string) (rest string, err error) {
	scheme, rest, has := strings.Cut(text, "://")
	if !has {
		lower := strings.ToLower(text)
		if strings.HasPrefix(lower, "http:") || strings.HasPrefix(lower, "https:") {
			return "", errors.New("there must be two slashes after the scheme: write it like " + baseExample)
		}
		return strings.TrimPrefix(text, "//"), nil
	}
	switch b.scheme = strings.ToLower(scheme); b.scheme {
	case "http", "https":
		return rest, nil
	}
	if strings.ContainsAny(scheme, "/?#@") { // the :// is of something within it
		return "", errors.New("it has another URL in it: write it like " + baseExample)
	}
	return "", errors.New("its scheme is neither http nor https: write it like " + baseExample)
}

// hostOf checks host and port and returns them in lower case.
func hostOf(authority string) (string, error) {
	if strings.Count(authority, ":") > 1 && !strings.HasPrefix(authority, "[") {
		return "", errors.New("it has more than one colon in its host: an IPv6 address stands in brackets, as in http://[::1]:8000")
	}
	u, err := url.Parse("http://" + authority)
	if err != nil || u.Hostname() == "" || u.Path != "" {
		return "", errors.New("its host cannot be read: write it like " + baseExample)
	}
	if strings.HasSuffix(u.Host, ":") {
		return "", errors.New("it has a colon after the host and no port: leave the colon out or name the port, as in http://127.0.0.1:8000")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return "", errors.New("its port is not a number from 1 to 65535: write it like http://127.0.0.1:8000")
		}
	}
	return strings.ToLower(u.Host), nil
}

// isLocal tells whether a host is this machine's or of a private network.
func isLocal(host string) bool {
	u := url.URL{Host: host}
	name := u.Hostname()
	if !strings.ContainsAny(name, ".:") || strings.HasSuffix(name, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(name)
	if err != nil {
		return false
	}
	a = a.Unmap()
	return a.IsLoopback() || a.IsPrivate() || a.IsUnspecified() || a.IsLinkLocalUnicast()
}

// takePath cuts the path back to the root of the APIs.
func (b *Base) takePath(path string) error {
	u, err := url.Parse("http://host" + path)
	if err != nil || strings.Contains(path, "\\") {
		return errors.New("its path cannot be read: write it like " + baseExample)
	}
	var segments []string
	for s := range strings.SplitSeq(u.EscapedPath(), "/") {
		switch s {
		case "":
		case ".", "..":
			return errors.New("its path has a . or .. in it: write it like " + baseExample)
		default:
			segments = append(segments, s)
		}
	}
	versions, apis := 0, 0
	for {
		if rest, cut := cutAPI(segments); cut {
			segments, b.exact = rest, versions == 0
			apis++
			continue
		}
		if n := len(segments); n > 0 && segments[n-1] == "v1" {
			segments = segments[:n-1]
			versions++
			continue
		}
		break
	}
	b.path, b.versioned = segments, versions > 0
	b.exact = b.exact && !b.versioned
	if versions > 1 {
		b.note("it has /v1 " + strconv.Itoa(versions) + " times: one is enough, as in " + b.String())
	}
	if b.cut = apis > 0; b.cut {
		b.note("it is the URL of an API and was cut back to " + b.String())
	}
	return nil
}

// cutAPI takes the path of an API off the end.
func cutAPI(segments []string) ([]string, bool) {
	for _, api := range apiPaths {
		if from := len(segments) - len(api); from >= 0 && slices.Equal(segments[from:], api) {
			return segments[:from], true
		}
	}
	return segments, false
}

func (b *Base) note(text string) { b.notes = append(b.notes, text) }

// Notes says what was unusual about the URL as it was written, and what was
// made of it; nil when nothing was.
func (b Base) Notes() []string { return slices.Clone(b.notes) }

// String returns the URL put in order, with /v1 if it was written with it. It
// holds no secret.
func (b Base) String() string {
	if b.host == "" {
		return ""
	}
	if b.versioned {
		return b.bare() + "/v1"
	}
	return b.bare()
}

// URL returns scheme, host and path of String, as a copy.
func (b Base) URL() *url.URL {
	u, err := url.Parse(b.String())
	if err != nil { // ParseBase has seen all parts of it
		return &url.URL{}
	}
	return u
}

// bare is the URL without /v1 and without a slash at its end.
func (b Base) bare() string {
	u := b.origin()
	for _, s := range b.path {
		u += "/" + s
	}
	return u
}

func (b Base) origin() string { return b.scheme + "://" + b.host }

// roots are the URLs below which APIs may stand, most likely first: what was
// written with /v1 (or without, where the version is another segment, as in
// /v1beta/openai and /api/paas/v4, or where the URL of an API said so), then
// the other of the two, then the host's own /v1.
func (b Base) roots() []string {
	if b.host == "" {
		return nil
	}
	roots := []string{b.bare() + "/v1", b.bare()}
	if !b.versioned && (b.exact || slices.ContainsFunc(b.path, isVersion)) {
		slices.Reverse(roots)
	}
	if len(b.path) > 0 {
		roots = append(roots, b.origin()+"/v1")
	}
	return roots
}

// Candidates returns the URLs at which an API path such as "chat/completions"
// or "models" may stand, most likely first; nil for the zero Base. They are
// with /v1 and without it, and, where the base has a path, the host's own /v1
// last. /v1 comes first unless the base names another version (/v1beta/openai,
// /api/paas/v4) or was the URL of an API without it.
func (b Base) Candidates(path string) []string {
	roots := b.roots()
	for i := range roots {
		roots[i] += "/" + strings.TrimPrefix(path, "/")
	}
	return roots
}

// isVersion tells whether a segment is a version of an API: v2, v4, v1beta.
func isVersion(segment string) bool {
	rest, is := strings.CutPrefix(segment, "v")
	if !is || rest == "" || rest[0] < '0' || rest[0] > '9' {
		return false
	}
	rest = strings.TrimLeft(rest, "0123456789")
	for _, stage := range []string{"alpha", "beta"} {
		if after, has := strings.CutPrefix(rest, stage); has {
			rest = strings.TrimLeft(after, "0123456789")
		}
	}
	return rest == ""
}
