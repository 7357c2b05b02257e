package reconciler_test

import (
	"context"
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// claimOfToy is the claim of the kind of these tests: two annotations.
func claimOfToy(client.Object) map[string]string {
	return map[string]string{note: "web", otherNote: "default"}
}

const otherNote = "example.com/other"

// claimChanges returns a change of the claim of an object for every way in which its parts
// can stay, be removed or be changed, by name.
func claimChanges() map[string]func(*pcapi.VM) {
	all := map[string]func(*pcapi.VM){}
	for _, f := range []string{"kept", "removed"} {
		for _, a := range []string{"kept", "removed", "changed"} {
			for _, b := range []string{"kept", "removed", "changed"} {
				all["finalizer "+f+", annotations "+a+" and "+b] = func(vm *pcapi.VM) {
					if f == "removed" {
						unclaimed(vm)
					}
					changeAnnotation(vm, note, a)
					changeAnnotation(vm, otherNote, b)
				}
			}
		}
	}
	return all
}

func changeAnnotation(vm *pcapi.VM, key, how string) {
	switch how {
	case "removed":
		delete(vm.Annotations, key)
	case "changed":
		vm.Annotations[key] = "what somebody wrote"
	}
}

func withClaim(vm *pcapi.VM) {
	vm.Finalizers, vm.Annotations = []string{finalizer}, claimOfToy(vm)
}

func TestChangedByUserAcceptsAnyChangeOfTheClaim(t *testing.T) {
	none := func(client.Object) map[string]string { return nil }
	now := metav1.Now()
	for name, change := range claimChanges() {
		whole := name == "finalizer kept, annotations kept and kept"
		for _, tc := range []struct {
			name    string
			claim   reconciler.ClaimOf
			deleted *metav1.Time
			want    bool
		}{
			{name: "must have it", claim: claimOfToy, want: !whole},
			{name: "needs no claim any more, as after a release by the operator", claim: none},
			{name: "is being deleted", claim: claimOfToy, deleted: &now},
		} {
			t.Run(name+", of an object that "+tc.name, func(t *testing.T) {
				was := example(withClaim)
				is := example(withClaim, change)
				was.DeletionTimestamp, is.DeletionTimestamp = tc.deleted, tc.deleted
				equal(t, "accepted", tc.want, reconciler.ChangedByUser(finalizer, tc.claim).Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}))
			})
		}
	}
}

func TestFinalizerTakenAcceptsRemovedFinalizer(t *testing.T) {
	taken := reconciler.FinalizerTaken(finalizer)
	equal(t, "removed", true, taken.Update(event.UpdateEvent{ObjectOld: example(), ObjectNew: example(unclaimed)}))
	equal(t, "added", false, taken.Update(event.UpdateEvent{ObjectOld: example(unclaimed), ObjectNew: example()}))
	equal(t, "unchanged", false, taken.Update(event.UpdateEvent{ObjectOld: example(), ObjectNew: example()}))
}

func TestReconcileRestoresAnyChangeOfTheClaim(t *testing.T) {
	for name, change := range claimChanges() {
		t.Run(name+": the claim is whole after one reconcile", func(t *testing.T) {
			h := newHarness(t, example(withClaim, change))
			h.reconciler.External, h.reconciler.ClaimOf = true, claimOfToy
			h.kind.observe = func(_ context.Context, vm *pcapi.VM) error {
				equal(t, "observed finalizers", []string{finalizer}, vm.Finalizers)
				return errBroken
			}
			_, _ = h.reconcile()
			equal(t, "finalizers", []string{finalizer}, h.stored().Finalizers)
			restored := claimOfToy(nil)
			if name != "finalizer kept, annotations kept and kept" {
				restored[pcapi.ClaimedUIDAnnotation] = "uid-a"
			}
			equal(t, "annotations", restored, h.stored().Annotations)
		})
	}
}

func TestClaimOfAnotherObjectIsReplaced(t *testing.T) {
	h := newHarness(t, example(withClaim, ofAnother, func(vm *pcapi.VM) {
		vm.Annotations[pcapi.ClaimedCloudAnnotation], vm.Annotations[pcapi.ClaimRenewedAtAnnotation] = "elsewhere", "2026-01-01T00:00:00Z"
	}))
	want := map[string]string{pcapi.ClaimedNameAnnotation: "web", pcapi.ClaimedUIDAnnotation: "uid-a"}
	h.reconciler.External, h.reconciler.ClaimOf = true, func(client.Object) map[string]string { return maps.Clone(want) }
	h.mustReconcile()
	want[note], want[otherNote] = "web", "default" // these belong to no claim
	equal(t, "annotations", want, h.stored().Annotations)
}

func TestOwnClaimThatNamesAnotherObjectIsLeftWhereTheUIDIsNotRequired(t *testing.T) {
	h := newHarness(t, example(withClaim, ofAnother))
	h.reconciler.External, h.reconciler.ClaimOf = true, claimOfToy
	h.mustReconcile()
	equal(t, "UID of the claim", "uid-b", h.stored().Annotations[pcapi.ClaimedUIDAnnotation])
}

func TestClaimIsNotRestored(t *testing.T) {
	for name, vm := range map[string]*pcapi.VM{
		"of an object that is being deleted": example(withClaim, func(vm *pcapi.VM) {
			now := metav1.Now()
			vm.DeletionTimestamp, vm.Finalizers = &now, []string{"example.com/other-finalizer"}
		}),
		"of a paused object": example(func(vm *pcapi.VM) {
			vm.Finalizers, vm.Annotations = nil, map[string]string{pcapi.PausedAnnotation: "true"}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, vm)
			h.reconciler.External, h.reconciler.ClaimOf = true, claimOfToy
			h.mustReconcile()
			equal(t, "finalizers", vm.Finalizers, h.stored().Finalizers)
			equal(t, "annotations", vm.Annotations, h.stored().Annotations)
		})
	}
}
