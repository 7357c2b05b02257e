package fairqueue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// on returns the request of an object on a Cloud.
func on(cloud, namespace string, n int) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("%s.%d", cloud, n)}}
}

func several(cloud, namespace string, n int) []reconcile.Request {
	var requests []reconcile.Request
	for i := range n {
		requests = append(requests, on(cloud, namespace, i))
	}
	return requests
}

func newQueue(t testing.TB, workers int) *Queue {
	t.Helper()
	q := New(priorityqueue.New[reconcile.Request]("test"), "test", workers, func(r reconcile.Request) Group {
		cloud, _, _ := strings.Cut(r.Name, ".")
		return Group{Cloud: cloud, Namespace: r.Namespace}
	})
	t.Cleanup(q.ShutDown)
	return q
}

func (q *Queue) add(priority int, requests ...reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, requests...)
}

// take returns the next n requests.
func take(q *Queue, n int) []reconcile.Request {
	var taken []reconcile.Request
	for range n {
		request, _ := q.Get()
		taken = append(taken, request)
	}
	return taken
}

// want fails unless the next requests are these, in this order.
func want(t *testing.T, q *Queue, requests ...reconcile.Request) {
	t.Helper()
	if got := take(q, len(requests)); !slices.Equal(got, requests) {
		t.Fatalf("next requests %v, want %v", got, requests)
	}
}

func TestQueueHandsOutRequestsOfOtherNamespaceBesideMany(t *testing.T) {
	q := newQueue(t, 4)
	q.add(0, several("c", "busy", 1000)...)
	want(t, q, several("c", "busy", 4)...)
	q.add(0, several("c", "other", 2)...)
	want(t, q, several("c", "other", 2)...)
}

func TestQueueHandsOutRequestsOfOtherCloudBesideStuckOnes(t *testing.T) {
	q := newQueue(t, 4)
	for stuck := range 15 {
		cloud := fmt.Sprintf("stuck-%d", stuck)
		for namespace := range 3 {
			q.add(100, several(cloud, fmt.Sprintf("ns-%d", namespace), 100)...)
		}
	}
	q.add(-100, on("fast", "ns-0", 0))
	for got := (reconcile.Request{}); got != on("fast", "ns-0", 0); {
		got, _ = q.Get() // the stuck ones are never done
	}
}

func TestQueueServesNamespacesInTurn(t *testing.T) {
	q := newQueue(t, 2)
	q.add(0, several("c", "a", 6)...)
	running := take(q, 2)
	q.add(0, several("c", "b", 6)...)
	running = append(running, take(q, 1)...) // a Cloud has half as many more
	q.add(0, several("c", "c", 6)...)
	q.add(100, on("d", "a", 0)) // behind the others, once they wait
	want(t, q, on("d", "a", 0))
	counts := map[string]int{}
	for range 15 {
		q.Done(running[0])
		running = append(running[1:], take(q, 1)...)
		counts[running[len(running)-1].Namespace]++
	}
	if counts["a"] > 5 || counts["b"] > 6 || counts["c"] > 6 || counts["a"]+counts["b"]+counts["c"] != 15 {
		t.Errorf("15 turns: %v, want each namespace about as often", counts)
	}
}

func TestQueueServesHighestPriorityOfNamespaceFirst(t *testing.T) {
	q := newQueue(t, 1)
	q.add(0, on("c", "ns", 0))
	want(t, q, on("c", "ns", 0))
	q.add(-100, on("c", "ns", 1), on("c", "ns", 2))
	q.add(0, on("c", "ns", 3))
	q.add(100, on("c", "ns", 4))
	q.add(0, on("c", "ns", 5))
	q.add(0, on("d", "ns", 0))
	want(t, q, on("d", "ns", 0))
	q.add(50, on("c", "ns", 2)) // waits already, and is urgent now
	q.add(0, on("e", "ns", 0))
	want(t, q, on("e", "ns", 0))
	last := on("c", "ns", 0)
	for _, n := range []int{4, 2, 3, 5, 1} {
		q.Done(last)
		want(t, q, on("c", "ns", n))
		last = on("c", "ns", n)
	}
}

