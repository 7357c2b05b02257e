package fairqueue

import (
	"container/heap"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// waiter is a request that waits for a worker.
type waiter struct {
	request  reconcile.Request
	priority int
	// order is the lower, the longer the request has waited.
	order uint64
	since time.Time
	share *share
	line  *line
	// index is the position in line.waiting.
	index int
}

// line holds the requests of one namespace that wait for a worker of one Cloud.
type line struct {
	namespace string
	running   int
	// servedAt orders lines by when one of their requests last got a worker.
	servedAt uint64
	waiting  inOrder[*waiter]
	// index is the position in share.ahead, if requests wait.
	index int
}

func (l *line) push(w *waiter) { heap.Push(&l.waiting, w) }

func (l *line) pop() *waiter { return heap.Pop(&l.waiting).(*waiter) }

func (l *line) remove(w *waiter) { heap.Remove(&l.waiting, w.index) }

// raise gives a request a priority that is higher than its own.
func (l *line) raise(w *waiter, priority int) {
	if priority > w.priority {
		w.priority = priority
		heap.Fix(&l.waiting, w.index)
	}
}

// before reports whether l is served before other.
func (l *line) before(other *line) bool {
	if l.running != other.running {
		return l.running < other.running
	}
	return l.servedAt < other.servedAt
}

// before reports whether w is served before other: the one with the higher priority, or
// else the one that has waited longer.
func (w *waiter) before(other *waiter) bool {
	if w.priority != other.priority {
		return w.priority > other.priority
	}
	return w.order < other.order
}

func (w *waiter) moved(to int) { w.index = to }

func (l *line) moved(to int) { l.index = to }

// element is an element of a heap, which records its position there.
type element[T any] interface {
	before(other T) bool
	moved(to int)
}

// inOrder is a heap: the element that is before all others comes first.
type inOrder[T element[T]] []T

func (h inOrder[T]) Len() int { return len(h) }

func (h inOrder[T]) Less(i, j int) bool { return h[i].before(h[j]) }

func (h inOrder[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].moved(i)
	h[j].moved(j)
}

func (h *inOrder[T]) Push(x any) {
	e := x.(T)
	e.moved(len(*h))
	*h = append(*h, e)
}

func (h *inOrder[T]) Pop() any {
	var none T
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = none
	*h = (*h)[:last]
	return e
}
