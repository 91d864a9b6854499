package doctor

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/weirgate/weir/internal/engine"
)

// engineKind is the engine behind the endpoint by what was seen so far, "" when
// nothing tells it.
func (v *visit) engineKind() engine.Kind {
	if v.engine != "" {
		return v.engine
	}
	for _, m := range v.found.Details {
		switch strings.ToLower(m.Owner) {
		case "vllm":
			return engine.VLLM
		case "sglang":
			return engine.SGLang
		case "llamacpp":
			return engine.LlamaCPP
		}
	}
	if v.head != nil && strings.HasPrefix(v.head.header.Get("Server"), "llama.cpp") {
		return engine.LlamaCPP
	}
	return ""
}

// metricsFlag is what makes each engine show its metrics.
func metricsFlag(kind engine.Kind) string {
	switch kind {
	case engine.VLLM:
		return "start vLLM without --disable-log-stats"
	case engine.SGLang:
		return "start SGLang with --enable-metrics"
	case engine.LlamaCPP:
		return "start llama.cpp's server with --metrics"
	}
	return "vLLM shows them unless started with --disable-log-stats, SGLang with --enable-metrics, llama.cpp with --metrics"
}

// checkMetrics reads the engine's own figures.
func checkMetrics(ctx context.Context, v *visit) Finding {
	at, err := v.metricsURL()
	if err != nil {
		return yellow("the address of the engine's metrics cannot be read", "", "write it like http://127.0.0.1:8000/metrics")
	}
	client := &http.Client{Transport: v.http.Transport, CheckRedirect: v.http.CheckRedirect}
	if at.Host == v.base.Host {
		client.Transport = keyed{v, v.http.Transport} // llama.cpp wants its key for them, too
	}
	limited, cancel := context.WithTimeout(ctx, v.Timeout)
	defer cancel()
	x := v.requestBy(limited, client, at.String())
	named := v.Metrics != ""
	switch {
	case x.err != nil && named:
		return yellow("the engine's metrics cannot be reached: "+dialFault(x.err), "They should be at "+shownURL(at)+".", "check the address, and that the engine runs")
	case x.err != nil:
		return grey("not known because " + shownURL(at) + " does not answer")
	case v.Admin != "" && !named && (x.status == http.StatusUnauthorized || x.status == http.StatusForbidden || x.status == http.StatusNotFound):
		return v.gatewaysEngines(ctx, at, x.status)
	case x.status != http.StatusOK:
		return v.noMetrics(at, x.status, named)
	}
	counters, err := engine.Scrape(limited, client, at.String())
	switch {
	case err == nil:
		v.engine = counters.Kind
		busy := ""
		if n, known := counters.InFlight.Get(); known {
			busy = fmt.Sprintf("Running or waiting there: %d.", n)
		}
		return green("the engine's metrics are those of "+string(counters.Kind), busy)
	case bytes.Contains(x.body, []byte("\ntgi_")) || bytes.HasPrefix(x.body, []byte("tgi_")):
		return green("the engine's metrics are those of TGI")
	case named:
		return yellow("what answers at "+shownURL(at)+" are not the metrics of an engine", "", "name the engine's own address; "+metricsFlag(v.engineKind()))
	}
	return grey("what answers at " + shownURL(at) + " are not the metrics of an engine: --metrics names another address")
}

// noMetrics is an answer that is not 200 where the metrics should be.
func (v *visit) noMetrics(at *url.URL, status int, named bool) Finding {
	kind := v.engineKind()
	title := fmt.Sprintf("the engine shows no metrics (%d at %s)", status, shownURL(at))
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return grey(fmt.Sprintf("not known because %s wants another key (%d)", shownURL(at), status))
	case kind != "" && v.Admin == "":
		return yellow(title, "Queue and cache of the engine are not seen, and usage cannot be held against its counters.", metricsFlag(kind))
	case named:
		return yellow(title, "", "check the address; "+metricsFlag(kind))
	}
	return grey(fmt.Sprintf("the endpoint shows no engine's metrics (%d); --metrics names the engine behind it", status))
}

// metricsURL is where the engine's metrics should be.
func (v *visit) metricsURL() (*url.URL, error) {
	if v.Metrics == "" {
		at := *v.base
		at.Path = strings.TrimSuffix(strings.TrimSuffix(at.Path, "/"), "/v1") + "/metrics"
		return &at, nil
	}
	text := v.Metrics
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	at, err := url.Parse(text)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, fmt.Errorf("read the address of the metrics: write it like http://127.0.0.1:8000/metrics")
	}
	if !strings.HasSuffix(at.Path, "/metrics") {
		at.Path = strings.TrimSuffix(strings.TrimSuffix(at.Path, "/"), "/v1") + "/metrics"
	}
	return at, nil
}

// shownURL is a URL without what may be secret in it.
func shownURL(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// keyed sends the key along.
type keyed struct {
	v    *visit
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range k.v.authorized() {
		r.Header[name] = values
	}
	return k.next.RoundTrip(r)
}
