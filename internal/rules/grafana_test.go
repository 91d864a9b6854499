package rules

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/telemetry"
	"github.com/weirgate/weir/slo"
)

func TestGoldenDashboard(t *testing.T) {
	golden(t, "small.dashboard.json", func(w io.Writer) error { return Grafana(w, small(t)) })
}

// readBoard reads a dashboard back.
func readBoard(t *testing.T, c slo.Config) board {
	t.Helper()
	var out bytes.Buffer
	if err := Grafana(&out, c); err != nil {
		t.Fatal(err)
	}
	var b board
	if err := json.Unmarshal(out.Bytes(), &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDashboardUsesWhatThereIs: every expression asks for metrics of the table alone, by
// labels that they have, and every legend names labels that come with them.
func TestDashboardUsesWhatThereIs(t *testing.T) {
	there := exposed()
	has := map[string]map[string]bool{} // labels by series
	for _, m := range telemetry.Table() {
		labels := map[string]bool{"le": true, "job": true, "instance": true}
		for _, l := range m.Labels {
			labels[l.Name] = true
		}
		for _, part := range []string{"", "_bucket", "_sum", "_count"} {
			has[m.Name+part] = labels
		}
	}
	selected := regexp.MustCompile(`([a-z0-9_]+)\{([^}]*)\}`)
	name := regexp.MustCompile(`([a-z_]+)(?:=~|!~|!=|=)"`)
	by := regexp.MustCompile(`by \(([^)]*)\)`)
	legend := regexp.MustCompile(`\{\{([a-z_]+)\}\}`)
	exprs := 0
	for cname, c := range map[string]slo.Config{"small": small(t), "monthly": monthly(t), "presets": presets(t)} {
		b := readBoard(t, c)
		for _, v := range b.Templating.List {
			for _, s := range series(v.Query) {
				if !there[s] {
					t.Errorf("%s: variable %s looks at %s, which nobody makes", cname, v.Name, s)
				}
			}
		}
		for _, p := range b.Panels {
			for _, q := range p.Targets {
				exprs++
				used := series(q.Expr)
				if len(used) == 0 {
					t.Errorf("%s, %s: %s looks at nothing", cname, p.Title, q.Expr)
				}
				kept := map[string]bool{}
				for _, s := range used {
					if !there[s] {
						t.Errorf("%s, %s: looks at %s, which nobody makes", cname, p.Title, s)
					}
					for l := range has[s] {
						kept[l] = true
					}
				}
				for _, part := range selected.FindAllStringSubmatch(q.Expr, -1) {
					for _, l := range name.FindAllStringSubmatch(part[2], -1) {
						if !has[part[1]][l[1]] {
							t.Errorf("%s, %s: %s has no label %s", cname, p.Title, part[1], l[1])
						}
					}
				}
				if groups := by.FindAllStringSubmatch(q.Expr, -1); groups != nil {
					kept = map[string]bool{}
					for _, l := range strings.Split(groups[0][1], ", ") {
						kept[l] = true
					}
				}
				for _, l := range legend.FindAllStringSubmatch(q.Legend, -1) {
					if !kept[l[1]] {
						t.Errorf("%s, %s: the legend %q names a label that %s does not have", cname, p.Title, q.Legend, q.Expr)
					}
				}
				if strings.Count(q.Expr, "(") != strings.Count(q.Expr, ")") || strings.Count(q.Expr, "{") != strings.Count(q.Expr, "}") {
					t.Errorf("%s, %s: brackets of %s", cname, p.Title, q.Expr)
				}
			}
		}
	}
	if exprs < 100 {
		t.Errorf("only %d expressions were looked at", exprs)
	}
}

// TestDashboardIsWhole: panels have places of their own, ids of their own, and a line
// where a burn rule fires.
func TestDashboardIsWhole(t *testing.T) {
	c := presets(t)
	b := readBoard(t, c)
	type cell struct{ x, y int }
	taken, ids := map[cell]string{}, map[int]bool{}
	lines := map[float64]bool{}
	for _, p := range b.Panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("%s: id %d is taken", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Title == "" || p.GridPos.X+p.GridPos.W > columns || p.GridPos.W < 1 || p.GridPos.H < 1 {
			t.Errorf("%q at %+v", p.Title, p.GridPos)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := cell{p.GridPos.X + x, p.GridPos.Y + y}
				if other, is := taken[at]; is {
					t.Fatalf("%s lies over %s", p.Title, other)
				}
				taken[at] = p.Title
			}
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			if refs[q.RefID] {
				t.Errorf("%s: query %s is there twice", p.Title, q.RefID)
			}
			refs[q.RefID] = true
		}
		if p.Type != "row" && (len(p.Targets) == 0 || p.Datasource == nil) {
			t.Errorf("%s asks nothing", p.Title)
		}
		if strings.HasPrefix(p.Title, "Burn rate") {
			for _, s := range p.FieldConfig.Defaults.Thresholds.Steps {
				if s.Value != nil {
					lines[*s.Value] = true
				}
			}
		}
	}
	for _, r := range c.Burn {
		if !lines[r.Factor] {
			t.Errorf("no line at %v", r.Factor)
		}
	}
	for _, title := range []string{"Objectives", "Error budget left", "Time to first token", "Time per output token", "Calls that await their first token",
		"Engine: requests", "Utilisation", "Tokens of keys"} {
		found := false
		for _, p := range b.Panels {
			found = found || p.Title == title && p.Type != "row"
		}
		if !found {
			t.Errorf("no panel %s", title)
		}
	}
}
