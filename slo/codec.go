package slo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// The format of Snapshot and Changes, version 1. Numbers are varints as encoding/binary
// writes them, signed ones zigzag; a text is its length and its bytes.
//
//	"weirslo" version kind     8 bytes and a byte; kind is 'S' or 'C'
//	minute                     signed: the newest minute, counted from 1970
//	rolling                    nanoseconds of a rolling period, 0 for calendar months
//	zone                       text: the time zone of calendar months, "" for UTC
//	classes                    how many; for each:
//	  name                     text
//	  calls_per_minute         of the envelope
//	  terms                    how many; for each: quantity (0 input, 1 output), target, at_most
//	  since                    signed: the first minute for which the envelope holds
//	  columns                  how many; for each: key (text), began (signed, nanoseconds since 1970)
//	  series                   how many; for each:
//	    model                  text
//	    hours                  how many; for each, ascending:
//	      hour                 signed, counted from 1970
//	      minutes              a bit for each minute that follows
//	      outside              a bit for each minute outside the envelope
//	      for each minute      a bit for each count that is not 0, then those counts
//	    days                   how many; for each, ascending:
//	      day                  signed, counted from 1970
//	      hours                a bit for each hour that follows
//	      for each hour        inside and then outside: a bit for each count that is not 0,
//	                           then those counts; then the minutes outside
//	checksum                   4 bytes, big-endian: CRC-32C of all before
//
// Counts of a minute are good, bad and unknown of each column, and with an envelope calls
// received, those with known input, those with known output, and for each term those
// within. Counts of an hour that is kept by the hour are those of the columns alone.
// All counts are absolute: in Changes too, which have the minutes and hours that changed.
const (
	formatMagic   = "weirslo"
	formatVersion = 1
	kindSnapshot  = 'S'
	kindChanges   = 'C'
	checksumLen   = 4
)

