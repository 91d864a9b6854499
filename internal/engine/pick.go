package engine

import (
	"bytes"
	"fmt"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/weirgate/weir/internal/exposition"
)

// maxSamples is the most samples of the metrics wanted that a page may have. An
// engine with a hundred ranks has a thousand.
const maxSamples = 4096

// pick takes the samples of the wanted metrics out of a page in the text format
// and parses these alone. An engine's page is nearly all histograms: leaving them
// out makes a scrape some ten times cheaper, and bounds what a page can make
// us keep. Comments go too, so that every sample is untyped; see value.
//
// It also tells which kinds have any sample on the page.
func pick(page []byte) (families map[string]*dto.MetricFamily, kinds map[Kind]bool, err error) {
	kinds = make(map[Kind]bool, 1)
	var lines []byte
	n := 0
	for len(page) > 0 {
		var line []byte
		line, page, _ = bytes.Cut(page, newline)
		for len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
			line = line[1:]
		}
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		for i := range prefixes {
			if p := &prefixes[i]; bytes.HasPrefix(line, p.text) {
				if p.kind != "" && !kinds[p.kind] {
					kinds[p.kind] = true
				}
				if end := bytes.IndexAny(line, "{ \t"); end > 0 && wanted[string(line[:end])] {
					n++
					lines = append(append(lines, line...), '\n')
				}
				break
			}
		}
		if n > maxSamples {
			return nil, nil, fmt.Errorf("the page has more than %d samples of the metrics wanted, which no engine shows", maxSamples)
		}
	}
	families, err = exposition.Parse(lines)
	if err != nil {
		return nil, nil, fmt.Errorf("the answer is not in Prometheus' text format: %s", shorten(err.Error(), maxText))
	}
	return families, kinds, nil
}

var newline = []byte{'\n'}

// maxText bounds a text of the engine's that is shown or kept: part of a page in
// an error, a model's name.
const maxText = 128

// shorten bounds a text without leaving half a character.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
