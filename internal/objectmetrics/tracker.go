package objectmetrics

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// tracker counts objects. Each event costs the same, however many there are.
type tracker struct {
	mu      sync.Mutex
	counts  map[labels]*count
	objects map[types.UID]entry
	// deletions holds when the deletion of each object was requested that still exists.
	deletions map[types.UID]time.Time
}

// count is how many objects have the same labels.
type count struct {
	labels
	n int
}

// entry is what is kept of one object.
type entry struct {
	*count
	// unready is whether the object has never been Ready.
	unready bool
}

func newTracker() *tracker {
	return &tracker{counts: map[labels]*count{}, objects: map[types.UID]entry{}, deletions: map[types.UID]time.Time{}}
}

// put records the current state of an object, and reports whether it has become Ready
// for the first time. initial is whether the object existed when the tracker started.
func (t *tracker) put(s state, initial bool) (firstReady bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok := t.objects[s.uid]
	if !ok {
		known.unready = !initial || s.fresh
	}
	firstReady = known.unready && s.ready
	if known.count == nil || known.labels != s.labels {
		t.leave(known.count)
		known.count = t.enter(s.labels)
	}
	known.unready = known.unready && !s.ready
	t.objects[s.uid] = known
	if !s.deleted.IsZero() {
		t.deletions[s.uid] = s.deleted
	}
	return firstReady
}

// remove forgets an object that does not exist any more.
func (t *tracker) remove(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(t.objects[uid].count)
	delete(t.objects, uid)
	delete(t.deletions, uid)
}

func (t *tracker) enter(l labels) *count {
	c := t.counts[l]
	if c == nil {
		c = &count{labels: l}
		t.counts[l] = c
	}
	c.n++
	return c
}

// leave takes an object out of a count, which may be nil.
func (t *tracker) leave(c *count) {
	if c == nil {
		return
	}
	c.n--
	if c.n == 0 {
		delete(t.counts, c.labels)
	}
}

// deletion sums up the objects that are being deleted.
type deletion struct {
	n      int
	oldest time.Time
}

// guests is which guests are counted together.
type guests struct {
	namespace, cloud, reason string
}

// totals are the sums of the objects of all trackers.
type totals struct {
	objects   map[labels]int
	unready   map[guests]int
	deletions map[owner]deletion
}

func newTotals() totals {
	return totals{map[labels]int{}, map[guests]int{}, map[owner]deletion{}}
}

// sums adds what the tracker counts. The Cloud of an object is found now, because the
// labels of its namespace may decide about it, and only objects for which owned is true
// are counted.
func (t *tracker) sums(resolve func(namespace, cloud string) (name string, owned bool), to totals) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for l, c := range t.counts {
		if cloud, owned := resolve(l.namespace, l.cloud); owned {
			l.cloud = cloud
			if l.guest != "" {
				to.unready[guests{l.namespace, cloud, l.guest}] += c.n
				l.guest = ""
			}
			to.objects[l] += c.n
		}
	}
	for uid, since := range t.deletions {
		of := t.objects[uid].owner
		cloud, owned := resolve(of.namespace, of.cloud)
		if !owned {
			continue
		}
		of.cloud = cloud
		sum := to.deletions[of]
		if sum.n == 0 || since.Before(sum.oldest) {
			sum.oldest = since
		}
		sum.n++
		to.deletions[of] = sum
	}
}
