package telemetry

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/weirgate/weir/internal/call"
)

const testTrace = "0af7651916cd43dd8448eb211c80319c"

// sampled is a call whose spans were exported.
func sampled() *call.Record {
	rec := streamed()
	rec.Time, rec.TraceID, rec.Sampled = time.Unix(1_790_000_000, 0), testTrace, true
	return rec
}

// withExemplar are the metrics whose buckets show traces, and what sampled brings.
var withExemplar = map[string]float64{
	"weir_ttft_seconds": 0.2, "weir_e2e_seconds": 0.4, "gen_ai_server_request_duration_seconds": 0.35,
	"gen_ai_server_time_per_output_token_seconds": 0.02,
}

func TestTableTellsOfExemplars(t *testing.T) {
	n := 0
	for _, m := range Table() {
		if _, has := withExemplar[m.Name]; has != m.Exemplars {
			t.Errorf("%s: exemplars are %v in the table", m.Name, m.Exemplars)
		} else if has {
			n++
		}
	}
	if n != len(withExemplar) {
		t.Errorf("%d metrics with exemplars, want %d", n, len(withExemplar))
	}
}

// scrape asks for one of the formats as Prometheus does.
func scrape(t *testing.T, m *Metrics, accept string) (body []byte, format expfmt.Format) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	if err := m.Register(reg); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err = io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v: %s", answer.StatusCode, err, body)
	}
	return body, expfmt.Format(answer.Header.Get("Content-Type"))
}

const (
	asText     = "application/openmetrics-text;version=1.0.0"
	asProtobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
)

// decode reads a scrape in protobuf.
func decode(t *testing.T, body []byte, format expfmt.Format) map[string]*dto.MetricFamily {
	t.Helper()
	all := make(map[string]*dto.MetricFamily)
	d := expfmt.NewDecoder(strings.NewReader(string(body)), format)
	for {
		f := new(dto.MetricFamily)
		if err := d.Decode(f); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[f.GetName()] = f
	}
}

var exemplarLine = regexp.MustCompile(`^(\w+)_bucket\{.*le="([^"]+)"\} \d+ # (\{[^}]*\}) (\S+) (\S+)$`)

// TestExemplarsOfAScrape: OpenMetrics shows a call's trace in the bucket that it
// fell into, protobuf in the native histogram as well.
func TestExemplarsOfAScrape(t *testing.T) {
	m := full()
	observe(m, sampled())
	text, format := scrape(t, m, asText)
	if format.FormatType() != expfmt.TypeOpenMetrics || !strings.HasSuffix(string(text), "# EOF\n") {
		t.Fatalf("the answer is %v", format)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, " # {") {
			continue
		}
		match := exemplarLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if match == nil {
			t.Errorf("odd line %q", line)
			continue
		}
		name := match[1]
		value, err1 := strconv.ParseFloat(match[4], 64)
		upper, err2 := strconv.ParseFloat(match[2], 64)
		at, err3 := strconv.ParseFloat(match[5], 64)
		if want, has := withExemplar[name]; !has || seen[name] || err1 != nil || err2 != nil || err3 != nil || value != want || value > upper ||
			match[3] != `{trace_id="`+testTrace+`"}` || at != 1_790_000_000.4 {
			t.Errorf("%s", line)
		}
		seen[name] = true
	}
	if len(seen) != len(withExemplar) {
		t.Errorf("exemplars of %v, want of %v", seen, withExemplar)
	}

	body, format := scrape(t, m, asProtobuf)
	all := decode(t, body, format)
	for name, want := range withExemplar {
		series := find(t, all, name, "model", "llama", "class", "interactive")
		h := series.GetHistogram()
		if len(h.GetExemplars()) != 1 || h.GetSchema() != nativeSchema || len(h.GetPositiveSpan()) == 0 {
			t.Fatalf("%s: the native histogram has %d exemplars", name, len(h.GetExemplars()))
		}
		classic := 0
		for i, b := range h.GetBucket() {
			e := b.GetExemplar()
			if e == nil {
				continue
			}
			classic++
			if e.GetValue() > b.GetUpperBound() || i > 0 && e.GetValue() <= h.GetBucket()[i-1].GetUpperBound() {
				t.Errorf("%s: the exemplar %v stands in the bucket up to %v", name, e.GetValue(), b.GetUpperBound())
			}
		}
		e := h.GetExemplars()[0]
		if classic != 1 || e.GetValue() != want || e.GetLabel()[0].GetValue() != testTrace || e.GetTimestamp().AsTime().UnixMilli() != 1_790_000_000_400 {
			t.Errorf("%s: %d classic exemplars, native %v", name, classic, e)
		}
	}
}

