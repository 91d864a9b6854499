package exposition

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	families, err := Parse([]byte("# HELP up Whether it is.\n# TYPE up gauge\nup{a=\"b\"} 1\nup 2\n"))
	if err != nil || len(families) != 1 || len(families["up"].Metric) != 2 || families["up"].Metric[1].Gauge.GetValue() != 2 {
		t.Errorf("%v, %v", families, err)
	}
	if families, err := Parse(nil); err != nil || len(families) != 0 {
		t.Errorf("an empty page: %v, %v", families, err)
	}
	if _, err := Parse([]byte("<html>")); err == nil || strings.Contains(err.Error(), "parser failed") {
		t.Errorf("no metrics: %v", err)
	}
	if _, err := Parse([]byte("up{" + strings.Repeat("ü", 1<<20) + "!} 1\n")); err == nil || len(err.Error()) > maxText+len("…") {
		t.Errorf("an error that quotes the page is %d bytes long", len(err.Error()))
	}
}

// TestParserFails: pages on which the parser itself panics are errors. When this test
// fails because one has become an ordinary error, the parser was mended.
func TestParserFails(t *testing.T) {
	for _, page := range []string{
		"# TYPE up gauge\n{} 1\n",
		"# HELP up Whether it is.\n{}\n",
	} {
		if families, err := Parse([]byte(page)); err == nil || families != nil || !strings.Contains(err.Error(), "parser failed") {
			t.Errorf("%q: %v, %v", page, families, err)
		}
	}
}

// FuzzParse: no page ends the process.
func FuzzParse(f *testing.F) {
	f.Add([]byte("# TYPE up gauge\n{} 1\n"))
	f.Add([]byte("# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_sum NaN\nh_count 1\n{\"a b\",x=\"1\"} 2 17\n"))
	f.Add([]byte("# TYPE s summary\ns{quantile=\"0.5\"} 1 # {a=\"b\"} 2\n"))
	f.Fuzz(func(t *testing.T, page []byte) {
		families, err := Parse(page)
		for name, family := range families {
			if err == nil && (family == nil || len(family.Metric) == 0 || family.GetName() != name) {
				t.Errorf("%q: %v", name, family)
			}
		}
	})
}
