package report

// document is a report before it is rendered. All text in it is raw: each
// renderer neutralises it for its own format.
type document struct {
	title string
	parts []part
}

// part is a piece of a document: heading, loud, pairs, paragraph, bullets, table or plots.
type part interface{ isPart() }

type (
	// heading begins a section.
	heading string
	// loud are warnings, which come first and cannot be overlooked.
	loud []string
	// paragraph is prose.
	paragraph string
	// bullets are sentences, one under the other.
	bullets []string
	// pairs are facts with a name.
	pairs []pair
	// plots is the place of the plots, for those formats that have any.
	plots struct{}
)

// pair is a fact. id marks one that is to be shown letter by letter.
type pair struct {
	name, value string
	id          bool
}

func (heading) isPart()   {}
func (loud) isPart()      {}
func (paragraph) isPart() {}
func (bullets) isPart()   {}
func (pairs) isPart()     {}
func (plots) isPart()     {}
func (table) isPart()     {}

// table is rows of cells under columns. The first column names the row, and is
// repeated where a table must be broken into several.
type table struct {
	caption string
	columns []column
	rows    [][]cell
}

// column is one of a table. Neighbours of the same figure and unit are shown as a
// group, with head as the name of each. A column with left holds text and may be
// wrapped; others hold numbers, aligned right.
type column struct {
	figure, unit, head string
	left               bool
}

// name is the column's name in one line.
func (c column) name() string {
	s := c.figure
	if c.head != "" {
		if s != "" {
			s += " "
		}
		s += c.head
	}
	if c.unit != "" {
		s += " (" + c.unit + ")"
	}
	return s
}

// grouped tells whether c and d stand under one heading.
func (c column) grouped(d column) bool {
	return c.figure != "" && c.head != "" && d.head != "" && c.figure == d.figure && c.unit == d.unit
}

// tone is what a cell wants to say beside its text, which never depends on it.
type tone uint8

const (
	plain tone = iota
	good
	warn
	bad
)

// cell is one of a table. id marks a name that is to be shown letter by letter.
type cell struct {
	text string
	tone tone
	id   bool
}

// add appends parts.
func (d *document) add(parts ...part) { d.parts = append(d.parts, parts...) }

// section appends a heading and what stands under it, unless that is nothing.
func (d *document) section(title string, parts ...part) {
	kept := parts[:0:0]
	for _, p := range parts {
		switch p := p.(type) {
		case paragraph:
			if p == "" {
				continue
			}
		case bullets:
			if len(p) == 0 {
				continue
			}
		case pairs:
			if len(p) == 0 {
				continue
			}
		case table:
			if len(p.rows) == 0 {
				continue
			}
		}
		kept = append(kept, p)
	}
	if len(kept) > 0 {
		d.add(heading(title))
		d.add(kept...)
	}
}

// plainCells makes cells of texts.
func plainCells(texts ...string) []cell {
	row := make([]cell, len(texts))
	for i, t := range texts {
		row[i].text = t
	}
	return row
}
