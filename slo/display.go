package slo

import (
	"encoding/binary"
	"math"
	"time"
)

// Times for display are kept in parts of partMinutes, of which an hour has partsPerHour.
const (
	partMinutes  = 5
	partsPerHour = 12
)

// display keeps the times of a series for quantiles: the last hour, to within a part.
type display struct {
	rings [Success]*ring
}

// ring is the times of one number: the current part, and those before, packed.
type ring struct {
	part   int64 // absolute number of the current part
	open   Histogram
	past   Histogram // all of closed
	closed [partsPerHour - 1][]byte
	latest int // of closed
}

// current returns the histogram of the current part.
func (d *display) current(n Number, part int64) *Histogram {
	if r := d.rings[n]; r != nil && r.part == part {
		return &r.open
	}
	return d.turn(n, part)
}

func (d *display) turn(n Number, part int64) *Histogram {
	if d.rings[n] == nil {
		d.rings[n] = &ring{part: part}
	}
	d.rings[n].turn(part)
	return &d.rings[n].open
}

// turn closes the current part when its time is over. Where the clock steps back,
// it goes on.
func (r *ring) turn(part int64) {
	if part <= r.part && r.part-part < partsPerHour {
		return
	}
	for n := 0; n < partsPerHour && r.part != part; n++ {
		r.latest = (r.latest + 1) % len(r.closed)
		r.closed[r.latest] = packed(&r.open)
		r.open.Reset()
		if part < r.part {
			continue // the clock went back by an hour or more: all is old
		}
		r.part++
	}
	r.part = part
	r.past.Reset()
	for _, b := range r.closed {
		unpack(b, &r.past)
	}
}

// packed writes a histogram as pairs of varints: how many buckets are passed over, and the
// count of the next.
func packed(h *Histogram) []byte {
	if h.total == 0 {
		return nil
	}
	used := 0
	for _, n := range h.counts {
		if n != 0 {
			used++
		}
	}
	b := make([]byte, 0, 3*used)
	last := -1
	for i, n := range h.counts {
		if n != 0 {
			b = binary.AppendUvarint(b, uint64(h.first+i-last-1))
			b = binary.AppendUvarint(b, uint64(n))
			last = h.first + i
		}
	}
	return append(make([]byte, 0, len(b)), b...)
}

// unpack adds what packed has written.
func unpack(b []byte, h *Histogram) {
	for last := -1; len(b) > 0; {
		gap, k := binary.Uvarint(b)
		n, l := binary.Uvarint(b[k:])
		b = b[k+l:]
		last += int(gap) + 1
		if last < h.first || last >= h.first+len(h.counts) {
			h.grow(last, last)
		}
		c := &h.counts[last-h.first]
		n = min(n, uint64(math.MaxUint32-*c))
		*c += uint32(n)
		h.total += int64(n)
	}
}

// hour adds the last hour's times to h, five those of the last five to ten minutes.
func (d *display) hour(n Number, part int64, hour, five *Histogram) {
	r := d.rings[n]
	if r == nil {
		return
	}
	r.turn(part)
	hour.Merge(&r.open)
	hour.Merge(&r.past)
	five.Merge(&r.open)
	unpack(r.closed[r.latest], five)
}

// quantiles returns the quantiles of times, nil without any.
func quantiles(h *Histogram) *Quantiles {
	if h.Count() == 0 {
		return nil
	}
	q := &Quantiles{Calls: h.Count()}
	for _, x := range [...]struct {
		at *time.Duration
		q  float64
	}{{&q.P50, 0.5}, {&q.P90, 0.9}, {&q.P95, 0.95}, {&q.P99, 0.99}} {
		*x.at, _ = h.Quantile(x.q)
	}
	return q
}
