package probe

import (
	"container/heap"
	"time"
)

// heapOf is a heap whose elements know their place in it.
type heapOf[T any] struct {
	items []T
	less  func(a, b T) bool
	// place returns where an element stores its index.
	place func(T) *int
}

// none is the index of what is in no heap.
const none = -1

// Len implements heap.Interface.
func (h *heapOf[T]) Len() int { return len(h.items) }

// Less implements heap.Interface.
func (h *heapOf[T]) Less(i, j int) bool { return h.less(h.items[i], h.items[j]) }

// Swap implements heap.Interface.
func (h *heapOf[T]) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	*h.place(h.items[i]), *h.place(h.items[j]) = i, j
}

// Push implements heap.Interface.
func (h *heapOf[T]) Push(x any) {
	item := x.(T)
	*h.place(item) = len(h.items)
	h.items = append(h.items, item)
}

// Pop implements heap.Interface.
func (h *heapOf[T]) Pop() any {
	last := len(h.items) - 1
	item := h.items[last]
	var empty T
	h.items[last] = empty
	h.items = h.items[:last]
	*h.place(item) = none
	return item
}

func (h *heapOf[T]) add(item T)    { heap.Push(h, item) }
func (h *heapOf[T]) remove(item T) { heap.Remove(h, *h.place(item)) }
func (h *heapOf[T]) first() T      { return h.items[0] }

func byDue() *heapOf[*entry] {
	return &heapOf[*entry]{less: func(a, b *entry) bool { return a.due.Before(b.due) }, place: func(e *entry) *int { return &e.index }}
}

func lanesBy(less func(a, b *lane) bool) *heapOf[*lane] {
	return &heapOf[*lane]{less: less, place: func(l *lane) *int { return &l.index }}
}

// due returns when the next entry of a lane is due. The lane has one.
func (l *lane) due() time.Time { return l.waiting.first().due }
