package alert

import (
	"cmp"
	"slices"
)

// maxModels bounds the alerts about single models, so that there is always place for
// those about all: a client that names a thousand models must not keep a page away.
const maxModels = maxAlerts * 3 / 4

// room makes place for alerts while one Observe takes up a Status; the Manager's lock is
// held all the while.
type room struct {
	m      *Manager
	models int // alerts about single models
	// single and all are alerts that can give their place to others, those to go first at
	// the end. They are made when there is no place for the first time.
	single, all []*entry
	sorted      bool
}

func (m *Manager) room() *room {
	r := &room{m: m}
	for k := range m.entries {
		if k.model != "" {
			r.models++
		}
	}
	return r
}

// make makes place for an alert and tells whether there is one. When there is none left,
// an alert that ended goes, or one that nobody was told of and that matters less.
func (r *room) make(k key) bool {
	full := len(r.m.entries) >= maxAlerts
	if k.model != "" {
		if (full || r.models >= maxModels) && !r.oust(k, &r.single) {
			return false
		}
		r.models++
		return true
	}
	return !full || r.oust(k, &r.single) || r.oust(k, &r.all)
}

// oust forgets an alert of a list for k's sake.
func (r *room) oust(k key, list *[]*entry) bool {
	if !r.sorted {
		r.sort()
	}
	last := len(*list) - 1
	if last < 0 {
		return false
	}
	victim := (*list)[last]
	if victim.firing() && victim.key.weight() >= k.weight() {
		return false
	}
	*list = (*list)[:last]
	for out, mark := range victim.marks {
		if mark.due(victim) != nothing {
			out.state.Dropped++
		}
	}
	if victim.firing() && victim.round == r.m.round {
		r.m.leftOut++ // else it is counted when its own turn comes
	}
	if victim.key.model != "" {
		r.models--
	}
	delete(r.m.entries, victim.key)
	return true
}

func (r *room) sort() {
	r.sorted = true
	for _, e := range r.m.entries {
		switch {
		case e.firing() && len(e.marks) > 0:
		case e.key.model != "":
			r.single = append(r.single, e)
		default:
			r.all = append(r.all, e)
		}
	}
	for _, list := range [][]*entry{r.single, r.all} {
		slices.SortFunc(list, func(a, b *entry) int {
			switch {
			case a.firing() && !b.firing():
				return -1
			case b.firing() && !a.firing():
				return 1
			case a.firing():
				return cmp.Or(cmp.Compare(b.key.weight(), a.key.weight()), cmp.Compare(a.begin, b.begin))
			}
			return cmp.Or(b.ends.Compare(a.ends), cmp.Compare(b.begin, a.begin)) // what ended longest ago goes first
		})
	}
}
