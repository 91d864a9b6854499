package otlpin

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// readJSON reads an ExportTraceServiceRequest in OTLP's JSON, in which ids are
// hexadecimal, whole numbers may be strings, and unknown fields are allowed
// (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding). It returns
// how many spans the body holds and, like readProtobuf, keeps one span at a time.
func readJSON(body []byte, to sink) (spans int, err error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	err = object(dec, func(key string) error {
		if key != "resourceSpans" {
			return skip(dec)
		}
		return list(dec, func() error {
			return object(dec, func(key string) error {
				if key != "scopeSpans" {
					return skip(dec)
				}
				return list(dec, func() error { return readJSONScope(dec, to, &spans) })
			})
		})
	})
	if err == nil {
		if _, end := dec.Token(); end != io.EOF {
			err = errMalformed
		}
	}
	if err != nil {
		return spans, fmt.Errorf("read JSON: %w", err)
	}
	return spans, nil
}

func readJSONScope(dec *json.Decoder, to sink, spans *int) error {
	// A scope that comes after its spans is not seen: it only names the engine.
	var scope struct{ Name string }
	return object(dec, func(key string) error {
		switch key {
		case "scope":
			return decode(dec, &scope)
		case "spans":
			return list(dec, func() error {
				*spans++
				return readJSONSpan(dec, []byte(scope.Name), to)
			})
		}
		return skip(dec)
	})
}

func readJSONSpan(dec *json.Decoder, scope []byte, to sink) error {
	var in struct {
		TraceID, SpanID, ParentSpanID      string
		Name                               string
		StartTimeUnixNano, EndTimeUnixNano loose
		Attributes                         json.RawMessage
	}
	if err := decode(dec, &in); err != nil {
		return err
	}
	s := &seen{}
	// An id of the wrong length is a mistake of the sender's, often base64.
	if !unhex(s.TraceID[:], in.TraceID) || !unhex(s.SpanID[:], in.SpanID) || !unhex(s.ParentID[:], in.ParentSpanID) {
		return fmt.Errorf("%w: trace and span ids are hexadecimal in OTLP/JSON", errMalformed)
	}
	if s.SpanID == (SpanID{}) || s.TraceID == (TraceID{}) || !to.wants(s.TraceID) {
		return nil
	}
	if err := readJSONAttributes(in.Attributes, s); err != nil {
		return err
	}
	s.Start, s.End = in.StartTimeUnixNano.unixNano(), in.EndTimeUnixNano.unixNano()
	s.finish(scope, []byte(in.Name))
	to.take(s)
	return nil
}

// unhex reads an id of exactly the length of to; "" is none.
func unhex(to []byte, from string) bool {
	if from == "" {
		return true
	}
	if len(from) != 2*len(to) {
		return false
	}
	_, err := hex.Decode(to, []byte(from))
	return err == nil
}

// readJSONAttributes reads a span's attributes one at a time.
func readJSONAttributes(b []byte, s *seen) error {
	if len(b) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	return list(dec, func() error {
		var in struct {
			Key   string
			Value struct {
				StringValue *string
				IntValue    loose
				DoubleValue loose
			}
		}
		if err := decode(dec, &in); err != nil {
			return err
		}
		v := value{}
		switch {
		case in.Value.StringValue != nil:
			v = value{kind: valueText, text: []byte(*in.Value.StringValue)}
		case in.Value.IntValue != "":
			v = in.Value.IntValue.number()
		case in.Value.DoubleValue != "":
			v = in.Value.DoubleValue.number()
		}
		s.note([]byte(in.Key), v)
		return nil
	})
}

// loose is a number that may be written as a string, as protobuf's JSON allows;
// "" when it is absent or null.
type loose string

func (l *loose) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if text == "null" {
		text = ""
	}
	*l = loose(text)
	return nil
}

// number reads what protobuf's JSON allows: 12, "12", 12.0, 1.2e1, and for doubles
// "NaN" and "Infinity". Anything else is no number, which is for the collector to
// complain of.
func (l loose) number() value {
	if n, err := strconv.ParseInt(string(l), 10, 64); err == nil {
		return value{kind: valueWhole, whole: n}
	}
	if f, err := strconv.ParseFloat(string(l), 64); err == nil {
		return value{kind: valueReal, real: f}
	}
	return value{}
}

func (l loose) unixNano() time.Time {
	n, err := strconv.ParseUint(string(l), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return unixNano(n)
}

// object visits the members of a JSON object; visit must consume the value. null
// is an empty one.
func object(dec *json.Decoder, visit func(key string) error) error {
	opened, err := open(dec, '{')
	if err != nil || !opened {
		return err
	}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return errMalformed
		}
		key, isKey := tok.(string)
		if !isKey {
			return errMalformed
		}
		if err := visit(key); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return errMalformed
	}
	return nil
}

// list visits the elements of a JSON array; visit must consume each. null is an
// empty one.
func list(dec *json.Decoder, visit func() error) error {
	opened, err := open(dec, '[')
	if err != nil || !opened {
		return err
	}
	for dec.More() {
		if err := visit(); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return errMalformed
	}
	return nil
}

// open consumes a delimiter, or null.
func open(dec *json.Decoder, delim json.Delim) (bool, error) {
	tok, err := dec.Token()
	switch {
	case err != nil:
		return false, errMalformed
	case tok == nil:
		return false, nil
	case tok != delim:
		return false, errMalformed
	}
	return true, nil
}

// decode reads one value. The decoder's errors quote the body, so they stay here.
func decode(dec *json.Decoder, into any) error {
	if err := dec.Decode(into); err != nil {
		return errMalformed
	}
	return nil
}

// skip passes over one value without keeping it.
func skip(dec *json.Decoder) error { return decode(dec, new(nothing)) }

type nothing struct{}

func (*nothing) UnmarshalJSON([]byte) error { return nil }
