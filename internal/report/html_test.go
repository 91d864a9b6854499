package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/weirgate/weir/internal/bench"
)

// page is a page taken apart.
type page struct {
	source   string
	policy   map[string]string
	inline   map[string][]string // content of script and style elements that are carried out
	data     []byte
	elements []xml.StartElement
}

func parsePage(t *testing.T, r bench.Result) page {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, r); err != nil {
		t.Fatal(err)
	}
	p := page{source: b.String(), policy: map[string]string{}, inline: map[string][]string{}}
	d := xml.NewDecoder(strings.NewReader(p.emptied(t)))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			p.elements = append(p.elements, e.Copy())
			if attr(e, "http-equiv") == "Content-Security-Policy" {
				for directive := range strings.SplitSeq(attr(e, "content"), ";") {
					name, sources, _ := strings.Cut(strings.TrimSpace(directive), " ")
					p.policy[name] = sources
				}
			}
		}
	}
	return p
}

// emptied takes the content of script and style elements out of the source, as a
// browser does: up to the first end tag, whatever is in between.
func (p *page) emptied(t *testing.T) string {
	t.Helper()
	var left strings.Builder
	rest := p.source
	for {
		name, from := "script", strings.Index(rest, "<script")
		if style := strings.Index(rest, "<style"); style >= 0 && (from < 0 || style < from) {
			name, from = "style", style
		}
		if from < 0 {
			return left.String() + rest
		}
		open := from + strings.Index(rest[from:], ">") + 1
		length := strings.Index(rest[open:], "</"+name)
		if length < 0 {
			t.Fatalf("a %s element has no end", name)
		}
		if content := rest[open : open+length]; strings.Contains(rest[from:open], "application/json") {
			p.data = []byte(content)
		} else {
			p.inline[name] = append(p.inline[name], content)
		}
		left.WriteString(rest[:open])
		rest = rest[open+length:]
	}
}

func attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

var allowed = strings.Fields("html head meta title style body a header h1 h2 nav ul li main p dl dt dd div table caption thead tbody tr th td code noscript figure figcaption strong footer details summary pre script")

// TestPageIsClosed: a page asks nothing of anybody, runs nothing but its own
// scripts, and no text from outside becomes an element or an attribute of it.
func TestPageIsClosed(t *testing.T) {
	results := []bench.Result{simple(), ladder(), plainly(), {}, poisoned("plain")}
	for _, s := range hostile {
		results = append(results, poisoned(s))
	}
	var structure []string
	for i, r := range results {
		p := parsePage(t, r)
		if len(p.inline["script"]) != 2 || len(p.inline["style"]) != 1 || p.data == nil {
			t.Fatalf("result %d: %d scripts, %d styles", i, len(p.inline["script"]), len(p.inline["style"]))
		}
		want := map[string]string{"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'",
			"style-src":  hashSource(p.inline["style"][0]),
			"script-src": hashSource(p.inline["script"][0]) + " " + hashSource(p.inline["script"][1])}
		for name, sources := range want {
			if p.policy[name] != sources {
				t.Errorf("result %d: policy %s %s, want %s", i, name, p.policy[name], sources)
			}
		}
		if len(p.policy) != len(want) {
			t.Errorf("result %d: policy %v", i, p.policy)
		}
		var names []string
		for _, e := range p.elements {
			names = append(names, e.Name.Local)
			if !slices.Contains(allowed, e.Name.Local) {
				t.Errorf("result %d: element %s", i, e.Name.Local)
			}
			for _, a := range e.Attr {
				name := a.Name.Local
				if name == "href" && !strings.HasPrefix(a.Value, "#") || slices.Contains([]string{"src", "srcset", "style", "action", "data", "poster"}, name) || strings.HasPrefix(name, "on") {
					t.Errorf("result %d: <%s %s=%q>", i, e.Name.Local, name, a.Value)
				}
			}
		}
		if strings.ContainsFunc(p.emptied(t), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("result %d: something not printable", i)
		}
		if bytes.ContainsAny(p.data, "<>&") {
			t.Errorf("result %d: mark-up in the data", i)
		}
		if i < 5 {
			structure = names
		} else if s := hostile[i-5]; strings.TrimSpace(s) != "" && !slices.Equal(structure, names) { // other texts, the same elements
			t.Errorf("%q: %d elements, not %d", s, len(names), len(structure))
		}
	}
}

func TestPageAssets(t *testing.T) {
	for name, s := range map[string]string{"uPlot": uPlotScript, "page.js": pageScript, "uPlot.css": uPlotStyle, "page.css": pageStyle} {
		for _, bad := range []string{"</", "<!--", "\r", "\x00"} {
			if strings.Contains(s, bad) {
				t.Errorf("%s has %q, which ends or changes its element", name, bad)
			}
		}
	}
	for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(", "fetch(", "XMLHttpRequest", "import(", "new Image", "http:", "https:", "url(", "@import"} {
		if strings.Contains(pageScript+pageStyle, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if !strings.Contains(uPlotScript, "v1.6.32") || !strings.Contains(uPlotLicence, "Permission is hereby granted") {
		t.Error("uPlot is not version 1.6.32 with its licence")
	}
	if !strings.Contains(parsePage(t, simple()).source, "Permission is hereby granted") {
		t.Error("the licence of uPlot is not in the page")
	}
}

// TestPagePlots: the plots have their data and a place each, and tables say the
// same without a script.
func TestPagePlots(t *testing.T) {
	for _, c := range []struct {
		of   func() bench.Result
		want []string
	}{
		{simple, []string{"ttft", "tokens", "cdf-ttft", "cdf-tpot", "cdf-e2e"}},
		{ladder, []string{"ladder", "staircase", "ttft", "tokens", "cdf-ttft", "cdf-tpot", "cdf-e2e"}},
		{plainly, nil},
	} {
		p := parsePage(t, c.of())
		var data struct{ Plots []plot }
		if err := json.Unmarshal(p.data, &data); err != nil {
			t.Fatal(err)
		}
		var ids, places []string
		for _, one := range data.Plots {
			ids = append(ids, one.ID)
		}
		tables := 0
		for _, e := range p.elements {
			if id, found := strings.CutPrefix(attr(e, "id"), "draw-"); found {
				places = append(places, id)
			}
			if e.Name.Local == "table" {
				tables++
			}
		}
		if !slices.Equal(ids, c.want) || !slices.Equal(places, c.want) || tables < 3 {
			t.Errorf("plots %v in places %v, %d tables, want %v", ids, places, tables, c.want)
		}
	}
}
