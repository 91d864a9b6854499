package ledger

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"slices"
)

// tail is where the committer stands in the spill, and which calls are open
// there. What it reads is kept until settle, and read again when the database
// did not take it: reading the same entries twice changes nothing.
type tail struct {
	at    position // all before it is in the database
	reach position // what read has read
	open  map[callKey]place

	replayed bool // all segments of earlier processes are through
	moved    bool // segments may have become superfluous
	carried  map[uint64]bool

	// What read has found.
	rows    []pending
	gone    []callKey // orphans among the rows: not open once these are in
	orphans bool      // the rows are orphans
	old     bool      // the rows are of an earlier process
	ends    int64     // of this process
	damaged int64
	cut     int64

	file    file // that is open to be read
	fileSeg uint64
	buf     []byte
	starts  []byte // fields of orphans
}

// callKey stands for the id and attempt of a row: 128 bits of two hashes under
// secret seeds, so that two calls share one with a probability of 2⁻¹²⁸ and
// nobody can choose such ids.
type callKey [2]uint64

var keySeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func keyOf(id []byte, attempt int64) callKey {
	n := uint64(attempt) * 0x9E3779B97F4A7C15
	return callKey{maphash.Bytes(keySeeds[0], id) ^ n, maphash.Bytes(keySeeds[1], id) + n}
}

// place is where a start lies in the spill.
type place struct {
	position
	size int // with the header
}

// read finds the next group of rows. It reports false when there is nothing
// new at all.
func (c *committer) read() (more bool, err error) {
	t := &c.tail
	t.rows, t.gone, t.orphans, t.ends, t.damaged, t.cut = t.rows[:0], t.gone[:0], false, 0, 0, 0
	at, limit, old, ok := c.spill.next(t.at)
	if !t.replayed && (!ok || !old) {
		return true, c.readOrphans()
	}
	t.old = old
	if !ok {
		return false, nil
	}
	chunk := min(limit-at.off, readChunk)
	if err := t.refresh(c.spill, at.seg); err != nil {
		return false, err
	}
	if err := t.load(c.spill, at, chunk); err != nil {
		return false, err
	}
	t.moved = t.moved || at.seg != t.at.seg
	got := int64(len(t.buf))
	n := t.parse(at, got < chunk || at.off+got == limit)
	t.reach = position{at.seg, at.off + int64(n)}
	if got < chunk && int64(n) == got {
		t.damaged++ // the file is shorter than what was written to it, or gone
		t.reach.off = limit
	}
	t.moved = t.moved || t.reach.off == limit
	return true, nil
}

// load reads n bytes of a segment, less when the file is shorter or gone.
func (t *tail) load(s *spill, at position, n int64) error {
	t.buf = slices.Grow(t.buf[:0], int(n))[:0]
	if err := t.seek(s, at.seg); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	got, err := t.file.ReadAt(t.buf[:n], at.off)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the spill: %w", err)
	}
	t.buf = t.buf[:got]
	return nil
}

// missing is told that a segment's file is gone. If it is the one being written,
// the writer is to begin another.
func (s *spill) missing(seg uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.segments); n > 0 && s.segments[n-1].n == seg && !s.segments[n-1].old {
		s.gone = true
	}
	s.log.warn("a file of the spill is gone", "what it held and the database lacks is lost", "file", s.path(segment{n: seg}))
}

// seek opens a segment to be read, unless it is open.
func (t *tail) seek(s *spill, seg uint64) error {
	if t.file != nil && t.fileSeg == seg {
		return nil
	}
	f, err := s.disk.Open(s.path(segment{n: seg}))
	if err != nil {
		return fmt.Errorf("open the spill to read: %w", err)
	}
	t.close()
	t.file, t.fileSeg = f, seg
	return nil
}

// refresh opens a segment again, to notice when somebody has removed it. What
// was open before can still be read then.
func (t *tail) refresh(s *spill, seg uint64) error {
	file, fileSeg := t.file, t.fileSeg
	t.file = nil
	err := t.seek(s, seg)
	switch {
	case err == nil && file != nil:
		file.Close() // only read from
	case err != nil:
		t.file, t.fileSeg = file, fileSeg
	}
	if errors.Is(err, fs.ErrNotExist) {
		s.missing(seg)
		return nil
	}
	return err
}

func (t *tail) close() {
	if t.file != nil {
		t.file.Close() // only read from
		t.file = nil
	}
}

// parse takes entries off the chunk, up to a group of rows, and returns how far
// it came. last tells that nothing follows the chunk in its segment.
func (t *tail) parse(at position, last bool) int {
	b, i := t.buf, 0
	for i < len(b) && len(t.rows) < maxGroup {
		kind, fields, n, ok, short := nextEntry(b[i:])
		if ok {
			t.take(kind, fields, place{position{at.seg, at.off + int64(i)}, n})
			i += n
			continue
		}
		if short && !last {
			return i // the whole entry is in the next chunk
		}
		found := findEntry(b, i+1)
		switch {
		case found < len(b):
			t.damaged++
			i = found
		case last:
			t.cut++
			return len(b)
		default:
			t.damaged++
			return max(i+1, len(b)-entryHeader-maxEntry) // an entry may begin there
		}
	}
	return i
}

