package report

import (
	"bytes"
	"encoding/csv"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/bench"
	"github.com/weirgate/weir/internal/saturation"
)

// TestKinds: each kind of failure that package endpoint knows has its words here,
// and its column in CSV.
func TestKinds(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../endpoint/types.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	defined := map[string]bool{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if typ, ok := v.Type.(*ast.Ident); !ok || typ.Name != "Kind" {
				continue
			}
			s, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			defined[s] = true
		}
	}
	for _, k := range kinds {
		if !defined[string(k.kind)] {
			t.Errorf("%q is no kind of failure", k.kind)
		}
		delete(defined, string(k.kind))
	}
	for k := range defined {
		t.Errorf("the failure %q has no words", k)
	}
}

// TestErrors: an error of the writer comes back from every format.
func TestErrors(t *testing.T) {
	for name, write := range formats {
		var whole bytes.Buffer
		if err := write(&whole, ladder()); err != nil {
			t.Fatal(err)
		}
		for _, left := range []int{0, whole.Len() / 2, whole.Len() - 1} {
			if err := write(&brokenWriter{left}, ladder()); !errors.Is(err, errBroken) {
				t.Errorf("%s, broken after %d of %d bytes: %v", name, left, whole.Len(), err)
			}
		}
	}
}

var formats = map[string]func(io.Writer, bench.Result) error{
	"text":     func(w io.Writer, r bench.Result) error { return Text(w, r, 80, true) },
	"markdown": Markdown, "csv": CSV, "json": JSON, "html": HTML,
}

// TestStable: the same result makes the same bytes.
func TestStable(t *testing.T) {
	for name, write := range formats {
		var a, b bytes.Buffer
		if err := errors.Join(write(&a, ladder()), write(&b, ladder())); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%s differs from one time to the next", name)
		}
	}
}

// TestUnknownIsNeverZero: figures that are not known, not defined or not finite
// are a dash in the texts and nothing in CSV.
func TestUnknownIsNeverZero(t *testing.T) {
	nan := math.NaN()
	for _, f := range []bench.Figures{{}, {Calls: 3}, {Calls: 3, Good: 3, Seconds: 2, CallsPerSecond: nan, Sent: math.Inf(1), Concurrency: nan, TotalPerMinute: &nan,
		TTFT: &bench.Quantiles{N: 3, Mean: nan, P50: nan, P90: nan, P95: nan, P99: nan, Max: nan}, E2E: &bench.Quantiles{}}} {
		r := bench.Result{Streamed: true, Runs: []bench.Run{{Load: "x", Median: f}}}
		t1 := summary(r.Runs)
		for i, c := range t1.columns {
			if i > 0 && c.name() != "in flight peak" && c.name() != "success %" && t1.rows[0][i].text != unknown {
				t.Errorf("%s is %q", c.name(), t1.rows[0][i].text)
			}
		}
		for _, q := range figures {
			for _, c := range described(q.of(f))[1:] {
				if c.text != unknown {
					t.Errorf("%s is %q", q.name, c.text)
				}
			}
		}
		var b bytes.Buffer
		if err := CSV(&b, r); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&b).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range rows[0] {
			for _, part := range []string{"_per_", "_mean", "_p50", "_p99", "_max"} {
				if strings.Contains(name, part) && rows[1][i] != "" {
					t.Errorf("%s is %q", name, rows[1][i])
				}
			}
			if (name == "concurrency" || name == "goodput") && rows[1][i] != "" {
				t.Errorf("%s is %q", name, rows[1][i])
			}
		}
	}
}

// TestEmpty: a result of nothing says so in every format.
func TestEmpty(t *testing.T) {
	for name, write := range formats {
		var b bytes.Buffer
		if err := write(&b, bench.Result{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains("text markdown html", name) && !strings.Contains(b.String(), "NOTHING MEASURED") {
			t.Errorf("%s does not say that nothing was measured", name)
		}
	}
}

func TestNotSaturated(t *testing.T) {
	r := ladder()
	r.Ladder.Knee = saturation.Knee{Unit: saturation.Rate, LastGood: 32, Recommended: 24, Reasons: []string{"throughput grew to the end"}}
	var b bytes.Buffer
	if err := Text(&b, r, 80, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"none seen: the run did not saturate", "32 calls/s", "24 calls/s", "- Throughput grew to the end."} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("not said: %q", want)
		}
	}
	if strings.Contains(b.String(), "KNEE") || strings.Contains(b.String(), "past knee") {
		t.Error("a knee is marked where there is none")
	}
}

func TestDefinitions(t *testing.T) {
	for _, p := range append(bench.Profiles(), "other") {
		d := definitions(p, true)
		if says := p.Says(); p != "other" && (len(says) == 0 || !slices.Equal(d[:len(says)], says)) {
			t.Errorf("%s is not explained in its own words: %q", p, d)
		}
		if p == "other" && !strings.Contains(d[0], "other") {
			t.Errorf("a profile that is not known is explained as %q", d[0])
		}
		if plain := definitions(p, false); len(plain) != len(d)+1 || !strings.Contains(strings.Join(plain, " "), "not streamed") {
			t.Errorf("%s does not say that nothing was streamed: %q", p, plain)
		}
	}
}

func TestGapsName(t *testing.T) {
	gaps := func(of ...bench.GapsOf) (runs []bench.Run) {
		for _, g := range of {
			f := bench.Figures{GapsOf: g}
			if g != "" {
				f.Gaps = around(3, 1)
			}
			runs = append(runs, bench.Run{Median: f})
		}
		return runs
	}
	for _, c := range []struct {
		runs []bench.Run
		want string
	}{{gaps(), "gaps"}, {gaps("", bench.Tokens), "token gaps"}, {gaps(bench.Chunks, "", bench.Chunks), "chunk gaps"}, {gaps(bench.Chunks, bench.Tokens), "gaps"}} {
		if got := gapsName(c.runs); got != c.want {
			t.Errorf("gaps are called %q, want %q", got, c.want)
		}
	}
}

func TestRegressionGolden(t *testing.T) {
	for name, write := range map[string]func(io.Writer, bench.Regression) error{
		"regression.80.txt":     func(w io.Writer, r bench.Regression) error { return Regression(w, r, 80, false) },
		"regression.160.txt":    func(w io.Writer, r bench.Regression) error { return Regression(w, r, 160, false) },
		"regression.colour.txt": func(w io.Writer, r bench.Regression) error { return Regression(w, r, 100, true) },
		"regression.md":         RegressionMarkdown,
		"regression.json":       RegressionJSON,
	} {
		var b bytes.Buffer
		if err := write(&b, regression()); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.Bytes())
	}
}

func TestRegressionOutcome(t *testing.T) {
	row := func(c bench.Change) bench.RegressionRow { return bench.RegressionRow{Verdict: c} }
	for _, c := range []struct {
		r    bench.Regression
		want string
	}{
		{bench.Regression{}, "no figure that both know"},
		{bench.Regression{Rows: []bench.RegressionRow{row(bench.Unchanged), row(bench.Improved)}}, "no regression"},
		{bench.Regression{Rows: []bench.RegressionRow{row(bench.Unchanged), row(bench.Uncertain)}}, "no regression found, 1 of 2 figures uncertain"},
		{bench.Regression{Rows: []bench.RegressionRow{row(bench.Uncertain)}}, "nothing certain"},
		{bench.Regression{Failed: true, Rows: []bench.RegressionRow{row(bench.Regressed)}}, "REGRESSION"},
	} {
		if got := outcome(c.r); got != c.want {
			t.Errorf("outcome %q, want %q", got, c.want)
		}
	}
}
