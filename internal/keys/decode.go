package keys

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decoder reads a JSON document into structs strictly: a field that is not
// known, differs in case or comes twice is an error, where encoding/json would
// take the last of two and fold case. A mistyped "revoked" must not pass
// silently. Its errors say line and place, and never show a string's value,
// which could be a secret; quantities and times show the beginning of theirs.
type decoder struct {
	doc    []byte // of valid grammar, so that no step below can run off its end
	at     int    // the next byte
	fields map[reflect.Type]map[string]int
}

// decode reads the whole document, which must be one valid JSON value, into
// what to points to.
func decode(doc []byte, to any) error {
	d := decoder{doc: doc, fields: make(map[reflect.Type]map[string]int)}
	if err := json.Unmarshal(doc, new(grammar)); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return fmt.Errorf("line %d: this is not JSON: %w", d.line(int(syntax.Offset)), err)
		}
		return fmt.Errorf("this is not JSON: %w", err)
	}
	return d.value(reflect.ValueOf(to).Elem(), "")
}

// grammar is a value of which only the grammar is checked.
type grammar struct{}

func (grammar) UnmarshalJSON([]byte) error { return nil }

// line returns the number, from 1, of the line of an offset.
func (d *decoder) line(offset int) int {
	return 1 + bytes.Count(d.doc[:min(offset, len(d.doc))], []byte("\n"))
}

// fail is an error at a place of the document, in the line of an offset.
func (d *decoder) fail(offset int, place string, err error) error {
	if place != "" {
		err = fmt.Errorf("%s: %w", place, err)
	}
	return fmt.Errorf("line %d: %w", d.line(offset), err)
}

// peek returns the next byte that is not blank.
func (d *decoder) peek() byte {
	for {
		switch c := d.doc[d.at]; c {
		case ' ', '\t', '\r', '\n':
			d.at++
		default:
			return c
		}
	}
}

// more tells whether a list or an object goes on, and steps over what divides
// or closes it.
func (d *decoder) more(end byte) bool {
	switch d.peek() {
	case end:
		d.at++
		return false
	case ',':
		d.at++
		d.peek()
	}
	return true
}

// raw steps over a value and returns it.
func (d *decoder) raw() []byte {
	d.peek()
	start, depth := d.at, 0
	for ; d.at < len(d.doc); d.at++ {
		switch d.doc[d.at] {
		case '{', '[':
			depth++
		case '"':
			for d.at++; d.doc[d.at] != '"'; d.at++ {
				if d.doc[d.at] == '\\' {
					d.at++
				}
			}
			if depth == 0 {
				d.at++
				return d.doc[start:d.at]
			}
		case '}', ']':
			if depth == 0 { // of the value around a number or a word
				return d.doc[start:d.at]
			}
			if depth--; depth == 0 {
				d.at++
				return d.doc[start:d.at]
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return d.doc[start:d.at]
			}
		}
	}
	return d.doc[start:d.at]
}

// text returns what a string stands for.
func text(raw []byte) (s string, ok bool) {
	if raw[0] != '"' {
		return "", false
	}
	if inner := raw[1 : len(raw)-1]; !bytes.ContainsRune(inner, '\\') && utf8.Valid(inner) {
		return string(inner), true
	}
	return s, json.Unmarshal(raw, &s) == nil
}

// value reads the next value.
func (d *decoder) value(to reflect.Value, place string) error {
	first, start := d.peek(), d.at
	if first == 'n' {
		d.raw() // null is like left out
		return nil
	}
	if reader, is := to.Addr().Interface().(json.Unmarshaler); is {
		if err := reader.UnmarshalJSON(d.raw()); err != nil {
			return d.fail(start, place, err)
		}
		return nil
	}
	var ok bool
	switch to.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return d.value(to.Elem(), place)
	case reflect.Struct:
		if first == '{' {
			return d.object(to, place)
		}
	case reflect.Slice:
		if first == '[' {
			return d.array(to, place)
		}
	case reflect.String:
		var s string
		s, ok = text(d.raw())
		to.SetString(s)
	default:
		ok = json.Unmarshal(d.raw(), to.Addr().Interface()) == nil
	}
	if !ok {
		return d.fail(start, place, fmt.Errorf("want %s here", wanted(to)))
	}
	return nil
}

func wanted(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Struct:
		return "an object, {…},"
	case reflect.Slice:
		return "a list, […],"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	}
	return "a text in quotes"
}

func (d *decoder) object(to reflect.Value, place string) error {
	var seen uint64 // a bit for each field; no struct here has 64
	d.at++          // {
	for d.more('}') {
		start := d.at
		name, _ := text(d.raw())
		i, known := d.fieldsOf(to.Type())[name]
		if !known {
			return d.fail(start, place, unknownField(name, to.Type()))
		}
		if seen&(1<<i) != 0 {
			return d.fail(start, place, fmt.Errorf("field %q comes twice; leave one of them", name))
		}
		seen |= 1 << i
		d.peek()
		d.at++ // :
		inner := name
		if place != "" {
			inner = place + "." + name
		}
		if err := d.value(to.Field(i), inner); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) array(to reflect.Value, place string) error {
	d.at++                                     // [
	to.Set(reflect.MakeSlice(to.Type(), 0, 0)) // an empty list is not a missing one
	for i := 0; d.more(']'); i++ {
		to.Set(reflect.Append(to, reflect.Zero(to.Type().Elem())))
		if err := d.value(to.Index(i), place+"["+strconv.Itoa(i)+"]"); err != nil {
			return err
		}
	}
	return nil
}

// fieldsOf returns the places of a struct's fields by their names in JSON.
func (d *decoder) fieldsOf(t reflect.Type) map[string]int {
	fields, ok := d.fields[t]
	if !ok {
		fields = make(map[string]int)
		for i := range t.NumField() {
			fields[jsonName(t.Field(i))] = i
		}
		d.fields[t] = fields
	}
	return fields
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// unknownField names the field, unless the name could be a key that was put
// there: all fields have names of letters, hyphens and underscores.
func unknownField(name string, of reflect.Type) error {
	var known []string
	for i := range of.NumField() {
		known = append(known, jsonName(of.Field(i)))
	}
	quoted := fmt.Sprintf("%q", name)
	if len(name) > 32 || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-") != "" {
		quoted = "(not shown, since it could be a secret)"
	}
	return fmt.Errorf("unknown field %s; possible are %s", quoted, strings.Join(known, ", "))
}
