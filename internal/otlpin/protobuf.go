package otlpin

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// sink takes spans as they are read.
type sink interface {
	// wants tells whether spans of this trace are of interest; it is asked first, so
	// that others cost nothing more.
	wants(TraceID) bool
	// take takes one span of such a trace. The span is the reader's own: whoever
	// keeps it makes a copy.
	take(*seen)
}

// errMalformed is why a body cannot be read; it never quotes the body.
var errMalformed = errors.New("not an OTLP export request")

// Field numbers of opentelemetry/proto/{collector/trace,trace,common}/v1.
const (
	requestResourceSpans    = 1
	resourceSpansScopeSpans = 2
	scopeSpansScope         = 1
	scopeSpansSpans         = 2
	scopeName               = 1

	spanTraceID    = 1
	spanSpanID     = 2
	spanParentID   = 4
	spanName       = 5
	spanStart      = 7
	spanEnd        = 8
	spanAttributes = 9

	keyValueKey    = 1
	keyValueValue  = 2
	anyValueString = 1
	anyValueInt    = 3
	anyValueDouble = 4
)

// readProtobuf reads an ExportTraceServiceRequest field by field and returns how
// many spans it holds. It builds no messages: two bytes of a body can be a span of
// hundreds of bytes in memory. Spans that the sink does not want are passed over
// unread, so that what is wrong inside one of them is not noticed.
func readProtobuf(body []byte, to sink) (spans int, err error) {
	r := &reader{to: to}
	err = each(body, func(f field) error {
		if f.num != requestResourceSpans || f.typ != protowire.BytesType {
			return nil
		}
		return each(f.data, func(f field) error {
			if f.num != resourceSpansScopeSpans || f.typ != protowire.BytesType {
				return nil
			}
			n, err := r.scopeSpans(f.data)
			spans += n
			return err
		})
	})
	if err != nil {
		return spans, fmt.Errorf("read protobuf: %w", err)
	}
	return spans, nil
}

// reader reads spans one after the other, in the same place.
type reader struct {
	to    sink
	span  seen
	scope []byte // the name of the instrumentation scope
	name  []byte // of the span
}

func (r *reader) scopeSpans(b []byte) (spans int, err error) {
	// The scope comes first as a rule; the order is not promised.
	r.scope = nil
	err = each(b, func(f field) error {
		if f.num != scopeSpansScope || f.typ != protowire.BytesType {
			return nil
		}
		return each(f.data, func(f field) error {
			if f.num == scopeName && f.typ == protowire.BytesType {
				r.scope = f.data
			}
			return nil
		})
	})
	if err != nil {
		return 0, err
	}
	err = each(b, func(f field) error {
		if f.num != scopeSpansSpans || f.typ != protowire.BytesType {
			return nil
		}
		spans++
		return r.readSpan(f.data)
	})
	return spans, err
}

// errFound ends a search.
var errFound = errors.New("found")

func (r *reader) readSpan(b []byte) error {
	var id TraceID
	err := each(b, func(f field) error { // the id is the first field as a rule
		if f.num != spanTraceID || f.typ != protowire.BytesType {
			return nil
		}
		if len(f.data) == len(id) {
			id = TraceID(f.data)
		}
		return errFound
	})
	if err != nil && err != errFound || id == (TraceID{}) || !r.to.wants(id) {
		if err == errFound {
			err = nil
		}
		return err
	}
	r.span, r.name = seen{}, nil
	if err := each(b, r.spanField); err != nil || r.span.SpanID == (SpanID{}) {
		return err
	}
	r.span.TraceID = id
	r.span.finish(r.scope, r.name)
	r.to.take(&r.span)
	return nil
}

func (r *reader) spanField(f field) error {
	s := &r.span
	switch {
	case f.num == spanSpanID && f.typ == protowire.BytesType && len(f.data) == len(s.SpanID):
		s.SpanID = SpanID(f.data)
	case f.num == spanParentID && f.typ == protowire.BytesType && len(f.data) == len(s.ParentID):
		s.ParentID = SpanID(f.data)
	case f.num == spanName && f.typ == protowire.BytesType:
		r.name = f.data
	case f.num == spanStart && f.typ == protowire.Fixed64Type:
		s.Start = unixNano(f.bits)
	case f.num == spanEnd && f.typ == protowire.Fixed64Type:
		s.End = unixNano(f.bits)
	case f.num == spanAttributes && f.typ == protowire.BytesType:
		return readAttribute(f.data, s)
	}
	return nil
}

func readAttribute(b []byte, s *seen) error {
	var key []byte
	var v value
	err := each(b, func(f field) error {
		if f.typ != protowire.BytesType {
			return nil
		}
		switch f.num {
		case keyValueKey:
			key = f.data
		case keyValueValue:
			var err error
			v, err = readAnyValue(f.data)
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.note(key, v)
	return nil
}

func readAnyValue(b []byte) (v value, err error) {
	err = each(b, func(f field) error {
		switch { // a oneof: the last field that is set counts
		case f.num == anyValueString && f.typ == protowire.BytesType:
			v = value{kind: valueText, text: f.data}
		case f.num == anyValueInt && f.typ == protowire.VarintType:
			v = value{kind: valueWhole, whole: int64(f.bits)}
		case f.num == anyValueDouble && f.typ == protowire.Fixed64Type:
			v = value{kind: valueReal, real: math.Float64frombits(f.bits)}
		default:
			v = value{}
		}
		return nil
	})
	return v, err
}

// field is one field of a message: data of a bytes field, bits of a number.
type field struct {
	num  protowire.Number
	typ  protowire.Type
	data []byte
	bits uint64
}

// each visits the fields of a message until visit returns an error.
func each(b []byte, visit func(field) error) error {
	for len(b) > 0 {
		var f field
		var n int
		if f.num, f.typ, n = protowire.ConsumeTag(b); n < 0 {
			return errMalformed
		}
		b = b[n:]
		switch f.typ {
		case protowire.BytesType:
			f.data, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			f.bits, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			f.bits, n = protowire.ConsumeFixed64(b)
		default:
			n = protowire.ConsumeFieldValue(f.num, f.typ, b)
		}
		if n < 0 {
			return errMalformed
		}
		b = b[n:]
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}
