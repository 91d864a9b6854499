package slo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"time"
)

// image is a Snapshot or Changes, read and checked, before a Tracker takes it.
type image struct {
	minute  int64
	period  Period
	classes []*imageClass
}

// imageClass is a class and what columns its counts are about.
type imageClass struct {
	name   string
	layout *layout
	began  []int64
	since  int64
	series []imageSeries
}

type imageSeries struct {
	model string
	hours []imageHour
	days  []imageDay
}

// imageHour is an hour; rows are the minutes that are told of.
type imageHour struct {
	*hourCells
	rows uint64
}

type imageDay struct {
	*dayCells
	rows uint32
}

var errShort = errors.New("they end too early, or a number is out of its range")

// decoder reads varints; after the first error all are 0.
type decoder struct {
	b      []byte
	room   int // bytes that counts may still take
	series int // that may still come, OtherModel's not counted
	wide   grid
	err    error
}

func (d *decoder) fail() { d.err = errShort; d.b = nil }

// uint reads a number up to most.
func (d *decoder) uint(most uint64) uint64 {
	n, k := binary.Uvarint(d.b)
	if k <= 0 || n > most {
		d.fail()
		return 0
	}
	d.b = d.b[k:]
	return n
}

// int reads a number whose size is up to most.
func (d *decoder) int(most int64) int64 {
	n, k := binary.Varint(d.b)
	if k <= 0 || n > most || n < -most {
		d.fail()
		return 0
	}
	d.b = d.b[k:]
	return n
}

func (d *decoder) text(most uint64) string {
	n := d.uint(most)
	if n > uint64(len(d.b)) {
		d.fail()
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

// take counts bytes that counts take.
func (d *decoder) take(n int) {
	if d.room -= n; d.room < 0 {
		d.fail()
	}
}

// decode reads a Snapshot or Changes.
func decode(b []byte, kind byte) (*image, error) {
	body, err := open(b, kind)
	if err != nil {
		return nil, err
	}
	d := &decoder{b: body, room: maxImage, series: MaxSeries}
	m := &image{minute: d.int(maxMinute), period: Period{Rolling: time.Duration(d.uint(uint64(maxRolling)))}}
	if zone := d.text(maxZone); zone != "" {
		// A zone that is not known here is UTC until the time is told.
		m.period.Zone, _ = time.LoadLocation(zone)
	}
	seen := make(map[string]bool)
	for n := d.uint(MaxClasses); n > 0 && d.err == nil; n-- {
		c := d.class(m.minute)
		if seen[c.name] {
			return nil, fmt.Errorf("class %.20q is there twice", c.name)
		}
		seen[c.name] = true
		m.classes = append(m.classes, c)
	}
	if d.err == nil && len(d.b) > 0 {
		d.err = errors.New("there is something behind their end")
	}
	return m, d.err
}

func (d *decoder) class(minute int64) *imageClass {
	c := &imageClass{name: d.text(MaxName)}
	var e Envelope
	e.CallsPerMinute = int64(d.uint(MaxCallsPerMinute))
	for n := d.uint(MaxTerms); n > 0 && d.err == nil; n-- {
		t := Term{Quantity: InputTokens}
		if d.uint(1) == 1 {
			t.Quantity = OutputTokens
		}
		t.Target, t.AtMost = Target(d.uint(million)), int64(d.uint(MaxTokens))
		e.Terms = append(e.Terms, t)
	}
	c.since = d.int(1 << 51)
	var keys []string
	for n := d.uint(MaxObjectives); n > 0 && d.err == nil; n-- {
		key := d.text(maxKey)
		for _, k := range keys {
			if k == key {
				d.fail()
			}
		}
		keys = append(keys, key)
		c.began = append(c.began, d.int(1<<63-1))
	}
	c.layout = newLayout(keys, e)
	seen := make(map[string]bool)
	for n := d.uint(MaxSeries + 1); n > 0 && d.err == nil; n-- {
		s := imageSeries{model: d.text(MaxModel)}
		if s.model == AllModels || seen[s.model] {
			d.fail()
		}
		seen[s.model] = true
		if s.model != OtherModel {
			if d.series--; d.series < 0 {
				d.fail()
			}
		}
		d.hours(&s, c.layout, minute)
		d.days(&s, c.layout, minute)
		c.series = append(c.series, s)
	}
	return c
}

func (d *decoder) hours(s *imageSeries, l *layout, minute int64) {
	last := int64(-1 << 62)
	for n := d.uint(hourSlots); n > 0 && d.err == nil; n-- {
		hour := d.int(maxMinute / 60)
		rows, outside := d.uint(1<<60-1), d.uint(1<<60-1)
		a := aging{minute: minute}
		if hour < a.firstHour() || hour > a.lastHour() || hour <= last {
			d.fail()
		}
		last = hour
		h := &hourCells{hour: hour, total: make([]int64, l.cols), outside: outside & rows, packed: true}
		d.blank(60, l.cols)
		for r := range 60 {
			if rows>>r&1 == 1 {
				d.row(r, 0, l.cols)
			}
		}
		if h.cells = d.packed(h.total); d.err != nil {
			return
		}
		if h.outside != 0 {
			h.out = make([]int64, l.cols)
			h.cells.sum(0, 60, ^h.outside, h.out)
		}
		s.hours = append(s.hours, imageHour{h, rows})
	}
}

func (d *decoder) days(s *imageSeries, l *layout, minute int64) {
	last := int64(-1 << 62)
	for n := d.uint(daySlots); n > 0 && d.err == nil; n-- {
		day := d.int(maxMinute / minutesPerDay)
		rows := uint32(d.uint(1<<24 - 1))
		a := aging{minute: minute}
		if !a.keeps(day) || day <= last {
			d.fail()
		}
		last = day
		x := &dayCells{day: day, total: make([]int64, 2*l.counts+1)}
		d.blank(24, 2*l.counts+1)
		for r := range 24 {
			if rows>>r&1 == 1 {
				d.row(r, 0, l.counts)
				d.row(r, l.counts, 2*l.counts)
				d.wide.put(r, 2*l.counts, int64(d.uint(maxCell)))
			}
		}
		if x.cells = d.packed(x.total); d.err != nil {
			return
		}
		s.days = append(s.days, imageDay{x, rows})
	}
}

// blank makes the grid that rows are read into.
func (d *decoder) blank(rows, cols int) {
	if d.wide.rows == rows && d.wide.cols() == cols {
		clear(d.wide.data)
		return
	}
	d.wide = newGrid(rows, cols, 8)
}

// row reads what encodeRow has written.
func (d *decoder) row(row, from, to int) {
	mask := d.uint(1<<(to-from) - 1)
	for ; mask != 0 && d.err == nil; mask &= mask - 1 {
		d.wide.put(row, from+bits.TrailingZeros64(mask), int64(d.uint(maxCell)))
	}
}

// packed returns the grid that was read, as small as it goes, and adds its rows to total.
func (d *decoder) packed(total []int64) grid {
	const overhead = 512 // of an hour or a day beside its counts
	d.wide.sum(0, d.wide.rows, 0, total)
	g := d.wide.narrowed()
	d.take(len(g.data) + 10*len(total) + overhead)
	return g
}
