package vm

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// maxRefusals bounds the refusals remembered; the oldest go first.
const maxRefusals = 10_000

// refusals remembers which names the cloud refused, so that a pass woken by
// something else does not ask again. An edit of the name or of the
// reconcile-requested-at annotation asks anew.
type refusals struct{ obs *cache.LRUExpireCache }

func newRefusals(clock func() time.Time) refusals {
	return refusals{obs: cache.NewLRUExpireCacheWithClock(maxRefusals, clockFunc(clock))}
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
	r.obs.Add(keyOf(vm, on), refusal, keep)
}

// recall returns the refusal of a Cloud that still stands, nil if there is none.
func (r refusals) recall(vm *v1alpha1.VM, on string) error {
	if refusal, ok := r.obs.Get(keyOf(vm, on)); ok {
		return refusal.(error)
	}
	return nil
}

type clockFunc func() time.Time

func (c clockFunc) Now() time.Time { return c() }
