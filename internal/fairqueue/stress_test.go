package fairqueue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// object is an object that changes, and that is worked on, at the same time.
type object struct {
	cloud, changes, seen, working atomic.Int64
}

// check fails unless what the queue remembers fits together.
func (q *Queue) check(t *testing.T) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	running, waiting := 0, 0
	for name, s := range q.clouds {
		ofShare := 0
		for namespace, l := range s.lines {
			ofShare += l.running
			waiting += len(l.waiting)
			if l.running > q.limits.namespace || slices.Contains(s.ahead, l) != (len(l.waiting) > 0) {
				t.Errorf("%s/%s: %d workers, %d waiting, is in the heap: %v", name, namespace, l.running, len(l.waiting), slices.Contains(s.ahead, l))
			}
			if len(l.waiting) > 0 && l.before(s.ahead[0]) {
				t.Errorf("%s/%s is before the first line", name, namespace)
			}
		}
		if ofShare != s.running || s.running > q.limits.cloud {
			t.Errorf("%s: %d workers, of which %d in lines", name, s.running, ofShare)
		}
		running += ofShare
	}
	if running != len(q.places) || waiting != len(q.waiting) || running > q.limits.all {
		t.Errorf("%d of %d workers in lines, %d of %d requests", running, len(q.places), waiting, len(q.waiting))
	}
}

// Objects change, and move between Clouds, while others are worked on.
func TestQueueLosesNoRequestOfObjectsThatChangeAndMove(t *testing.T) {
	const workers, clouds, namespaces, perNamespace, changes = 2, 4, 8, 20, 20_000
	objects := map[reconcile.Request]*object{}
	var requests []reconcile.Request
	for n := range namespaces {
		for i := range perNamespace {
			r := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: fmt.Sprintf("ns-%d", n), Name: fmt.Sprint(i)}}
			objects[r] = &object{}
			requests = append(requests, r)
		}
	}
	q := New(priorityqueue.New[reconcile.Request]("test"), "test", workers, func(r reconcile.Request) Group {
		return Group{Cloud: fmt.Sprint(objects[r].cloud.Load()), Namespace: r.Namespace}
	})
	var all sync.WaitGroup
	for range Workers(workers) {
		all.Go(func() {
			for {
				r, _, shutdown := q.GetWithPriority()
				if shutdown {
					return
				}
				o := objects[r]
				if !o.working.CompareAndSwap(0, 1) {
					t.Errorf("%s has two workers", r)
				}
				o.seen.Store(o.changes.Load())
				if rand.IntN(20) == 0 {
					q.check(t)
				}
				o.working.Store(0)
				q.Done(r)
			}
		})
	}
	for range changes {
		r := requests[rand.IntN(len(requests))]
		if rand.IntN(5) == 0 {
			objects[r].cloud.Store(rand.Int64N(clouds))
		}
		objects[r].changes.Add(1)
		q.add(rand.IntN(3)-1, r)
	}
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	left := func() (lost []reconcile.Request) {
		for r, o := range objects {
			if o.seen.Load() != o.changes.Load() {
				lost = append(lost, r)
			}
		}
		return lost
	}
	for end := time.Now().Add(20 * time.Second); len(left()) > 0 && time.Now().Before(end); <-pause.C {
	}
	if lost := left(); len(lost) > 0 {
		t.Errorf("%d requests are lost: %v", len(lost), lost)
	}
	q.ShutDown()
	all.Wait()
	q.check(t)
	if len(q.waiting)+len(q.places) > 0 {
		t.Errorf("%d requests wait and %d have a worker, want none", len(q.waiting), len(q.places))
	}
}

// A request costs the same however many namespaces wait.
func BenchmarkQueueWithManyNamespaces(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			q := newQueue(b, 16)
			for i := range n {
				q.Add(on("c", fmt.Sprintf("ns-%d", i), 0))
			}
			running := take(q, q.limits.cloud)
			q.add(-100, on("other", "ns", 0))
			take(q, 1) // once the others wait
			for b.Loop() {
				q.Done(running[0])
				q.Add(running[0])
				running = append(running[1:], take(q, 1)...)
			}
		})
	}
}