// take takes one entry.
func (t *tail) take(kind byte, fields []byte, p place) {
	if kind != kindStart && kind != kindEnd && kind != kindAmend && kind != kindCarry {
		return
	}
	id, attempt, err := identity(fields)
	if err != nil {
		t.damaged++
		return
	}
	key := keyOf(id, attempt)
	switch kind {
	case kindStart:
		t.open[key] = p
	case kindCarry:
		// In a segment of this process it may come after its end.
		if _, open := t.open[key]; open || t.old {
			t.open[key] = p
		}
	case kindEnd, kindAmend:
		if kind == kindEnd {
			delete(t.open, key)
		}
		t.rows = append(t.rows, pending{fields: fields, amends: kind == kindAmend})
		if !t.old {
			t.ends++
		}
	}
}

// readOrphans makes rows of the starts without an end, when all segments of
// earlier processes have been read: their processes crashed. Without any, the
// replay is over.
func (c *committer) readOrphans() error {
	t := &c.tail
	t.old, t.orphans, t.reach = true, true, t.at
	keys := make([]callKey, 0, len(t.open))
	for k := range t.open {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b callKey) int {
		if t.open[a].before(t.open[b].position) {
			return -1
		}
		return 1
	})
	keys = keys[:min(len(keys), maxGroup)]
	t.starts = t.starts[:0]
	var ends []int
	for _, k := range keys {
		t.gone = append(t.gone, k)
		fields, err := t.startAt(c.spill, t.open[k])
		if err != nil {
			return err
		}
		if fields == nil {
			t.damaged++
			continue
		}
		t.starts = append(t.starts, fields...)
		ends = append(ends, len(t.starts))
	}
	from := 0
	for _, end := range ends {
		t.rows = append(t.rows, pending{fields: t.starts[from:end], crashed: true})
		from = end
	}
	return nil
}

// startAt reads the fields of a start again; nil when they are no longer there.
func (t *tail) startAt(s *spill, p place) ([]byte, error) {
	if err := t.load(s, p.position, int64(p.size)); err != nil {
		return nil, err
	}
	if _, fields, _, ok, _ := nextEntry(t.buf); ok {
		return fields, nil
	}
	return nil, nil
}

// settle takes what read has found for done: it is in the database.
func (c *committer) settle() error {
	t, s := &c.tail, c.spill
	for _, k := range t.gone {
		delete(t.open, k)
	}
	t.at = t.reach
	if t.orphans && len(t.open) == 0 {
		if !t.replayed {
			c.mu.Lock()
			p := c.progress
			c.mu.Unlock()
			if p.replayed > 0 {
				c.log.info("calls of an earlier process were taken from the spill", "rows", p.replayed, "crashed", p.crashed)
			}
		}
		t.replayed, t.moved = true, true
	}
	s.mu.Lock()
	s.committed, s.replaying = t.at, !t.replayed
	s.read(t.ends)
	s.signal()
	s.mu.Unlock()
	if !t.moved {
		return nil
	}
	t.moved = false
	return c.clean()
}

// clean removes the segments that hold nothing any more. Where less than half
// of a segment is starts of calls that go on, they are carried over into the
// last one, so that a long call does not keep all that came with it.
func (c *committer) clean() error {
	t := &c.tail
	through := c.spill.through(t.at)
	if len(through) == 0 {
		return nil
	}
	needed := make(map[uint64]int64) // bytes of open starts, by segment
	for _, p := range t.open {
		needed[p.seg] += int64(p.size)
	}
	for _, g := range through {
		var err error
		switch {
		case needed[g.n] == 0:
			err = c.remove(g.n)
		case g.old && !t.replayed, t.carried[g.n], 2*needed[g.n] > g.size:
		default:
			err = c.carry(g.n)
		}
		if err != nil {
			t.moved = true // try again
			return err
		}
	}
	return nil
}

func (c *committer) remove(seg uint64) error {
	if c.tail.fileSeg == seg {
		c.tail.close()
	}
	delete(c.tail.carried, seg)
	if err := c.spill.remove(seg); err != nil {
		return fmt.Errorf("remove a segment of the spill: %w", err)
	}
	return nil
}

// carry copies the open starts of a segment to the end of the spill. They are
// open in their new place, and the segment is free, when that has been read.
func (c *committer) carry(seg uint64) error {
	t := &c.tail
	var entries []byte
	for key, p := range t.open {
		if p.seg != seg {
			continue
		}
		fields, err := t.startAt(c.spill, p)
		if err != nil {
			return err
		}
		if fields == nil {
			delete(t.open, key) // damaged since it was read: nothing to carry
			continue
		}
		at := len(entries)
		entries = append(beginEntry(entries, kindCarry), fields...)
		entries, _ = sealEntry(entries, at) // it had that size before
	}
	t.carried[seg] = true
	c.spill.carry(entries)
	return nil
}

// finish removes what is left of the spill when the ledger closes and
// everything is in the database. Starts of calls that still go on stay.
func (c *committer) finish() error {
	c.tail.close()
	if len(c.tail.open) > 0 {
		return nil
	}
	for _, g := range c.spill.all() {
		if err := c.remove(g.n); err != nil {
			return err
		}
	}
	return nil
}

// all returns every segment.
func (s *spill) all() []segment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.segments)
}

// through returns the segments that lie before p as a whole, the last one left
// out when more may be written to it.
func (s *spill) through(p position) []segment {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []segment
	for i, g := range s.segments {
		if g.n < p.seg || g.n == p.seg && p.off >= g.size && (g.old || i < len(s.segments)-1) {
			all = append(all, g)
		}
	}
	return all
}
