package doctor

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// marks can be told apart without colour, and are equally wide.
var marks = map[Level]struct{ text, colour string }{
	Green:  {"ok  ", "\x1b[32m"},
	Yellow: {"warn", "\x1b[33m"},
	Red:    {"FAIL", "\x1b[1;31m"},
	Grey:   {"--  ", "\x1b[2m"},
}

// checkWidth is the width of the column of names: that of the longest.
const checkWidth = 11

// Text writes findings for people, one line each, with the reason and the next
// step below it. colour adds the escape sequences of a terminal.
func Text(w io.Writer, findings []Finding, colour bool) error {
	out := bufio.NewWriter(w)
	for _, f := range findings {
		mark := marks[f.Level].text
		if colour {
			mark = marks[f.Level].colour + mark + "\x1b[0m"
		}
		fmt.Fprintf(out, "%s  %-*s  %s\n", mark, checkWidth, f.Check, f.Title)
		indent := len(marks[f.Level].text) + 2 + checkWidth + 2
		if f.Detail != "" {
			fmt.Fprintf(out, "%*s%s\n", indent, "", f.Detail)
		}
		if f.Next != "" {
			fmt.Fprintf(out, "%*sNext: %s\n", indent, "", f.Next)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write findings: %w", err)
	}
	return nil
}

// Report is the JSON form of all findings.
type Report struct {
	Worst    Level     `json:"worst"`
	Findings []Finding `json:"findings"`
}

// JSON writes findings as one Report.
func JSON(w io.Writer, findings []Finding) error {
	if findings == nil {
		findings = []Finding{}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(Report{Worst: Worst(findings), Findings: findings}); err != nil {
		return fmt.Errorf("write findings: %w", err)
	}
	return nil
}
