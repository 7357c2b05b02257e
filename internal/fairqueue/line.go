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
	waiting  byPriority
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

// byPriority is a heap of requests: the highest priority first, and then those that
// have waited longest.
type byPriority []*waiter

func (b byPriority) Len() int { return len(b) }

func (b byPriority) Less(i, j int) bool {
	if b[i].priority != b[j].priority {
		return b[i].priority > b[j].priority
	}
	return b[i].order < b[j].order
}

func (b byPriority) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].index, b[j].index = i, j
}

func (b *byPriority) Push(x any) {
	w := x.(*waiter)
	w.index = len(*b)
	*b = append(*b, w)
}

func (b *byPriority) Pop() any {
	last := len(*b) - 1
	w := (*b)[last]
	(*b)[last] = nil
	*b = (*b)[:last]
	return w
}

// byService is a heap of lines in which requests wait: the one that is served next first.
type byService []*line

func (b byService) Len() int { return len(b) }

func (b byService) Less(i, j int) bool { return b[i].before(b[j]) }

func (b byService) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].index, b[j].index = i, j
}

func (b *byService) Push(x any) {
	l := x.(*line)
	l.index = len(*b)
	*b = append(*b, l)
}

func (b *byService) Pop() any {
	last := len(*b) - 1
	l := (*b)[last]
	(*b)[last] = nil
	*b = (*b)[:last]
	return l
}
