// Package diagnose names the layer at fault, with evidence; pure functions.
//
// Call looks at one call, Window at the calls of a span of time. Both read what
// stands in the records and nothing else: no clock, no state, no objective. A
// Finding says which layer took how much of which time, how that is known, what
// speaks for it and what against, and what to do next.
//
// Compare looks at what changed from a healthy window to a new one. It first
// divides the change of the means exactly among the phases, then compares calls
// on equal cells, so that a change that comes of other calls is no fault, and
// then looks for what explains the rest: a signal that came before, a sibling
// that stayed healthy, a figure that speaks against it. CompareRows does the same
// with the rows of a table, and Blame says in one sentence which phase calls lost
// their time in that missed an objective.
//
// Four rules keep it honest. A figure that is unknown is never taken as 0: a rule
// that needs it stays silent. A finding that rests on time which nobody could
// split says so (Source unattributed), is worded as a possibility, and ranks
// below the others; only where calls of the same model and size that met an idle
// engine were many times quicker, and calls waited, does a window infer a queue,
// and it calls it likely. What no evidence decides is undetermined. And without an
// objective nobody can say how bad something is, so a finding has a share and a
// time but no severity.
//
// Whether prompts repeat and miss the prefix cache cannot be told of one window:
// records hold nothing of the prompt, on purpose. A comparison shows that the
// cache gives less of prompts of equal length, and not whether they still begin
// alike.
package diagnose
