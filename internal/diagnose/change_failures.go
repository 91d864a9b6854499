package diagnose

import (
	"fmt"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// failedMore finds failures that were not there, or not so often, in the words that
// Window has for them. twice is by how much their share has to grow.
func failedMore(p *pair) (found []*Finding) {
	const twice = 2
	shares := [2]map[Code]int{{}, {}}
	groups := make(map[groupKey]*group)
	var keys []groupKey
	var s sheet
	var l look
	for i, list := range p.list {
		for j := range list {
			if !l.at(list[j].rec) {
				continue
			}
			s.reset()
			failures(&l, &s)
			for k := range s.hits {
				h := &s.hits[k]
				shares[i][h.code]++
				if i == 0 {
					continue
				}
				key := groupKey{h.code, h.of, h.source, h.wall}
				if groups[key] == nil {
					groups[key] = newGroup(h)
					keys = append(keys, key)
				}
				groups[key].add(&l, h, s.of(k), defaultExamples)
			}
		}
	}
	f := frame{window: true, calls: len(p.list[1]), wholes: map[Whole]time.Duration{}, examples: defaultExamples}
	for i := range p.list[1] {
		f.wholes[OfElapsed] += p.list[1][i].ended - p.list[1][i].received
	}
	for _, key := range keys {
		g := groups[key]
		was, is := float64(shares[0][key.code])/float64(max(len(p.list[0]), 1)), float64(shares[1][key.code])/float64(len(p.list[1]))
		if !often(g.calls, f.calls) || is < twice*was || g.calls < inARow {
			continue
		}
		finding := g.finding(&f)
		finding.pro("failed_share", InShare, call.Figure(is), "%s of the calls, before %s", percent(is), percent(was))
		found = append(found, &finding)
	}
	return found
}

// changeRules are all of them. What each finds is ranked by its code.
var changeRules = [...]func(*pair) []*Finding{failedMore, hardwareErrors, throttles, blocked, onTheWay, preempted, missedCache, waitingLonger,
	otherTraffic, slowPrompts, slowTokens, tailing, clientTrips}

// tooFew are the reasons for which nothing can be compared.
func (p *pair) tooFew() []string {
	var reasons []string
	for i, name := range [2]string{"healthy window", "new window"} {
		if n := len(p.list[i]); n < p.least {
			reasons = append(reasons, fmt.Sprintf("The %s has %s: too few to compare (at least %s are needed).", name, cardinal(n), plain(float64(p.least))))
		}
	}
	if len(reasons) > 0 && len(p.list[1]) < len(p.list[0])/2 {
		reasons = append(reasons, "That there are fewer than before may itself be the fault: calls that hang have no record until they end.")
	}
	return reasons
}
