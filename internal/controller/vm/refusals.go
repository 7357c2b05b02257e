package vm

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/external"
)

// maxRefusals bounds the refusals remembered; the oldest go first.
const maxRefusals = 10_000

// refusals holds the names and tags that the cloud refused, so that a reconcile with
// another cause does not send them again. An edit of the name, for tags any edit, or one of
// the reconcile-requested-at annotation sends them again. Of each VM, one name and one set of tags is remembered, by
// a digest of what was sent: a tenant chooses how long that is.
type refusals struct {
	// names and tags have a refusal for each UID.
	names, tags *cache.LRUExpireCache
	// freed has when a VM that had a name was deleted, by the digest of nameKey.
	freed *cache.LRUExpireCache
	clock func() time.Time
}

func newRefusals(clock func() time.Time) refusals {
	bounded := func() *cache.LRUExpireCache {
		return cache.NewLRUExpireCacheWithClock(maxRefusals, controller.ClockFunc(clock))
	}
	return refusals{names: bounded(), tags: bounded(), freed: bounded(), clock: clock}
}

// refusal is the cloud's answer to what it was asked for at a time.
type refusal struct {
	of    digest
	cause error
	asked time.Time
}

type digest [sha256.Size]byte

func digestOf(parts ...string) digest { return sha256.Sum256(fmt.Appendf(nil, "%q", parts)) }

// nameOf returns the name of the server that a VM asks for.
func nameOf(vm *pcapi.VM) cloud.Name { return cloud.Name{Name: vm.Spec.VMName, Folder: vm.Spec.Folder} }

func nameDigest(vm *pcapi.VM, on string) digest {
	name := nameOf(vm)
	return digestOf(on, name.Name, name.Folder, vm.Annotations[pcapi.ReconcileRequestedAtAnnotation])
}

func (r refusals) record(vm *pcapi.VM, on string, asked time.Time, cause error) {
	r.names.Add(vm.UID, refusal{nameDigest(vm, on), cause, asked}, recheckName(cause))
}

// forget drops what is remembered of a VM that is gone.
func (r refusals) forget(uid types.UID) {
	r.names.Remove(uid)
	r.tags.Remove(uid)
}

// free records that a VM does not have its name on Clouds any more. Refusals of checks before that do not stand.
func (r refusals) free(vm *pcapi.VM, clouds []string) {
	for _, on := range clouds {
		r.freed.Add(digestOf(nameKey(vm, on)), r.clock(), controller.RecheckRefused)
	}
}

// recheckName returns after how long a name that the cloud refused is checked again. Only the
// cloud's own code proves that the name is prohibited: others answer 403, too.
func recheckName(refusal error) time.Duration {
	if cloud.Is(refusal, cloud.Prohibited) && cloud.CodeOf(refusal) != "" {
		return controller.RecheckRefused
	}
	return external.RecheckSoon
}

// recall returns the refusal of a Cloud that still stands, nil if there is none.
func (r refusals) recall(vm *pcapi.VM, on string) error {
	last, ok := recallOf(r.names, vm, func() digest { return nameDigest(vm, on) })
	if !ok {
		return nil
	}
	if freed, ok := r.freed.Get(digestOf(nameKey(vm, on))); ok && !freed.(time.Time).Before(last.asked) {
		return nil
	}
	return last.cause
}

// recallOf returns the refusal of a VM if it is of what would be sent now.
func recallOf(of *cache.LRUExpireCache, vm *pcapi.VM, now func() digest) (refusal, bool) {
	entry, ok := of.Get(vm.UID)
	if !ok || entry.(refusal).of != now() {
		return refusal{}, false
	}
	return entry.(refusal), true
}

func tagsDigest(vm *pcapi.VM) digest {
	return digestOf(strconv.FormatInt(vm.Generation, 10), vm.Annotations[pcapi.ReconcileRequestedAtAnnotation])
}

// recordTags records the outcome for tags that were refused.
func (r refusals) recordTags(vm *pcapi.VM, outcome error, keep time.Duration) {
	r.tags.Add(vm.UID, refusal{of: tagsDigest(vm), cause: outcome}, keep)
}

// recallTags returns the outcome that still stands, nil if the tags can be sent.
func (r refusals) recallTags(vm *pcapi.VM) error {
	last, _ := recallOf(r.tags, vm, func() digest { return tagsDigest(vm) })
	return last.cause
}
