// Package fairqueue shares the workers of a controller between Clouds, and those of a
// Cloud between namespaces, so that a Cloud that is slow, or a namespace with many
// requests, delays no other.
//
//	queue.go    the queue: which request is reconciled next
//	line.go     the requests of a namespace that wait
//	limits.go   how many workers a Cloud and a namespace may have
//	metrics.go  metrics
//	load.go     what waits, for diagnostics
package fairqueue

import (
	"container/heap"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Group is what a request shares workers with.
type Group struct {
	// Cloud is the Cloud that the object uses, empty if that is not known.
	Cloud     string
	Namespace string
}

// Queue is a priority queue that hands out a request only when its Cloud and its
// namespace may have another worker. Requests that may not wait outside of the queue that
// it embeds. When a worker of their Cloud is done, the namespace that has the fewest
// workers there is next, with its request of the highest priority that waits longest.
type Queue struct {
	priorityqueue.PriorityQueue[reconcile.Request]

	controller string
	limits     limits
	groupOf    func(reconcile.Request) Group
	metrics    *series

	mu     sync.Mutex
	clouds map[string]*share
	// places holds the requests that have a worker, or that get the next one.
	places map[reconcile.Request]*place
	// waiting holds the requests that wait, of all lines.
	waiting map[reconcile.Request]*waiter
	// order counts the requests that began to wait, and turns those that got a worker.
	order, turns uint64
}

// share is what a Cloud has of the workers.
type share struct {
	cloud   string
	running int
	lines   map[string]*line
	// ahead is a heap of the lines in which requests wait.
	ahead inOrder[*line]
	// waiting is how many requests wait in all lines.
	waiting int
}

// place is the right of a request to a worker.
type place struct {
	share *share
	line  *line
	// granted is whether the request waited, and has not been handed out since.
	granted bool
}

// New returns a queue that takes the requests out of another. workers is how many
// requests of one namespace are handed out at a time for one Cloud; Workers(workers) is
// how many goroutines the controller needs. groupOf is called for each request, from any
// goroutine.
func New(inner priorityqueue.PriorityQueue[reconcile.Request], controller string, workers int, groupOf func(reconcile.Request) Group) *Queue {
	return &Queue{
		PriorityQueue: inner, controller: controller, limits: limitsOf(workers), groupOf: groupOf, metrics: metricsOf(controller),
		clouds: map[string]*share{}, places: map[reconcile.Request]*place{}, waiting: map[reconcile.Request]*waiter{},
	}
}

// NewWithPlaces returns a queue that hands out at most so many requests of one Cloud at a time, whatever their number of
// namespaces, and leaves one place to other namespaces if there are several. The controller needs a goroutine more than
// places, which has the requests wait in the line of their namespace.
func NewWithPlaces(inner priorityqueue.PriorityQueue[reconcile.Request], controller string, places int, groupOf func(reconcile.Request) Group) *Queue {
	q := New(inner, controller, places, groupOf)
	q.limits = limits{namespace: max(1, places-1), cloud: places, all: Workers(places)}
	return q
}

// GetWithPriority returns the next request that may have a worker. It blocks until there
// is one.
func (q *Queue) GetWithPriority() (request reconcile.Request, priority int, shutdown bool) {
	for {
		request, priority, shutdown = q.PriorityQueue.GetWithPriority()
		if shutdown || q.admit(request, priority) {
			return request, priority, shutdown
		}
		q.PriorityQueue.Done(request)
	}
}

// Get is GetWithPriority without the priority.
func (q *Queue) Get() (request reconcile.Request, shutdown bool) {
	request, _, shutdown = q.GetWithPriority()
	return request, shutdown
}

// Done ends the work on a request. Its worker is free for a request that waits.
func (q *Queue) Done(request reconcile.Request) {
	next := q.leave(request)
	q.PriorityQueue.Done(request)
	for _, w := range next {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &w.priority}, w.request)
	}
}

