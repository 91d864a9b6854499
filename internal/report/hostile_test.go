package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/weirgate/weir/internal/bench"
)

// hostile are texts that would do something in one format or the other.
var hostile = []string{
	"", " ", unknown,
	"</script><script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "<!-- ", "]]>", "' onload='x", "{{.}} ${x}", "</style></table></title>",
	"a|b\\|c\\", "a\nb\r\nc", "\n\n# head", "- item", "+ item", "1. one", "1) one", "---", "===", "> quote", "    block", "~~~", "```\nx\n```", "`a``b`", "`",
	"*b* _i_ [l](http://evil.example) ![i](http://evil.example/i.png)", "http://evil.example/x", "www.evil.example", "a@evil.example", "&lt;b&gt;", "\\<b>",
	"\x1b[31mred\x1b[0m", "\x1b]8;;http://evil.example\x07x\x1b]8;;\x07", "\u009b2J", "\x00\xff\xfe\x7f", "gnp\u202eexe", "\u2028x\u2029", "\U000e0041",
	"=cmd|'/C calc'!A0", "+1+1", "-1-1", "@SUM(1)", "\t=1", "＝1", "\r=1", " =1", "\"quoted\", and comma", strings.Repeat("long ", 90), strings.Repeat("x", 300), "日本語のモデル",
}

// poison sets every text in v to s, names in maps included.
func poison(v reflect.Value, s string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Pointer:
		if !v.IsNil() {
			poison(v.Elem(), s)
		}
	case reflect.Slice:
		for i := range v.Len() {
			poison(v.Index(i), s)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				poison(v.Field(i), s)
			}
		}
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String || v.Len() == 0 || v.Type() == reflect.TypeFor[map[string]bench.Spread]() {
			return
		}
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(v.MapIndex(v.MapKeys()[0]))
		if value.Kind() == reflect.Interface {
			value.Set(reflect.ValueOf(map[string]any{s: []any{s}, "x": s}))
		}
		poison(value, s)
		v.SetMapIndex(reflect.ValueOf(s).Convert(v.Type().Key()), value)
	}
}

// poisoned is a result with everything in it and s in every text.
func poisoned(s string) bench.Result {
	r := ladder()
	r.Runs = append(r.Runs, simple().Runs...)
	r.Runs[0].Notes = []string{"note"}
	r.Runs[5].Compared.Note = "note"
	r.Runs[5].Compared.Differences = []bench.Difference{{ID: "a", Figure: "output", Client: "1", Gateway: "2"}}
	r.Notes = []string{"note", "note"}
	for i := range r.Runs { // few calls will do
		r.Runs[i].Raw = []bench.Raw{rawOf(1, 5, 10, 100, 20)}
	}
	poison(reflect.ValueOf(&r).Elem(), s)
	return r
}

func regression() bench.Regression {
	return bench.Regression{Threshold: 0.1, Failed: true, Notes: []string{"the engine's version differs: 0.11.2, 0.11.3"}, Rows: []bench.RegressionRow{
		{Load: "concurrency 8", Figure: "TTFT p99", Unit: "ms", Base: 149.7, Now: 181.2, Ratio: 181.2 / 149.7, Low: ptr(1.15), High: ptr(1.27), Verdict: bench.Regressed},
		{Load: "concurrency 8", Figure: "TPOT p99", Unit: "ms", Base: 29.6, Now: 25.1, Ratio: 25.1 / 29.6, Low: ptr(0.82), High: ptr(0.88), Verdict: bench.Improved},
		{Load: "concurrency 8", Figure: "throughput", Unit: "calls/s", Base: 7.31, Now: 7.3, Ratio: 7.3 / 7.31, Verdict: bench.Uncertain, Note: "one repeat each"},
		{Load: "concurrency 16", Figure: "throughput", Unit: "calls/s", Base: 9, Now: 9.01, Ratio: 9.01 / 9, Low: ptr(0.99), High: ptr(1.01), Verdict: bench.Unchanged},
	}}
}

func TestHostileText(t *testing.T) {
	ours := regexp.MustCompile("\x1b\\[(0|1|2|32|33|1;31|1;97;41)m")
	for _, s := range hostile {
		r, g := poisoned(s), regression()
		poison(reflect.ValueOf(&g).Elem(), s)
		for _, width := range []int{40, 80, 160} {
			for _, write := range []func(io.Writer, bool) error{
				func(w io.Writer, colour bool) error { return Text(w, r, width, colour) },
				func(w io.Writer, colour bool) error { return Regression(w, g, width, colour) },
			} {
				var b, coloured bytes.Buffer
				if err := write(&b, false); err != nil {
					t.Fatal(err)
				}
				if err := write(&coloured, true); err != nil {
					t.Fatal(err)
				}
				if got := ours.ReplaceAllString(coloured.String(), ""); got != b.String() {
					t.Errorf("%q: colour changes more than colour", s)
				}
				for line := range strings.SplitSeq(b.String(), "\n") {
					if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
						t.Errorf("%q: line %q", s, line)
					}
					if cells(line) > width {
						t.Errorf("%q: %d columns of %d: %q", s, cells(line), width, line)
					}
				}
			}
		}
	}
}

