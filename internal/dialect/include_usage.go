package dialect

import (
	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/jsonscan"
)

// options is what a request body says of stream_options, and where.
type options struct {
	root     int64 // place of the bracket that opens the body
	times    int   // how often stream_options is there
	begin    int64 // place of its value, or of the null of include_usage
	kind     jsonscan.Kind
	empty    bool
	null     bool // include_usage is null
	included int  // how often include_usage is there
	strange  bool // include_usage is something else than true, false and null
}

// whole takes the value of stream_options.
func (o *options) whole(v *jsonscan.Value) {
	if v.Kind == jsonscan.EndObject {
		o.empty = v.Empty
		return
	}
	o.times++
	o.kind, o.begin = v.Kind, v.Offset
}

// include takes the value of include_usage, and returns the client's word.
func (o *options) include(v *jsonscan.Value) call.Choice {
	o.included++
	switch v.Kind {
	case jsonscan.True:
		return call.Yes
	case jsonscan.False:
		return call.No
	case jsonscan.Null:
		o.null = true
		o.begin = v.Offset
	default:
		o.strange = true
	}
	return call.Unsaid
}

// Edit is a change of one place of a body: Delete bytes at Offset give way to Insert.
type Edit struct {
	Offset, Delete int64
	Insert         string
}

// IncludeUsageEdit returns the smallest change of the body that asks for usage
// in the stream, for a streaming client that said nothing of it. There is none
// where the client chose for itself, where the dialect has no such option, and
// where the body was not read to its end or is not clear about it. Call it
// after Done.
func (l *Look) IncludeUsageEdit() (Edit, bool) {
	r := l.chosen
	if r == nil || l.form != nil || !l.whole || !r.d.request.options || !r.req.Stream ||
		r.req.IncludeUsage != call.Unsaid {
		return Edit{}, false
	}
	const ask = `"include_usage":true`
	o := &r.opts
	switch {
	case o.times > 1 || o.included > 1 || o.strange:
		return Edit{}, false // servers differ in which of them they take
	case o.times == 0:
		// The body is not empty: it asks for a stream.
		return Edit{Offset: o.root + 1, Insert: `"stream_options":{` + ask + `},`}, true
	case o.kind == jsonscan.Null:
		return Edit{Offset: o.begin, Delete: int64(len("null")), Insert: `{` + ask + `}`}, true
	case o.kind != jsonscan.BeginObject:
		return Edit{}, false
	case o.null:
		return Edit{Offset: o.begin, Delete: int64(len("null")), Insert: "true"}, true
	case o.empty:
		return Edit{Offset: o.begin + 1, Insert: ask}, true
	}
	return Edit{Offset: o.begin + 1, Insert: ask + ","}, true
}
