package vm

import (
	"maps"
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// copied gives a VM the metadata of another one, as kubectl get -o yaml and a restore of a backup have it.
func copied(from *pcapi.VM) func(*pcapi.VM) {
	return func(vm *pcapi.VM) {
		vm.Finalizers, vm.Annotations = from.Finalizers, maps.Clone(from.Annotations)
	}
}

// originalOf returns a VM with a server, as the operator has written it, that was claimed twice.
func originalOf(t *testing.T, caps cloud.Capabilities) *pcapi.VM {
	t.Helper()
	h := newHarness(t, caps, vmWith())
	h.cloud.Fail(cloudfake.CreateServer, errReset, false)
	h.mustReconcile()
	for range 3 {
		h.later(settleTime)
		h.mustReconcile()
	}
	vm := h.vm()
	if vm.Status.VMID == "" || vm.Annotations[pcapi.ClaimedUIDAnnotation] != string(vm.UID) {
		t.Fatalf("the original is not as expected: %v", vm.Annotations)
	}
	return vm
}

var clouds = map[string]cloud.Capabilities{
	"core, names alone": uniqueNamesOnly, "labels": withoutKeys, "labels and keys": everything, "keys": without(cloud.Labels),
}

func TestVMThatIsCopiedWithItsClaimIsCreatedAtOnce(t *testing.T) {
	for name, caps := range clouds {
		original := originalOf(t, caps)
		for what, change := range map[string]func(*pcapi.VM){
			"another vmname": func(vm *pcapi.VM) { vm.Spec.VMName = "db" },
			"another vmname, beside the original on another Cloud": func(vm *pcapi.VM) {
				vm.Spec.VMName = "db"
				vm.Annotations[pcapi.ClaimedCloudAnnotation] = "another"
			},
			"the same vmname, which is free: a backup that was restored": func(*pcapi.VM) {},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				h := newHarness(t, caps, vmWith(copied(original), change, func(vm *pcapi.VM) { vm.UID = "uid-copy" }))
				h.mustReconcile()
				h.wantCondition(pcapi.ReadyCondition, "True Running")
				vm := h.vm()
				equal(t, "calls", []string{"check " + vm.Spec.VMName, "create " + vm.Spec.VMName}, h.cloud.TakeCalls(cloudfake.ListServers))
				h.wantClaim(vm.Spec.VMName)
				equal(t, "Cloud of the claim", "default", vm.Annotations[pcapi.ClaimedCloudAnnotation])
				equal(t, "UID of the claim", "uid-copy", vm.Annotations[pcapi.ClaimedUIDAnnotation])
			})
		}
	}
}

func TestVMThatIsCopiedWithItsClaimDoesNotTakeTheServerOfTheOriginal(t *testing.T) {
	for name, caps := range clouds {
		t.Run(name, func(t *testing.T) {
			original := originalOf(t, caps)
			h := newHarness(t, caps, vmWith(copied(original), func(vm *pcapi.VM) { vm.UID = "uid-copy" }))
			h.cloud.AddServers(serverWith(withID("s0"), func(s *cloud.Server) {
				if caps.Has(cloud.Labels) {
					s.Labels = pureKind.servers.ownerLabels(original)
				}
			}))
			for range 3 {
				h.mustReconcile()
				h.later(settleTime)
			}
			h.wantCondition(pcapi.ReadyCondition, "False Taken")
			h.remove()
			h.mustReconcileIfExists()
			h.wantServers("s0")
			h.wantGone()
		})
	}
}

func TestVMThatIsCopiedWithItsClaimIsReleasedAtOnce(t *testing.T) {
	for name, caps := range clouds {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, vmWith(copied(originalOf(t, caps)), func(vm *pcapi.VM) { vm.UID = "uid-copy" }))
			h.remove()
			h.mustReconcile()
			h.wantCalls()
			h.wantGone()
		})
	}
}

// A create may have been sent for a VM although somebody wrote the claim of another one over its own.
func TestClaimOfAnotherVMDoesNotHideACreate(t *testing.T) {
	for name, caps := range clouds {
		for restart, begin := range map[string]func(*harness){"in one process": func(*harness) {}, "after a restart": func(h *harness) { h.restart() }} {
			t.Run(name+", "+restart, func(t *testing.T) {
				other := originalOf(t, caps)
				other.Annotations[pcapi.ClaimedUIDAnnotation], other.Annotations[pcapi.ClaimedNameAnnotation] = "uid-other", "other"
				other.Annotations[pcapi.ClaimedCloudAnnotation] = "elsewhere"
				h := newHarness(t, caps, vmWith())
				h.cloud.Fail(cloudfake.CreateServer, errReset, true)
				h.mustReconcile()
				h.wantServers("s1")
				begin(h)
				h.edit(copied(other))
				for range 3 {
					h.later(settleTime)
					h.mustReconcile()
				}
				h.wantServers("s1")
				h.wantClaim("web")
				equal(t, "UID of the claim", string(h.vm().UID), h.vm().Annotations[pcapi.ClaimedUIDAnnotation])
				if caps.Has(cloud.Labels) || caps.Has(cloud.ExclusiveNames) {
					h.wantCondition(pcapi.ReadyCondition, "True Running")
				}
			})
		}
	}
}

// Labels lead to the server of a create although another process wrote down nothing of it.
func TestVMWithTheClaimOfAnotherVMIsDeletedWithTheServerOfItsOwnCreate(t *testing.T) {
	for _, name := range []string{"labels", "labels and keys"} {
		t.Run(name, func(t *testing.T) {
			other := originalOf(t, clouds[name])
			other.Annotations[pcapi.ClaimedUIDAnnotation] = "uid-other"
			h := newHarness(t, clouds[name], vmWith(copied(other)))
			h.cloud.AddServers(serverWith())
			h.poll()
			h.remove()
			for range 3 {
				h.mustReconcileIfExists()
				h.later(settleTime)
			}
			h.wantServers()
			h.wantGone()
		})
	}
}
