package keys

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Parse reads the file's text and checks everything in it. Its errors say what
// is wrong and where, and show no secret.
func Parse(text []byte) (*File, error) {
	f, _, err := parse(text)
	return f, err
}

func parse(text []byte) (*File, *table, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // the byte order mark of some editors
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil, errors.New("the file is empty; a file without keys is {\"version\": 1, \"keys\": []}")
	}
	f := new(File)
	if err := decode(text, f); err != nil {
		return nil, nil, err
	}
	t, err := compile(f)
	if err != nil {
		return nil, nil, err
	}
	return f, t, nil
}

// write writes the file's text: fields in the order of File, indented by two
// spaces, and a line break at the end.
func (f *File) write(w io.Writer) error {
	if f.Keys == nil {
		f = &File{Version: f.Version, Keys: []Entry{}} // a list, and not null
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // an owner may be "R&D <rd@example.com>"
	enc.SetIndent("", "  ")
	return enc.Encode(f)
}
