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

// refusals holds the names and the changes of partsAside that the cloud refused, so that a reconcile with
// another cause does not send them again. An edit of the name, for the changes any edit, or one of
// the reconcile-requested-at annotation sends them again. Of each VM, one name and one change of each part is remembered, by
// a digest of what was sent: a tenant chooses how long that is.
type refusals struct {
	// names has a refusal for each UID, and parts one for each partOf.
	names, parts *cache.LRUExpireCache
	// freed has when a VM that had a name was deleted, by the digest of nameKey.
	freed *cache.LRUExpireCache
	clock func() time.Time
}

func newRefusals(clock func() time.Time) refusals {
	bounded := func() *cache.LRUExpireCache {
		return cache.NewLRUExpireCacheWithClock(maxRefusals, controller.ClockFunc(clock))
	}
	return refusals{names: bounded(), parts: bounded(), freed: bounded(), clock: clock}
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
	for _, part := range partsAside {
		r.parts.Remove(partOf{uid, part})
	}
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
	last, ok := recallOf(r.names, vm.UID, func() digest { return nameDigest(vm, on) })
	if !ok {
		return nil
	}
	if freed, ok := r.freed.Get(digestOf(nameKey(vm, on))); ok && !freed.(time.Time).Before(last.asked) {
		return nil
	}
	return last.cause
}

// recallOf returns a refusal if it is of what would be sent now.
func recallOf(of *cache.LRUExpireCache, key any, now func() digest) (refusal, bool) {
	entry, ok := of.Get(key)
	if !ok || entry.(refusal).of != now() {
		return refusal{}, false
	}
	return entry.(refusal), true
}

// partOf is a part of the server of a VM.
type partOf struct {
	uid  types.UID
	part cloud.Part
}

func editDigest(vm *pcapi.VM) digest {
	return digestOf(strconv.FormatInt(vm.Generation, 10), vm.Annotations[pcapi.ReconcileRequestedAtAnnotation])
}

// recordPart records the outcome for changes of a part that were refused.
func (r refusals) recordPart(part cloud.Part, vm *pcapi.VM, outcome error, keep time.Duration) {
	r.parts.Add(partOf{vm.UID, part}, refusal{of: editDigest(vm), cause: outcome}, keep)
}

// recallParts returns the outcomes that still stand, by the parts that are not sent therefore; nil if there are none.
func (r refusals) recallParts(vm *pcapi.VM) map[cloud.Part]error {
	var standing map[cloud.Part]error
	for _, part := range partsAside {
		if last, ok := recallOf(r.parts, partOf{vm.UID, part}, func() digest { return editDigest(vm) }); ok {
			if standing == nil {
				standing = map[cloud.Part]error{}
			}
			standing[part] = last.cause
		}
	}
	return standing
}
