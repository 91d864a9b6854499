package report

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strconv"

	"github.com/weirgate/weir/internal/bench"
)

// HTML writes r as one page that needs nothing else: styles, scripts, data and the
// library that draws the plots are in it, and its content security policy, which
// names the hashes of just these, forbids all requests. Without scripts the tables
// remain. Once the plots are drawn the page has window.weirReport.ready true;
// weirReport.plots counts them and weirReport.errors says what went wrong. Plots of
// single calls need Run.Raw. Errors are those of w.
func HTML(w io.Writer, r bench.Result) error {
	p := plotsOf(r)
	data, err := json.Marshal(struct {
		Plots []plot `json:"plots"`
	}{p})
	if err != nil {
		return fmt.Errorf("encode plots: %w", err)
	}
	style := uPlotStyle + "\n" + pageStyle
	policy := "default-src 'none'; style-src " + hashSource(style) +
		"; script-src " + hashSource(uPlotScript) + " " + hashSource(pageScript) +
		"; base-uri 'none'; form-action 'none'"
	d := documentOf(r)

	out := bufio.NewWriter(w)
	fmt.Fprintf(out, `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title>
<style>%s</style>
</head>
<body>
`, template.HTMLEscapeString(policy), template.HTMLEscapeString(clean(d.title)), style)
	if err := body.Execute(out, bodyOf(d, p)); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	// json.Marshal has escaped <, > and &, so that no text can end the element.
	fmt.Fprintf(out, "<script type=\"application/json\" id=\"weir-data\">%s</script>\n<script>%s</script>\n<script>%s</script>\n</body>\n</html>\n",
		data, uPlotScript, pageScript)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// hashSource is how a content security policy names a piece of style or script.
func hashSource(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

var body = template.Must(template.New("body").Parse(bodyTemplate))

// htmlBody is what the template shows. The template escapes all of it.
type htmlBody struct {
	Title    string
	Headings []htmlPart
	Parts    []htmlPart
	Licence  string
}

type htmlPart struct {
	Kind, ID, Text, Label string
	List                  []string
	Pairs                 []htmlPair
	Columns               []htmlColumn
	Rows                  [][]htmlCell
	Plots                 []plot
}

type htmlPair struct {
	Name, Value string
	ID          bool
}

type htmlColumn struct {
	Name string
	Left bool
}

type htmlCell struct {
	Text, Class string
	Head, ID    bool
}

func bodyOf(d *document, p []plot) htmlBody {
	b := htmlBody{Title: clean(d.title), Licence: uPlotLicence}
	under := b.Title
	head := func(text string) {
		h := htmlPart{Kind: "heading", Text: clean(text), ID: "s" + strconv.Itoa(len(b.Headings)+1)}
		b.Headings = append(b.Headings, h)
		b.Parts = append(b.Parts, h)
		under = h.Text
	}
	for _, part := range d.parts {
		switch part := part.(type) {
		case heading:
			head(string(part))
		case loud:
			b.Parts = append(b.Parts, htmlPart{Kind: "loud", List: cleaned(part)})
		case paragraph:
			b.Parts = append(b.Parts, htmlPart{Kind: "paragraph", Text: clean(string(part))})
		case bullets:
			b.Parts = append(b.Parts, htmlPart{Kind: "bullets", List: cleaned(part)})
		case pairs:
			h := htmlPart{Kind: "pairs"}
			for _, one := range part {
				h.Pairs = append(h.Pairs, htmlPair{clean(one.name), clean(one.value), one.id})
			}
			b.Parts = append(b.Parts, h)
		case table:
			b.Parts = append(b.Parts, htmlTable(part, under))
		case plots:
			if len(p) > 0 {
				head("Plots")
				b.Parts = append(b.Parts, htmlPart{Kind: "plots", Plots: p})
			}
		}
	}
	return b
}

func cleaned(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = clean(s)
	}
	return out
}

// longText is from how many characters on a text in a table may be broken.
const longText = 40

var toneClasses = map[tone]string{good: "good", warn: "warn", bad: "bad"}

func htmlTable(t table, under string) htmlPart {
	h := htmlPart{Kind: "table", Text: clean(t.caption), Label: under}
	if h.Text != "" {
		h.Label += ": " + h.Text
	}
	for _, c := range t.columns {
		h.Columns = append(h.Columns, htmlColumn{clean(c.name()), c.left})
	}
	for _, row := range t.rows {
		line := make([]htmlCell, len(row))
		for i, c := range row {
			class := toneClasses[c.tone]
			if t.columns[i].left {
				if class != "" {
					class += " "
				}
				class += "left"
				if cells(c.text) > longText {
					class += " long"
				}
			}
			line[i] = htmlCell{Text: clean(c.text), Class: class, Head: i == 0, ID: c.id}
		}
		h.Rows = append(h.Rows, line)
	}
	return h
}
