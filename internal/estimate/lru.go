package estimate

// table keeps the most recently used of a bounded number of entries.
type table[K comparable, V any] struct {
	most    int
	entries map[K]*entry[K, V]
	ends    entry[K, V] // of a ring: next is the most recently used, previous the least
}

type entry[K comparable, V any] struct {
	next, previous *entry[K, V]
	key            K
	value          V
}

func (t *table[K, V]) init(most int) {
	t.most = most
	t.entries = make(map[K]*entry[K, V])
	t.ends.next, t.ends.previous = &t.ends, &t.ends
}

// get returns the entry of the key, now the most recently used, or nil.
func (t *table[K, V]) get(key K) *V {
	e := t.entries[key]
	if e == nil {
		return nil
	}
	e.unlink()
	t.link(e)
	return &e.value
}

// add makes an entry for a key that has none; the least recently used makes
// room for it, and its memory is used again. The value is not cleared then.
func (t *table[K, V]) add(key K) *V {
	var e *entry[K, V]
	if len(t.entries) >= t.most {
		e = t.ends.previous
		e.unlink()
		delete(t.entries, e.key)
	} else {
		e = new(entry[K, V])
	}
	e.key = key
	t.entries[key] = e
	t.link(e)
	return &e.value
}

func (t *table[K, V]) link(e *entry[K, V]) {
	e.previous, e.next = &t.ends, t.ends.next
	e.next.previous, e.previous.next = e, e
}

func (e *entry[K, V]) unlink() {
	e.previous.next, e.next.previous = e.next, e.previous
}

// keys returns the keys, the least recently used first.
func (t *table[K, V]) keys() []K {
	keys := make([]K, 0, len(t.entries))
	for e := t.ends.previous; e != &t.ends; e = e.previous {
		keys = append(keys, e.key)
	}
	return keys
}

// take puts the entries of another table, which is not used any more, in the
// place of its own.
func (t *table[K, V]) take(from *table[K, V]) {
	first, last := from.ends.next, from.ends.previous
	if len(from.entries) == 0 {
		first, last = &t.ends, &t.ends
	}
	t.entries = from.entries
	t.ends.next, t.ends.previous = first, last
	first.previous, last.next = &t.ends, &t.ends
}
