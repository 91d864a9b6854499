package workload

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

const (
	// MaxRows is how many rows a trace may have.
	MaxRows = 2_000_000
	// maxLine is how long a line of a trace may be, in bytes; a longer one is bad.
	maxLine = 1 << 20
	// mostApart is how far from the first line another may lie: differences of two
	// then fit into a Duration.
	mostApart = 50 * 365 * 24 * time.Hour
)

// ReadTrace reads a trace in JSON lines, sorted by time, the first row at 0. Lines
// are of one of these forms, all of one file with the same kind of time:
//
//	{"start": "2026-01-02T15:04:05.678Z", "input_tokens": 900, "output_tokens": 120}
//	{"at_ms": 250.5, "input_tokens": 900, "output_tokens": 120}
//	{"time": "2026-01-02T15:04:05.678Z", "input_tokens": 900, "output_tokens": 120}
//	{"ts": 1767366245.7, "request": {…}, "weir": {"time": "2026-01-02T15:04:05.678Z", "input_tokens": 900, …}}
//	{"timestamp": 27482, "input_length": 6955, "output_length": 52}
//
// They are the raw data of a load test (start goes before at_ms, which begins
// anew with each repeat; warm-up calls are left out), the records of the gateway,
// an access log of Caddy with the object weir, and the form in which Mooncake published
// its traces, its timestamp in milliseconds. A call without token counts is a row
// with 0 for unknown. Lines of a log that have no object weir are no calls and are
// passed over, as empty lines are.
//
// A line that is none of these is bad. Bad lines are left out as long as they are at most a
// tenth of the lines, and an error beyond that; it is one as well when no row is left,
// or more than MaxRows. Errors name lines by their number and quote nothing.
func ReadTrace(r io.Reader) ([]Row, error) { return readTrace(r, MaxRows) }

func readTrace(r io.Reader, most int) ([]Row, error) {
	t := traceReader{in: bufio.NewReaderSize(r, 64<<10), most: most}
	if err := t.all(); err != nil {
		return nil, fmt.Errorf("read trace: %w", err)
	}
	if len(t.rows) == 0 {
		if t.bad > 0 {
			return nil, fmt.Errorf("read trace: no usable line: %w", t.complaint())
		}
		if t.foreign > 0 {
			return nil, fmt.Errorf("read trace: %d log lines, none with the object weir: is the directive weir in that site, and its log not filtered?", t.foreign)
		}
		return nil, errors.New("read trace: it is empty")
	}
	if t.bad*10 > t.bad+len(t.rows)+t.skipped {
		return nil, fmt.Errorf("read trace: too many bad lines: %w", t.complaint())
	}
	slices.SortStableFunc(t.rows, func(a, b Row) int { return cmp.Compare(a.At, b.At) })
	first := t.rows[0].At
	for i := range t.rows {
		t.rows[i].At -= first
	}
	return t.rows, nil
}

// traceLine is a line of any form; fields that others have are passed over.
type traceLine struct {
	traceCall
	Weir      *traceCall      `json:"weir"`
	Request   json.RawMessage `json:"request"` // of an access log
	Logger    string          `json:"logger"`  // of any log of Caddy's
	Timestamp *float64        `json:"timestamp"`
	InputLen  *float64        `json:"input_length"`
	OutputLen *float64        `json:"output_length"`
}

type traceCall struct {
	Start  *time.Time `json:"start"`
	Time   *time.Time `json:"time"`
	At     *float64   `json:"at_ms"`
	Warmup bool       `json:"warmup"`
	Input  *float64   `json:"input_tokens"`
	Output *float64   `json:"output_tokens"`
}

// Why a line is bad.
var (
	errLong   = fmt.Errorf("longer than %d bytes", maxLine)
	errJSON   = errors.New("not a JSON object of a known form")
	errTime   = errors.New("no time of arrival (start, at_ms, time or timestamp)")
	errMixed  = errors.New("its time is a date where others are offsets, or the other way round")
	errApart  = errors.New("more than fifty years from the first line")
	errTokens = errors.New("token counts that are no whole numbers from 0 on")
)

