package vm

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// creates remembers, for each VM without a recorded server, when a create was
// last sent whose outcome is not known, and the server of a create whose answer
// came but is not on record yet. Of what an earlier process did it knows nothing.
type creates struct {
	mu   sync.Mutex
	sent map[types.UID]time.Time
	made map[types.UID]string
	// clear holds the VMs of which every create was sent by this process and
	// clearly refused.
	clear map[types.UID]bool
	// doomed is when a deletion was first seen here.
	doomed map[types.UID]time.Time
}

func newCreates() *creates {
	return &creates{sent: map[types.UID]time.Time{}, made: map[types.UID]string{}, doomed: map[types.UID]time.Time{}, clear: map[types.UID]bool{}}
}

func (c *creates) mark(uid types.UID, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent[uid] = at
	delete(c.clear, uid)
}

// refused: of this create nothing came, nor of an earlier one, if first.
func (c *creates) refused(uid types.UID, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if first {
		c.clear[uid] = true
	}
}

// answered: until the server is on record, a listing may still lag behind it.
func (c *creates) answered(uid types.UID, id string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent[uid], c.made[uid] = at, id
	delete(c.clear, uid)
}

func (c *creates) madeFor(uid types.UID) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, ok := c.made[uid]
	return id, ok
}

func (c *creates) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sent, uid)
	delete(c.made, uid)
	delete(c.doomed, uid)
	delete(c.clear, uid)
}

// doomedSince is when the VM's deletion was first seen in this process: now at
// the earliest call.
func (c *creates) doomedSince(uid types.UID, now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.doomed[uid]; !known {
		c.doomed[uid] = now
	}
	return c.doomed[uid]
}

// uncertainSince is that time, or when this process began if there was none; the
// zero time where nothing is uncertain.
func (c *creates) uncertainSince(uid types.UID, began time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, sent := c.sent[uid]
	switch {
	case c.clear[uid]:
		return time.Time{}
	case sent && at.After(began):
		return at
	}
	return began
}

// maxRefusals bounds the refusals remembered; the oldest go first.
const maxRefusals = 10_000

// refusals remembers which names the cloud refused, so that a pass woken by
// something else does not ask again. An edit of the name or of the
// reconcile-requested-at annotation asks anew.
type refusals struct{ seen *cache.LRUExpireCache }

func newRefusals(clock func() time.Time) refusals {
	return refusals{seen: cache.NewLRUExpireCacheWithClock(maxRefusals, clockFunc(clock))}
}

type refusalKey struct {
	uid                      types.UID
	cloud, name, requestedAt string
}

func keyOf(vm *v1alpha1.VM, on string) refusalKey {
	return refusalKey{vm.UID, on, vm.Spec.VMName, vm.Annotations[v1alpha1.ReconcileRequestedAtAnnotation]}
}

func (r refusals) record(vm *v1alpha1.VM, on string, refusal error) {
	keep := recheckRefused
	if cloud.Is(refusal, cloud.Taken) {
		keep = recheckTaken
	}
	r.seen.Add(keyOf(vm, on), refusal, keep)
}

// recall returns the refusal of a Cloud that still stands, nil if there is none.
func (r refusals) recall(vm *v1alpha1.VM, on string) error {
	if refusal, ok := r.seen.Get(keyOf(vm, on)); ok {
		return refusal.(error)
	}
	return nil
}

type clockFunc func() time.Time

func (c clockFunc) Now() time.Time { return c() }
