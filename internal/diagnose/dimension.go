package diagnose

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weirgate/weir/internal/call"
)

// dimension is a way to tell siblings apart.
type dimension int

const (
	byUpstream dimension = iota
	byModel
	byKey
	dimensions
)

var named = [dimensions]struct {
	figure, word string
	of           func(*call.Record) string
}{
	{"upstream", "upstream", func(r *call.Record) string { return r.Upstream }},
	{"model", "model", func(r *call.Record) string { return r.Model }},
	{"key", "key", func(r *call.Record) string { return r.Key }},
}

// focus returns evidence that what was found happens at one upstream, model or
// key and not at its siblings. all has the calls of the whole window by name, and
// total is their number.
func (g *group) focus(all *[dimensions]map[string]int, total int) []Evidence {
	if g.calls < FocusCalls {
		return nil
	}
	var list []Evidence
	for d := range g.names {
		name, n := most(g.names[d])
		overall := all[d][name]
		if name == "" || name == others || float64(n) < Focus*float64(g.calls) || 2*overall > total {
			continue
		}
		list = append(list, Evidence{
			Text: fmt.Sprintf("%s %s has %s of these %s, and %s of all %s", named[d].word, clean(name),
				plain(float64(n)), cardinal(g.calls), plain(float64(overall)), plain(float64(total))),
			Figure: named[d].figure, Value: call.Figure(float64(n) / float64(g.calls)), Unit: InShare, Calls: n,
		})
	}
	return list
}

// most returns the name counted most, of equals the first by the alphabet.
func most(m map[string]int) (name string, n int) {
	names := make([]string, 0, len(m))
	for k := range m {
		names = append(names, k)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
	if len(names) == 0 {
		return "", 0
	}
	return names[0], m[names[0]]
}
