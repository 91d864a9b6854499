package ledger

import "github.com/ncruces/go-sqlite3"

// parameters are those of a prepared statement, and what each is bound to. Rows
// are much alike, and to compare a value with the last one costs a fraction of
// what it costs to bind it anew, which copies it into SQLite's own memory.
type parameters struct {
	stmt  *sqlite3.Stmt
	bound []binding // by the parameter's number, from 1 on
}

// binding is what one parameter is bound to.
type binding struct {
	is   byte // isUnsure, isNull, isNumber or isText
	n    int64
	text []byte
	row  uint64 // the last row that had it, for whoever counts rows
}

const (
	isUnsure = iota // a binding failed
	isNull
	isNumber
	isText
)

// newParameters returns those of a statement that has just been prepared.
func newParameters(stmt *sqlite3.Stmt) parameters {
	p := parameters{stmt, make([]binding, stmt.BindCount()+1)}
	for i := range p.bound {
		p.bound[i].is = isNull
	}
	return p
}

// whole binds an integer.
func (p *parameters) whole(i int, n int64) error {
	b := &p.bound[i]
	if b.is == isNumber && b.n == n {
		return nil
	}
	if err := p.stmt.BindInt64(i, n); err != nil {
		b.is = isUnsure
		return err
	}
	b.is, b.n = isNumber, n
	return nil
}

// millis binds nanoseconds as milliseconds, a REAL.
func (p *parameters) millis(i int, n int64) error {
	b := &p.bound[i]
	if b.is == isNumber && b.n == n {
		return nil
	}
	if err := p.stmt.BindFloat(i, float64(n)/1e6); err != nil {
		b.is = isUnsure
		return err
	}
	b.is, b.n = isNumber, n
	return nil
}

// text binds a text, of which it keeps a copy.
func (p *parameters) text(i int, s []byte) error {
	b := &p.bound[i]
	if b.is == isText && string(b.text) == string(s) {
		return nil
	}
	if err := p.stmt.BindRawText(i, s); err != nil {
		b.is = isUnsure
		return err
	}
	b.is, b.text = isText, append(b.text[:0], s...)
	return nil
}

// null binds NULL.
func (p *parameters) null(i int) error {
	b := &p.bound[i]
	if b.is == isNull {
		return nil
	}
	if err := p.stmt.BindNull(i); err != nil {
		b.is = isUnsure
		return err
	}
	b.is = isNull
	return nil
}

// or returns a number, or n where it is NULL.
func (b *binding) or(n int64) int64 {
	if b.is == isNumber {
		return b.n
	}
	return n
}

// words returns a text, empty where it is NULL. It is good until the next is bound.
func (b *binding) words() []byte {
	if b.is == isText {
		return b.text
	}
	return nil
}