// admit reports whether a request gets a worker now. If not, it waits.
func (q *Queue) admit(request reconcile.Request, priority int) bool {
	group := q.groupOf(request)
	q.mu.Lock()
	defer q.mu.Unlock()
	if p, ok := q.places[request]; ok {
		p.granted = false
		return true
	}
	w, waits := q.waiting[request]
	if waits && w.share.cloud == group.Cloud {
		w.line.raise(w, priority)
		return false
	}
	if waits { // its object uses another Cloud by now
		q.withdraw(w)
		w.priority = max(w.priority, priority)
	} else {
		q.order++
		w = &waiter{request: request, priority: priority, order: q.order, since: time.Now()}
	}
	w.share = q.share(group.Cloud)
	w.line = w.share.line(group.Namespace)
	if q.limits.allow(w.share, w.line, len(q.places)) {
		q.occupy(request, w.share, w.line, false)
		return true
	}
	q.wait(w)
	return false
}

// wait adds a request to its line.
func (q *Queue) wait(w *waiter) {
	q.waiting[w.request] = w
	w.line.push(w)
	if len(w.line.waiting) == 1 {
		heap.Push(&w.share.ahead, w.line)
	}
	w.share.waiting++
	q.metrics.waiting(w.share.cloud, w.share.waiting)
}

// withdraw removes a request from its line.
func (q *Queue) withdraw(w *waiter) {
	delete(q.waiting, w.request)
	w.line.remove(w)
	w.share.leaveIfEmpty(w.line)
	w.share.waiting--
	q.metrics.waiting(w.share.cloud, w.share.waiting)
	q.forgetIdle(w.share, w.line)
}

func (q *Queue) occupy(request reconcile.Request, s *share, l *line, granted bool) {
	q.turns++
	s.running++
	l.running++
	l.servedAt = q.turns
	s.reorder(l)
	q.places[request] = &place{share: s, line: l, granted: granted}
}

// leave frees the worker of a request, and returns the requests that are next.
func (q *Queue) leave(request reconcile.Request) []*waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	p, ok := q.places[request]
	if !ok {
		return nil
	}
	delete(q.places, request)
	p.share.running--
	p.line.running--
	p.share.reorder(p.line)
	var next []*waiter
	for _, s := range q.clouds {
		if s.waiting == 0 {
			continue
		}
		for w := q.next(s); w != nil; w = q.next(s) {
			next = append(next, w)
		}
	}
	q.forgetIdle(p.share, p.line)
	return next
}

// next takes the request of a Cloud that gets a worker now; nil if there is none.
func (q *Queue) next(s *share) *waiter {
	if len(s.ahead) == 0 {
		return nil
	}
	first := s.ahead[0] // no other has fewer workers
	if !q.limits.allow(s, first, len(q.places)) {
		return nil
	}
	w := first.pop()
	delete(q.waiting, w.request)
	s.waiting--
	s.leaveIfEmpty(first)
	q.occupy(w.request, s, first, true)
	q.metrics.served(s.cloud, s.waiting, w)
	return w
}

func (q *Queue) share(cloud string) *share {
	s := q.clouds[cloud]
	if s == nil {
		s = &share{cloud: cloud, lines: map[string]*line{}}
		q.clouds[cloud] = s
	}
	return s
}

func (s *share) line(namespace string) *line {
	l := s.lines[namespace]
	if l == nil {
		l = &line{namespace: namespace}
		s.lines[namespace] = l
	}
	return l
}

// reorder moves a line in the heap after it got or lost a worker.
func (s *share) reorder(l *line) {
	if len(l.waiting) > 0 {
		heap.Fix(&s.ahead, l.index)
	}
}

// leaveIfEmpty drops a line from the heap in which no request waits any more.
func (s *share) leaveIfEmpty(l *line) {
	if len(l.waiting) == 0 {
		heap.Remove(&s.ahead, l.index)
	}
}

// forgetIdle drops what has neither workers nor requests.
func (q *Queue) forgetIdle(s *share, l *line) {
	if l.running == 0 && len(l.waiting) == 0 {
		delete(s.lines, l.namespace)
	}
	if len(s.lines) == 0 {
		delete(q.clouds, s.cloud)
		q.metrics.forget(s.cloud)
	}
}
