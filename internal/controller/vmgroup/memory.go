package vmgroup

import (
	"math"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/wait"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/controller"
)

// maxRefused bounds the number of names remembered.
const maxRefused = 10_000

// refused remembers the names that are taken by other objects or servers, until they are tried again.
type refused struct{ names *cache.LRUExpireCache }

func newRefused(clock func() time.Time) refused {
	return refused{names: cache.NewLRUExpireCacheWithClock(maxRefused, controller.ClockFunc(clock))}
}

func (r refused) add(g *pcapi.VmGroup, name string) {
	r.names.Add(types.NamespacedName{Namespace: g.Namespace, Name: name}, true, controller.RecheckRefused)
}

func (r refused) has(g *pcapi.VmGroup, name string) bool {
	_, ok := r.names.Get(types.NamespacedName{Namespace: g.Namespace, Name: name})
	return ok
}

// memory holds what this process remembers of groups between reconciles. A new process begins
// without it: replacements are then delayed anew, and steps begin slowly. The zero value is ready
// for use.
type memory struct {
	mu sync.Mutex
	of map[types.UID]*record
}

// record is what is remembered of one group.
type record struct {
	// members is the number of members of a group with more than membersPerDelay.
	members int
	// errors holds since when the servers of members are in error, by member.
	errors map[types.UID]time.Time
	// replaceable is when members that failed may be replaced again, and backoff the next delay.
	replaceable time.Time
	backoff     wait.Backoff
	// pace and changed are the pace of a step that is to be continued, and how many members it changed.
	pace    pace
	changed map[change]int
}

// get returns what is remembered of a group.
func (m *memory) get(group types.UID) record {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.of[group]; r != nil {
		return *r
	}
	return record{}
}

// with calls do with the record of a group, and drops the record if nothing is left in it. m is locked
// meanwhile: do does not call its methods.
func (m *memory) with(group types.UID, do func(*record)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of[group]
	if r == nil {
		r = &record{}
	}
	do(r)
	if r.members == 0 && len(r.errors) == 0 && r.replaceable.IsZero() && r.pace == (pace{}) && len(r.changed) == 0 {
		delete(m.of, group)
		return
	}
	if m.of == nil {
		m.of = map[types.UID]*record{}
	}
	m.of[group] = r
}

// forget drops what is remembered of a group.
func (m *memory) forget(group types.UID) { m.with(group, func(r *record) { *r = record{} }) }

// setSize records how many members a group has.
func (m *memory) setSize(group types.UID, members int) {
	if members <= membersPerDelay {
		members = 0
	}
	m.with(group, func(r *record) { r.members = members })
}

// memberDelay returns the time between an event of a member and the reconcile of its group, so
// that the reconciles of large groups look at a bounded number of members in a time.
func (m *memory) memberDelay(group types.UID) time.Duration {
	return memberDelay * time.Duration(max(membersPerDelay, m.get(group).members)) / membersPerDelay
}

// untilReplaceable returns the time until failed members may be replaced; 0 if they may be now.
func (m *memory) untilReplaceable(group types.UID, now time.Time) time.Duration {
	return max(0, m.get(group).replaceable.Sub(now))
}

// observeErrors returns for how long members of a group whose servers are in error may still
// recover. The time counts from the first observation by this process, and only while their
// Cloud answers.
func (m *memory) observeErrors(group types.UID, obs *observation, now time.Time, grace time.Duration) map[types.UID]time.Duration {
	since, left := map[types.UID]time.Time{}, map[types.UID]time.Duration{}
	before := m.get(group).errors
	for _, vm := range obs.members {
		if !inError(vm) {
			continue
		}
		first, known := before[vm.UID]
		if !known || !obs.reachable {
			first = now
		}
		since[vm.UID], left[vm.UID] = first, max(0, first.Add(grace).Sub(now))
	}
	m.with(group, func(r *record) { r.errors = since })
	return left
}

// replaced records that members were replaced because they failed.
func (m *memory) replaced(group types.UID, now time.Time) {
	m.with(group, func(r *record) {
		if r.replaceable.IsZero() {
			r.backoff = wait.Backoff{Duration: firstBackoff, Factor: 2, Steps: math.MaxInt, Cap: lastBackoff}
		}
		r.replaceable = now.Add(r.backoff.Step())
	})
}

// inSync records that a group is in sync: a step that was not continued has ended, and failures
// are forgotten if the last is long enough ago. A member that fails soon after it was Ready
// continues the backoff.
func (m *memory) inSync(group types.UID, now time.Time) {
	m.with(group, func(r *record) {
		r.pace, r.changed = pace{}, nil
		if !r.replaceable.IsZero() && now.Sub(r.replaceable) > lastBackoff {
			r.errors, r.replaceable = nil, time.Time{}
		}
	})
}

// takePace returns the pace with which a step begins, and forgets it.
func (m *memory) takePace(group types.UID) (taken pace) {
	m.with(group, func(r *record) { taken, r.pace = r.pace, pace{} })
	taken.limit = max(1, taken.limit)
	return taken
}

// keepPace records the pace of a step that is to be continued.
func (m *memory) keepPace(group types.UID, current pace) {
	m.with(group, func(r *record) { r.pace = current })
}

// count adds n changes of a group's members to those of its step, and returns how many there are.
// They are forgotten if the step has ended.
func (m *memory) count(group types.UID, c change, n int, ended bool) (total int) {
	m.with(group, func(r *record) {
		if total = r.changed[c] + n; ended {
			delete(r.changed, c)
			return
		}
		if r.changed == nil {
			r.changed = map[change]int{}
		}
		r.changed[c] = total
	})
	return total
}
