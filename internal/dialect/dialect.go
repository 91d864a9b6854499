package dialect

import (
	"slices"
	"strings"

	"github.com/weirgate/weir/internal/jsonscan"
)

// Dialect is one API: how its requests and answers are read. It never changes
// after the program has started and is safe for concurrent use.
type Dialect struct {
	// Name is what records and the configuration call it, such as "openai.chat".
	Name string
	// Operation is its gen_ai.operation.name, such as "chat".
	Operation string

	// paths are the whole-segment path suffixes it is served under. One that
	// begins with a slash is a whole path; one that begins with a colon is the
	// verb at the end of the last segment.
	paths []string
	// keys are the keys of its request body that tell it from the other
	// dialects under the same path.
	keys    []string
	request asked

	// answer lists the places of its own in its answers, beside the shared
	// ones; a value's Field is own plus the place's index.
	answer []string
	// usage lists the places of objects that count tokens; "usage." when empty.
	usage []string
	// value takes one value of its own. It may keep v.Raw only by way of
	// Response.keep.
	value func(r *Response, v jsonscan.Value)
	// settle runs when a whole event or body has been read, before it counts.
	settle func(r *Response)
	// tokens turns the figures of an answer into token counts; openAITokens when nil.
	tokens func(f *figures) tokens

	lines     bool // streams newline-delimited JSON
	array     bool // streams one JSON array
	audio     bool // answers with raw audio
	plainText bool // may answer with plain text
	lasting   bool // its terminal event may be followed by more events that count
	// alwaysRead: no event is like the one before, because the length of its
	// text matters, or because each is counted.
	alwaysRead bool
	refusal    refusal
	limits     *limitHeaders // openAILimits when nil

	shape, look *jsonscan.Shape
	keyBits     []uint64 // by field of look: which of keys it stands for
}

var (
	registry = map[string]*Dialect{}
	bySuffix = map[string][]*Dialect{}
)

// register adds a dialect to those that are known. It runs while the program
// starts, and panics on a mistake in the dialect's table.
func register(d *Dialect) *Dialect {
	if registry[d.Name] != nil {
		panic("dialect: registered twice: " + d.Name)
	}
	d.shape = jsonscan.Compile(places(d)...)
	d.look, d.keyBits = d.request.shape(d.keys)
	if d.tokens == nil {
		d.tokens = openAITokens
	}
	if d.limits == nil {
		d.limits = openAILimits
	}
	if d.settle == nil {
		d.settle = func(*Response) {}
	}
	registry[d.Name] = d
	for _, p := range d.paths {
		all := append(bySuffix[p], d)
		// The most general first: it is taken when a body tells nothing.
		slices.SortFunc(all, func(a, b *Dialect) int {
			if len(a.keys) != len(b.keys) {
				return len(a.keys) - len(b.keys)
			}
			return strings.Compare(a.Name, b.Name)
		})
		bySuffix[p] = all
	}
	return d
}

// maxSegments is the number of path segments, from the end, that are looked at.
const maxSegments = 6

// ByPath returns the dialects served under a URL path, by the longest
// whole-segment suffix, whatever stands before it; nil when the path is not of
// inference. Where there are several, the request body decides (see Look). The
// result is shared and must not be changed.
func ByPath(path string) []*Dialect {
	if n := len(path); n > 1 && path[n-1] == '/' {
		path = path[:n-1]
	}
	start := len(path)
	for range maxSegments {
		if start = strings.LastIndexByte(path[:start], '/'); start < 0 {
			break
		}
	}
	if start <= 0 && strings.HasPrefix(path, "/") {
		if d := bySuffix[path]; d != nil {
			return d
		}
	}
	for i := max(start, 0); i < len(path); {
		if d := bySuffix[path[i:]]; d != nil && path[i] != '/' && path[i] != ':' {
			return d
		}
		slash := strings.IndexByte(path[i:], '/')
		if slash < 0 {
			break
		}
		i += slash + 1
	}
	if verb := pathVerb(path); verb != "" {
		return bySuffix[verb]
	}
	return nil
}

// pathVerb returns the verb of a path like /models/m:generateContent, with its
// colon; "" when it has none.
func pathVerb(path string) string {
	last := path[strings.LastIndexByte(path, '/')+1:]
	if c := strings.LastIndexByte(last, ':'); c > 0 {
		return last[c:]
	}
	return ""
}

// ByName returns the dialect of a name, nil when there is none.
func ByName(name string) *Dialect { return registry[name] }

// Names returns the names of all dialects, sorted.
func Names() []string {
	names := make([]string, 0, len(registry))
	for name := range registry {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// WritesTokens tells whether its answers are tokens of a model's output, whose
// number a request may bound. Embeddings, ranks and speech are not.
func (d *Dialect) WritesTokens() bool { return d.request.maxTokens != "" }

// LineDelimited tells whether its streams are newline-delimited JSON rather
// than server-sent events.
func (d *Dialect) LineDelimited() bool { return d.lines }

// StreamsJSON tells whether a stream may come as one JSON array, each element
// an event: Response.Body then reports what ends in each piece.
func (d *Dialect) StreamsJSON() bool { return d.array }

// PlainText tells whether a body may be plain text instead of JSON, as a
// transcript may. It goes to Response.Body all the same.
func (d *Dialect) PlainText() bool { return d.plainText }

// Audio tells whether an answer may be raw audio, which is not to be read here.
func (d *Dialect) Audio() bool { return d.audio }
