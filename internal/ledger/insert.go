package ledger

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// rowsAtOnce is how many rows one statement inserts where there are as many: to
// begin and end a statement costs a tenth of what putting in a row does.
const rowsAtOnce = 10

// pending is a row on its way into the database.
type pending struct {
	fields  []byte
	crashed bool // the fields are those of a start that has no end
	amends  bool // the fields are those of an amendment
}

// inserter is an INSERT of one or more rows. It holds the rows that were set
// last until others are.
type inserter struct {
	parameters
	rows uint64 // set so far
}

// before returns one less than the number of a row's first parameter. They come
// in the order of the columns' numbers, and the seq after them.
func before(row int) int { return row * int(colEnd) }

// set makes r the statement's row of that number.
func (in *inserter) set(row int, r pending, seq int64) error {
	in.rows++
	at := before(row)
	if err := in.bind(at, r.fields); err != nil {
		return err
	}
	if r.crashed {
		if err := in.bind(at, crashedFields); err != nil {
			return err
		}
	}
	for c := colID; c < colEnd; c++ {
		if in.bound[at+int(c)].row == in.rows {
			continue
		}
		if err := in.null(at + int(c)); err != nil {
			return err
		}
	}
	return in.whole(at+int(colEnd), seq)
}

// bind gives each field to the parameter of its column.
func (in *inserter) bind(at int, fields []byte) error {
	for len(fields) > 0 {
		c, isText, v, rest, err := nextField(fields)
		if err != nil {
			return err
		}
		fields = rest
		if !c.known(isText) {
			continue
		}
		i := at + int(c)
		switch {
		case isText:
			err = in.text(i, v.b)
		case columns[c].kind == millis:
			err = in.millis(i, v.n)
		default:
			err = in.whole(i, v.n)
		}
		if err != nil {
			return err
		}
		in.bound[i].row = in.rows
	}
	return nil
}

// of returns what a row that has been set has in a column.
func (in *inserter) of(row int, c column) *binding { return &in.bound[before(row)+int(c)] }

// put adds rows, none of them an amendment, unless their id and attempt are
// there, and adds up the new ones. The first gets the seq after mark, and each
// the next, be it new or not.
func (d *database) put(rows []pending, mark int64) (added, refused int, err error) {
	for len(rows) > 0 {
		n, fresh, bad := 1, 0, 0
		if len(rows) >= rowsAtOnce {
			n = rowsAtOnce
			fresh, bad, err = d.putMany(rows[:n], mark)
		} else {
			fresh, bad, err = d.putOne(rows[0], mark)
		}
		if err != nil {
			return 0, 0, err
		}
		added, refused = added+fresh, refused+bad
		rows, mark = rows[n:], mark+int64(n)
	}
	return added, refused, nil
}

// putOne is put for one row.
func (d *database) putOne(r pending, mark int64) (added, refused int, err error) {
	if err = d.one.set(0, r, mark+1); err == nil {
		err = d.one.stmt.Exec()
	}
	switch {
	case refusal(err):
		return 0, 1, nil
	case err != nil || d.conn.Changes() == 0:
		return 0, 0, err
	}
	d.sums.add(&d.one, 0)
	return 1, 0, nil
}

// putMany is put for rowsAtOnce rows.
func (d *database) putMany(rows []pending, mark int64) (added, refused int, err error) {
	for i := 0; i < len(rows) && err == nil; i++ {
		err = d.many.set(i, rows[i], mark+1+int64(i))
	}
	if err == nil {
		err = d.many.stmt.Exec()
	}
	if err != nil && !refusal(err) {
		return 0, 0, err
	}
	if err == nil {
		switch d.conn.Changes() {
		case 0:
			return 0, 0, nil
		case rowsAtOnce:
			for i := range rows {
				d.sums.add(&d.many, i)
			}
			return rowsAtOnce, 0, nil
		}
	}
	// Some are in and some are not: because they were there before, or because
	// the statement failed at one of them, which leaves those before it in.
	in, lookErr := d.arrived(mark)
	if lookErr != nil {
		return 0, 0, lookErr
	}
	for i, r := range rows {
		if in[i] {
			d.sums.add(&d.many, i)
			added++
			continue
		}
		if err == nil {
			continue
		}
		fresh, bad, err := d.putOne(r, mark+int64(i))
		if err != nil {
			return 0, 0, err
		}
		added, refused = added+fresh, refused+bad
	}
	return added, refused, nil
}

// arrived tells which of the rows with a seq after mark are in.
func (d *database) arrived(mark int64) (in [rowsAtOnce]bool, err error) {
	if err := errors.Join(d.among.BindInt64(1, mark), d.among.BindInt64(2, mark+rowsAtOnce)); err != nil {
		return in, err
	}
	for d.among.Step() {
		in[d.among.ColumnInt64(0)-mark-1] = true
	}
	return in, d.among.Reset()
}

// refusal tells an error that concerns one row, which the database will never
// take, from one that concerns the database.
func refusal(err error) bool {
	return errors.Is(err, sqlite3.CONSTRAINT) || errors.Is(err, sqlite3.MISMATCH) || errors.Is(err, sqlite3.TOOBIG) || errors.Is(err, errFields)
}

// crashedFields are what makes a start a row.
var crashedFields = appendCrashed(nil)

// insertSQL returns the INSERT of so many rows. OR FAIL is for rows that cannot
// be: SQLite then need not be able to undo half of the statement, for which it
// would copy every page before it changes it.
func insertSQL(rows int) string {
	var names, values []string
	for _, c := range columns[colID:] {
		names = append(names, c.name)
	}
	for row := range rows {
		var params []string
		for c := colID; c <= colEnd; c++ {
			params = append(params, fmt.Sprint("?", before(row)+int(c)))
		}
		values = append(values, "("+strings.Join(params, ", ")+")")
	}
	return "INSERT OR FAIL INTO calls (" + strings.Join(names, ", ") + ", seq) VALUES " + strings.Join(values, ", ") +
		" ON CONFLICT (id, attempt) DO NOTHING"
}
