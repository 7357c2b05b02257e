package vm

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// stranger is a server of somebody else with the name of the VM.
var stranger = cloud.Server{ID: "x", Name: "web", State: cloud.StateActive}

// forgeClaim adds what users can write of a claim.
func forgeClaim(vm *pcapi.VM) {
	vm.Finalizers = []string{pcapi.VMFinalizer}
	vm.Annotations = map[string]string{pcapi.ClaimedNameAnnotation: "web", pcapi.ClaimedCloudAnnotation: "default"}
}

func TestRefusedImportWithForgedClaimDeletesNothing(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{"exclusive names": uniqueNamesOnly, "names not exclusive": namesNotExclusive, "no proofs": withoutProofs} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, vmWith(importing, forgeClaim, func(vm *pcapi.VM) { vm.Spec.Import.VMID = stranger.ID }))
			h.editCloud(func(c *pcapi.Cloud) { c.Spec.Imports = pcapi.ImportPolicyNone })
			h.cloud.AddServers(stranger)
			h.poll()
			h.mustReconcile()
			h.wantCondition(pcapi.ReadyCondition, "False Rejected")
			h.remove()
			for range 3 {
				h.later(settleTime)
				h.mustReconcile()
			}
			h.wantServers(stranger.ID)
			h.wantGone()
		})
	}
}

func TestClosingCloudTakesNoVMWithForgedClaim(t *testing.T) {
	h := newHarness(t, uniqueNamesOnly, vmWith(forgeClaim))
	h.closeCloud()
	for range 3 {
		h.later(settleTime)
		h.mustReconcile()
	}
	h.wantCalls()
	h.wantCondition(pcapi.ReadyCondition, "False CloudUnavailable", "is being deleted")
}

func TestRefusedCreateLeavesNoClaimInStatus(t *testing.T) {
	h := newHarness(t, uniqueNamesOnly, vmWith())
	h.cloud.Fail(cloudfake.CreateServer, &cloud.Error{Kind: cloud.Quota, Op: "create server", Detail: "full"}, false)
	h.mustReconcile()
	h.wantClaim("")
	equal(t, "name in the cloud", "", h.vm().Status.NameInCloud)

	h.cloud.AddServers(stranger)
	h.edit(forgeClaim)
	for range 3 {
		h.later(settleTime)
		h.mustReconcile()
	}
	equal(t, "vmId", "", h.vm().Status.VMID)
}

func TestLostAnswerToTheFinalizerKeepsTheClaim(t *testing.T) {
	h := newHarness(t, without(cloud.Labels, cloud.UniqueNames), vmWith())
	h.cloud.AddServers(stranger)
	h.poll()
	h.advance(time.Second)
	h.loseAnswer("object")
	_, _ = h.reconcile()
	h.wantCalls("check web")
	h.wantClaim("web")
	equal(t, "name in the cloud", "web", h.vm().Status.NameInCloud)
	h.later(time.Second)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestEditDuringCreateDoesNotLoseID(t *testing.T) {
	for name, caps := range profiles {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, vmWith())
			edited := false
			h.cloud.OnCall(func(_ context.Context, verb cloudfake.Verb, _ string) {
				if verb != cloudfake.CreateServer || edited {
					return
				}
				edited = true
				vm := h.vm()
				vm.Annotations["note"] = "edited"
				if err := h.client.Update(t.Context(), vm); err != nil {
					t.Error(err)
				}
			})
			h.mustReconcile()
			equal(t, "vmId", "s1", h.vm().Status.VMID)
		})
	}
}

func TestCapabilitiesThatVanishDuringCreateMakeNoSecondServer(t *testing.T) {
	h := newHarness(t, without(cloud.Idempotency, cloud.UniqueNames, cloud.ExclusiveNames), vmWith())
	h.cloud.Fail(cloudfake.CreateServer, errReset, true)
	h.mustReconcile()
	h.cloud.SetCapabilities(withoutProofs)
	h.connect()
	h.later(settleTime + time.Minute)
	h.mustReconcile()
	h.wantServers("s1")
	equal(t, "vmId", "s1", h.vm().Status.VMID)
}

