package diagnose

import (
	"encoding/json"
	"io"
	"testing"

	"github.com/weirgate/weir/internal/call"
)

// FuzzCall: whatever stands in a record, no share lies outside 0 to 1, nothing
// panics, and a window of it agrees.
func FuzzCall(f *testing.F) {
	for _, c := range cases {
		b, err := json.Marshal(with(c.change))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := new(call.Record)
		if json.Unmarshal(b, r) != nil {
			return
		}
		list := Call(r)
		report := Window([]*call.Record{r, r, nil}, Options{MinCalls: 1})
		for _, found := range append(report.Findings, list...) {
			if x, known := found.Share.Get(); known && !(x >= 0 && x <= 1) {
				t.Errorf("%s has a share of %v", found.Code, x)
			}
			if d := found.Time.Or(0); d < 0 {
				t.Errorf("%s took %v", found.Code, d)
			}
		}
		if report.Calls == 2 && len(report.Findings)+len(report.Rare) != len(list) {
			t.Errorf("%d findings of the call, %d of a window of it", len(list), len(report.Findings)+len(report.Rare))
		}
		if err := Text(io.Discard, report); err != nil {
			t.Error(err)
		}
		if err := JSON(io.Discard, report); err != nil {
			t.Error(err)
		}
	})
}
