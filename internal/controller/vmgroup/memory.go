package vmgroup

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/workqueue"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const (
	// refusedFor is the time until a name that was taken is tried again.
	refusedFor = 10 * time.Minute
	// maxRefused bounds the number of names remembered.
	maxRefused = 10_000
)

// refused remembers the names that are taken by other objects or servers.
type refused struct{ names *cache.LRUExpireCache }

func newRefused(clock func() time.Time) refused {
	return refused{names: cache.NewLRUExpireCacheWithClock(maxRefused, clockFunc(clock))}
}

func (r refused) add(g *pcapi.VmGroup, name string) {
	r.names.Add(types.NamespacedName{Namespace: g.Namespace, Name: name}, true, refusedFor)
}

func (r refused) has(g *pcapi.VmGroup, name string) bool {
	_, ok := r.names.Get(types.NamespacedName{Namespace: g.Namespace, Name: name})
	return ok
}

// sizes remembers which groups are large, so that the reconciles that events of members
// cause look at a bounded number of members in a time. The zero value is ready for use.
type sizes struct {
	mu sync.Mutex
	of map[types.UID]int
}

// set records how many members a group has.
func (s *sizes) set(uid types.UID, members int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if members <= membersPerDelay {
		delete(s.of, uid)
		return
	}
	if s.of == nil {
		s.of = map[types.UID]int{}
	}
	s.of[uid] = members
}

// delay returns the time between an event of a member and the reconcile of its group.
func (s *sizes) delay(uid types.UID) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return memberDelay * time.Duration(max(membersPerDelay, s.of[uid])) / membersPerDelay
}

type clockFunc func() time.Time

func (c clockFunc) Now() time.Time { return c() }

// failures remembers when members of a group that failed may be replaced again.
type failures struct {
	mu   sync.Mutex
	next map[types.UID]time.Time
	// errors holds since when the servers of members are in error, by group and member.
	errors  map[types.UID]map[types.UID]time.Time
	backoff workqueue.TypedRateLimiter[types.UID]
}

// wait returns the time until failed members may be replaced; 0 if they may be now.
func (f *failures) wait(uid types.UID, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(0, f.next[uid].Sub(now))
}

// observe returns for how long members of a group whose servers are in error may still
// recover. The time counts from the first observation by this process, and only while their
// Cloud answers.
func (f *failures) observe(group types.UID, obs *observation, now time.Time, grace time.Duration) map[types.UID]time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	since, left := map[types.UID]time.Time{}, map[types.UID]time.Duration{}
	for _, vm := range obs.members {
		if !inError(vm) {
			continue
		}
		first, known := f.errors[group][vm.UID]
		if !known || !obs.reachable {
			first = now
		}
		since[vm.UID], left[vm.UID] = first, max(0, first.Add(grace).Sub(now))
	}
	delete(f.errors, group)
	if len(since) > 0 {
		f.errors[group] = since
	}
	return left
}

// replaced records that members were replaced because they failed.
func (f *failures) replaced(uid types.UID, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next[uid] = now.Add(f.backoff.When(uid))
}

// healed forgets the failures of a group in sync if the last is long enough ago: a
// member that fails soon after it was Ready continues the backoff.
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
	delete(f.errors, uid)
	f.backoff.Forget(uid)
}
