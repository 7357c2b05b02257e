package fairqueue

import (
	"cmp"
	"slices"
	"sync"
)

// Queues has the queues of a manager, for diagnostics. The zero value is ready for use, and
// a nil one holds none.
type Queues struct {
	mu  sync.Mutex
	all []*Queue
}

// Add adds a queue.
func (q *Queues) Add(queue *Queue) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = append(q.all, queue)
}

// Load returns the load of a Cloud in each queue, in the order in which they were added.
func (q *Queues) Load(cloud string) []Load {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	all := slices.Clone(q.all)
	q.mu.Unlock()
	loads := make([]Load, 0, len(all))
	for _, queue := range all {
		loads = append(loads, queue.load(cloud))
	}
	return loads
}

// Load is what a Cloud has of the workers of a controller.
type Load struct {
	Controller string
	// PerNamespace is how many workers one namespace may have on the Cloud, and PerCloud
	// how many the Cloud may have.
	PerNamespace, PerCloud int
	// Running is how many objects are reconciled now, and Waiting how many wait for a worker.
	Running, Waiting int
	// Namespaces are those of these objects, sorted by name.
	Namespaces []NamespaceLoad
}

// NamespaceLoad is the part of a Load of one namespace.
type NamespaceLoad struct {
	Namespace        string
	Running, Waiting int
}

func (q *Queue) load(cloud string) Load {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := Load{Controller: q.controller, PerNamespace: q.limits.namespace, PerCloud: q.limits.cloud}
	s := q.clouds[cloud]
	if s == nil {
		return l
	}
	l.Running, l.Waiting = s.running, s.waiting
	for _, line := range s.lines {
		l.Namespaces = append(l.Namespaces, NamespaceLoad{Namespace: line.namespace, Running: line.running, Waiting: len(line.waiting)})
	}
	slices.SortFunc(l.Namespaces, func(a, b NamespaceLoad) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return l
}