// TestWhoseExemplars: only calls whose spans were exported, failed ones too.
func TestWhoseExemplars(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*call.Record)
		want   int // buckets
	}{
		"sampled":         {func(*call.Record) {}, 4},
		"not sampled":     {func(r *call.Record) { r.Sampled = false }, 0},
		"failed and kept": {func(r *call.Record) { r.Outcome = call.StreamError }, 3}, // no time per output token of it
		"client left":     {func(r *call.Record) { r.Outcome, r.E2E = call.ClientGone, call.Duration{} }, 2},
		"no trace":        {func(r *call.Record) { r.TraceID = "" }, 0},
		"trace too long":  {func(r *call.Record) { r.TraceID = strings.Repeat("a", 200) }, 0},
		"no hex":          {func(r *call.Record) { r.TraceID = strings.Repeat("g", 32) }, 0},
		"no text":         {func(r *call.Record) { r.TraceID = strings.Repeat("\xff", 32) }, 0},
		"no time":         {func(r *call.Record) { r.Time = time.Time{} }, 0},
		"above all edges": {func(r *call.Record) {
			r.TTFT, r.E2E, r.TPOT, r.Instants.Ended = call.Lasting(math.MaxInt64), call.Lasting(time.Hour), call.Lasting(time.Minute), call.Lasting(2*time.Hour)
		}, 4},
		"negative": {func(r *call.Record) { r.TTFT = call.Lasting(-1) }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			m := New()
			rec := sampled()
			c.change(rec)
			observe(m, rec)
			body, format := scrape(t, m, asProtobuf)
			got := 0
			for _, f := range decode(t, body, format) {
				for _, s := range f.GetMetric() {
					h := s.GetHistogram()
					for _, b := range h.GetBucket() {
						if e := b.GetExemplar(); e != nil {
							got++
							length := 0
							for _, l := range e.GetLabel() {
								length += len(l.GetName()) + len(l.GetValue())
							}
							if length > prometheus.ExemplarMaxRunes {
								t.Errorf("labels of %d characters", length)
							}
						}
					}
				}
			}
			if got != c.want {
				t.Errorf("%d buckets show the call, want %d", got, c.want)
			}
			if text, _ := scrape(t, m, asText); strings.Count(string(text), testTrace) != c.want {
				t.Errorf("the trace is shown %d times, want %d", strings.Count(string(text), testTrace), c.want)
			}
		})
	}
}

// TestLatestExemplar: a bucket shows its latest call, and others keep theirs.
func TestLatestExemplar(t *testing.T) {
	m := New()
	for i, ttft := range []time.Duration{150 * milli, 180 * milli, 300 * milli} {
		rec := sampled()
		rec.TTFT, rec.TraceID = call.Lasting(ttft), strings.Repeat(strconv.Itoa(i), 32)
		observe(m, rec)
	}
	h := find(t, gather(t, m), "weir_ttft_seconds").GetHistogram()
	got := map[string]float64{}
	for _, b := range h.GetBucket() {
		if e := b.GetExemplar(); e != nil {
			got[e.GetLabel()[0].GetValue()[:1]] = b.GetUpperBound()
		}
	}
	if len(got) != 3 || got["0"] != 0.16 || got["1"] != 0.2 || got["2"] != 0.32 {
		t.Errorf("exemplars by call: %v", got)
	}
	again := sampled()
	again.TTFT, again.TraceID = call.Lasting(151*milli), strings.Repeat("9", 32)
	observe(m, again)
	h = find(t, gather(t, m), "weir_ttft_seconds").GetHistogram()
	if e := h.GetBucket()[8].GetExemplar(); h.GetBucket()[8].GetUpperBound() != 0.16 || e.GetLabel()[0].GetValue()[:1] != "9" {
		t.Errorf("the bucket still shows %v", e)
	}
}

// TestExemplarsWhileScraped: calls that are counted while a scrape reads them.
func TestExemplarsWhileScraped(t *testing.T) {
	m := New()
	reg := prometheus.NewPedanticRegistry()
	if err := m.Register(reg); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			rec := sampled()
			for i := range 300 {
				rec.TTFT = call.Lasting(time.Duration(1+i*(w+1)) * milli)
				observe(m, rec)
			}
		})
	}
	for range 20 {
		all, err := reg.Gather()
		if err != nil {
			t.Error(err)
		}
		for _, f := range all {
			for _, s := range f.GetMetric() {
				for _, b := range s.GetHistogram().GetBucket() {
					if b.GetExemplar() != nil && b.GetCumulativeCount() == 0 {
						t.Errorf("%s: an exemplar in a bucket that counts nothing", f.GetName())
					}
				}
			}
		}
	}
	wg.Wait()
}