// What a reader takes at most, so that damaged or hostile input makes it
// allocate no more than a Tracker may hold anyway.
const (
	maxKey   = 512
	maxZone  = 256
	maxImage = 256 << 20 // bytes that the counts take when they are unpacked
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func begin(kind byte) []byte { return append([]byte(formatMagic), formatVersion, kind) }

func seal(b []byte) []byte {
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// open checks what seal and begin have written, and returns what is between.
func open(b []byte, kind byte) ([]byte, error) {
	head := len(formatMagic) + 2
	switch {
	case len(b) < head+checksumLen || string(b[:len(formatMagic)]) != formatMagic:
		return nil, errors.New("these are not counts of a Tracker; was another file taken?")
	case b[head-2] != formatVersion:
		return nil, fmt.Errorf("they have format version %d, and this program knows %d; run the version that wrote them, or begin anew", b[head-2], formatVersion)
	}
	body := b[:len(b)-checksumLen]
	if crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(b[len(b)-checksumLen:]) {
		return nil, errors.New("the checksum is wrong: they are damaged; take an older copy, or begin anew")
	}
	if b[head-1] != kind {
		return nil, fmt.Errorf("they are of kind %q, and %q was wanted; Restore and Merge take what Snapshot wrote, Apply what Changes wrote", b[head-1], kind)
	}
	return body[head:], nil
}

// appendTime appends what is known of time.
func appendTime(b []byte, a *aging) []byte {
	b = binary.AppendVarint(b, a.minute)
	b = binary.AppendUvarint(b, uint64(a.period.Rolling))
	if a.period.Zone == nil {
		return appendText(b, "")
	}
	return appendText(b, a.period.Zone.String())
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// header appends what is known of a class beside its counts.
func (c *class) header(b []byte) []byte {
	l := c.layout
	b = appendText(b, c.name)
	b = binary.AppendUvarint(b, uint64(l.envelope.CallsPerMinute))
	b = binary.AppendUvarint(b, uint64(len(l.envelope.Terms)))
	for _, t := range l.envelope.Terms {
		b = append(b, byte(tallyOf(t.Quantity)-tallyInput))
		b = binary.AppendUvarint(b, uint64(t.Target))
		b = binary.AppendUvarint(b, uint64(t.AtMost))
	}
	b = binary.AppendVarint(b, c.since)
	b = binary.AppendUvarint(b, uint64(len(l.keys)))
	for i, key := range l.keys {
		b = appendText(b, key)
		b = binary.AppendVarint(b, c.began[i])
	}
	return b
}

// extent is what is encoded.
type extent int

const (
	changesOnly extent = iota
	allOfIt
	copyOfAll // all of it, for somebody else: what has changed since the last Changes stays so
)

// part is an hour or a day of a series, to be encoded.
type part interface {
	encode(b []byte, all bool) []byte
	// changed returns which rows have changed since they were last encoded, and change
	// says that these have.
	changed() uint64
	change(rows uint64)
}

func (h *hourCells) changed() uint64    { return h.dirty }
func (h *hourCells) change(rows uint64) { h.dirty |= rows }
func (d *dayCells) changed() uint64     { return uint64(d.dirty) }
func (d *dayCells) change(rows uint64)  { d.dirty |= uint32(rows) }

// parts returns the hours and the days of a series: all of them, or those with changes.
func (s *series) parts(a *aging, all bool) (hours, days []part) {
	for h := a.firstHour(); h <= a.lastHour(); h++ {
		if x := s.hours[slot(h, hourSlots)]; x != nil && x.hour == h && (all || x.dirty != 0) {
			hours = append(hours, x)
		}
	}
	today := floorDiv(a.minute, minutesPerDay)
	for d := today - keptDays + 1; d <= today+1; d++ {
		if x := s.days[slot(d, daySlots)]; x != nil && x.day == d && (all || x.dirty != 0) {
			days = append(days, x)
		}
	}
	return hours, days
}

// encode appends the counts of a series: all of them, or what has changed. From then on
// none has changed, unless it is for a copy. It returns false when there was nothing to append. rest is called after each
// part, and may let go of the lock.
func (s *series) encode(b []byte, a *aging, what extent, rest func()) ([]byte, bool) {
	all := what != changesOnly
	hours, days := s.parts(a, all)
	if !all && len(hours)+len(days) == 0 {
		return b, false
	}
	b = appendText(b, s.model)
	for _, parts := range [][]part{hours, days} {
		b = binary.AppendUvarint(b, uint64(len(parts)))
		for _, x := range parts {
			changed := x.changed()
			b = x.encode(b, all)
			if what == copyOfAll {
				x.change(changed)
			}
			rest()
		}
	}
	return b, true
}

func (h *hourCells) encode(b []byte, all bool) []byte {
	rows := h.dirty
	if all {
		rows = 0
		for r := range 60 {
			if !h.empty(r) {
				rows |= 1 << r
			}
		}
		rows |= h.outside
	}
	h.dirty = 0
	b = binary.AppendVarint(b, h.hour)
	b = binary.AppendUvarint(b, rows)
	b = binary.AppendUvarint(b, h.outside)
	for r := range 60 {
		if rows>>r&1 == 1 {
			b = encodeRow(b, &h.cells, r, 0, h.cells.cols())
		}
	}
	return b
}

func (d *dayCells) encode(b []byte, all bool) []byte {
	counts := len(d.total) / 2
	rows := d.dirty
	if all {
		rows = 1<<24 - 1
	}
	d.dirty = 0
	b = binary.AppendVarint(b, d.day)
	b = binary.AppendUvarint(b, uint64(rows))
	for r := range 24 {
		if rows>>r&1 == 1 {
			b = encodeRow(b, &d.cells, r, 0, counts)
			b = encodeRow(b, &d.cells, r, counts, 2*counts)
			b = binary.AppendUvarint(b, uint64(d.cells.get(r, 2*counts)))
		}
	}
	return b
}

// encodeRow appends the columns from from to to of a row.
func encodeRow(b []byte, g *grid, row, from, to int) []byte {
	var mask uint64
	var counts [64]int64
	for c := from; c < to; c++ {
		if n := g.get(row, c); n != 0 {
			mask |= 1 << (c - from)
			counts[c-from] = n
		}
	}
	b = binary.AppendUvarint(b, mask)
	for c := range to - from {
		if mask>>c&1 == 1 {
			b = binary.AppendUvarint(b, uint64(counts[c]))
		}
	}
	return b
}
