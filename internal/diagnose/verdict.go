package diagnose

import (
	"fmt"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// Verdict is what a Report comes to.
type Verdict string

// The verdicts.
const (
	// Found: at least one finding is known, and not merely possible.
	Found Verdict = "found"
	// NothingFound: nothing stands out, and what TTFT is made up of is known. That the
	// service is as fast as it should be is for objectives to say.
	NothingFound Verdict = "nothing_found"
	// Undetermined: so much time cannot be split that the fault may hide in it, or
	// what was found is only possible.
	Undetermined Verdict = "undetermined"
	// TooFewCalls: the calls are too few to speak for the service, whatever they show.
	TooFewCalls Verdict = "too_few_calls"
	// NotAFault: what changed is what clients ask for, and the service is as it was; only of
	// a Comparison.
	NotAFault Verdict = "not_a_fault"
)

// headlines are the verdicts as people read them.
var headlines = map[Verdict]string{
	Found: "FOUND", NothingFound: "NOTHING FOUND", Undetermined: "UNDETERMINED", TooFewCalls: "TOO FEW CALLS TO TELL",
	NotAFault: "NOT A FAULT",
}

// darkness adds up the time that cannot be split.
type darkness struct {
	calls        int
	whole, unlit time.Duration
}

func (d *darkness) add(l *look) {
	d.calls++
	d.whole += l.whole
	for _, p := range [...]phase{prefill, engine} {
		if took, known := l.took(p); known && l.sources[p] == call.Unattributed {
			d.unlit += took
		}
	}
}

// hides tells whether so much cannot be split that a fault may hide in it.
func (d *darkness) hides() bool {
	return d.calls > 0 && stands(d.unlit/time.Duration(d.calls), Dominant, d.whole/time.Duration(d.calls))
}

// words say how much that is.
func (d *darkness) words() string {
	n := time.Duration(d.calls)
	return fmt.Sprintf("%s of the %s to the first token or the whole answer cannot be split, on average.", span(d.unlit/n), span(d.whole/n))
}

// judge comes to the verdict once the findings are there.
func (w *window) judge(least int) {
	r := &w.report
	say := func(v Verdict, reasons ...string) { r.Verdict, r.Reasons = v, reasons }
	var sure, possible *Finding
	for i := range r.Findings {
		f := &r.Findings[i]
		switch {
		case f.Source == call.Unattributed:
			possible = first(possible, f)
		// A failure is told of, but a few of them are not the window's fault.
		case often(f.Calls, r.Calls) || !meanings[places[f.Code]].failure:
			sure = first(sure, f)
		}
	}
	switch {
	case r.Calls == 0:
		say(TooFewCalls, "There are no calls to look at.")
	case r.Calls < least:
		reasons := []string{fmt.Sprintf("%s in all: too few to speak for the service (at least %s are needed).", upper(cardinal(r.Calls)), plain(float64(least)))}
		if sure != nil {
			reasons = append(reasons, "What was found holds for these calls: "+sure.Summary)
		}
		say(TooFewCalls, reasons...)
	case sure != nil:
		say(Found, sure.Summary)
	case possible != nil:
		say(Undetermined, "Nothing is certain: "+possible.Summary, w.dark.words())
	case w.dark.hides():
		say(Undetermined, "Nothing stands out, but "+w.dark.words()+" A queue may hide in it.", nextUnattributed(&group{scene: w.scene}))
	default:
		say(NothingFound, fmt.Sprintf("Nothing stands out in %s.", cardinal(r.Calls)))
	}
}

func first(a, b *Finding) *Finding {
	if a != nil {
		return a
	}
	return b
}

// upper writes the first letter large.
func upper(text string) string {
	if text == "" || text[0] < 'a' || text[0] > 'z' {
		return text
	}
	return string(text[0]-'a'+'A') + text[1:]
}
