package vm

import (
	"testing"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// closeCloud requests the deletion of the Cloud, which its finalizer keeps.
func (h *harness) closeCloud() {
	h.t.Helper()
	c := h.editCloud(func(c *pcapi.Cloud) { c.Finalizers = []string{pcapi.CloudFinalizer} })
	if err := h.client.Delete(h.t.Context(), c); err != nil {
		h.t.Fatal(err)
	}
}

func TestCloudThatIsBeingDeletedTakesNoNewVM(t *testing.T) {
	for name, vm := range map[string]*pcapi.VM{"to be created": vmWith(), "to be imported": vmWith(importing)} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, everything, vm)
			h.cloud.AddServers(serverWith())
			h.closeCloud()
			for range 3 {
				h.later(time.Minute)
				h.mustReconcile()
			}
			h.wantCondition(pcapi.ReadyCondition, "False CloudUnavailable", "is being deleted")
			h.wantClaim("")
			equal(t, "vmId", "", h.vm().Status.VMID)
			equal(t, "calls", []string(nil), h.cloud.TakeCalls(cloudfake.ListServers, cloudfake.GetServer))
			h.remove()
			h.mustReconcile()
			h.wantGone()
			h.wantServers("s1")
		})
	}
}

func TestCloudThatIsBeingDeletedTakesNoVMThatWasCreatedWithItsClaim(t *testing.T) {
	h := newHarness(t, everything, createdClaimed())
	h.closeCloud()
	for range 3 {
		h.mustReconcile()
		h.later(time.Minute)
	}
	h.wantCalls()
	h.wantCondition(pcapi.ReadyCondition, "False CloudUnavailable", "is being deleted")
	h.remove()
	h.later(settleTime)
	h.mustReconcile()
	h.wantGone()
}

func TestVMStaysInSyncOnCloudThatIsBeingDeleted(t *testing.T) {
	h := newHarness(t, everything, vmWith())
	h.mustReconcile()
	h.closeCloud()
	h.later(time.Minute)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True Running")
	h.remove()
	h.mustReconcile()
	h.later(time.Minute)
	h.mustReconcile()
	h.wantGone()
	h.wantServers()
}
