package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/exposition"
)

const (
	// maxBody is the most of an answer that is read. A busy vLLM with many
	// adapters writes some hundred KiB.
	maxBody = 16 << 20
	// timeout bounds a scrape whose context has no sooner end. Prometheus itself
	// waits 10 s by default.
	timeout = 10 * time.Second
)

// Scrape reads the counters of the engine at address, the engine's base URL or
// that of its metrics. client may be nil. Errors name the address without what
// may be secret in it, and say what to do.
func Scrape(ctx context.Context, client *http.Client, address string) (Counters, error) {
	u, err := metricsURL(address)
	if err != nil {
		return Counters{}, err
	}
	c, err := scrape(ctx, client, u)
	if err != nil {
		return Counters{}, fmt.Errorf("read the metrics of the engine at %s: %w", shown(u), err)
	}
	return c, nil
}

// shown is an address without what may be secret in it.
func shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// metricsURL completes a base URL; one that ends in /metrics is taken as it is.
func metricsURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the engine's address is not a URL: write it like http://127.0.0.1:8000")
	}
	if !strings.HasSuffix(u.Path, "/metrics") {
		u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1") + "/metrics"
	}
	return u, nil
}

func scrape(ctx context.Context, client *http.Client, u *url.URL) (Counters, error) {
	body, header, err := fetch(ctx, client, u, hints)
	if err != nil {
		return Counters{}, err
	}
	families, err := exposition.Parse(body)
	if err != nil {
		return Counters{}, fmt.Errorf("the answer is not in Prometheus' text format: %w", err)
	}
	c, err := read(families)
	if err != nil {
		return Counters{}, err
	}
	if c.Kind == LlamaCPP && c.Start.IsZero() {
		c.Process = cut(header.Get("Process-Start-Time-Unix"))
	}
	return c, nil
}

// fetch gets a page of metrics. hint says what to do when there is none.
func fetch(ctx context.Context, client *http.Client, u *url.URL, hint string) ([]byte, http.Header, error) {
	if client == nil {
		client = http.DefaultClient
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, nil, bare(err)
	}
	r.Header.Set("Accept", "text/plain;version=0.0.4")
	res, err := client.Do(r)
	if err != nil {
		return nil, nil, fmt.Errorf("%w; is it running, and reachable from here?", bare(err))
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, nil, fmt.Errorf("it answered %s: it wants to know who asks; write user and password into the address, or let this machine read its metrics", shorten(res.Status, maxText))
	default:
		return nil, nil, fmt.Errorf("it answered %s; %s", shorten(res.Status, maxText), hint)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	if err != nil {
		return nil, nil, fmt.Errorf("read the answer: %w", bare(err))
	}
	if len(body) > maxBody {
		return nil, nil, fmt.Errorf("the answer is longer than %d MiB, which no engine's metrics are", maxBody>>20)
	}
	return body, res.Header, nil
}

// bare takes the URL off an error of the HTTP client: it may hold a password or
// a key, and the caller names the address anyway.
func bare(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// cut bounds what an engine may make us keep.
func cut(s string) string { return s[:min(len(s), 64)] }
