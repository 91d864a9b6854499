package dialect

import (
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/jsonscan"
)

// asked lists the places of a request body that are read, beside model and
// stream; an empty one is not there.
type asked struct {
	maxTokens    string
	n            string
	bestOf       string
	echo         string
	prompt       string // what echo repeats
	streamFormat string // "sse" there asks for a stream
	options      bool   // has OpenAI's stream_options
	streams      bool   // streams unless told not to
}

// Fields of a request. The dialect's keys follow.
const (
	lookRoot = iota
	lookModel
	lookStream
	lookMaxTokens
	lookN
	lookBestOf
	lookEcho
	lookPrompt
	lookStreamFormat
	lookOptions
	lookIncludeUsage
	lookKeys
)

// shape returns the shape of request bodies whose keys tell the dialect, and
// which of the keys each field stands for.
func (a *asked) shape(keys []string) (*jsonscan.Shape, []uint64) {
	p := make([]string, lookKeys, lookKeys+len(keys))
	p[lookRoot] = "$"
	p[lookModel] = "model"
	p[lookStream] = "stream"
	p[lookMaxTokens] = a.maxTokens
	p[lookN] = a.n
	p[lookBestOf] = a.bestOf
	p[lookEcho] = a.echo
	p[lookPrompt] = a.prompt
	p[lookStreamFormat] = a.streamFormat
	if a.options {
		p[lookOptions] = "stream_options"
		p[lookIncludeUsage] = "stream_options.include_usage"
	}
	known := make([]uint64, lookKeys+len(keys))
	for i, k := range keys {
		field := slices.Index(p, k)
		if field < 0 {
			field = len(p)
			p = append(p, k)
		}
		known[field] = 1 << i
	}
	return jsonscan.Compile(p...), known
}

// Look reads a request body in any number of pieces and keeps none of it. It
// is not safe for concurrent use.
type Look struct {
	path     string
	form     *form // of a multipart body
	readings []reading
	one      [1]reading // room for the usual case

	chosen *reading
	whole  bool // the body was read to its end and is what it must be
}

// reading is a body as one dialect reads it.
type reading struct {
	d    *Dialect
	scan jsonscan.Scanner
	req  call.Request
	keys uint64 // which of the dialect's keys the body has
	root bool   // the body is an object
	opts options
}

// looks are those that were freed.
var looks = sync.Pool{New: func() any { return new(Look) }}

// Free gives the Look back. It may not be used any more; what it told may.
func (l *Look) Free() { looks.Put(l) }

// NewLook begins to look at a request body. candidates is what ByPath returned
// for the path, or a dialect of the user's choice; path, query (undecoded) and
// contentType are the request's own.
func NewLook(candidates []*Dialect, path, query, contentType string) *Look {
	l := looks.Get().(*Look)
	*l = Look{path: path}
	if len(candidates) <= len(l.one) {
		l.readings = l.one[:len(candidates)]
	} else {
		l.readings = make([]reading, len(candidates))
	}
	for i, d := range candidates {
		r := &l.readings[i]
		r.d = d
		r.req.Stream = d.request.streams || pathStreams(path)
		r.scan.Reset(d.look)
	}
	if boundary := formBoundary(contentType); boundary != "" {
		l.form = newForm(boundary)
	}
	return l
}

// Write looks at the next piece of the body.
func (l *Look) Write(b []byte) {
	if l.form != nil {
		l.form.write(b)
		return
	}
	for i := range l.readings {
		r := &l.readings[i]
		r.scan.Write(b, r)
	}
}

// Done ends the look; complete is whether the body was written to its end. It
// returns the dialect, by the keys of the body where the path left a choice;
// what the request says, as far as the look went; and whether the body is not
// the JSON object or the form that it must be.
func (l *Look) Done(complete bool) (d *Dialect, req call.Request, malformed bool) {
	if len(l.readings) == 0 {
		return nil, call.Request{}, true
	}
	r := &l.readings[0]
	known := len(l.readings) == 1
	for i := range l.readings {
		if o := &l.readings[i]; o.matched() > r.matched() {
			r = o
		}
	}
	known = known || r.matched() > 0
	l.chosen = r
	req = r.req
	if !req.Echo {
		req.Prompt = call.Digest{} // nothing will repeat it
	}
	if l.form != nil {
		l.form.fill(&req)
		malformed = l.form.malformed(complete)
	} else {
		malformed = r.scan.Err() != nil || complete && !(r.scan.Done() && r.root && known)
	}
	l.whole = complete && !malformed
	if req.Model == "" {
		req.Model = pathModel(l.path)
	}
	return r.d, req, malformed
}

// matched returns how many of the dialect's keys the body has.
func (r *reading) matched() int { return bits.OnesCount64(r.keys) }

// Value takes what the scanner found. It makes reading a jsonscan.Handler.
func (r *reading) Value(v jsonscan.Value) {
	r.keys |= r.d.keyBits[v.Field]
	switch v.Field {
	case lookRoot:
		r.root = r.root || v.Kind == jsonscan.BeginObject
		if v.Kind == jsonscan.BeginObject {
			r.opts.root = v.Offset
		}
	case lookModel:
		if v.Kind == jsonscan.String {
			r.req.Model = name(v.Raw)
		}
	case lookStream:
		r.req.Stream = v.Kind == jsonscan.True || v.Kind == jsonscan.Null && r.req.Stream
	case lookMaxTokens:
		if n, ok := v.Count(); ok {
			// Of two names for it the larger counts.
			r.req.MaxTokens = call.Known(max(n, r.req.MaxTokens.Or(0)))
		}
	case lookN:
		if n, ok := v.Count(); ok {
			r.req.N = call.Known(n)
		}
	case lookBestOf:
		if n, ok := v.Count(); ok {
			r.req.BestOf = call.Known(n)
		}
	case lookEcho:
		r.req.Echo = v.Kind == jsonscan.True
	case lookPrompt:
		if v.Kind == jsonscan.String {
			r.req.Prompt = call.DigestOf(unescaped(v.Raw))
		}
	case lookStreamFormat:
		if v.Kind == jsonscan.String {
			r.req.Stream = string(v.Raw) == "sse"
		}
	case lookOptions:
		r.opts.whole(&v)
	case lookIncludeUsage:
		r.req.IncludeUsage = r.opts.include(&v)
	}
}

// pathStreams tells whether the path itself asks for a stream.
func pathStreams(path string) bool {
	last := pathVerb(path)
	if last == "" {
		last = path[strings.LastIndexByte(path, '/')+1:]
	}
	return strings.Contains(last, "stream")
}

// pathModel returns the model that a path names, as Azure's deployments and
// Google's models do; "" when it names none.
func pathModel(path string) string {
	for _, mark := range [...]string{"/deployments/", "/models/", "/engines/"} {
		if i := strings.LastIndex(path, mark); i >= 0 {
			model := path[i+len(mark):]
			end := strings.IndexByte(model, '/')
			if mark == "/models/" {
				if end >= 0 {
					continue // of a place whose models have several segments
				}
				end = len(model) - len(pathVerb(path))
			}
			if end > 0 {
				return call.Name([]byte(model[:end]))
			}
		}
	}
	return ""
}
