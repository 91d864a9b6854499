package engine

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/exposition"
)

// bigPage is a page of some 200 kB, as a vLLM with many histograms writes it.
func bigPage(b testing.TB) []byte {
	var text bytes.Buffer
	text.WriteString(page(b, "vllm.txt"))
	for i := 0; text.Len() < 200_000; i++ {
		fmt.Fprintf(&text, "# HELP vllm:histogram_%d_seconds Histogram of a time in seconds.\n# TYPE vllm:histogram_%[1]d_seconds histogram\n", i)
		for le := range 20 {
			fmt.Fprintf(&text, "vllm:histogram_%d_seconds_bucket{engine=\"0\",le=\"%d.0\",model_name=\"river\"} %d.0\n", i, le, le*i)
		}
		fmt.Fprintf(&text, "vllm:histogram_%d_seconds_bucket{engine=\"0\",le=\"+Inf\",model_name=\"river\"} 7.0\n", i)
		fmt.Fprintf(&text, "vllm:histogram_%d_seconds_sum{engine=\"0\",model_name=\"river\"} 7.0\nvllm:histogram_%[1]d_seconds_count{engine=\"0\",model_name=\"river\"} 7.0\n", i)
	}
	return text.Bytes()
}

// sampled is a Sampler that has just read this page.
func sampled(b testing.TB, text []byte) *Sampler {
	s, err := NewSampler(Options{Address: "http://engine"})
	if err != nil {
		b.Fatal(err)
	}
	g, err := parseGauges(text, Auto)
	if err != nil {
		b.Fatal(err)
	}
	g.Time = time.Now()
	s.note(g.Time, &g, nil)
	return s
}

func BenchmarkAt(b *testing.B) {
	s := sampled(b, bigPage(b))
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, known := s.At(now); !known {
			b.Fatal("no reading")
		}
	}
}

func TestAtAllocatesNothing(t *testing.T) {
	s := sampled(t, bigPage(t))
	now := time.Now()
	if n := testing.AllocsPerRun(100, func() {
		if _, _, known := s.At(now); !known {
			t.Error("no reading")
		}
	}); n != 0 {
		t.Errorf("At allocates %v times", n)
	}
}

func BenchmarkNoQueueAt(b *testing.B) {
	s := sampled(b, []byte("vllm:num_requests_running 1\nvllm:num_requests_waiting 0\n"))
	first := *s.readings[0].Gauges
	for i := range 900 {
		g := first
		g.Time = first.Time.Add(time.Duration(i+1) * time.Second)
		s.note(g.Time, &g, nil)
	}
	at := s.readings[700].Time.Add(300 * time.Millisecond)
	b.ReportAllocs()
	for b.Loop() {
		if bound, known := s.NoQueueAt(at); !known || bound != 700*time.Millisecond {
			b.Fatal(bound, known)
		}
	}
}

type fixed []byte

func (f fixed) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(f))}, nil
}

// BenchmarkReadGauges reads a page of 200 kB without a network.
func BenchmarkReadGauges(b *testing.B) {
	text := bigPage(b)
	client := &http.Client{Transport: fixed(text)}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if g, err := ReadGauges(b.Context(), client, "http://engine", Auto); err != nil || g.Waiting != exactly(5) {
			b.Fatal(g, err)
		}
	}
}

// BenchmarkWholePage is what parsing all of the page would cost.
func BenchmarkWholePage(b *testing.B) {
	text := bigPage(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if f, err := exposition.Parse(text); err != nil || len(f) == 0 {
			b.Fatal(err)
		}
	}
}

// BenchmarkHostilePage is a page of 16 MiB, the most that is read.
func BenchmarkHostilePage(b *testing.B) {
	text := []byte(strings.Repeat("vllm:x{a=\"1\"} 1\n", maxBody/16))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseGauges(text, Auto); err == nil {
			b.Fatal("gauges of nothing")
		}
	}
}
