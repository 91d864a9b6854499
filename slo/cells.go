package slo

import (
	"encoding/binary"
	"slices"
)

// maxCell is the most that one cell holds, 68 thousand million calls in a minute or an hour. It
// bounds all sums: no window over all series can overflow.
const maxCell = 1 << 36

// grid is a matrix of counts, a row for each minute or hour, which takes little: a column is
// as wide as its largest count needs, and nothing where all are 0.
type grid struct {
	rows int
	off  []uint16 // where each column begins in a row, in bytes; the last is a row's length
	data []byte
}

// newGrid returns zeros. Columns of a width above 0 take counts without being moved first.
func newGrid(rows, cols int, width uint16) grid {
	return gridOf(rows, slices.Repeat([]uint16{width}, cols))
}

func gridOf(rows int, widths []uint16) grid {
	g := grid{rows: rows, off: make([]uint16, len(widths)+1)}
	for c, w := range widths {
		g.off[c+1] = g.off[c] + w
	}
	g.data = make([]byte, rows*int(g.off[len(widths)]))
	return g
}

func (g *grid) cols() int { return len(g.off) - 1 }

func (g *grid) width(col int) uint16 { return g.off[col+1] - g.off[col] }

func (g *grid) get(row, col int) int64 {
	return load(g.data, row*int(g.off[len(g.off)-1])+int(g.off[col]), g.width(col))
}

// load reads a count of some width at an offset.
func load(b []byte, o int, width uint16) int64 {
	switch width {
	case 1:
		return int64(b[o])
	case 2:
		return int64(binary.LittleEndian.Uint16(b[o:]))
	case 4:
		return int64(binary.LittleEndian.Uint32(b[o:]))
	case 8:
		return int64(binary.LittleEndian.Uint64(b[o:]))
	}
	return 0
}

// store writes a count that fits.
func store(b []byte, o int, width uint16, n int64) {
	switch width {
	case 1:
		b[o] = byte(n)
	case 2:
		binary.LittleEndian.PutUint16(b[o:], uint16(n))
	case 4:
		binary.LittleEndian.PutUint32(b[o:], uint32(n))
	case 8:
		binary.LittleEndian.PutUint64(b[o:], uint64(n))
	}
}

// put sets a cell to a count between 0 and maxCell.
func (g *grid) put(row, col int, n int64) {
	if w := widthOf(n); w > g.width(col) {
		widths := make([]uint16, g.cols())
		for c := range widths {
			widths[c] = g.width(c)
		}
		widths[col] = w
		g.resize(widths)
	}
	store(g.data, row*int(g.off[len(g.off)-1])+int(g.off[col]), g.width(col), n)
}

// add adds to a cell, which stays between 0 and maxCell, and returns what it
// has become more.
func (g *grid) add(row, col int, n int64) int64 {
	was := g.get(row, col)
	now := min(max(was+n, 0), maxCell)
	if now != was {
		g.put(row, col, now)
	}
	return now - was
}

// widthOf returns how many bytes a count needs.
func widthOf(n int64) uint16 {
	switch {
	case n == 0:
		return 0
	case n < 1<<8:
		return 1
	case n < 1<<16:
		return 2
	case n < 1<<32:
		return 4
	}
	return 8
}

// pack makes each column as narrow as its largest count allows.
func (g *grid) pack() { *g = g.narrowed() }

// narrowed returns a copy with columns as narrow as their largest counts allow.
func (g *grid) narrowed() grid {
	widths := make([]uint16, g.cols())
	stride := int(g.off[len(widths)])
	for c := range widths {
		var bits int64 // as wide as the largest
		w := g.width(c)
		for o := int(g.off[c]); w != 0 && o < len(g.data); o += stride {
			bits |= load(g.data, o, w)
		}
		widths[c] = widthOf(bits)
	}
	n := gridOf(g.rows, widths)
	for c := range widths {
		n.copy(c, g, c)
	}
	return n
}

// copy sets a column to one of another grid, which fits in it.
func (g *grid) copy(to int, from *grid, col int) {
	w, v := g.width(to), from.width(col)
	if w == 0 || v == 0 {
		return
	}
	stride, step := int(g.off[len(g.off)-1]), int(from.off[len(from.off)-1])
	for o, i := int(g.off[to]), int(from.off[col]); o < len(g.data); o, i = o+stride, i+step {
		store(g.data, o, w, load(from.data, i, v))
	}
}

// resize gives columns other widths, which their counts fit in.
func (g *grid) resize(widths []uint16) {
	n := gridOf(g.rows, widths)
	for c := range widths {
		n.copy(c, g, c)
	}
	*g = n
}

// remap returns a grid whose column i is the column from[i] of this one, or zeros where that is
// below 0.
func (g *grid) remap(from []int) grid {
	widths := make([]uint16, len(from))
	for i, c := range from {
		if c >= 0 {
			widths[i] = g.width(c)
		}
	}
	n := gridOf(g.rows, widths)
	for i, c := range from {
		if c >= 0 {
			n.copy(i, g, c)
		}
	}
	return n
}

// sum adds the rows a to b, b not included, of the first columns to dst, as many as it has. Rows whose bit in
// skip is set are left out.
func (g *grid) sum(a, b int, skip uint64, dst []int64) {
	stride := int(g.off[len(g.off)-1])
	for c := range dst {
		o, n := a*stride+int(g.off[c]), int64(0)
		switch g.width(c) {
		case 1:
			for r := a; r < b; r, o = r+1, o+stride {
				if skip>>r&1 == 0 {
					n += int64(g.data[o])
				}
			}
		case 2:
			for r := a; r < b; r, o = r+1, o+stride {
				if skip>>r&1 == 0 {
					n += int64(binary.LittleEndian.Uint16(g.data[o:]))
				}
			}
		case 4:
			for r := a; r < b; r, o = r+1, o+stride {
				if skip>>r&1 == 0 {
					n += int64(binary.LittleEndian.Uint32(g.data[o:]))
				}
			}
		case 8:
			for r := a; r < b; r, o = r+1, o+stride {
				if skip>>r&1 == 0 {
					n += int64(binary.LittleEndian.Uint64(g.data[o:]))
				}
			}
		}
		dst[c] += n
	}
}
