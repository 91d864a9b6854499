package report

import (
	"slices"
	"strings"
)

// gap is between two columns.
const gap = 2

// leastText is how narrow a column of text may become before the table is broken.
const leastText = 12

// table writes one, in as many blocks as the width demands. Each block repeats
// the first column.
func (t *textWriter) table(tab table) {
	if tab.caption != "" {
		for _, l := range wrap(clean(tab.caption), t.width) {
			t.line(t.styled(l, styleHead))
		}
	}
	g := newGrid(tab, t.width)
	for i, block := range g.blocks(t.width) {
		if i > 0 {
			t.line("")
		}
		t.block(g, block)
	}
}

// grid is a table with clean texts and the widths of its columns.
type grid struct {
	table
	widths []int
}

func newGrid(tab table, width int) *grid {
	g := &grid{table: tab, widths: make([]int, len(tab.columns))}
	g.rows = make([][]cell, len(tab.rows))
	for i, row := range tab.rows {
		g.rows[i] = slices.Clone(row)
		for j := range row {
			g.rows[i][j].text = clean(row[j].text)
			g.widths[j] = max(g.widths[j], cells(g.rows[i][j].text))
		}
	}
	for i := 0; i < len(g.columns); {
		end := g.groupEnd(i)
		for j := i; j < end; j++ {
			g.widths[j] = max(g.widths[j], cells(clean(g.columns[j].head)))
		}
		if title := cells(g.title(i)); title > 0 {
			if end-i > 1 {
				title += 4 // a stroke on either side
			}
			// What the title needs more is shared by the columns under it.
			for short, j := title-g.span(i, end), end-1; short > 0; short-- {
				g.widths[j]++
				if j--; j < i {
					j = end - 1
				}
			}
		}
		i = end
	}
	g.narrow(width)
	return g
}

// title is what stands above the group that begins at column i.
func (g *grid) title(i int) string {
	c := g.columns[i]
	if c.unit != "" {
		return clean(c.figure + ", " + c.unit)
	}
	return clean(c.figure)
}

// groupEnd is the column after the group that begins at i.
func (g *grid) groupEnd(i int) int {
	end := i + 1
	for end < len(g.columns) && g.columns[i].grouped(g.columns[end]) {
		end++
	}
	return end
}

// span is how wide columns from..to are together.
func (g *grid) span(from, to int) int {
	n := (to - from - 1) * gap
	for _, w := range g.widths[from:to] {
		n += w
	}
	return n
}

// narrow makes columns of text narrower, the widest first, until the table fits. Where
// it cannot fit it will be broken, and they may keep two fifths of the width.
func (g *grid) narrow(width int) {
	least, fits := max(leastText, width/7), g.span(0, len(g.widths))
	for i, c := range g.columns {
		if c.left {
			fits -= max(g.widths[i]-least, 0)
		}
	}
	if fits > width {
		for i, c := range g.columns {
			if c.left {
				g.widths[i] = min(g.widths[i], width*2/5)
			}
		}
		return
	}
	for g.span(0, len(g.widths)) > width {
		widest := -1
		for i, c := range g.columns {
			if c.left && g.widths[i] > least && (widest < 0 || g.widths[i] > g.widths[widest]) {
				widest = i
			}
		}
		g.widths[widest]-- // there is one, or it would not fit
	}
}

// blocks are the columns of each block. Groups stay together where they fit.
func (g *grid) blocks(width int) [][]int {
	if len(g.columns) == 0 {
		return nil
	}
	var blocks [][]int
	block, used := []int{0}, g.widths[0]
	begin := func() {
		blocks = append(blocks, block)
		block, used = []int{0}, g.widths[0]
	}
	for i := 1; i < len(g.columns); {
		end := g.groupEnd(i)
		if used+gap+g.span(i, end) > width && len(block) > 1 {
			begin()
		}
		for ; i < end; i++ {
			if used+gap+g.widths[i] > width && len(block) > 1 {
				begin()
			}
			block = append(block, i)
			used += gap + g.widths[i]
		}
	}
	return append(blocks, block)
}

// block writes the heads of some columns and all rows of them.
func (t *textWriter) block(g *grid, block []int) {
	if titles := g.titles(block); titles != "" {
		t.line(t.styled(titles, styleHead))
	}
	heads := make([]cell, len(g.columns))
	for i, c := range g.columns {
		heads[i].text = clean(c.head)
	}
	t.row(g, block, heads, styleHead)
	for _, row := range g.rows {
		t.row(g, block, row, "")
	}
}

// titles is the line of the groups' titles, each in the middle of its columns.
func (g *grid) titles(block []int) string {
	var b strings.Builder
	any := false
	for i := 0; i < len(block); {
		end := i + 1
		for end < len(block) && block[end] == block[end-1]+1 && g.columns[block[i]].grouped(g.columns[block[end]]) {
			end++
		}
		span := g.span(block[i], block[end-1]+1)
		title := g.title(block[i])
		any = any || title != ""
		if i > 0 {
			b.WriteString(strings.Repeat(" ", gap))
		}
		b.WriteString(centred(title, span, end-i > 1, g.columns[block[i]].left))
		i = end
	}
	if !any {
		return ""
	}
	return strings.TrimRight(b.String(), " ")
}

// centred puts a title over its columns: of several with a stroke on both sides,
// of one at the side to which it is aligned.
func centred(title string, span int, several, left bool) string {
	space := max(span-cells(title), 0)
	switch {
	case several && space >= 4:
		before := (space - 2) / 2
		return strings.Repeat("─", before) + " " + title + " " + strings.Repeat("─", space-2-before)
	case left:
		return title + strings.Repeat(" ", space)
	}
	return strings.Repeat(" ", space) + title
}

// row writes one row of a block, in as many lines as its texts need.
func (t *textWriter) row(g *grid, block []int, row []cell, style string) {
	lines := make([][]string, len(block))
	height := 1
	for i, j := range block {
		if j < len(row) {
			lines[i] = wrap(row[j].text, g.widths[j])
			height = max(height, len(lines[i]))
		}
	}
	for n := range height {
		var b strings.Builder
		for i, j := range block {
			s := at(lines[i], n)
			pad := strings.Repeat(" ", max(g.widths[j]-cells(s), 0))
			shown := style
			if shown == "" && j < len(row) {
				shown = toneStyles[row[j].tone]
			}
			if i > 0 {
				b.WriteString(strings.Repeat(" ", gap))
			}
			switch {
			case !g.columns[j].left:
				b.WriteString(pad + t.styled(s, shown))
			case i == len(block)-1:
				b.WriteString(t.styled(s, shown)) // nothing to pad for
			default:
				b.WriteString(t.styled(s, shown) + pad)
			}
		}
		t.line(b.String())
	}
}
