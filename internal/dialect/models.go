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
	for r := multipart.NewReader(bytes.NewReader(body), boundary); ; {
		part, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return m, fmt.Errorf("%w: %w", errNotRead, err)
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
