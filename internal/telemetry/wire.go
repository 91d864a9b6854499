package telemetry

import (
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/protobuf/encoding/protowire"
)

// wire is a message of OTLP in the making, in protobuf's encoding. Its methods append a
// field, by its number, and leave it out where proto3 does: when it is zero.
// https://protobuf.dev/programming-guides/encoding/
type wire []byte

func (w wire) tag(field protowire.Number, t protowire.Type) wire {
	return w.number(protowire.EncodeTag(field, t))
}

// number appends a varint, which is one byte most often.
func (w wire) number(n uint64) wire {
	if n < 0x80 {
		return append(w, byte(n))
	}
	return protowire.AppendVarint(w, n)
}

// open begins a message within the message, and with seal it ends. at is what open returns:
// where its length stands, which is not known before.
func (w wire) open(field protowire.Number) (opened wire, at int) {
	w = append(w.tag(field, protowire.BytesType), 0)
	return w, len(w) - 1
}

func (w wire) seal(at int) wire {
	n := len(w) - at - 1
	if n < 0x80 { // as most are; the length takes the one byte that is left for it
		w[at] = byte(n)
		return w
	}
	var room [9]byte
	more := protowire.SizeVarint(uint64(n)) - 1
	w = append(w, room[:more]...)
	copy(w[at+1+more:], w[at+1:at+1+n])
	protowire.AppendVarint(w[:at], uint64(n))
	return w
}

// bytes appends even what is empty.
func (w wire) bytes(field protowire.Number, b []byte) wire {
	return append(w.tag(field, protowire.BytesType).number(uint64(len(b))), b...)
}

// text appends s, made text where it is none: OTLP's strings are UTF-8, and one that is
// not costs the whole batch, other calls' spans with it. Paths and models are what
// clients make them.
func (w wire) text(field protowire.Number, s string) wire {
	if s == "" {
		return w
	}
	return w.string(field, s)
}

// string is text that is appended even when it is empty.
func (w wire) string(field protowire.Number, s string) wire {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, string(utf8.RuneError))
	}
	return append(w.tag(field, protowire.BytesType).number(uint64(len(s))), s...)
}

func (w wire) varint(field protowire.Number, n uint64) wire {
	if n == 0 {
		return w
	}
	return w.tag(field, protowire.VarintType).number(n)
}

// count appends how many there are of something, as 32 bits hold it.
func (w wire) count(field protowire.Number, n int) wire {
	return w.varint(field, uint64(min(max(int64(n), 0), math.MaxUint32)))
}

func (w wire) fixed32(field protowire.Number, n uint32) wire {
	if n == 0 {
		return w
	}
	return protowire.AppendFixed32(w.tag(field, protowire.Fixed32Type), n)
}

// instant appends a time in nanoseconds since 1970; what was before is 1970.
func (w wire) instant(field protowire.Number, t time.Time) wire {
	n := max(t.UnixNano(), 0)
	if n == 0 {
		return w
	}
	return protowire.AppendFixed64(w.tag(field, protowire.Fixed64Type), uint64(n))
}

// Fields of KeyValue, of AnyValue, and of the lists among its values.
// https://github.com/open-telemetry/opentelemetry-proto/blob/v1.11.0/opentelemetry/proto/common/v1/common.proto
const (
	fieldKey   = 1
	fieldValue = 2

	fieldString = 1
	fieldBool   = 2
	fieldInt    = 3
	fieldDouble = 4
	fieldArray  = 5
	fieldMap    = 6
	fieldBytes  = 7

	fieldValues = 1
)

func (w wire) attributes(field protowire.Number, attrs []attribute.KeyValue) wire {
	for i := range attrs {
		w = w.attribute(field, &attrs[i])
	}
	return w
}

func (w wire) attribute(field protowire.Number, a *attribute.KeyValue) wire {
	w, at := w.open(field)
	return w.text(fieldKey, string(a.Key)).value(fieldValue, &a.Value).seal(at)
}

// value appends a message AnyValue. A value is there even when it is zero.
func (w wire) value(field protowire.Number, v *attribute.Value) wire {
	w, at := w.open(field)
	switch v.Type() {
	case attribute.STRING:
		w = w.string(fieldString, v.AsString())
	case attribute.FLOAT64:
		w = w.double(v.AsFloat64())
	case attribute.INT64:
		w = w.int(v.AsInt64())
	case attribute.BOOL:
		w = w.bool(v.AsBool())
	case attribute.BYTESLICE:
		w = w.bytes(fieldBytes, v.AsByteSlice())
	case attribute.STRINGSLICE:
		w = list(w, v.AsStringSlice(), func(w wire, s string) wire { return w.string(fieldString, s) })
	case attribute.FLOAT64SLICE:
		w = list(w, v.AsFloat64Slice(), wire.double)
	case attribute.INT64SLICE:
		w = list(w, v.AsInt64Slice(), wire.int)
	case attribute.BOOLSLICE:
		w = list(w, v.AsBoolSlice(), wire.bool)
	case attribute.SLICE:
		var inner int
		w, inner = w.open(fieldArray)
		for _, v := range v.AsSlice() {
			w = w.value(fieldValues, &v)
		}
		w = w.seal(inner)
	case attribute.MAP:
		var inner int
		w, inner = w.open(fieldMap)
		w = w.attributes(fieldValues, v.AsMap()).seal(inner)
	case attribute.EMPTY:
	}
	return w.seal(at)
}

func list[T any](w wire, values []T, one func(wire, T) wire) wire {
	w, all := w.open(fieldArray)
	for _, v := range values {
		var at int
		w, at = w.open(fieldValues)
		w = one(w, v).seal(at)
	}
	return w.seal(all)
}

func (w wire) double(n float64) wire {
	return protowire.AppendFixed64(w.tag(fieldDouble, protowire.Fixed64Type), math.Float64bits(n))
}

func (w wire) int(n int64) wire {
	return w.tag(fieldInt, protowire.VarintType).number(uint64(n))
}

func (w wire) bool(b bool) wire {
	return w.tag(fieldBool, protowire.VarintType).number(protowire.EncodeBool(b))
}
