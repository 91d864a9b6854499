package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/slo"
)

// sloPick says which objectives are asked for.
type sloPick struct {
	classes, models, objectives []string
}

func (p *sloPick) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&p.classes, "class", nil, "only objectives of this `class`; may be given several times")
	f.StringArrayVar(&p.models, "model", nil, "only this `model`, and not the sum over all; may be given several times")
	f.StringSliceVar(&p.objectives, "objective", nil, "only this `objective`, by its name (ttft_p99) or its number (ttft); may be given several times")
}

// from returns the objectives that are asked for. A name that there is not is an
// error: a typing error must not look like a promise that is kept.
func (p *sloPick) from(all []slo.ObjectiveStatus) ([]slo.ObjectiveStatus, error) {
	for _, by := range []struct {
		flag  string
		asked []string
		is    func(o slo.ObjectiveStatus) []string
	}{
		{"class", p.classes, func(o slo.ObjectiveStatus) []string { return []string{o.Class} }},
		{"model", p.models, func(o slo.ObjectiveStatus) []string { return []string{o.Model} }},
		{"objective", p.objectives, func(o slo.ObjectiveStatus) []string {
			return []string{o.Objective.Name, o.Objective.Number.String()}
		}},
	} {
		if len(by.asked) == 0 {
			continue
		}
		var some []slo.ObjectiveStatus
		found := make(map[string]bool)
		var there []string
		for _, o := range all {
			names := by.is(o)
			taken := false
			for _, name := range by.asked {
				if name != "" && slices.Contains(names, name) {
					found[name], taken = true, true
				}
			}
			if taken {
				some = append(some, o)
			}
			if names[0] != "" && !slices.Contains(there, names[0]) {
				there = append(there, names[0])
			}
		}
		for _, name := range by.asked {
			if !found[name] {
				return nil, fmt.Errorf("--%s %s: there is none with calls; there are: %s", by.flag, named(name), someNames(there))
			}
		}
		all = some
	}
	return all, nil
}

// someNames lists names for an error, 20 at most.
func someNames(names []string) string {
	if len(names) == 0 {
		return "none at all"
	}
	const most = 20
	shown := make([]string, 0, most)
	for _, name := range names[:min(len(names), most)] {
		shown = append(shown, named(name))
	}
	text := strings.Join(shown, ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}
