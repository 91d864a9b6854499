package endpoint

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weirgate/weir/internal/call"
)

// Nearest returns the at most n names that are closest to name, closest first,
// for "did you mean". Closeness is the number of letters to insert, delete or
// change, whatever their case; an organisation before the last slash may be
// left out, as people do. Names that differ in more than half of their letters
// are no help and are left out. What is equal keeps the order of the list.
func Nearest(name string, of []string, n int) []string {
	type rated struct {
		name     string
		distance int
	}
	want := strings.ToLower(call.NameOf(name))
	var near []rated
	for _, candidate := range of {
		have := strings.ToLower(call.NameOf(candidate))
		d := distance(want, have)
		if short := have[strings.LastIndexByte(have, '/')+1:]; short != have && !strings.Contains(want, "/") {
			d = min(d, distance(want, short))
			have = short
		}
		if 2*d <= max(len(want), len(have)) || strings.Contains(have, want) && want != "" {
			near = append(near, rated{candidate, d})
		}
	}
	slices.SortStableFunc(near, func(a, b rated) int { return cmp.Compare(a.distance, b.distance) })
	near = near[:min(max(n, 0), len(near))]
	names := make([]string, len(near))
	for i := range near {
		names[i] = near[i].name
	}
	return names
}

// distance is the Levenshtein distance of two names, in bytes: model names are ASCII.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0] // of the row above
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
