package diagnose

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// frame is what a group's shares and counts are seen in.
type frame struct {
	window   bool
	calls    int                     // of the window
	wholes   map[Whole]time.Duration // of all its calls
	examples int
}

// finding puts a group into words.
func (g *group) finding(f *frame) Finding {
	out := Finding{Layer: g.meaning.Layer, Code: g.meaning.Code, Source: g.source, Of: g.of, Calls: g.calls}
	whole := g.whole
	if f.window {
		whole = f.wholes[g.of]
		out.Examples = g.worst[:min(f.examples, len(g.worst))]
		g.rankSums()
	}
	if g.of != "" {
		out.Time = call.Lasting(g.time)
		if whole > 0 {
			out.Share = call.Figure(float64(g.time) / float64(whole))
		}
	}
	for i := range g.sums {
		s := &g.sums[i]
		if e := s.evidence(f.window, g.calls); s.against {
			out.Against = append(out.Against, e)
		} else {
			out.For = append(out.For, e)
		}
	}
	out.Summary = g.summary(f, &out)
	out.Next = g.meaning.next(g)
	return out
}

// inWords are the wholes as the summary of one call and of a window names them.
var inWords = map[Whole][2]string{
	OfTTFT:         {"TTFT", "TTFT"},
	OfElapsed:      {"in all", "for the whole call"},
	OfTTFTAtClient: {"to the first token at the client", "to the first token at the client"},
}

// ofAll are the wholes of all calls of a window.
var ofAll = map[Whole]string{OfTTFT: "all TTFT", OfElapsed: "the time of all calls", OfTTFTAtClient: "all that time"}

func (g *group) summary(f *frame, out *Finding) string {
	in := ""
	if f.window {
		in = fmt.Sprintf(" in %s of %s", plain(float64(g.calls)), cardinal(f.calls))
	}
	if g.of == "" {
		var figures []string
		for i := range g.sums {
			if s := &g.sums[i]; !s.against && len(figures) < 2 {
				figures = append(figures, s.short(f.window, g.calls))
			}
		}
		text := g.subject() + in
		if len(figures) > 0 {
			text += " (" + strings.Join(figures, "; ") + ")"
		}
		return text + "."
	}
	n := time.Duration(g.calls)
	took, of := span(g.time/n), span(g.whole/n)+" "+inWords[g.of][0]
	share := ""
	if x, known := out.Share.Get(); known {
		share = " (" + percent(x) + ")"
	}
	if f.window {
		of = span(g.whole/n) + " " + inWords[g.of][1]
		in = " on average" + in
		if x, known := out.Share.Get(); known {
			share = ": " + percent(x) + " of " + ofAll[g.of]
		}
	}
	switch {
	case g.meaning.Code == CodeUnattributed:
		return took + " of " + of + in + " cannot be told apart (queue, prefill or the way there)" + share + "."
	case g.source == call.Unattributed:
		return g.meaning.subject + " may have taken up to " + took + " of " + of + in + share + "; nothing tells it from prefill."
	case g.meaning.Code == CodeEngineQueue && g.beside():
		return g.meaning.subject + " likely took " + took + " of " + of + in + share + "."
	case g.source == call.Inferred && g.lowerBound():
		return g.meaning.subject + " took at least " + took + " of " + of + in + share + "."
	}
	return g.meaning.subject + " took " + took + " of " + of + in + share + "."
}

// lowerBound tells whether a bound on the queue was taken off.
func (g *group) lowerBound() bool {
	_, calls := g.has(queueBound)
	return calls > 0
}

// beside tells whether the queue follows from calls that met an idle engine.
func (g *group) beside() bool {
	_, idle := g.has(idleTook)
	_, least := g.has(leastTook)
	return idle+least > 0
}

// subject begins the summary.
func (g *group) subject() string {
	if g.meaning.Code == CodeRefused {
		return walls[g.wall].subject
	}
	return g.meaning.subject
}

// words puts a figure into words.
func (s *sum) words(window bool) string {
	text := s.figure.label
	if s.name != "" {
		text = strings.Replace(text, "%", clean(s.name), 1)
	}
	if s.figure.bare {
		return text
	}
	text += ": " + amount(s.mean(), s.figure.unit)
	if window && s.calls > 1 {
		text += " on average"
	}
	return text
}

// short is for summaries: without what it means.
func (s *sum) short(window bool, calls int) string {
	text := s.words(window)
	if window && s.calls < calls {
		text += " in " + plain(float64(s.calls))
	}
	return text
}

func (s *sum) evidence(window bool, calls int) Evidence {
	e := Evidence{Text: s.words(window), Figure: s.figure.name}
	if s.figure.why != "" {
		e.Text += ", " + s.figure.why
	}
	if !s.figure.bare {
		e.Value, e.Unit = call.Figure(s.mean()), s.figure.unit
	}
	if window {
		e.Calls = s.calls
		if s.calls < calls {
			e.Text += fmt.Sprintf(" (%s of these %s)", plain(float64(s.calls)), cardinal(calls))
		}
	}
	return e
}
