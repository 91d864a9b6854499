package capacity

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text writes the plan for people: the answer, what decides it, warnings, every figure
// with its formula, and what they rest on. Lines are not wrapped.
func (p Plan) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Plan for %s on %s, TP %d, %s\n\n", planNamed(p.Model, "a model"), planNamed(p.GPU, "a GPU"), p.TP, planRate(p.Rate))
	if gpus, fits := p.GPUs.Get(); fits {
		groups, _ := p.Groups.Get()
		atLeast, _ := p.GPUsAtLeast.Get()
		fmt.Fprintf(&b, "%s needed: %s of TP %d", planMany(gpus, "GPU", "GPUs"), planMany(groups, "group", "groups"), p.TP)
		if atLeast < gpus && groups > 1 { // of one group no GPU can be left out: it holds the weights
			fmt.Fprintf(&b, " (at least %s, before groups are whole)", planCount(atLeast))
		}
		b.WriteString(".\n")
	} else {
		b.WriteString("Nothing fits.\n")
	}
	fmt.Fprintf(&b, "What binds: %s. %s\n", p.Binds, planUpper(p.Why))
	if tp, known := p.LeastTP.Get(); known {
		fmt.Fprintf(&b, "Smallest TP that holds the weights and a call: %d.\n", tp)
	}
	for _, w := range p.Warnings {
		fmt.Fprintf(&b, "\nWARNING  %s\n", w.Text)
	}
	b.WriteByte('\n')
	label, shown := 0, 0
	for _, f := range p.Figures {
		label, shown = max(label, utf8.RuneCountInString(f.Label)), max(shown, utf8.RuneCountInString(f.Shown))
	}
	for _, f := range p.Figures {
		fmt.Fprintf(&b, "%s  %s  %s\n", planPad(f.Label, label, false), planPad(f.Shown, shown, true), f.Formula)
	}
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "\n%s\n", n)
	}
	return b.String()
}

// planRate writes a rate.
func planRate(f float64) string {
	if f == 1 {
		return "1 call/s"
	}
	return planShort(f) + " calls/s"
}

func planPad(text string, width int, right bool) string {
	pad := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
	if right {
		return pad + text
	}
	return text + pad
}

// planNamed shows a name that may have come from outside, or what stands for none.
func planNamed(name, none string) string {
	if name == "" {
		return none
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, name)
}

func planUpper(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}
