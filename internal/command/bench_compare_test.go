package command

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/bench"
)

// TestComparer: calls are compared by load, the latest of them when there are many,
// and an error costs no other comparison.
func TestComparer(t *testing.T) {
	var seen []string
	c := &comparer{compare: func(calls []bench.Sample) (bench.Compared, error) {
		seen = append(seen, fmt.Sprintf("%d from %d", len(calls), calls[0].Index))
		if calls[0].Load == "broken" {
			return bench.Compared{}, errors.New("no gateway")
		}
		return bench.Compared{Calls: len(calls), Note: "a note"}, nil
	}}
	give := func(load string, n, warm int) {
		for i := range n {
			c.take(bench.Sample{Load: load, Index: i, Warmup: i < warm, Gaps: []float32{1}})
		}
	}
	give("one", 5, 2)
	give("all warm", 3, 3)
	give("broken", 2, 0)
	give("many", 2*comparedLast+10, 0)
	runs := []bench.Run{{Load: "one"}, {Load: "all warm"}, {Load: "broken"}, {Load: "many"}}
	err := c.fill(runs)
	if err == nil || err.Error() != "--compare: broken: no gateway" {
		t.Errorf("got %v", err)
	}
	if got, want := strings.Join(seen, ", "), fmt.Sprintf("3 from 2, 2 from 0, %d from %d", comparedLast+10, comparedLast); got != want {
		t.Errorf("compared %s, want %s", got, want)
	}
	if one := runs[0].Compared; one == nil || one.Calls != 3 || one.Note != "a note" {
		t.Errorf("got %+v", one)
	}
	if runs[1].Compared != nil || runs[2].Compared != nil {
		t.Error("a comparison of nothing")
	}
	if many := runs[3].Compared; many == nil || !strings.Contains(many.Note, fmt.Sprintf("%d calls before these", comparedLast)) {
		t.Errorf("got %+v", many)
	}
}
