package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/ncruces/go-sqlite3"
)

// maxReaders is the most queries at once; more wait. Each has a connection of
// its own, which holds a few MiB.
const maxReaders = 4

// Reader answers queries from a ledger's file, which a gateway may be writing
// at the same time. It may be used by many goroutines at once.
type Reader struct {
	path  string
	slots chan struct{} // holds one value for each query under way

	mu     sync.Mutex
	idle   []*connection
	closed bool
}

var errNone = errors.New("no ledger")

// connection is one read-only connection, and the file that it has open.
type connection struct {
	conn *sqlite3.Conn
	file os.FileInfo
}

func newReader(path string) *Reader {
	return &Reader{path: path, slots: make(chan struct{}, maxReaders)}
}

// OpenReader opens the ledger at path to read it. It makes no database: a file
// that is missing, that is no ledger, or whose schema is newer than this
// program is an error. Rows that a gateway still holds in its spill are not
// seen; they are, as a rule, some milliseconds' worth.
func OpenReader(path string) (*Reader, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	r := newReader(path)
	c, err := r.take(context.Background())
	if err != nil {
		return nil, err
	}
	r.give(c, nil)
	return r, nil
}

// take returns a connection to the file that is at the path now.
func (r *Reader) take(ctx context.Context) (*connection, error) {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c, err := r.connect(ctx)
	if err != nil {
		<-r.slots
		return nil, err
	}
	c.conn.SetInterrupt(ctx)
	return c, nil
}

func (r *Reader) connect(ctx context.Context) (*connection, error) {
	info, err := os.Stat(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w at %s: name the database that the gateway's \"ledger sqlite\" names; it is made with the first call", errNone, r.path)
	}
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	for {
		c := r.pop()
		if c == nil {
			break
		}
		if os.SameFile(c.file, info) {
			return c, nil
		}
		closeConn(c.conn) // of a file that is no longer there
	}
	conn, err := r.open(ctx)
	if err != nil {
		return nil, explain(r.path, err)
	}
	return &connection{conn, info}, nil
}

func (r *Reader) open(ctx context.Context) (*sqlite3.Conn, error) {
	conn, err := sqlite3.OpenFlags(r.path, sqlite3.OPEN_READONLY)
	if err != nil {
		return nil, err
	}
	conn.SetInterrupt(ctx)
	err = conn.BusyTimeout(4 * busyTimeout)
	version := 0
	if err == nil {
		version, err = schemaVersion(conn)
	}
	switch {
	case err != nil:
	case version == 0:
		err = errors.New("the ledger is still empty: no gateway has written to it")
	case version > len(steps):
		err = newerError(version)
	case version < len(steps):
		err = fmt.Errorf("the ledger has schema version %d, older than this program's %d: start the gateway once to bring it up to date", version, len(steps))
	}
	if err != nil {
		closeConn(conn)
		return nil, err
	}
	return conn, nil
}

// pop takes an idle connection; nil when there is none.
func (r *Reader) pop() *connection {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.idle) == 0 {
		return nil
	}
	c := r.idle[len(r.idle)-1]
	r.idle = r.idle[:len(r.idle)-1]
	return c
}

// give takes a connection back. After an error it is not used again.
func (r *Reader) give(c *connection, err error) {
	defer func() { <-r.slots }()
	c.conn.SetInterrupt(context.Background())
	r.mu.Lock()
	keep := err == nil && !r.closed
	if keep {
		r.idle = append(r.idle, c)
	}
	r.mu.Unlock()
	if !keep {
		closeConn(c.conn) // the error of the query is the one that counts
	}
}

// query runs one statement and hands each row to scan. Texts and blobs among the
// arguments and results are copied.
func (r *Reader) query(ctx context.Context, sql string, args []any, scan func(*sqlite3.Stmt)) error {
	return r.inside(ctx, func(conn *sqlite3.Conn) error {
		stmt, _, err := conn.Prepare(sql)
		if err != nil {
			return err
		}
		defer stmt.Close()
		for i, a := range args {
			switch a := a.(type) {
			case string:
				err = stmt.BindText(i+1, a)
			case int64:
				err = stmt.BindInt64(i+1, a)
			default:
				err = fmt.Errorf("argument %d of a query is a %T", i+1, a)
			}
			if err != nil {
				return err
			}
		}
		for stmt.Step() {
			scan(stmt)
		}
		return stmt.Err()
	})
}

// inside runs f with one connection, in one transaction: all that it reads is
// of one moment, so that sums may be taken from each other.
func (r *Reader) inside(ctx context.Context, f func(*sqlite3.Conn) error) (err error) {
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = ctx.Err()
		}
	}()
	c, err := r.take(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil { // a fault of the engine is this query's alone
			err = fmt.Errorf("the database engine failed: %v", p)
			<-r.slots
			return
		}
		r.give(c, err)
	}()
	if err := ctx.Err(); err != nil {
		return err // Begin would not look
	}
	tx := c.conn.Begin()
	defer tx.End(&err)
	if err := f(c.conn); err != nil {
		return explain(r.path, err)
	}
	return nil
}

// Close closes the connections that no query uses, and the others when their
// query ends.
func (r *Reader) Close() error {
	r.mu.Lock()
	idle := r.idle
	r.idle, r.closed = nil, true
	r.mu.Unlock()
	var errs []error
	for _, c := range idle {
		errs = append(errs, closeConn(c.conn))
	}
	return errors.Join(errs...)
}
