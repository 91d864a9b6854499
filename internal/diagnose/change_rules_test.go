package diagnose

import (
	"slices"
	"strings"
	"testing"
)

// TestChangeCases: each staged difference is named, and what is nearly one is not.
func TestChangeCases(t *testing.T) {
	for name, s := range changeCases {
		t.Run(name, func(t *testing.T) {
			got := s.compare()
			if got.Verdict != s.verdict || got.Code != s.code {
				var out strings.Builder
				_ = TextComparison(&out, got)
				t.Errorf("%s %s, want %s %s\n%s", got.Verdict, got.Code, s.verdict, s.code, &out)
			}
			if got.Fault() != (s.verdict == Found) || len(got.Reasons) == 0 {
				t.Errorf("fault %v, %q", got.Fault(), got.Reasons)
			}
			for i, f := range got.Findings {
				if i == 0 && got.Code != "" && (f.Code != got.Code || f.Layer != got.Layer || len(f.For) == 0) {
					t.Errorf("the primary finding is %+v", f)
				}
				if share, known := f.Share.Get(); known && (share < 0 || share > 1) {
					t.Errorf("%s: share %v", f.Code, share)
				}
				if f.Summary == "" || f.Next == "" || f.Layer == "" {
					t.Errorf("incomplete: %+v", f)
				}
			}
		})
	}
}

// TestChangeCodes: every code that comparisons find is described, once, and shown
// by a case.
func TestChangeCodes(t *testing.T) {
	var seen []Code
	for _, m := range ChangeCodes() {
		if m.Code == "" || m.Layer == "" || m.Says == "" || slices.Contains(seen, m.Code) {
			t.Errorf("incomplete or twice: %+v", m)
		}
		seen = append(seen, m.Code)
		shown := false
		for _, s := range changeCases {
			shown = shown || s.code == m.Code
		}
		if !shown {
			t.Errorf("no case shows %s", m.Code)
		}
	}
	for name, s := range changeCases {
		if s.code != "" && !slices.Contains(seen, s.code) {
			t.Errorf("%s: %s is not described", name, s.code)
		}
	}
}
