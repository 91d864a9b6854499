package doctor

import (
	"slices"
	"strings"
)

// Level says how a check went.
type Level string

// The levels. Grey is no verdict: the check did not apply, or could not be made;
// the finding says why.
const (
	Green  Level = "green"
	Yellow Level = "yellow"
	Red    Level = "red"
	Grey   Level = "grey"
)

// Finding is the result of one check. Its texts hold no secret, no prompt and no
// answer, and no control characters.
type Finding struct {
	// Check is the check's stable name, one of Checks.
	Check string `json:"check"`
	Level Level  `json:"level"`
	// Title says in one line how things stand, without a full stop.
	Title string `json:"title"`
	// Detail gives the reason and the evidence; "" when the title says all.
	Detail string `json:"detail,omitempty"`
	// Next says what to do. A finding that is yellow or red always has it.
	Next string `json:"next,omitempty"`
	// Cause is why the check was not made, where that is the fault of another one: its
	// name; or "stopped" when the doctor was stopped. "" is that it was made.
	Cause string `json:"cause,omitempty"`
}

// Worst returns the worst level among findings: red before yellow before green.
// Grey counts as nothing; without any verdict the worst is Grey.
func Worst(findings []Finding) Level {
	order := []Level{Grey, Green, Yellow, Red}
	worst := 0
	for _, f := range findings {
		worst = max(worst, slices.Index(order, f.Level))
	}
	return order[worst]
}

func green(title string, detail ...string) Finding {
	return Finding{Level: Green, Title: title, Detail: sentences(detail...)}
}

func yellow(title, detail, next string) Finding {
	return Finding{Level: Yellow, Title: title, Detail: detail, Next: next}
}

func red(title, detail, next string) Finding {
	return Finding{Level: Red, Title: title, Detail: detail, Next: next}
}

// grey is a check that has no verdict, with the reason.
func grey(reason string, detail ...string) Finding {
	return Finding{Level: Grey, Title: reason, Detail: sentences(detail...)}
}

// sentences joins what is not empty.
func sentences(parts ...string) string {
	parts = slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return s == "" })
	return strings.Join(parts, " ")
}
