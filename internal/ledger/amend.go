package ledger

import (
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"
	"github.com/weirgate/weir/internal/call"
)

// Amend replaces the phases and the engine's own figures of a call whose end has
// been recorded. Like End it never fails the call, and is counted when it could
// not be kept. The amendment of a call that the ledger does not have, or has
// deleted, changes nothing; nor does a second one with the same figures.
func (l *Ledger) Amend(a *call.Amendment) {
	if a.ID == "" {
		l.spill.lost()
		return
	}
	w := l.spill.waiters.Get().(*waiter)
	defer l.spill.waiters.Put(w)
	w.entry = appendAmendment(beginEntry(w.entry[:0], kindAmend), a)
	l.keep(w, kindAmend)
}

// appendAmendment appends the fields of an amendment. What is unknown is left
// out, and becomes NULL.
func appendAmendment(b []byte, a *call.Amendment) []byte {
	rec := call.Record{Phases: a.Phases, PhaseSources: a.PhaseSources, Engine: a.Engine}
	b = appendText(b, colID, a.ID)
	b = appendWhole(b, colAttempt, onlyAttempt)
	all := spans(&rec)
	for i := phasesAt; i < numSpans; i++ {
		b = appendSpan(b, spanColumns[i], *all[i])
	}
	b = appendText(b, colPhaseSources, sourcesText(&rec))
	return appendText(b, colDegraded, degradedText(a.Degraded))
}

// amended tells whether an amendment replaces a column.
func (c column) amended() bool {
	if c == colPhaseSources || c == colDegraded {
		return true
	}
	for i := phasesAt; i < numSpans; i++ {
		if spanColumns[i] == c {
			return true
		}
	}
	return false
}

// change puts one amendment into the database.
func (d *database) change(fields []byte) error {
	if err := d.amend.ClearBindings(); err != nil {
		return err
	}
	for len(fields) > 0 {
		c, isText, v, rest, err := nextField(fields)
		if err != nil {
			return err
		}
		fields = rest
		if c.known(isText) && (c == colID || c == colAttempt || c.amended()) {
			err = bindTo(d.amend, c, isText, v)
		}
		if err != nil {
			return err
		}
	}
	return d.amend.Exec()
}

// bindTo gives one field to the parameter of its column, which is known.
func bindTo(stmt *sqlite3.Stmt, c column, isText bool, v value) error {
	switch {
	case isText:
		return stmt.BindRawText(int(c), v.b)
	case columns[c].kind == millis:
		return stmt.BindFloat(int(c), float64(v.n)/1e6)
	default:
		return stmt.BindInt64(int(c), v.n)
	}
}

var amendSQL = func() string {
	var sets []string
	for c := colID; c < colEnd; c++ {
		if c.amended() {
			sets = append(sets, fmt.Sprintf("%s = ?%d", columns[c].name, int(c)))
		}
	}
	// A bound on the queue says nothing once the queue is known.
	sets = append(sets, fmt.Sprintf("surroundings = iif(?%d IS NULL, surroundings, json_remove(surroundings, '$.queue_engine_at_most_ms'))", int(colEngineQueue)))
	return fmt.Sprintf("UPDATE calls SET %s WHERE id = ?%d AND attempt = ?%d", strings.Join(sets, ", "), int(colID), int(colAttempt))
}()
