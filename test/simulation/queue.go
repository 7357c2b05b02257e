package simulation

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue is the work queue of one controller. A request is in it once, is not handed out while a
// worker has it, and the scheduler decides which one is handed out next.
type queue struct {
	controller string
	limiter    workqueue.TypedRateLimiter[reconcile.Request]

	mu       sync.Mutex
	waiting  map[reconcile.Request]*waiting
	running  map[reconcile.Request]bool
	idle     []chan handed
	shutdown bool
}

// handed is a request that a worker gets.
type handed struct {
	request  reconcile.Request
	priority int
}

// waiting is a request in the queue.
type waiting struct {
	priority int
	ready    time.Time
}

var _ priorityqueue.PriorityQueue[reconcile.Request] = (*queue)(nil)

func newQueue(controller string, limiter workqueue.TypedRateLimiter[reconcile.Request]) *queue {
	return &queue{controller: controller, limiter: limiter, waiting: map[reconcile.Request]*waiting{}, running: map[reconcile.Request]bool{}}
}

// ready returns the requests that may be handed out, by priority and name.
func (q *queue) ready() []reconcile.Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.idle) == 0 || q.shutdown {
		return nil
	}
	now := time.Now()
	var all []reconcile.Request
	for r, w := range q.waiting {
		if !w.ready.After(now) && !q.running[r] {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b reconcile.Request) int {
		return cmp.Or(cmp.Compare(q.waiting[b].priority, q.waiting[a].priority), cmp.Compare(a.String(), b.String()))
	})
	return all
}

// hand gives a request to an idle worker.
func (q *queue) hand(r reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	worker := q.idle[0]
	q.idle = q.idle[1:]
	worker <- handed{r, q.waiting[r].priority}
	delete(q.waiting, r)
	q.running[r] = true
}

func (q *queue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range requests {
		after := o.After
		if o.RateLimited {
			limited := q.limiter.When(r)
			if after == 0 || limited < after {
				after = limited
			}
		}
		priority, ready := 0, time.Now().Add(after)
		if o.Priority != nil {
			priority = *o.Priority
		}
		if w := q.waiting[r]; w != nil {
			w.priority = max(w.priority, priority)
			if ready.Before(w.ready) {
				w.ready = ready
			}
			continue
		}
		q.waiting[r] = &waiting{priority: priority, ready: ready}
	}
}

func (q *queue) Add(r reconcile.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, r) }

func (q *queue) AddAfter(r reconcile.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, r)
}

func (q *queue) AddRateLimited(r reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, r)
}

func (q *queue) Forget(r reconcile.Request)          { q.limiter.Forget(r) }
func (q *queue) NumRequeues(r reconcile.Request) int { return q.limiter.NumRequeues(r) }

func (q *queue) GetWithPriority() (r reconcile.Request, priority int, shutdown bool) {
	q.mu.Lock()
	if q.shutdown {
		q.mu.Unlock()
		return r, 0, true
	}
	worker := make(chan handed, 1)
	q.idle = append(q.idle, worker)
	q.mu.Unlock()
	next, open := <-worker
	return next.request, next.priority, !open
}

func (q *queue) Get() (reconcile.Request, bool) {
	r, _, shutdown := q.GetWithPriority()
	return r, shutdown
}

func (q *queue) Done(r reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.running, r)
}

func (q *queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

func (q *queue) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shutdown {
		return
	}
	q.shutdown = true
	for _, worker := range q.idle {
		close(worker)
	}
	q.idle = nil
}

func (q *queue) ShutDownWithDrain() { q.ShutDown() }

func (q *queue) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.shutdown
}
