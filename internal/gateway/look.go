package gateway

import (
	"net/http"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/dialect"
	"github.com/weirgate/weir/internal/estimate"
)

// look is a dialect's look at a request body. A fault in it costs the look and
// not the call: what it has not told by then is unknown.
type look struct {
	candidates []*dialect.Dialect
	look       *dialect.Look
	scanner    *estimate.Scanner // looks at the same pieces; nil where nothing is estimated
	failed     bool              // a fault ended it
}

func newLook(candidates []*dialect.Dialect, r *http.Request) (l look) {
	l.candidates = candidates
	defer l.guard()
	l.look = dialect.NewLook(candidates, r.URL.Path, r.URL.RawQuery, first(r.Header, "Content-Type"))
	return l
}

func (l *look) guard() {
	if recover() != nil {
		l.failed = true
	}
}

// write looks at the next piece of the body, which is not kept.
func (l *look) write(b []byte) {
	if l.scanner != nil {
		l.scanner.Write(b)
	}
	if l.failed {
		return
	}
	defer l.guard()
	l.look.Write(b)
}

// done ends the look and returns what dialect.Look.Done does; after a fault the
// first of the candidates and a request that says nothing.
func (l *look) done(complete bool) (d *dialect.Dialect, request call.Request, malformed bool) {
	if !l.failed {
		func() {
			defer l.guard()
			d, request, malformed = l.look.Done(complete)
		}()
	}
	if l.failed || d == nil {
		return l.candidates[0], call.Request{}, false
	}
	return d, request, malformed
}

// edit returns the change that asks for usage; see dialect.Look.IncludeUsageEdit.
func (l *look) edit() (e dialect.Edit, unsaid bool) {
	if l.failed {
		return e, false
	}
	defer func() {
		if recover() != nil {
			l.failed, e, unsaid = true, dialect.Edit{}, false
		}
	}()
	return l.look.IncludeUsageEdit()
}

// free ends the use of the look. One that has failed is not used again.
func (l *look) free() {
	if !l.failed {
		l.look.Free()
	}
}
