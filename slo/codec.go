package slo

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
)

// The format of Snapshot and Changes, version 1. Numbers are varints as encoding/binary
// writes them, signed ones zigzag; a text is its length and its bytes.
//
//	"weirslo" version kind     8 bytes and a byte; kind is 'S' or 'C'
//	minute                     signed: the newest minute, counted from 1970
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

// encode appends the counts of a series: all of them, or what has changed. From then on
// none has changed. It returns false when there was nothing to append.
func (s *series) encode(b []byte, a *aging, all bool) ([]byte, bool) {
	var hours []*hourCells
	for _, h := range s.hours {
		if h == nil || h.hour > a.lastHour() {
			continue
		}
		if all || h.dirty != 0 {
			hours = append(hours, h)
		}
	}
	var days []*dayCells
	for _, d := range s.days {
		if d != nil && a.keeps(d.day) && (all || d.dirty != 0) {
			days = append(days, d)
		}
	}
	if !all && len(hours)+len(days) == 0 {
		return b, false
	}
	slices.SortFunc(hours, func(a, b *hourCells) int { return cmp.Compare(a.hour, b.hour) })
	slices.SortFunc(days, func(a, b *dayCells) int { return cmp.Compare(a.day, b.day) })
	b = appendText(b, s.model)
	b = binary.AppendUvarint(b, uint64(len(hours)))
	for _, h := range hours {
		b = h.encode(b, all)
	}
	b = binary.AppendUvarint(b, uint64(len(days)))
	for _, d := range days {
		b = d.encode(b, s.layout.counts, all)
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

func (d *dayCells) encode(b []byte, counts int, all bool) []byte {
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