func TestQueueHandsOutNoRequestTwiceAtATime(t *testing.T) {
	q := newQueue(t, 1)
	first, second := on("c", "ns", 0), on("c", "ns", 1)
	q.add(0, first, second)
	want(t, q, first)
	q.add(0, first)  // changes while it is worked on
	q.add(0, second) // changes while it waits
	q.add(0, on("d", "ns", 0))
	want(t, q, on("d", "ns", 0))
	q.Done(first)
	want(t, q, second)
	q.Done(second)
	want(t, q, first)
	q.Done(first)
	q.Done(on("d", "ns", 0))
	if q.Len() != 0 || len(q.places)+len(q.waiting)+len(q.clouds) != 0 {
		t.Errorf("%d requests, %d places, %d waiting, %d Clouds are left, want none", q.Len(), len(q.places), len(q.waiting), len(q.clouds))
	}
}

func TestQueueServesAllOfOneNamespaceAlone(t *testing.T) {
	q := newQueue(t, 16)
	all := several("c", "ns", 10_000)
	q.add(0, all...)
	for i, request := range all {
		want(t, q, request)
		if i >= 8 {
			q.Done(all[i-8])
		}
	}
}

// Keys of objects whose Cloud changes keep the share that they had.
func TestQueueFreesShareOfCloudThatObjectHad(t *testing.T) {
	cloud := "before"
	q := New(priorityqueue.New[reconcile.Request]("test"), "test", 1, func(reconcile.Request) Group { return Group{Cloud: cloud} })
	t.Cleanup(q.ShutDown)
	q.add(0, on("x", "ns", 0))
	want(t, q, on("x", "ns", 0))
	cloud = "after"
	q.Done(on("x", "ns", 0))
	if len(q.clouds) != 0 {
		t.Errorf("%d Clouds have workers, want none", len(q.clouds))
	}
}

// A request that waits for a Cloud which does not answer, and whose object uses another
// one by now, does not wait for the first.
func TestQueueMovesRequestToCloudThatObjectUses(t *testing.T) {
	clouds := map[reconcile.Request]string{}
	q := New(priorityqueue.New[reconcile.Request]("test"), "test", 1, func(r reconcile.Request) Group {
		return Group{Cloud: clouds[r], Namespace: r.Namespace}
	})
	t.Cleanup(q.ShutDown)
	stuck, moved, last := on("x", "ns", 0), on("x", "ns", 1), on("x", "ns", 2)
	clouds[stuck], clouds[moved], clouds[last] = "stuck", "stuck", "other"
	q.add(100, stuck)
	want(t, q, stuck)
	q.add(50, moved)
	q.add(0, last)
	want(t, q, last)
	q.Done(last)
	clouds[moved] = "fast"
	q.add(0, moved)
	q.add(-100, last)
	want(t, q, moved)
	q.Done(moved)
	q.Done(stuck)
	want(t, q, last)
	q.Done(last)
	if len(q.places)+len(q.waiting)+len(q.clouds) != 0 {
		t.Errorf("%d places, %d waiting, %d Clouds are left, want none", len(q.places), len(q.waiting), len(q.clouds))
	}
}

// TestQueueWithPlacesServesNamespacesInTurn has a goroutine more than places take requests, as the controller does: it puts
// those that have to wait into the lines of their namespaces.
func TestQueueWithPlacesServesNamespacesInTurn(t *testing.T) {
	q := NewWithPlaces(priorityqueue.New[reconcile.Request]("test"), "test", 1, func(r reconcile.Request) Group { return Group{Namespace: r.Namespace} })
	defer q.ShutDown()
	q.add(0, several("c", "a", 3)...)
	q.add(0, on("c", "b", 0))
	running := take(q, 1)[0]
	next := make(chan reconcile.Request)
	go func() {
		for range 3 {
			request, _ := q.Get()
			next <- request
		}
	}()
	waiting := func() int {
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.waiting)
	}
	for waiting() < 3 {
		select {
		case request := <-next:
			t.Fatalf("%v was handed out beside %v, want one at a time", request, running)
		case <-time.After(time.Millisecond):
		}
	}
	var namespaces []string
	for range 3 {
		q.Done(running)
		running = <-next
		namespaces = append(namespaces, running.Namespace)
	}
	q.Done(running)
	if namespaces[0] != "b" {
		t.Errorf("namespaces %v were served after a request of a, want that of b next", namespaces)
	}
}
