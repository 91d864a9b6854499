package dialect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"strings"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/jsonscan"
)

// errNotRead is returned for bodies that one server may read otherwise than
// another.
var errNotRead = errors.New("request body cannot be read to its end")

var modelShape = jsonscan.CompileFold("model", "$")

// ModelsNamed returns every name in a request that an upstream may take for the
// model: that of the path, and each field model of the body, whatever its case and
// however often it stands there. Upstreams differ in which they heed, so who may
// use certain models only may use none but those. body must be whole; an error
// means that not all of it could be read.
func ModelsNamed(path, contentType string, body []byte) ([]string, error) {
	var all modelNames
	if m := pathModel(path); m != "" {
		all = append(all, m)
	}
	if boundary := formBoundary(contentType); boundary != "" {
		return all.form(boundary, body)
	}
	body = bytes.TrimPrefix(body, []byte("\ufeff")) // many servers do not mind it
	var scan jsonscan.Scanner
	scan.Reset(modelShape)
	scan.Write(body, &all)
	if scan.Err() != nil || !scan.Done() {
		return all, errNotRead
	}
	return all, nil
}

type modelNames []string

// Value makes modelNames a jsonscan.Handler.
func (m *modelNames) Value(v jsonscan.Value) {
	if v.Field == 0 && v.Kind == jsonscan.String {
		*m = append(*m, name(v.Raw))
	}
}

// form reads the fields of a form.
func (m modelNames) form(boundary string, body []byte) ([]string, error) {
	// A server that goes by the bytes and not by the type would read something
	// else, and one that is less strict a form that is not whole.
	if !bytes.HasPrefix(body, []byte("--"+boundary)) || !bytes.Contains(body, []byte("\n--"+boundary+"--")) {
		return m, errNotRead
	}
	for r := multipart.NewReader(bytes.NewReader(body), boundary); ; {
		part, err := r.NextRawPart()
		if err == io.EOF { // wrapped it is an early end
			return m, nil
		}
		if err != nil {
			return m, fmt.Errorf("%w: %w", errNotRead, err)
		}
		if part.FormName() == "" {
			return m, errNotRead // a name that others may find in it
		}
		if !strings.EqualFold(part.FormName(), "model") {
			continue
		}
		value, err := io.ReadAll(io.LimitReader(part, maxFormField))
		if err != nil {
			return m, fmt.Errorf("%w: %w", errNotRead, err)
		}
		m = append(m, call.Name(value))
	}
}
