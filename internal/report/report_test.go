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
		d := definitions(p, true, false)
		if says := p.Says(); p != "other" && (len(says) == 0 || !slices.Equal(d[:len(says)], says)) {
			t.Errorf("%s is not explained in its own words: %q", p, d)
		}
		if p == "other" && !strings.Contains(d[0], "other") {
			t.Errorf("a profile that is not known is explained as %q", d[0])
		}
		if plain := definitions(p, false, false); len(plain) != len(d)+1 || !strings.Contains(strings.Join(plain, " "), "not streamed") {
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

// TestDistortedOnce: one warning for all loads, with the worst by name.
func TestDistortedOnce(t *testing.T) {
	r := simple()
	late := func(p99 float64) bench.Client {
		return bench.Client{Distorted: true, Delay: &bench.Quantiles{N: 10, P99: p99}, Reason: "it was busy"}
	}
	r.Runs[0].Repeats[1].Client, r.Runs[0].Repeats[2].Client = late(7), late(3)
	r.Runs[0].Median.Client = late(3)
	second := simple().Runs[0]
	second.Load, second.Repeats, second.Median.Client = "concurrency 9", second.Repeats[:1], late(4)
	second.Repeats[0].Client = late(4)
	r.Runs = append(r.Runs, second, simple().Runs[0])
	got := slices.DeleteFunc(warnings(r), func(w string) bool { return !strings.Contains(w, "DISTORTED") })
	want := "DISTORTED, concurrency 8 (2 of 3 repeats), concurrency 9: the load test itself was late, so times are wrong by about as much. " +
		"Worst, concurrency 8, repeat 2: its own scheduling delay was 7.00 ms at p99 (2 ms are tolerated). It was busy."
	if len(got) != 1 || got[0] != want {
		t.Errorf("%q", got)
	}
}

// TestSaidOnce: what all loads share is one line, not one a load.
func TestSaidOnce(t *testing.T) {
	var b strings.Builder
	if err := Text(&b, ladder(), 400, false); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, once := range []string{"input lognormal", "warm-up: 5–32 calls, by load", "all loads  20–640  532.5", "all loads  20–640  133.1"} {
		if strings.Count(text, once) != 1 {
			t.Errorf("%q is there %d times", once, strings.Count(text, once))
		}
	}
}

// TestNoRecommendation: a ladder that recommends nothing says so.
func TestNoRecommendation(t *testing.T) {
	r := ladder()
	r.Ladder.Knee.Recommended, r.Ladder.Knee.Promise = 0, ""
	if p := kneeFacts(r.Ladder); !slices.Contains(p, pair{name: "recommended", value: "none"}) {
		t.Errorf("%v", p)
	}
	for i := range r.Ladder.Steps {
		r.Ladder.Steps[i].Distorted = true
	}
	r.Ladder.Knee = saturation.Knee{Unit: saturation.Concurrency}
	if p := kneeFacts(r.Ladder); len(p) != 2 || p[0] != (pair{name: "knee", value: "not known: no step can be used"}) || p[1].value != "none" {
		t.Errorf("%v", p)
	}
}

// TestRatesAreDefined where, and only where, an open loop is shown; and a ladder and a
// staircase of rates have the same columns.
func TestRatesAreDefined(t *testing.T) {
	for _, c := range []struct {
		r    bench.Result
		want bool
	}{{simple(), false}, {plainly(), true}} {
		var b strings.Builder
		if err := Text(&b, c.r, 400, false); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"- Offered: ", "- Achieved: ", "- Succeeded: "} {
			if strings.Contains(b.String(), name) != c.want {
				t.Errorf("%q: want %t", name, c.want)
			}
		}
	}
	r := ladder()
	r.Ladder.Knee.Unit, r.Ladder.Steps[0].Offered = saturation.Rate, ptr(1.07)
	r.Ladder.Steps[1].AtLeast = true
	var b strings.Builder
	if err := Text(&b, r, 200, false); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{"rate offered achieved calls % tok/min", "1 1.07 0.110 20 100", "4 – – 80 100", "rate offered achieved succeeded calls %", "0.7 0.690 0.680 0.600 83"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not there", want)
		}
	}
}
