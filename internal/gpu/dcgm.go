package gpu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/weirgate/weir/internal/exposition"
)

// maxBody is the most of an exporter's answer that is read: eight GPUs with all
// metrics there are take about 300 KiB.
const maxBody = 8 << 20

// dcgm reads a dcgm-exporter.
type dcgm struct {
	client *http.Client
	page   *url.URL
	shown  string                      // without what may be secret
	events map[string]map[string]event // by GPU and clock_event, as last scraped
}

// NewDCGM returns the GPUs that a dcgm-exporter at address shows: its base URL,
// as http://127.0.0.1:9400, or that of its metrics. Nothing is asked yet. client
// may be nil. Errors name the address without what may be secret in it.
func NewDCGM(address string, client *http.Client) (Source, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the address of the dcgm-exporter is not a URL: write it like http://127.0.0.1:9400/metrics")
	}
	if !strings.HasSuffix(u.Path, "/metrics") {
		u.Path = strings.TrimSuffix(u.Path, "/") + "/metrics"
	}
	if client == nil {
		client = http.DefaultClient
	}
	return &dcgm{
		client: client,
		page:   u,
		shown:  (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(),
	}, nil
}

// Name implements Source.
func (d *dcgm) Name() string { return "dcgm " + d.shown }

// Close implements Source. There is nothing to close: the client is the caller's.
func (d *dcgm) Close() error { return nil }

// Sample implements Source.
func (d *dcgm) Sample(ctx context.Context, now time.Time) ([]Reading, error) {
	families, err := d.scrape(ctx)
	if err == nil {
		readings := d.read(families, now)
		if len(readings) > 0 {
			return readings, nil
		}
		err = errors.New("it shows no metric DCGM_FI_… of any GPU: is this the address of a dcgm-exporter?")
	}
	return nil, fmt.Errorf("read the dcgm-exporter at %s: %w", d.shown, err)
}

func (d *dcgm) scrape(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.page.String(), nil)
	if err != nil {
		return nil, bare(err)
	}
	r.Header.Set("Accept", "text/plain;version=0.0.4")
	res, err := d.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%w; is it running, and reachable from here?", bare(err))
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answered %s", res.Status)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", bare(err))
	}
	if len(body) > maxBody {
		return nil, fmt.Errorf("the answer is longer than %d MiB, which no dcgm-exporter's is", maxBody>>20)
	}
	families, err := exposition.Parse(body)
	if err != nil {
		return nil, fmt.Errorf("the answer is not in Prometheus' text format: %w", err)
	}
	return families, nil
}

// bare takes the URL off an error of the HTTP client: it may hold a password,
// and the caller names the address anyway.
func bare(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}
