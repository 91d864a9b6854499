package queue

// member is what a heap orders. Its place in the heap is kept in itself, so
// that it can be taken out from the middle; a member is in one heap at a time.
type member[T any] interface {
	comparable
	before(T) bool
	// place is the index in the heap plus 1, or 0 outside of one.
	place() *int
}

// heap is a binary heap, the first in front. The zero value is empty.
type heap[T member[T]] struct {
	items []T
}

func (h *heap[T]) len() int { return len(h.items) }

// first returns the front one; the heap must not be empty.
func (h *heap[T]) first() T { return h.items[0] }

func (h *heap[T]) push(x T) {
	h.items = append(h.items, x)
	*x.place() = len(h.items)
	h.up(len(h.items) - 1)
}

// remove takes out a member that is in this heap.
func (h *heap[T]) remove(x T) {
	i, last := *x.place()-1, len(h.items)-1
	*x.place() = 0
	moved := h.items[last]
	var none T
	h.items[last] = none // what has left must not be kept alive
	h.items = h.items[:last]
	if i != last {
		h.items[i] = moved
		*moved.place() = i + 1
		h.fix(moved)
	}
}

// fix puts a member right whose order has changed.
func (h *heap[T]) fix(x T) {
	if !h.up(*x.place() - 1) {
		h.down(*x.place() - 1)
	}
}

func (h *heap[T]) up(i int) (moved bool) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.items[i].before(h.items[parent]) {
			break
		}
		h.swap(i, parent)
		i, moved = parent, true
	}
	return moved
}

func (h *heap[T]) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			return
		}
		if right := child + 1; right < len(h.items) && h.items[right].before(h.items[child]) {
			child = right
		}
		if !h.items[child].before(h.items[i]) {
			return
		}
		h.swap(i, child)
		i = child
	}
}

func (h *heap[T]) swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	*h.items[i].place(), *h.items[j].place() = i+1, j+1
}
