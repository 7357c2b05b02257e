package vmgroup

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/privatecloud/operator/api/v1alpha1"
)

const (
	// refusedFor is how long a name that is somebody else's is not tried again.
	refusedFor = 10 * time.Minute
	// maxRefused bounds the names remembered.
	maxRefused = 10_000
)

// refused remembers the names that are somebody else's.
type refused struct{ names *cache.LRUExpireCache }

func newRefused(clock func() time.Time) refused {
	return refused{names: cache.NewLRUExpireCacheWithClock(maxRefused, clockFunc(clock))}
}

func (r refused) add(g *v1alpha1.VmGroup, name string) {
	r.names.Add(types.NamespacedName{Namespace: g.Namespace, Name: name}, true, refusedFor)
}

func (r refused) has(g *v1alpha1.VmGroup, name string) bool {
	_, ok := r.names.Get(types.NamespacedName{Namespace: g.Namespace, Name: name})
	return ok
}

type clockFunc func() time.Time

func (c clockFunc) Now() time.Time { return c() }

// failures remembers when members of a group that failed may be replaced again.
type failures struct {
	mu      sync.Mutex
	next    map[types.UID]time.Time
	backoff workqueue.TypedRateLimiter[types.UID]
}

// wait is how long replacing must wait; 0 if it may be done now.
func (f *failures) wait(uid types.UID, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(0, f.next[uid].Sub(now))
}

// replaced notes that members were replaced because they failed.
func (f *failures) replaced(uid types.UID, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next[uid] = now.Add(f.backoff.When(uid))
}

// healed forgets that members failed, if that is long enough ago: one that fails
// a little after it was Ready is not the first again.
func (f *failures) healed(uid types.UID, now time.Time) {
	f.mu.Lock()
	next, known := f.next[uid]
	f.mu.Unlock()
	if known && now.Sub(next) > lastBackoff {
		f.forget(uid)
	}
}

func (f *failures) forget(uid types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.next, uid)
	f.backoff.Forget(uid)
}
