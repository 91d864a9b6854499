package telemetry

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	tracecollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// TestSpansOfHostileText: a call whose client wrote what is no text costs no other call its
// spans, nor its own.
func TestSpansOfHostileText(t *testing.T) {
	spans := 0
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request tracecollector.ExportTraceServiceRequest
		if err != nil || proto.Unmarshal(body, &request) != nil {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		for _, resource := range request.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				spans += len(scope.Spans)
			}
		}
	}))
	defer collector.Close()
	tracer, err := NewTracer(ExportOptions{Endpoint: collector.URL})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 4 {
		rec := traced()
		switch n {
		case 1:
			rec.Path = "/\xff/v1/chat/completions"
		case 2:
			rec.Model, rec.ResponseModel, rec.ResponseID, rec.Key = "m\xff", "\xc3", "\xff", "\x80"
			rec.FinishReason.Set(0, "st\xffop")
		}
		s := tracer.Begin(postTo())
		tracer.End(&s, rec)
	}
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if state := tracer.State(); spans != 4*9 || state.Exported != 4*9 || state.Error != "" {
		t.Errorf("%d spans came, want %d: %+v", spans, 4*9, state)
	}
}

// TestEndAfterClose: a call that outlasts the export leaves no spans, is counted as
// dropped, and is not taken for one that can be looked up.
func TestEndAfterClose(t *testing.T) {
	var got spanCollector
	tracer := tracerTo(t, &got, parentDecides, ExportOptions{})
	s := tracer.Begin(postTo())
	if tracer.Closed() {
		t.Error("closed before Close")
	}
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if tracer.End(&s, traced()) || !tracer.Closed() {
		t.Error("a closed Tracer made spans")
	}
	if state := tracer.State(); state.Waiting != 0 || state.Dropped == 0 || len(got.spans) != 0 {
		t.Errorf("%d spans came: %+v", len(got.spans), state)
	}
	if (*Tracer)(nil).Closed() {
		t.Error("no Tracer is closed")
	}
}

// TestLongAnswers: what a collector says is not kept at length.
func TestLongAnswers(t *testing.T) {
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, strings.Repeat("ü", 1<<20))
	}))
	defer collector.Close()
	var told error
	tracer, err := NewTracer(ExportOptions{Endpoint: collector.URL, Report: func(err error) { told = err }})
	if err != nil {
		t.Fatal(err)
	}
	s := tracer.Begin(postTo())
	tracer.End(&s, traced())
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	text := tracer.State().Error
	if text == "" || len(text) > 2*maxError || !utf8.ValidString(text) || told == nil || len(told.Error()) > 2*maxError {
		t.Errorf("%d bytes are kept of a collector's answer, and told %v", len(text), told != nil)
	}
}

// TestCloseBeforeABlackHole: the end waits its time for a collector that never
// answers, and then nothing goes on in the background.
func TestCloseBeforeABlackHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracer := tracerTo(t, &spanCollector{hangs: true}, parentDecides, ExportOptions{})
		for range 1000 { // many batches, each of which could take its whole time-out
			s := tracer.Begin(postTo())
			tracer.End(&s, traced())
		}
		began := time.Now()
		if err := tracer.Close(context.Background()); err == nil {
			t.Error("nothing was sent, and Close says nothing")
		}
		if took := time.Since(began); took > CloseTimeout {
			t.Errorf("Close took %v", took)
		}
		time.Sleep(exportTimeout) // of the batch that was on its way
		synctest.Wait()
		if state := tracer.State(); state.Waiting != 0 || state.Exported != 0 {
			t.Errorf("spans still wait: %+v", state)
		}
	})
}

// TestEndpoints: what an exporter would leave out of its endpoint is told, and never
// repeated.
func TestEndpoints(t *testing.T) {
	for endpoint, fine := range map[string]bool{
		"": true, "http://127.0.0.1:4318": true, "https://collector.example/prefix": true,
		"127.0.0.1:4318": false, "ftp://secret@h": false, "http://user:secret@127.0.0.1:4318": false,
		"http://h:4318/?token=secret": false, "http://h:4318/#secret": false, "http//user:secret@h": false, "http://secret host": false,
	} {
		err := ExportOptions{Endpoint: endpoint}.Validate()
		if (err == nil) != fine || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}
