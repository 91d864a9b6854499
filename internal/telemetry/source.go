package telemetry

import (
	"sync/atomic"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirgate/weir/internal/call"
)

// source is where figures come from that are read at each scrape instead of being
// counted. The zero value has none.
type source[T any] struct {
	read atomic.Pointer[func() T]
}

// set makes f the source; nil takes the figures away.
func (s *source[T]) set(f func() T) {
	if f == nil {
		s.read.Store(nil)
		return
	}
	s.read.Store(&f)
}

// get reads the source; false when there is none.
func (s *source[T]) get() (T, bool) {
	f := s.read.Load()
	if f == nil {
		var none T
		return none, false
	}
	return (*f)(), true
}

// sending sends figures that were just read, each under its row of the table.
type sending struct {
	*collector
	ch chan<- prometheus.Metric
}

// figure sends v. The labels are the row's, in their order; with one that is no
// text, which would cost the whole scrape, it is left out.
func (s sending) figure(row int, v float64, labels ...string) {
	for _, l := range labels {
		if !utf8.ValidString(l) {
			return
		}
	}
	kind := prometheus.GaugeValue
	if table[row].Type == Counter {
		kind = prometheus.CounterValue
	}
	s.ch <- prometheus.MustNewConstMetric(s.families[row].desc, kind, v, labels...)
}

// count sends n unless it is unknown.
func (s sending) count(row int, n call.Count, labels ...string) {
	if v, known := n.Get(); known {
		s.figure(row, float64(v), labels...)
	}
}

// number sends x unless it is unknown.
func (s sending) number(row int, x call.Number, labels ...string) {
	if v, known := x.Get(); known {
		s.figure(row, v, labels...)
	}
}

// shown tells of labels whether they may still be shown: new ones, up to a cap.
// Two series of the same labels would cost the whole scrape.
type shown[K comparable] struct {
	cap  int
	seen map[K]struct{}
}

func newShown[K comparable](n int) *shown[K] {
	return &shown[K]{cap: n, seen: make(map[K]struct{})}
}

func (s *shown[K]) add(k K) bool {
	if _, twice := s.seen[k]; twice || len(s.seen) >= s.cap {
		return false
	}
	s.seen[k] = struct{}{}
	return true
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
