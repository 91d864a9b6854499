package exposition

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// maxText bounds what an error tells of a page.
const maxText = 256

// Parse reads a page of metrics and returns its families by name, without those that
// have no samples. An error says that the page is not in the format; it may quote the
// page, in at most maxText bytes.
//
// The page comes from whatever answers at an address, and expfmt's parser fails on some
// that no exporter writes: on a sample without a name after a comment with one it uses a
// metric that is not there (https://github.com/prometheus/common/pull/906 is about one
// such place). That must not end the process that looks on, so it is an error like any
// other.
func Parse(page []byte) (families map[string]*dto.MetricFamily, err error) {
	defer func() {
		if r := recover(); r != nil {
			families, err = nil, fmt.Errorf("the parser failed on it: %v", r)
		}
		if err != nil && len(err.Error()) > maxText {
			err = errors.New(strings.ToValidUTF8(err.Error()[:maxText], "") + "…")
		}
	}()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(page))
}
