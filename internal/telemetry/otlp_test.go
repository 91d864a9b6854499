package telemetry

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	pb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/weirgate/weir/internal/call"
)

// receiver takes metrics over OTLP on loopback.
type receiver struct {
	metricspb.UnimplementedMetricsServiceServer
	status int    // 0 is 200
	body   []byte // of an answer that is no 200

	mu      sync.Mutex
	got     []*metricspb.ExportMetricsServiceRequest
	path    string
	token   string
	partial string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var body io.Reader = req.Body
	if req.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(req.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unpacked
	}
	b, err := io.ReadAll(body)
	message := new(metricspb.ExportMetricsServiceRequest)
	if err != nil || proto.Unmarshal(b, message) != nil || req.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "no OTLP", http.StatusBadRequest)
		return
	}
	if r.status != 0 {
		w.WriteHeader(r.status)
		w.Write(r.body)
		return
	}
	answer, _ := r.take(message, req.URL.Path, req.Header.Get("X-Token"))
	w.Header().Set("Content-Type", "application/x-protobuf")
	b, _ = proto.Marshal(answer)
	w.Write(b)
}

func (r *receiver) Export(ctx context.Context, message *metricspb.ExportMetricsServiceRequest) (*metricspb.ExportMetricsServiceResponse, error) {
	token := ""
	if md, has := metadata.FromIncomingContext(ctx); has {
		token = strings.Join(md.Get("x-token"), ",")
	}
	return r.take(message, "", token)
}

func (r *receiver) take(message *metricspb.ExportMetricsServiceRequest, path, token string) (*metricspb.ExportMetricsServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got, r.path, r.token = append(r.got, message), path, token
	answer := new(metricspb.ExportMetricsServiceResponse)
	if r.partial != "" {
		answer.PartialSuccess = &metricspb.ExportMetricsPartialSuccess{RejectedDataPoints: 1, ErrorMessage: r.partial}
	}
	return answer, nil
}

// metrics returns the metrics of the only message by their names.
func (r *receiver) metrics(t *testing.T) (map[string]*pb.Metric, *pb.ResourceMetrics) {
	t.Helper()
	if len(r.got) != 1 || len(r.got[0].GetResourceMetrics()) != 1 || len(r.got[0].GetResourceMetrics()[0].GetScopeMetrics()) != 1 {
		t.Fatalf("%d messages: %v", len(r.got), r.got)
	}
	all := make(map[string]*pb.Metric)
	whole := r.got[0].GetResourceMetrics()[0]
	for _, m := range whole.GetScopeMetrics()[0].GetMetrics() {
		all[m.GetName()] = m
	}
	return all, whole
}

func texts(attrs []*commonpb.KeyValue) map[string]string {
	m := make(map[string]string)
	for _, a := range attrs {
		m[a.GetKey()] = a.GetValue().GetStringValue()
	}
	return m
}

