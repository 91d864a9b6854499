package telemetry

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// family is one metric of the table with its series.
type family struct {
	desc      *prometheus.Desc
	layout    *layout // of histograms; else nil
	exemplars bool
	one       float64 // how much of a counter's n is one

	mu     sync.Mutex // guards series
	series []prometheus.Metric
}

func newFamily(m *Metric) *family {
	names := make([]string, len(m.Labels))
	for i, l := range m.Labels {
		names[i] = l.Name
	}
	f := &family{desc: prometheus.NewDesc(m.Name, m.Help, names, nil), exemplars: m.Exemplars, one: 1}
	switch {
	case m.TokenEdges != nil:
		f.layout = newLayout(inTokens, m.TokenEdges)
	case m.Type == Histogram:
		edges := make([]int64, len(m.Edges))
		for i, e := range m.Edges {
			edges[i] = int64(e)
		}
		f.layout = newLayout(inSeconds, edges)
	}
	return f
}

// collect sends every series. Sending may block on the scraper, so the lock is
// not held over it.
func (f *family) collect(ch chan<- prometheus.Metric) {
	f.mu.Lock()
	all := slices.Clip(f.series) // only ever appended to
	f.mu.Unlock()
	for _, s := range all {
		if h, is := s.(*histogram); is && f.exemplars {
			s = h.withExemplars()
		}
		ch <- s
	}
}

// counter returns the counter in slot, and makes it there on first use. The
// values are the labels' in their order.
func (f *family) counter(slot *atomic.Pointer[counter], values ...string) *counter {
	if c := slot.Load(); c != nil {
		return c
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := slot.Load(); c != nil {
		return c
	}
	c := &counter{desc: f.desc, labels: prometheus.MakeLabelPairs(f.desc, values), one: f.one}
	f.series = append(f.series, c)
	slot.Store(c)
	return c
}

// histogram is the same for histograms.
func (f *family) histogram(slot *atomic.Pointer[histogram], values ...string) *histogram {
	if h := slot.Load(); h != nil {
		return h
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := slot.Load(); h != nil {
		return h
	}
	h := &histogram{
		desc: f.desc, labels: prometheus.MakeLabelPairs(f.desc, values),
		layout: f.layout, counts: make([]atomic.Uint64, len(f.layout.cells)+1),
	}
	if f.exemplars {
		h.exemplars = make([]atomic.Pointer[exemplar], len(f.layout.edges)+1)
	}
	f.series = append(f.series, h)
	slot.Store(h)
	return h
}

// counter is one series that only grows.
type counter struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	one    float64 // how much of n is one of the metric's unit
	n      atomic.Uint64
}

// maxFigure is the most that one call adds to a counter. What is larger is a
// fault of whoever reported it, and would spoil the sum for ever.
const maxFigure = 1 << 50

// add adds n; a negative or absurd n is left out.
func (c *counter) add(n int64) {
	if n > 0 && n <= maxFigure {
		c.n.Add(uint64(n))
	}
}

// Desc is part of prometheus.Metric.
func (c *counter) Desc() *prometheus.Desc { return c.desc }

// Write is part of prometheus.Metric.
func (c *counter) Write(out *dto.Metric) error {
	out.Label = c.labels
	out.Counter = &dto.Counter{Value: new(float64(c.n.Load()) / c.one)}
	return nil
}

// counters are the counters of a metric with one learnt label.
type counters struct {
	family *family
	values *learnt

	mu    sync.RWMutex // guards slots, not what they point to
	slots map[string]*atomic.Pointer[counter]
}

func newCounters(f *family, values *learnt) *counters {
	return &counters{family: f, values: values, slots: make(map[string]*atomic.Pointer[counter])}
}

func (c *counters) add(value string, n int64) {
	value = c.values.label(value, true)
	c.mu.RLock()
	slot := c.slots[value]
	c.mu.RUnlock()
	if slot == nil {
		c.mu.Lock()
		if slot = c.slots[value]; slot == nil {
			slot = new(atomic.Pointer[counter])
			c.slots[value] = slot
		}
		c.mu.Unlock()
	}
	c.family.counter(slot, value).add(n)
}
