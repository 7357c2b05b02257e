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
type refusals struct {
	cache *cache.LRUExpireCache
	// freed has when a VM that had a name was deleted, by nameKey.
	freed *cache.LRUExpireCache
	clock func() time.Time
}

func newRefusals(clock func() time.Time) refusals {
	return refusals{
		cache: cache.NewLRUExpireCacheWithClock(maxRefusals, clockFunc(clock)),
		freed: cache.NewLRUExpireCacheWithClock(maxRefusals, clockFunc(clock)), clock: clock,
	}
}

// refusal is the cloud's answer to a name that it was asked for at a time.
type refusal struct {
	cause error
	asked time.Time
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

func (r refusals) record(vm *pcapi.VM, on string, asked time.Time, cause error) {
	r.cache.Add(keyOf(vm, on), refusal{cause, asked}, recheckName(cause))
}

// free records that a VM does not have its name on Clouds any more. Refusals of checks before that do not stand.
func (r refusals) free(vm *pcapi.VM, clouds []string) {
	for _, on := range clouds {
		r.freed.Add(nameKey(vm, on), r.clock(), external.RecheckRefused)
	}
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
	entry, ok := r.cache.Get(keyOf(vm, on))
	if !ok {
		return nil
	}
	last := entry.(refusal)
	if freed, ok := r.freed.Get(nameKey(vm, on)); ok && !freed.(time.Time).Before(last.asked) {
		return nil
	}
	return last.cause
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