func TestAnswerAboutAnotherServerIsNotFollowedByCreates(t *testing.T) {
	h := newHarness(t, withoutProofs, vmWith())
	h.cloud.AddServers(stranger)
	h.poll()
	h.advance(time.Second)
	h.cloud.AnswerCreateWith(stranger.ID)
	for range 5 {
		h.mustReconcile()
		h.later(time.Minute)
	}
	h.wantCalls("check web", "create web")
	h.wantCondition(pcapi.ReadyCondition, "False Ambiguous", stranger.ID)
}

func TestNameThatOnlyTheListingNormalizesDoesNotBlockDeletion(t *testing.T) {
	h := newHarness(t, withoutProofs, onRecord(func(vm *pcapi.VM) { vm.Spec.VMName, vm.Status.NameInCloud = "Web", "Web" }))
	h.cloud.AddServers(cloud.Server{ID: "s1", Name: "web", State: cloud.StateActive})
	h.poll()
	h.remove()
	h.mustReconcile()
	h.wantGone()
	h.wantServers()
}

func TestObserveOnlyVMWithOwnerLabelsIsClaimedAgainOnceItsFinalizerIsRemoved(t *testing.T) {
	h := newHarness(t, everything, vmWith())
	h.mustReconcile()
	h.edit(func(vm *pcapi.VM) { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly })
	h.mustReconcile()
	was := h.vm()
	h.edit(func(vm *pcapi.VM) { vm.Finalizers, vm.Annotations = nil, nil })
	if !h.kind.ChangedByUser().Update(event.UpdateEvent{ObjectOld: was, ObjectNew: h.vm()}) {
		t.Error("the update that removes the finalizer is not accepted")
	}
	h.mustReconcile()
	h.wantClaim("web")

	h.remove()
	for range 3 {
		h.later(settleTime)
		h.mustReconcileIfExists()
	}
	h.wantGone()
	h.wantServers("s1")
	equal(t, "labels of the server that stays", map[string]string{}, h.cloud.Server("s1").Labels)
}

// The process ends that sent the create, and somebody replaces the object before the next one starts.
func TestServerOfAVMThatWasReplacedWhileNoProcessRanIsAdopted(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{"everything": everything, "labels": without(cloud.Idempotency, cloud.UniqueNames), "exclusive names": uniqueNamesOnly} {
		for what, then := range map[string]func(*harness){
			"and is kept": func(h *harness) {
				h.wantClaim("web")
				h.wantServers("s1")
				equal(t, "vmId", "s1", h.vm().Status.VMID)
			},
			"and is deleted with it": func(h *harness) {
				h.remove()
				for range 3 {
					h.mustReconcileIfExists()
					h.later(settleTime)
				}
				h.wantGone()
				h.wantServers()
			},
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				h := newHarness(t, caps, vmWith())
				h.cloud.OnCall(func(_ context.Context, verb cloudfake.Verb, _ string) {
					if verb == cloudfake.CreateServer {
						h.loseAnswer("status") // nothing but the claim is stored when the process ends
					}
				})
				_, _ = h.reconcile()
				vm := h.vm()
				was := vm.Status
				vm.Status = pcapi.VMStatus{}
				if !caps.Has(cloud.Labels) {
					vm.Status.NameInCloud, vm.Status.Cloud = was.NameInCloud, was.Cloud
				}
				if err := h.client.Status().Update(t.Context(), vm); err != nil {
					t.Fatal(err)
				}
				h.edit(func(vm *pcapi.VM) { vm.Finalizers, vm.Annotations = nil, nil })
				h.start()
				h.connect()
				h.later(settleTime + time.Minute)
				for range 2 {
					h.mustReconcile()
					h.later(time.Minute)
				}
				then(h)
			})
		}
	}
}
