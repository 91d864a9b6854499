package endpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxProbeBody is how much of an answer is read to find the API.
const maxProbeBody = 1 << 20

// Try is one URL that was tried, and what came of it.
type Try struct {
	Method string
	URL    string
	Status int    // 0 without an answer
	Kind   Kind   // "" for an answer of status 2xx
	Err    error  // why there was no answer; it holds no key
	Says   string // what the answer was: "a list of models", "an error in JSON", "a page of HTML" …
	// Location is where a redirect points; it is not followed.
	Location string
}

// String says the try and its answer in one phrase.
func (t Try) String() string {
	switch {
	case t.Err != nil:
		return t.Method + " " + t.URL + ": " + t.Err.Error()
	case t.Location != "":
		return fmt.Sprintf("%s %s: %d to %s", t.Method, t.URL, t.Status, t.Location)
	}
	return fmt.Sprintf("%s %s: %d, %s", t.Method, t.URL, t.Status, t.Says)
}

// What an answer may be.
const (
	saysList  = "a list of models"
	saysError = "an error in JSON"
	saysJSON  = "JSON of another kind"
	saysHTML  = "a page of HTML"
	saysEmpty = "nothing"
	saysText  = "something else than JSON"
)

// probe sends requests to find the API with.
type probe struct {
	http   http.Client
	api    API
	secret secret
}

func newProbe(client *http.Client, api API, key string) (p *probe, done func()) {
	p = &probe{api: api, secret: secret(key)}
	done = func() {}
	if client != nil {
		p.http = *client
	} else {
		own := NewTransport()
		p.http.Transport = own
		done = own.CloseIdleConnections
	}
	p.http.CheckRedirect = stay
	return p, done
}

// send sends one request and reads the beginning of its answer.
func (p *probe) send(ctx context.Context, method, url string, body []byte) (t Try, header http.Header, answer []byte) {
	t = Try{Method: method, URL: url}
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		t.Kind, t.Err = FailedRequest, err
		return t, nil, nil
	}
	asIs(request.Header)
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	authorize(request.Header, p.api, string(p.secret))
	response, err := p.http.Do(request)
	if err == nil {
		answer, err = io.ReadAll(io.LimitReader(response.Body, maxProbeBody))
		// Nothing more is wanted of it: a close has nothing to tell.
		_ = response.Body.Close()
	}
	if err != nil {
		t.Kind = KindOf(err)
		if ctx.Err() != nil {
			t.Kind, err = KindOf(ctx.Err()), ctx.Err()
		}
		text := p.secret.text(bare(err).Error()) + ": " + hint(t.Kind)
		t.Err = &Failure{Kind: t.Kind, Text: text, Err: p.secret.err(bare(err))}
		return t, nil, nil
	}
	t.Status, t.Kind = response.StatusCode, KindOfStatus(response.StatusCode)
	t.Says = says(answer)
	if t.Kind == FailedShape {
		if to, err := response.Location(); err == nil { // made absolute
			t.Location = p.secret.text(to.String())
		}
	}
	return t, p.secret.header(response.Header), answer
}

// says tells what a body is, without quoting any of it.
func says(body []byte) string {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
	switch {
	case len(body) == 0:
		return saysEmpty
	case body[0] == '<':
		return saysHTML
	}
	if _, err := readModels(body); err == nil {
		return saysList
	}
	switch {
	case isError(body):
		return saysError
	case json.Valid(body):
		return saysJSON
	}
	return saysText
}

// isError tells whether a body is an error in JSON as servers of these APIs
// write it: an object with one of a few members.
func isError(body []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return false
	}
	for name, value := range members {
		switch strings.ToLower(name) {
		case "error", "errors", "message", "msg", "detail", "error_msg", "error_message":
			if string(value) != "null" {
				return true
			}
		}
	}
	return false
}
