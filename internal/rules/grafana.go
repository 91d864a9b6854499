package rules

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/weirgate/weir/slo"
)

// Grafana writes a dashboard for a complete configuration, as Grafana imports it (version 9
// or later). It needs the gateway's metrics alone, and none of the rules. Errors say what
// cannot be, or are the writer's.
func Grafana(w io.Writer, c slo.Config) error {
	if err := check(&c); err != nil {
		return err
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(dashboard(&c)); err != nil {
		return fmt.Errorf("write the dashboard: %w", err)
	}
	return nil
}

// The parts of Grafana's JSON model that the dashboard uses:
// https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
type (
	board struct {
		UID           string         `json:"uid"`
		Title         string         `json:"title"`
		Description   string         `json:"description"`
		Tags          []string       `json:"tags"`
		Editable      bool           `json:"editable"`
		SchemaVersion int            `json:"schemaVersion"`
		Refresh       string         `json:"refresh"`
		Time          map[string]any `json:"time"`
		Templating    struct {
			List []variable `json:"list"`
		} `json:"templating"`
		Panels []panel `json:"panels"`
	}
	variable struct {
		Name       string         `json:"name"`
		Label      string         `json:"label"`
		Type       string         `json:"type"`
		Query      string         `json:"query"`
		Definition string         `json:"definition,omitempty"`
		Datasource *source        `json:"datasource,omitempty"`
		Refresh    int            `json:"refresh"`
		Sort       int            `json:"sort"`
		Multi      bool           `json:"multi"`
		IncludeAll bool           `json:"includeAll"`
		AllValue   string         `json:"allValue,omitempty"`
		Current    map[string]any `json:"current"`
	}
	source struct {
		Type string `json:"type"`
		UID  string `json:"uid"`
	}
	panel struct {
		ID              int            `json:"id"`
		Type            string         `json:"type"`
		Title           string         `json:"title"`
		Description     string         `json:"description,omitempty"`
		GridPos         place          `json:"gridPos"`
		Datasource      *source        `json:"datasource,omitempty"`
		Targets         []query        `json:"targets,omitempty"`
		FieldConfig     *fields        `json:"fieldConfig,omitempty"`
		Options         map[string]any `json:"options,omitempty"`
		Transformations []any          `json:"transformations,omitempty"`
		Collapsed       *bool          `json:"collapsed,omitempty"` // of rows
	}
	place struct {
		H int `json:"h"`
		W int `json:"w"`
		X int `json:"x"`
		Y int `json:"y"`
	}
	query struct {
		RefID   string `json:"refId"`
		Expr    string `json:"expr"`
		Legend  string `json:"legendFormat,omitempty"`
		Instant bool   `json:"instant,omitempty"`
		Format  string `json:"format,omitempty"`
	}
	fields struct {
		Defaults  defaults   `json:"defaults"`
		Overrides []override `json:"overrides"`
	}
	defaults struct {
		Unit       string         `json:"unit,omitempty"`
		Decimals   *int           `json:"decimals,omitempty"`
		Min        *float64       `json:"min,omitempty"`
		Custom     map[string]any `json:"custom,omitempty"`
		Thresholds *thresholds    `json:"thresholds,omitempty"`
	}
	thresholds struct {
		Mode  string `json:"mode"`
		Steps []step `json:"steps"`
	}
	step struct {
		Color string   `json:"color"`
		Value *float64 `json:"value"` // null is from the lowest on
	}
	override struct {
		Matcher    map[string]any `json:"matcher"`
		Properties []property     `json:"properties"`
	}
	property struct {
		ID    string `json:"id"`
		Value any    `json:"value"`
	}
)

// columns is how many the grid of a dashboard has.
const columns = 24

// layout places panels one after the other, row by row.
type layout struct {
	panels  []panel
	x, y, h int
}

func (l *layout) newline() {
	l.x, l.y, l.h = 0, l.y+l.h, 0
}

// row begins a section.
func (l *layout) row(title string) {
	l.newline()
	l.panels = append(l.panels, panel{ID: len(l.panels) + 1, Type: "row", Title: title, GridPos: place{1, columns, 0, l.y}, Collapsed: new(false)})
	l.y++
}

// add places a panel w columns wide and 8 units high, about as high as a hand.
func (l *layout) add(w int, p panel) {
	const h = 8
	if l.x+w > columns {
		l.newline()
	}
	p.ID, p.GridPos = len(l.panels)+1, place{h, w, l.x, l.y}
	p.Datasource = &source{"prometheus", "${datasource}"}
	l.panels = append(l.panels, p)
	l.x, l.h = l.x+w, h
}

// line is one query of a graph, with what its legend says.
type line struct{ expr, legend string }

// graph makes a panel of lines over time. Each limit is drawn as a line across.
func graph(title, about, unit string, lines []line, limits ...step) panel {
	p := panel{
		Type: "timeseries", Title: title, Description: about,
		FieldConfig: &fields{
			Defaults: defaults{Unit: unit, Min: new(0.0), Custom: map[string]any{
				"lineWidth": 1, "fillOpacity": 5, "showPoints": "never", "spanNulls": false,
			}},
			Overrides: []override{},
		},
		Options: map[string]any{
			"legend":  map[string]any{"displayMode": "table", "placement": "bottom", "calcs": []string{"lastNotNull", "max"}},
			"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
		},
	}
	if len(limits) > 0 {
		d := &p.FieldConfig.Defaults
		d.Custom["thresholdsStyle"] = map[string]any{"mode": "line"}
		d.Thresholds = &thresholds{"absolute", append([]step{{"green", nil}}, limits...)}
	}
	for i, l := range lines {
		p.Targets = append(p.Targets, query{RefID: string(rune('A' + i)), Expr: l.expr, Legend: l.legend})
	}
	return p
}

// stacked makes the lines of a graph stand on each other.
func stacked(p panel) panel {
	p.FieldConfig.Defaults.Custom["stacking"] = map[string]any{"mode": "normal", "group": "A"}
	p.FieldConfig.Defaults.Custom["fillOpacity"] = 40
	return p
}

// column is one column of figures in a table.
type column struct{ expr, title, unit string }

// table makes a panel of what holds now: a line for each set of labels.
func table(title, about string, columns ...column) panel {
	p := panel{Type: "table", Title: title, Description: about, FieldConfig: &fields{Overrides: []override{}}}
	renamed := map[string]any{}
	for i, c := range columns {
		ref := string(rune('A' + i))
		p.Targets = append(p.Targets, query{RefID: ref, Expr: c.expr, Instant: true, Format: "table"})
		renamed["Value #"+ref] = c.title
		p.FieldConfig.Overrides = append(p.FieldConfig.Overrides, override{
			Matcher:    map[string]any{"id": "byName", "options": c.title},
			Properties: []property{{"unit", c.unit}, {"decimals", 2}},
		})
	}
	p.Transformations = []any{
		map[string]any{"id": "merge", "options": map[string]any{}},
		map[string]any{"id": "organize", "options": map[string]any{
			"excludeByName": map[string]any{"Time": true}, "renameByName": renamed}},
	}
	return p
}
