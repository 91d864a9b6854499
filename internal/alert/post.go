package alert

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/call"
)

const (
	// maxAnswer is how much of an answer is read, so that the connection can be used again.
	maxAnswer = 64 << 10
	// maxExcerpt is how much of an answer is shown.
	maxExcerpt = 200
	// maxAsked bounds the pause that a Retry-After may ask for: an alert that
	// waits longer is history.
	maxAsked = 10 * time.Minute
)

// post sends JSON to one address.
type post struct {
	kind   string // of receiver, for its name
	url    *url.URL
	header http.Header
	round  http.RoundTripper
	own    *http.Transport // round, if it is ours
	// open says that the address and headers hold no secret, so that an answer cannot
	// repeat one and may be shown.
	open bool
}

// newPost makes one; a client of nil is one of its own. Redirects are not followed, so of
// the client only its transport counts.
func newPost(kind string, u *url.URL, header http.Header, client *http.Client, open bool) *post {
	p := &post{kind: kind, url: u, header: header.Clone(), open: open}
	if client != nil {
		p.round = client.Transport
		if p.round == nil {
			p.round = http.DefaultTransport
		}
		return p
	}
	p.own = &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 1,
		IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: attemptTime, MaxResponseHeaderBytes: maxAnswer,
	}
	p.round = p.own
	return p
}

// Name is the kind with scheme and host. A path may be a secret (chat services put tokens
// there), and so may all that follows it.
func (p *post) Name() string {
	return p.kind + " " + p.url.Scheme + "://" + p.url.Host
}

// identity tells two receivers apart that have the same name, without keeping secrets.
func (p *post) identity() string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %s\n", p.kind, p.url) // a hash's Write never fails
	_ = p.header.Write(sum)                    // nor does a header's then
	return p.kind + " " + hex.EncodeToString(sum.Sum(nil))
}

func (p *post) close() {
	if p.own != nil {
		p.own.CloseIdleConnections()
	}
}

// send posts body. refuse looks at a successful answer, and may be nil.
func (p *post) send(ctx context.Context, body any, refuse func(*http.Response) error) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // people read it in logs
	if err := e.Encode(body); err != nil {
		return Permanent(fmt.Errorf("write the alert: %w", err))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url.String(), bytes.NewReader(b.Bytes()))
	if err != nil {
		return Permanent(errors.New("write the request: the address cannot be used"))
	}
	if user := request.URL.User; user != nil {
		password, _ := user.Password() // none is an empty one
		request.SetBasicAuth(user.Username(), password)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "weir")
	for name, values := range p.header {
		request.Header[name] = values
	}
	if host := p.header.Get("Host"); host != "" {
		request.Host = host
	}
	// The transport alone, as a client would follow redirects, which turn some POSTs
	// into a GET, and carry headers to somebody else.
	response, err := p.round.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("reach %s: %s", p.url.Host, broken(ctx, err))
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer)) // the status has said it all
	return p.judge(response, text, refuse)
}

// judge tells what an answer means.
func (p *post) judge(response *http.Response, text []byte, refuse func(*http.Response) error) error {
	status := response.StatusCode
	said := fmt.Sprintf("%s answers %d", p.url.Host, status)
	if name := http.StatusText(status); name != "" {
		said += " " + name
	}
	switch {
	case status >= 200 && status < 300:
		if refuse != nil {
			return refuse(response)
		}
		return nil
	case status >= 300 && status < 400:
		return Permanent(errors.New(said + ": a redirect is not followed; write the address that it leads to"))
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return Permanent(errors.New(said + ": look at the user, password or headers that are configured"))
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusGone:
		return Permanent(errors.New(said + ": look at the address that is configured"))
	}
	if excerpt := strings.TrimSpace(call.OneLine(string(text))); p.open && excerpt != "" {
		said += ": " + cut(excerpt, maxExcerpt)
	}
	again := status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
	return &failure{err: errors.New(said), permanent: !again, after: retryAfter(response.Header.Get("Retry-After"), time.Now())}
}

// retryAfter reads a header: seconds or a date. 0 is that it says nothing.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	var seconds int64
	for _, c := range value {
		if c < '0' || c > '9' {
			at, err := http.ParseTime(value)
			if err != nil {
				return 0
			}
			return min(max(at.Sub(now), 0), maxAsked)
		}
		seconds = min(10*seconds+int64(c-'0'), int64(maxAsked/time.Second))
	}
	return time.Duration(seconds) * time.Second
}
