package otlpin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// newSender returns the sender for a target.
func newSender(t target) (sender, error) {
	if t.kind == targetGRPC {
		return newGRPCSender(t)
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		MaxIdleConnsPerHost: senders,
		MaxConnsPerHost:     2 * senders,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
		ForceAttemptHTTP2:   true,
	}
	return &httpSender{base: t.url, transport: transport, client: &http.Client{
		Transport: transport,
		// A redirect would lose the body's method, or lead astray: it is an error.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

type httpSender struct {
	base      *url.URL
	transport *http.Transport
	client    *http.Client
}

func (s *httpSender) overGRPC() bool { return false }
func (s *httpSender) close()         { s.transport.CloseIdleConnections() }

// send posts the body as it came.
func (s *httpSender) send(ctx context.Context, b *batch) error {
	to := *s.base
	to.Path += b.what.path
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(b.body))
	if err != nil {
		return &refusal{err: errors.New("the collector's address does not make a request"), batch: false}
	}
	for name, values := range b.header {
		if plain(values) && !strings.HasSuffix(name, "-Bin") { // binary metadata of gRPC
			q.Header[name] = values
		}
	}
	q.Header.Set("Content-Type", typeProtobuf)
	if b.json {
		q.Header.Set("Content-Type", typeJSON)
	}
	if b.gzip {
		q.Header.Set("Content-Encoding", "gzip")
	}
	a, err := s.client.Do(q)
	if err != nil {
		var whole *url.Error
		if errors.As(err, &whole) { // it names the address, with what may be secret in it
			err = whole.Err
		}
		return err
	}
	defer a.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(a.Body, 64<<10)) // so that the connection can be used again
	return verdict(a)
}

// verdict reads the collector's answer as OTLP says
// (https://opentelemetry.io/docs/specs/otlp/#otlphttp-response).
func verdict(a *http.Response) error {
	if a.StatusCode/100 == 2 {
		return nil
	}
	err := fmt.Errorf("the collector answered %d %s", a.StatusCode, http.StatusText(a.StatusCode))
	switch a.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &pause{err: err, after: retryAfter(a.Header.Get("Retry-After"))}
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return &refusal{err: err, batch: true}
	}
	return &refusal{err: err}
}

// retryAfter reads seconds; a date, or nothing, is 0.
func retryAfter(s string) time.Duration {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(min(n, 3600)) * time.Second
}