func TestHostileMarkdown(t *testing.T) {
	for _, s := range hostile {
		g := regression()
		poison(reflect.ValueOf(&g).Elem(), s)
		var b bytes.Buffer
		if err := Markdown(&b, poisoned(s)); err != nil {
			t.Fatal(err)
		}
		if err := RegressionMarkdown(&b, g); err != nil {
			t.Fatal(err)
		}
		checkMarkdown(t, b.String())
	}
}

var beginning = regexp.MustCompile(`^(#+|[-+*>]|[0-9]+[.)])( |$)|^(---|===|~~~)|^    `)

// read is a line without what a reader of Markdown takes as plain: an x stands for
// each escaped character and for each span of code. Bars within the code of a table end its
// cell, so they stay unless escaped.
func read(line string) string {
	table := strings.HasPrefix(line, "|")
	var b strings.Builder
	for i := 0; i < len(line); {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line) && line[i+1] > ' ' && line[i+1] < 0x7f:
			b.WriteByte('x')
			i += 2
		case c == '`':
			fence := len(line[i:]) - len(strings.TrimLeft(line[i:], "`"))
			end := i + fence
			for end < len(line) {
				run := len(line[end:]) - len(strings.TrimLeft(line[end:], "`"))
				if run == fence {
					break
				}
				end += max(run, 1)
			}
			if end >= len(line) {
				return b.String() + line[i:] // never closed
			}
			b.WriteByte('x')
			if table {
				inner := strings.ReplaceAll(line[i+fence:end], `\|`, "")
				b.WriteString(strings.Repeat("|", strings.Count(inner, "|")))
			}
			i = end + fence
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String()
}

// checkMarkdown looks for what would be more than text, line by line, other than
// what this package writes itself.
func checkMarkdown(t *testing.T, doc string) {
	t.Helper()
	bars := -1
	for line := range strings.SplitSeq(strings.TrimSuffix(doc, "\n"), "\n") {
		if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("not printable: %q", line)
		}
		text := read(line)
		if n := strings.Count(text, "|"); strings.HasPrefix(text, "|") {
			if bars >= 0 && n != bars {
				t.Errorf("%d cells, not %d: %q", n-1, bars-1, line)
			}
			bars = n
			if strings.Trim(text, "|:- ") == "" {
				continue
			}
			text = strings.TrimSpace(strings.ReplaceAll(text, "|", ""))
		} else {
			bars = -1
		}
		for _, own := range []string{"> [!WARNING]", "> - **", "- **", "# ", "## ", "- "} {
			if rest, found := strings.CutPrefix(text, own); found {
				text = strings.ReplaceAll(rest, "**", "")
				break
			}
		}
		for _, bad := range []string{"<", ">", "[", "]", "`", "*", "_", "|", "~", "&", "@", "://", "www.", "WWW."} {
			if strings.Contains(text, bad) {
				t.Errorf("%q in %q", bad, line)
			}
		}
		if beginning.MatchString(text) {
			t.Errorf("begins something: %q", line)
		}
	}
}

func TestHostileCSV(t *testing.T) {
	for _, s := range hostile {
		var b bytes.Buffer
		r := poisoned(s)
		if err := CSV(&b, r); err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(b.Bytes(), []byte("\n")); n != bytes.Count(b.Bytes(), []byte("\r\n")) || n != 1+5*2+4 {
			t.Errorf("%q: %d lines", s, n)
		}
		rows, err := csv.NewReader(&b).ReadAll() // which wants as many fields in each line
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			for _, field := range row {
				checkField(t, field)
			}
		}
	}
}

// checkField: a field is a figure, or a text that no spreadsheet runs.
func checkField(t *testing.T, field string) {
	t.Helper()
	if strings.ContainsFunc(field, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("not printable: %q", field)
	}
	if _, err := strconv.ParseFloat(field, 64); err != nil && field != "" && strings.ContainsRune("=+-@＝＋－＠", []rune(field)[0]) {
		t.Errorf("a formula: %q", field)
	}
}

func TestHostileJSON(t *testing.T) {
	for _, s := range hostile {
		var b bytes.Buffer
		r := poisoned(s)
		if err := JSON(&b, r); err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(b.String(), "\n") {
			if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) || r == '<' }) {
				t.Fatalf("%q: %q", s, line)
			}
		}
		var back, want bench.Result
		if err := json.Unmarshal(b.Bytes(), &back); err != nil {
			t.Fatal(err)
		}
		plain, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(plain, &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back, want) {
			t.Errorf("%q: what is written is not what was there", s)
		}
	}
}
