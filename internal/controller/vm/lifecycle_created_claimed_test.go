package vm

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// createdClaimed is a VM that was created with its claim a second before the first
// reconcile, as an admission policy or a group creates it.
func createdClaimed(change ...func(*pcapi.VM)) *pcapi.VM {
	vm := vmWith(forgeClaim, func(vm *pcapi.VM) {
		vm.CreationTimestamp = metav1.NewTime(startTime.Add(time.Hour))
		vm.Status.ObservedGeneration = -1 // as the CRD has it
	})
	for _, f := range change {
		f(vm)
	}
	return vm
}

func TestVMCreatedWithItsClaimCostsOneWrite(t *testing.T) {
	h := newHarness(t, everything, createdClaimed())
	h.mustReconcile()
	h.wantCalls("check web", "create web")
	equal(t, "writes", []string{"status"}, h.writes)
	h.wantCondition(pcapi.NameCheckedCondition, "True Available")
	h.wantCondition(pcapi.ReadyCondition, "True Running")

	h.remove()
	h.mustReconcile()
	h.later(settleTime)
	h.mustReconcile()
	h.wantGone()
	h.wantServers()
}

func TestVMCreatedWithItsClaimIsLookedForWhereKeysProveNothing(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{
		"labels alone": without(cloud.Idempotency, cloud.UniqueNames), "labels and names": withoutKeys, "keys alone": without(cloud.Labels, cloud.UniqueNames),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, createdClaimed())
			h.mustReconcile()
			h.wantCalls()
		})
	}
}

func TestVMCreatedWithItsClaimLongAgoIsLookedFor(t *testing.T) {
	h := newHarness(t, everything, createdClaimed())
	h.advance(2 * time.Hour)
	h.mustReconcile()
	h.wantCalls()
	h.poll()
	h.mustReconcile()
	h.wantCalls("check web", "create web")
}

func TestVMCreatedWithItsClaimIsCreatedOnceAfterACrash(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{"unique names": everything, "no unique names": without(cloud.UniqueNames)} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, createdClaimed())
			h.refuse["status"] = []error{errAPIAway}
			_, _ = h.reconcile()
			h.wantCalls("check web", "create web")
			equal(t, "vmId", "", h.vm().Status.VMID)

			h.cloud.Hide(h.cloud.ServerIDs()[0]) // a listing lags behind the create
			h.start()
			h.connect()
			h.mustReconcile()
			h.later(time.Second)
			h.mustReconcile()
			h.cloud.Show()
			h.later(time.Second)
			h.mustReconcile()
			equal(t, "servers", 1, len(h.cloud.ServerIDs()))
			h.wantCondition(pcapi.ReadyCondition, "True Running")
		})
	}
}

func TestVMCreatedWithItsClaimAfterALostAnswer(t *testing.T) {
	h := newHarness(t, everything, createdClaimed())
	h.cloud.Fail(cloudfake.CreateServer, errReset, true)
	h.mustReconcile()
	h.wantCondition(pcapi.CreatedCondition, "False OutcomeUnknown")
	h.later(time.Minute)
	h.mustReconcile()
	equal(t, "servers", 1, len(h.cloud.ServerIDs()))
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestVMCreatedWithItsClaimUnderARefusedName(t *testing.T) {
	h := newHarness(t, everything, createdClaimed())
	h.cloud.Fail(cloudfake.CheckName, errProhibited, false)
	h.mustReconcile()
	h.wantCalls("check web")
	h.wantCondition(pcapi.NameCheckedCondition, "False Prohibited")
	h.wantCondition(pcapi.ReadyCondition, "False Prohibited")

	h.edit(func(vm *pcapi.VM) { vm.Spec.VMName = "shop" })
	h.later(settleTime)
	h.mustReconcile()
	h.wantCalls("check shop", "create shop")
	h.wantClaim("shop")
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestVMCreatedWithItsClaimUnderANameThatIsTaken(t *testing.T) {
	for _, listed := range []bool{true, false} {
		t.Run(fmt.Sprintf("listed %t", listed), func(t *testing.T) {
			h := newHarness(t, everything, createdClaimed())
			h.cloud.AddServers(stranger)
			if !listed {
				h.cloud.Hide(stranger.ID)
			}
			h.poll()
			h.advance(time.Second)
			h.mustReconcile()
			h.wantCalls("check web")
			h.wantCondition(pcapi.NameCheckedCondition, "")
			h.later(time.Second)
			h.mustReconcile()
			h.wantCalls("check web")
			if !listed {
				h.wantCondition(pcapi.NameCheckedCondition, "Unknown CheckFailed")
				h.wantCondition(pcapi.ReadyCondition, "False OutcomeUnknown", "settleTime")
				h.later(settleTime)
				h.mustReconcile()
				h.wantCalls("check web")
			}
			h.wantCondition(pcapi.NameCheckedCondition, "False Taken")
			h.wantCondition(pcapi.ReadyCondition, "False Taken")
			h.wantServers(stranger.ID)
			h.remove()
			h.later(settleTime)
			h.mustReconcile()
			h.wantGone()
		})
	}
}

func TestVMCreatedWithItsClaimAndDeletedLeavesNothing(t *testing.T) {
	h := newHarness(t, everything, createdClaimed())
	h.remove()
	for range 3 {
		h.mustReconcile()
		h.later(settleTime)
	}
	h.wantCalls()
	h.wantGone()
}

func TestVMCreatedWithAClaimOnAnotherCloudIsReleasedThereFirst(t *testing.T) {
	h := newHarness(t, everything, createdClaimed(func(vm *pcapi.VM) { vm.Annotations[pcapi.ClaimedCloudAnnotation] = "other" }))
	h.mustReconcile()
	h.wantCalls()
	equal(t, "vmId", "", h.vm().Status.VMID)
}

func TestVMCreatedWithItsClaimWhoseStatusIsNotWrittenIsNotReleasedWhileItsNameIsTaken(t *testing.T) {
	h := newHarness(t, everything, createdClaimed())
	h.cloud.Fail(cloudfake.CreateServer, errReset, true)
	h.refuse["status"] = []error{errAPIAway}
	_, _ = h.reconcile()
	h.cloud.Heal(cloudfake.CreateServer)
	h.cloud.Hide("s1") // an operation still makes it
	h.remove()
	for range 3 {
		h.later(settleTime)
		h.mustReconcile()
	}
	h.wantServers("s1")
	h.wantCondition(pcapi.ReadyCondition, "False Blocked", "is in use")

	h.cloud.Show()
	for range 3 {
		h.later(settleTime)
		h.mustReconcileIfExists()
	}
	h.wantServers()
	h.wantGone()
}