// traceReader gathers the rows of a trace.
type traceReader struct {
	in   *bufio.Reader
	most int // rows
	line int // number of the current line, from 1
	rows []Row
	// The first usable line says whether times are dates or offsets, and which of
	// them others are taken from.
	dated  *bool
	zero   time.Time
	offset float64 // milliseconds

	bad, badLine int   // bad lines, and the number of the first
	why          error // of the first
	foreign      int   // log lines of other things
	skipped      int   // good lines that are no rows
}

func (t *traceReader) complaint() error {
	return fmt.Errorf("%d of %d lines are bad, the first is line %d: %w", t.bad, t.line, t.badLine, t.why)
}

func (t *traceReader) all() error {
	for {
		line, err := t.next()
		if err == io.EOF {
			return nil
		}
		if err != nil && err != errLong {
			return fmt.Errorf("line %d: %w", t.line, err)
		}
		if err == nil {
			if line = bytes.TrimSpace(line); len(line) == 0 {
				continue
			}
			err = t.add(line)
		}
		if err != nil {
			if t.bad++; t.bad == 1 {
				t.badLine, t.why = t.line, err
			}
		}
		if len(t.rows) > t.most {
			return fmt.Errorf("more than %d calls: cut it into pieces", t.most)
		}
	}
}

// next returns the next line, errLong for one that is too long, and io.EOF at the
// end. The line is good until the next call.
func (t *traceReader) next() ([]byte, error) {
	t.line++
	line, err := t.in.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		whole := bytes.Clone(line)
		for err == bufio.ErrBufferFull {
			line, err = t.in.ReadSlice('\n')
			if len(whole) <= maxLine {
				whole = append(whole, line...)
			}
		}
		line = whole
	}
	switch {
	case err == io.EOF && len(line) == 0:
		t.line--
		return nil, io.EOF
	case err != nil && err != io.EOF:
		return nil, err
	case len(line) > maxLine:
		return nil, errLong
	}
	return line, nil
}

// add makes a row of a line.
func (t *traceReader) add(line []byte) error {
	var l traceLine
	if line[0] != '{' || json.Unmarshal(line, &l) != nil {
		return errJSON // not the decoder's words, which may quote the line
	}
	c := l.traceCall
	switch {
	case l.Weir != nil:
		c = *l.Weir
	case l.Request != nil || l.Logger != "":
		t.foreign++
		return nil
	case l.Timestamp != nil:
		c = traceCall{At: l.Timestamp, Input: l.InputLen, Output: l.OutputLen}
	}
	if c.Warmup {
		t.skipped++
		return nil
	}
	row, err := t.row(c)
	if err != nil {
		return err
	}
	t.rows = append(t.rows, row)
	return nil
}

func (t *traceReader) row(c traceCall) (row Row, err error) {
	at := c.Start
	if at == nil {
		at = c.Time
	}
	dated := at != nil
	switch {
	case dated:
		if t.dated == nil {
			t.zero = *at
		}
		row.At = at.Sub(t.zero)
	case c.At != nil:
		if t.dated == nil {
			t.offset = *c.At
		}
		if ms := *c.At - t.offset; math.Abs(ms) < 1e12 { // within thirty years
			row.At = time.Duration(math.Round(ms * 1e6))
		} else {
			row.At = math.MaxInt64
		}
	default:
		return row, errTime
	}
	if t.dated != nil && *t.dated != dated {
		return row, errMixed
	}
	if row.At.Abs() > mostApart {
		return row, errApart
	}
	var ok1, ok2 bool
	row.Input, ok1 = tokens(c.Input)
	row.Output, ok2 = tokens(c.Output)
	if !ok1 || !ok2 {
		return row, errTokens
	}
	t.dated = &dated
	return row, nil
}

// tokens reads a count of tokens, 0 when there is none.
func tokens(v *float64) (int, bool) {
	if v == nil {
		return 0, true
	}
	return int(*v), *v >= 0 && *v <= MaxTokens && *v == math.Trunc(*v)
}
