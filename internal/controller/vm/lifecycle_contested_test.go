package vm

import (
	"testing"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// addOther creates VM b, which a finalizer keeps, and deletes it if that is wanted.
func (h *harness) addOther(deleted bool, change ...func(*pcapi.VM)) {
	h.t.Helper()
	b := other("b", append(change, func(vm *pcapi.VM) { vm.Finalizers = []string{pcapi.VMFinalizer} })...)
	if err := h.client.Create(h.t.Context(), b); err != nil {
		h.t.Fatal(err)
	}
	if deleted {
		h.deleteOther()
	}
}

func (h *harness) deleteOther() {
	h.t.Helper()
	if err := h.client.Delete(h.t.Context(), h.other()); err != nil {
		h.t.Fatal(err)
	}
}

// The answer to the create is lost, and another VM object may have the only server that the create may have made. That
// one is neither deleted nor left without an object.
func TestUnrecordedCreateIsNotReleasedWhileAnotherVMMayHaveItsServer(t *testing.T) {
	tests := []struct {
		name string
		caps cloud.Capabilities
		// deleted: the other VM is being deleted.
		deleted bool
		other   func(*pcapi.VM)
	}{
		{"names, another VM imports the server", uniqueNamesOnly, false, importing},
		{"names, another VM that is being deleted has the id on record", uniqueNamesOnly, true, recorded},
		{"names, an older VM has claimed the name", uniqueNamesOnly, false, func(vm *pcapi.VM) { createdAfter(-time.Hour)(vm); withClaim(vm) }},
		{"answers alone, another VM imports the server", withoutProofs, false, importing},
		{"answers alone, another VM that is being deleted has the id on record", withoutProofs, true, recorded},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := harnessWithLostAnswer(t, tc.caps, true)
			h.addOther(tc.deleted, tc.other)
			h.remove()
			for range 3 {
				h.later(settleTime)
				h.mustReconcile()
			}
			h.wantCondition(pcapi.DeletingCondition, "True Blocked", "VM s1 may be this object's or that of another VM object", "deletionPolicy to Orphan")
			h.wantServers("s1")

			h.edit(func(vm *pcapi.VM) { vm.Spec.DeletionPolicy = pcapi.DeletionPolicyOrphan })
			h.mustReconcile()
			h.wantGone()
			h.wantServers("s1")
		})
	}
}

// Once the other VM object is gone, the name proves again whose server it is.
func TestUnrecordedCreateIsDeletedOnceTheOtherVMIsGone(t *testing.T) {
	for name, change := range map[string]func(*pcapi.VM){"it imported the server": importing, "it had the id on record": recorded} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithLostAnswer(t, uniqueNamesOnly, true)
			h.addOther(true, change)
			h.remove()
			h.later(settleTime)
			h.mustReconcile()
			h.later(settleTime)
			h.mustReconcile()
			h.wantCondition(pcapi.DeletingCondition, "True Blocked", "another VM object")
			b := h.other()
			b.Finalizers = nil
			if err := h.client.Update(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				h.later(time.Minute)
				h.mustReconcileIfExists()
			}
			h.wantServers()
			h.wantGone()
		})
	}
}

// A server that another VM object keeps has its object: it does not hold up the deletion of this one.
func TestUnrecordedCreateIsReleasedIfAnotherVMKeepsTheServer(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{"names": uniqueNamesOnly, "answers alone": withoutProofs} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithLostAnswer(t, caps, true)
			h.addOther(false, recorded)
			h.remove()
			for range 3 {
				h.later(settleTime)
				h.mustReconcileIfExists()
			}
			h.wantServers("s1")
			h.wantGone()
		})
	}
}
