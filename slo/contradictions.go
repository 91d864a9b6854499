package slo

import (
	"fmt"
	"slices"
)

// longestAnswer is more tokens than models write in one answer; an E2E objective that holds
// so long needs no warning.
const longestAnswer = 131_072

// parts lists what each number contains: of one call it is never less than any of these.
var parts = [Numbers][]Number{
	TTFT:         {Queue, Prefill, TTFTUpstream},
	TTFTUpstream: {Prefill},
	TTFTVisible:  {Queue, Prefill, TTFTUpstream, TTFT},
	E2E:          {Queue, Prefill, TTFTUpstream, TTFT, TTFTVisible, ICLMax},
}

// contains tells whether the number is never less than another.
func (n Number) contains(other Number) bool {
	return int(n) < Numbers && slices.Contains(parts[n], other)
}

// contradictions tells what objectives of a class cannot all mean what they say.
func (c Class) contradictions() (all []Warning) {
	warn := func(kind WarningKind, o Objective, format string, args ...any) {
		all = append(all, Warning{kind, c.Name, o.Name, fmt.Sprintf(format, args...)})
	}
	for _, o := range c.Objectives {
		if o.Number == Goodput {
			if lowest, ok := c.lowestTarget(); ok && lowest.Target < o.Target {
				warn(WarnContradiction, o, "%s asks more than %s, and whatever misses that misses goodput too; lower it to %s",
					o.Text(), lowest.Text(), lowest.Target.Percent())
			}
			continue
		}
		if c.stricter(o) {
			continue // the stricter one is what others contradict
		}
		for _, part := range parts[o.Number] {
			p, ok := c.strictest(part)
			if ok && p.Threshold > o.Threshold {
				warn(WarnContradiction, o, "%s is below %s, which is a part of it: a call that takes as long there has missed this one; raise the first or lower the second",
					o.Text(), p.Text())
			}
		}
		queue, hasQueue := c.strictest(Queue)
		prefill, hasPrefill := c.strictest(Prefill)
		// Where one of them is above already, that has been said.
		if hasQueue && hasPrefill && o.Number.contains(Queue) && max(queue.Threshold, prefill.Threshold) <= o.Threshold &&
			queue.Threshold+prefill.Threshold > o.Threshold {
			warn(WarnContradiction, o, "%s is below %s and %s together, which are parts of it; raise the first or lower one of the others",
				o.Text(), queue.Text(), prefill.Text())
		}
		if o.Number == E2E {
			if reason := c.longAnswers(o); reason != "" {
				warn(WarnLongAnswers, o, "%s", reason)
			}
		}
	}
	return all
}

// longAnswers says after how many tokens calls that keep everything else miss an E2E
// objective; "" where the answers that it is promised for are not as long.
func (c Class) longAnswers(e2e Objective) string {
	tpot, ok := c.strictest(TPOT)
	if !ok {
		return ""
	}
	room, texts := e2e.Threshold, ""
	for _, o := range c.untilFirstToken() {
		room -= o.Threshold
		texts += o.Text() + ", "
	}
	if room < 0 {
		return "" // that the parts are too long has been told
	}
	tokens := int64(room / tpot.Threshold)
	if limit := c.longestOutput(e2e); limit <= tokens || tokens >= longestAnswer {
		return ""
	}
	return fmt.Sprintf("%s%s: one after the other these reach %s after %d tokens, and longer answers miss it though they keep the rest; raise it, or add to it: when output_tokens <= %d",
		texts, tpot.Text(), e2e.Text(), tokens, max(tokens, 1))
}

// untilFirstToken returns the objectives that say how long the first token may take: TTFT,
// or else those about parts of it that do not overlap. The engine's queue is in queue and in
// ttft_upstream.
func (c Class) untilFirstToken() (all []Objective) {
	for _, numbers := range [][]Number{{TTFT}, {Prefill, Queue}, {TTFTUpstream}, {Queue}} {
		for _, n := range numbers {
			if o, ok := c.strictest(n); ok {
				all = append(all, o)
			} else if len(all) == 0 {
				break // what comes second does not stand alone
			}
		}
		if len(all) > 0 {
			break
		}
	}
	return all
}

// longestOutput returns the most output tokens that the calls of an objective have, by its
// own conditions, or by an envelope for as large a share of the calls.
func (c Class) longestOutput(o Objective) int64 {
	limit := int64(longestAnswer)
	for _, w := range o.When {
		if w.Quantity == OutputTokens {
			limit = min(limit, w.AtMost)
		}
	}
	for _, t := range c.Valid.Terms {
		if t.Quantity == OutputTokens && t.Target >= o.Target {
			limit = min(limit, t.AtMost)
		}
	}
	return limit
}

// strictest returns the objective about a number that has the highest target, and of several
// the longest threshold: what calls may take and still keep.
func (c Class) strictest(n Number) (best Objective, ok bool) {
	for _, o := range c.Objectives {
		if o.Number == n && (!ok || o.Target > best.Target || o.Target == best.Target && o.Threshold > best.Threshold) {
			best, ok = o, true
		}
	}
	return best, ok
}

// stricter tells whether the class has an objective about the same with a higher target. So
// p50 beside p99 may well be below what another promises for 99 % of calls.
func (c Class) stricter(o Objective) bool {
	return slices.ContainsFunc(c.Objectives, func(p Objective) bool { return p.aboutTheSame(o) && p.Target > o.Target })
}

// lowestTarget returns the objective, other than goodput, with the lowest target of those
// that all calls have to keep.
func (c Class) lowestTarget() (lowest Objective, ok bool) {
	for _, o := range c.Objectives {
		if o.Number != Goodput && len(o.When) == 0 && (!ok || o.Target < lowest.Target) {
			lowest, ok = o, true
		}
	}
	return lowest, ok
}
