package vm

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
)

// maxRefusals bounds the refusals remembered; the oldest go first.
const maxRefusals = 10_000

// refusals holds the names and tags that the cloud refused, so that a reconcile with
// another cause does not send them again. An edit of the name, for tags any edit, or one of
// the reconcile-requested-at annotation sends them again.
type refusals struct{ cache *cache.LRUExpireCache }

func newRefusals(clock func() time.Time) refusals {
	return refusals{cache: cache.NewLRUExpireCacheWithClock(maxRefusals, clockFunc(clock))}
}

type refusalKey struct {
	uid         types.UID
	cloud       string
	name        cloud.Name
	requestedAt string
}

// nameOf returns the name of the server that a VM asks for.
func nameOf(vm *pcapi.VM) cloud.Name { return cloud.Name{Name: vm.Spec.VMName, Folder: vm.Spec.Folder} }

func keyOf(vm *pcapi.VM, on string) refusalKey {
	return refusalKey{vm.UID, on, nameOf(vm), vm.Annotations[pcapi.ReconcileRequestedAtAnnotation]}
}

func (r refusals) record(vm *pcapi.VM, on string, refusal error) {
	r.cache.Add(keyOf(vm, on), refusal, recheckName(refusal))
}

// recheckName returns after how long a name that the cloud refused is checked again. Only the
// cloud's own code proves that the name is prohibited: others answer 403, too.
func recheckName(refusal error) time.Duration {
	if cloud.Is(refusal, cloud.Prohibited) && cloud.CodeOf(refusal) != "" {
		return external.RecheckRefused
	}
	return external.RecheckSoon
}

// recall returns the refusal of a Cloud that still stands, nil if there is none.
func (r refusals) recall(vm *pcapi.VM, on string) error {
	if refusal, ok := r.cache.Get(keyOf(vm, on)); ok {
		return refusal.(error)
	}
	return nil
}

type tagsKey struct {
	uid         types.UID
	generation  int64
	requestedAt string
}

func tagsKeyOf(vm *pcapi.VM) tagsKey {
	return tagsKey{vm.UID, vm.Generation, vm.Annotations[pcapi.ReconcileRequestedAtAnnotation]}
}

// recordTags records the outcome for tags that were refused.
func (r refusals) recordTags(vm *pcapi.VM, outcome error, keep time.Duration) {
	r.cache.Add(tagsKeyOf(vm), outcome, keep)
}

// recallTags returns the outcome that still stands, nil if the tags can be sent.
func (r refusals) recallTags(vm *pcapi.VM) error {
	if outcome, ok := r.cache.Get(tagsKeyOf(vm)); ok {
		return outcome.(error)
	}
	return nil
}

type clockFunc func() time.Time

func (c clockFunc) Now() time.Time { return c() }
