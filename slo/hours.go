package slo

// How long counts are kept, in hours of 60 minutes and days of 24 such hours, all by
// absolute number since 1970 in UTC.
const (
	minutesPerDay = 24 * 60
	// keptHours is how many hours are kept minute by minute, the current one
	// included: a window of 3 days that ends within an hour begins 72 hours before.
	keptHours = 74
	// keptDays is how many days are kept hour by hour, the current one included: a
	// month of 31 days and an hour, in any zone, touches 33.
	keptDays = 34
	// hourSlots and daySlots have room for what a clock that is a day ahead counts.
	hourSlots = keptHours + 26
	daySlots  = keptDays + 2
)

// hourCells is an hour, minute by minute.
type hourCells struct {
	hour  int64
	cells grid
	// total is the sum of all minutes, out that of minutes outside the
	// envelope, nil where there are none.
	total, out []int64
	outside    uint64 // a bit for each minute
	dirty      uint64 // the same, of minutes changed since they were last written
	packed     bool
	// open is whether all columns had openWidth when it was made.
	open bool
}

// openWidth is how many bytes each count has in an hour that is being counted: enough,
// so that counting moves nothing.
const openWidth = 4

func newHour(hour int64, l *layout, width uint16) *hourCells {
	return &hourCells{hour: hour, cells: newGrid(60, l.cols, width), total: make([]int64, l.cols), open: width == openWidth}
}

// wide returns the counts of a minute in openWidth each, nil where they are not so.
func (h *hourCells) wide(row int) []byte {
	stride := int(h.cells.off[len(h.cells.off)-1])
	if !h.open || stride != openWidth*len(h.total) {
		return nil
	}
	return h.cells.data[row*stride : (row+1)*stride]
}

// pack makes the hour small, when it has been counted.
func (h *hourCells) pack() {
	h.cells.pack()
	h.packed, h.open = true, false
}

// add adds to a count of a minute.
func (h *hourCells) add(row, col int, n int64) {
	h.added(row, col, h.cells.add(row, col, n))
}

// added is told what has been added to a cell.
func (h *hourCells) added(row, col int, n int64) {
	h.total[col] += n
	if h.outside>>row&1 == 1 {
		h.out[col] += n
	}
	h.dirty |= 1 << row
}

// set sets a count of a minute.
func (h *hourCells) set(row, col int, n int64) {
	h.add(row, col, n-h.cells.get(row, col))
}

// turn moves a minute in or out of the envelope.
func (h *hourCells) turn(row int, outside bool) {
	if h.outside>>row&1 == 1 == outside {
		return
	}
	if h.out == nil {
		h.out = make([]int64, len(h.total))
	}
	sign := int64(1)
	if !outside {
		sign = -1
	}
	for c := range h.out {
		h.out[c] += sign * h.cells.get(row, c)
	}
	h.outside ^= 1 << row
	h.dirty |= 1 << row
	if h.outside == 0 {
		h.out = nil
	}
}

// empty tells whether a minute has no counts.
func (h *hourCells) empty(row int) bool {
	for c := range h.total {
		if h.cells.get(row, c) != 0 {
			return false
		}
	}
	return true
}

// sum adds the minutes a to b of the hour, b not included, to in and out, and returns how many
// minutes were outside.
func (h *hourCells) sum(a, b int, in, out []int64) (minutes int64) {
	if a == 0 && b == 60 {
		for c := range in {
			in[c] += h.total[c]
		}
		if h.outside == 0 {
			return 0
		}
		for c := range out {
			in[c] -= h.out[c]
			out[c] += h.out[c]
		}
	} else {
		h.cells.sum(a, b, h.outside, in)
		if h.outside == 0 {
			return 0
		}
		h.cells.sum(a, b, ^h.outside, out)
	}
	for r := a; r < b; r++ {
		minutes += int64(h.outside >> r & 1)
	}
	return minutes
}

func (h *hourCells) remap(l *layout, from []int) {
	h.cells, h.open = h.cells.remap(from), false
	h.total = pick(h.total, from)
	if h.out != nil {
		h.out = pick(h.out, from)
	}
}

// pick returns a slice whose element i is element from[i] of s, or 0 where that is below 0.
func pick(s []int64, from []int) []int64 {
	n := make([]int64, len(from))
	for i, j := range from {
		if j >= 0 {
			n[i] = s[j]
		}
	}
	return n
}

// dayCells is a day, hour by hour: counts inside the envelope, then the same
// outside, then minutes outside. What an envelope is judged by is not kept.
type dayCells struct {
	day   int64
	cells grid
	total []int64
	dirty uint32 // a bit for each hour
}

func newDay(day int64, counts int) *dayCells {
	n := 2*counts + 1
	return &dayCells{day: day, cells: newGrid(24, n, 0), total: make([]int64, n)}
}

func (d *dayCells) add(row, col int, n int64) {
	if n = d.cells.add(row, col, n); n != 0 {
		d.total[col] += n
		d.dirty |= 1 << row
	}
}

func (d *dayCells) set(row, col int, n int64) {
	d.add(row, col, n-d.cells.get(row, col))
}

// sum adds the hours a to b, b not included, to in and out, and returns how many minutes
// were outside. scratch is as long as a row.
func (d *dayCells) sum(a, b int, in, out, scratch []int64) (minutes int64) {
	row := d.total
	if a != 0 || b != 24 {
		clear(scratch)
		d.cells.sum(a, b, 0, scratch)
		row = scratch
	}
	for c := range in {
		in[c] += row[c]
		out[c] += row[len(in)+c]
	}
	return row[2*len(in)]
}

func (d *dayCells) remap(from []int, was int) {
	// from is for one side; the other and the minutes follow.
	n := len(from)
	all := make([]int, 2*n+1)
	for i, c := range from {
		all[i], all[n+i] = c, -1
		if c >= 0 {
			all[n+i] = was + c
		}
	}
	all[2*n] = 2 * was
	d.cells = d.cells.remap(all)
	d.total = pick(d.total, all)
}

// floorDiv divides with the remainder in 0 … b−1, also before 1970.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// slot is the place in a ring of n that an absolute number has.
func slot(number int64, n int64) int64 { return number - floorDiv(number, n)*n }
