package telemetry

import (
	"slices"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
)

// OTLP's strings are UTF-8, and one that is not costs the whole batch, other calls'
// spans with it: paths and models are what clients make them.

// valid returns s with a replacement character for what is no text.
func valid(s string) string { return strings.ToValidUTF8(s, string(utf8.RuneError)) }

// allValid makes all strings of attributes valid, in place.
func allValid(attrs []attribute.KeyValue) []attribute.KeyValue {
	for i := range attrs {
		switch v := &attrs[i].Value; v.Type() {
		case attribute.STRING:
			if s := v.AsString(); !utf8.ValidString(s) {
				*v = attribute.StringValue(valid(s))
			}
		case attribute.STRINGSLICE:
			texts := v.AsStringSlice()
			if !slices.ContainsFunc(texts, func(s string) bool { return !utf8.ValidString(s) }) {
				continue
			}
			for j := range texts {
				texts[j] = valid(texts[j])
			}
			*v = attribute.StringSliceValue(texts)
		}
	}
	return attrs
}
