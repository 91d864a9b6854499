package sse

import "bytes"

// field is the name of a line's field, as far as it means something here.
type field uint8

const (
	fieldOther field = iota // a comment or a name that the standard does not know
	fieldData
	fieldEvent
	fieldID
	fieldRetry
)

// splitLine returns the field of a line that is not empty, and its value
// without the one space that may follow the colon. A line without a colon is a
// field with an empty value.
func splitLine(line []byte) (field, []byte) {
	f, name := fieldOther, 0
	switch line[0] {
	case 'd':
		f, name = fieldData, len("data")
		if len(line) < name || string(line[:name]) != "data" {
			return fieldOther, nil
		}
	case 'e':
		f, name = fieldEvent, len("event")
		if len(line) < name || string(line[:name]) != "event" {
			return fieldOther, nil
		}
	case 'i':
		f, name = fieldID, len("id")
		if len(line) < name || string(line[:name]) != "id" {
			return fieldOther, nil
		}
	case 'r':
		f, name = fieldRetry, len("retry")
		if len(line) < name || string(line[:name]) != "retry" {
			return fieldOther, nil
		}
	default:
		return fieldOther, nil
	}
	if len(line) == name {
		return f, nil
	}
	if line[name] != ':' {
		return fieldOther, nil
	}
	value := line[name+1:]
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	return f, value
}

// usualStart begins the events that nearly all streams consist of.
const usualStart = "data: "

// usual returns the data of an event that is one line of data and a blank line,
// both ended by line feeds, if b begins with one whole; else nothing. It looks
// at some kilobytes at most: what it does not find is looked for again.
func usual(b []byte) []byte {
	const most = 4 << 10
	if len(b) <= len(usualStart) || string(b[:len(usualStart)]) != usualStart {
		return nil
	}
	value := b[len(usualStart):min(len(b), most)]
	end := bytes.IndexByte(value, '\n')
	if end < 0 || end+1 >= len(value) || value[end+1] != '\n' {
		return nil
	}
	value = value[:end:end]
	if bytes.IndexByte(value, '\r') >= 0 {
		return nil
	}
	return value
}

// lineEnd returns the index of the first line feed or carriage return, or -1.
// It looks for both in one stretch before it goes on to the next, so that its
// cost follows the line's length, whichever of the two the stream uses.
func lineEnd(b []byte) int {
	const stretch = 512
	for from := 0; from < len(b); from += stretch {
		s := b[from:min(from+stretch, len(b))]
		lf := bytes.IndexByte(s, '\n')
		if lf >= 0 {
			s = s[:lf]
		}
		if cr := bytes.IndexByte(s, '\r'); cr >= 0 {
			return from + cr
		}
		if lf >= 0 {
			return from + lf
		}
	}
	return -1
}