// exportOnce exports m once, at the end of the export.
func exportOnce(t *testing.T, m *Metrics, o ExportOptions) MetricsExportState {
	t.Helper()
	e, err := NewMetricsExport(m, o, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e.State()
}

// TestOverHTTP: what arrives at a real receiver.
func TestOverHTTP(t *testing.T) {
	r := new(receiver)
	server := httptest.NewServer(r)
	defer server.Close()
	m := full()
	observe(m, sampled())
	broken := sampled()
	broken.Outcome = call.Truncated
	observe(m, broken)
	state := exportOnce(t, m, ExportOptions{Endpoint: server.URL + "/", Version: "v9", Headers: map[string]string{"X-Token": "secret"}})
	if state.Exported != 1 || state.Error != "" || state.Protocol != ProtocolHTTP || state.Endpoint != server.URL+"/" || state.Interval != call.Lasting(time.Hour) {
		t.Errorf("state %+v", state)
	}
	if r.path != "/v1/metrics" || r.token != "secret" {
		t.Errorf("asked for %s with token %q", r.path, r.token)
	}
	all, whole := r.metrics(t)
	if got := texts(whole.GetResource().GetAttributes()); got["service.name"] != "weir" || got["service.version"] != "v9" {
		t.Errorf("resource %v", got)
	}
	if s := whole.GetScopeMetrics()[0].GetScope(); s.GetName() != "github.com/weirgate/weir" || s.GetVersion() != "v9" {
		t.Errorf("scope %v", s)
	}
	for _, row := range Table() {
		name := row.Name
		if row.OTel != "" {
			name = row.OTel
		}
		got := all[name]
		delete(all, name)
		if got == nil || got.GetUnit() != row.Unit() || got.GetDescription() != row.Help {
			t.Errorf("%s: %v", name, got)
			continue
		}
		switch row.Type {
		case Gauge:
			if len(got.GetGauge().GetDataPoints()) == 0 {
				t.Errorf("%s is no gauge: %v", name, got)
			}
		case Counter:
			if s := got.GetSum(); !s.GetIsMonotonic() || s.GetAggregationTemporality() != pb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE {
				t.Errorf("%s is no counter: %v", name, got)
			}
		case Histogram:
			checkHistogram(t, &row, got.GetHistogram())
		}
	}
	if len(all) > 0 {
		t.Errorf("beside the table: %v", slices.Collect(maps.Keys(all)))
	}
}

func checkHistogram(t *testing.T, row *Metric, h *pb.Histogram) {
	t.Helper()
	if h.GetAggregationTemporality() != pb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE || len(h.GetDataPoints()) == 0 {
		t.Errorf("%s: %v", row.Name, h)
	}
	var edges []float64
	for _, e := range row.Edges {
		edges = append(edges, float64(e)/1e9)
	}
	for _, e := range row.TokenEdges {
		edges = append(edges, float64(e))
	}
	for _, p := range h.GetDataPoints() {
		if !slices.Equal(p.GetExplicitBounds(), edges) || len(p.GetBucketCounts()) != len(edges)+1 {
			t.Errorf("%s: bounds %v, %d counts; want %v", row.Name, p.GetExplicitBounds(), len(p.GetBucketCounts()), edges)
		}
		var n uint64
		for _, c := range p.GetBucketCounts() {
			n += c
		}
		if n != p.GetCount() {
			t.Errorf("%s: buckets hold %d of %d", row.Name, n, p.GetCount())
		}
		want := map[string]bool{}
		for _, l := range row.Labels {
			if key, has := conventional[l.Name]; has && row.OTel != "" {
				want[string(key)] = true
			} else {
				want[l.Name] = true
			}
		}
		for key, value := range texts(p.GetAttributes()) {
			if !want[key] || row.OTel != "" && value == "" {
				t.Errorf("%s: attribute %s=%q", row.Name, key, value)
			}
		}
		for _, e := range p.GetExemplars() {
			if hex.EncodeToString(e.GetTraceId()) != testTrace || e.GetAsDouble() <= 0 || e.GetTimeUnixNano() != 1_790_000_000_400_000_000 || len(e.GetFilteredAttributes()) > 0 {
				t.Errorf("%s: exemplar %v", row.Name, e)
			}
		}
	}
	if row.OTel == "gen_ai.server.request.duration" {
		byError := map[string]uint64{}
		for _, p := range h.GetDataPoints() {
			attrs := texts(p.GetAttributes())
			byError[attrs["error.type"]] += p.GetCount()
			if attrs["gen_ai.request.model"] != "llama" || attrs["weir.class"] != "interactive" || len(p.GetExemplars()) != 1 {
				t.Errorf("%v has %d exemplars", attrs, len(p.GetExemplars()))
			}
		}
		if !maps.Equal(byError, map[string]uint64{"": 2, "truncated": 1}) {
			t.Errorf("calls by error.type: %v", byError)
		}
	}
	if row.OTel == "gen_ai.client.token.usage" {
		byType := map[string]float64{}
		for _, p := range h.GetDataPoints() {
			byType[texts(p.GetAttributes())["gen_ai.token.type"]] += p.GetSum()
		}
		if !maps.Equal(byType, map[string]float64{"input": 300, "output": 30}) {
			t.Errorf("tokens by type: %v", byType)
		}
	}
}

// TestOverGRPC: the same by the other protocol.
func TestOverGRPC(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := new(receiver)
	server := grpc.NewServer()
	metricspb.RegisterMetricsServiceServer(server, r)
	var serving sync.WaitGroup
	serving.Go(func() { server.Serve(listener) })
	defer serving.Wait()
	defer server.Stop()
	state := exportOnce(t, full(), ExportOptions{Endpoint: "http://" + listener.Addr().String(), Protocol: ProtocolGRPC, Headers: map[string]string{"x-token": "secret"}})
	if state.Exported != 1 || state.Error != "" || state.Protocol != ProtocolGRPC {
		t.Errorf("state %+v", state)
	}
	all, _ := r.metrics(t)
	if len(all) != numMetrics || r.token != "secret" {
		t.Errorf("%d metrics of %d, token %q", len(all), numMetrics, r.token)
	}
}

// TestByEnvironment: the standard variables alone.
func TestByEnvironment(t *testing.T) {
	r := new(receiver)
	server := httptest.NewServer(r)
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "X-Token=of%20the%20environment")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta") // means nothing here
	t.Setenv("OTEL_SERVICE_NAME", "front door")
	state := exportOnce(t, full(), ExportOptions{})
	if state.Exported != 1 || state.Error != "" || state.Endpoint != "" {
		t.Errorf("state %+v", state)
	}
	all, whole := r.metrics(t)
	if r.path != "/v1/metrics" || r.token != "of the environment" || texts(whole.GetResource().GetAttributes())["service.name"] != "front door" {
		t.Errorf("path %s, token %q, resource %v", r.path, r.token, whole.GetResource())
	}
	if got := all["weir_calls_total"].GetSum().GetAggregationTemporality(); got != pb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE {
		t.Errorf("counts are %v", got)
	}
}

// TestReceiverFaults: what a receiver does not take is counted, and told of in few words.
func TestReceiverFaults(t *testing.T) {
	for name, c := range map[string]struct {
		receiver *receiver
		says     string
	}{
		"refuses":     {&receiver{status: http.StatusBadRequest, body: []byte(strings.Repeat("no ", 1<<20))}, "400"},
		"takes parts": {&receiver{partial: "out of range"}, "out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.receiver)
			defer server.Close()
			var told []error
			state := exportOnce(t, full(), ExportOptions{Endpoint: server.URL, Report: func(err error) { told = append(told, err) }})
			if state.Exported != 0 || state.Failed != 1 || !strings.Contains(state.Error, c.says) || len(state.Error) > 2*maxError {
				t.Errorf("state %d exported, %d failed, error of %d bytes: %.200s", state.Exported, state.Failed, len(state.Error), state.Error)
			}
			if len(told) != 1 || told[0].Error() != state.Error {
				t.Errorf("told %d times", len(told))
			}
		})
	}
}

// TestNobodyListens: a collector that is not there is no error of the configuration.
func TestNobodyListens(t *testing.T) {
	for _, protocol := range []string{ProtocolHTTP, ProtocolGRPC} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := listener.Addr().String()
		listener.Close()
		e, err := NewMetricsExport(full(), ExportOptions{Endpoint: "http://" + address, Protocol: protocol}, 0)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err = e.Close(ctx)
		cancel()
		if s := e.State(); s.Failed != 1 || s.Error == "" {
			t.Errorf("%s: closed with %v, state %+v", protocol, err, s)
		}
	}
}
