package vm

import (
	"testing"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// harnessWithUnrecordedServer returns a harness with a VM whose server was created, whose id is not on
// record, and that no listing shows any more.
func harnessWithUnrecordedServer(t *testing.T, caps cloud.Capabilities) *harness {
	t.Helper()
	h := newHarness(t, caps, vmWith())
	h.refuse["status"] = []error{errAPIAway}
	if !caps.Has(cloud.Labels) { // the claim is stored there first
		h.refuse["status"] = []error{nil, errAPIAway}
	}
	_, _ = h.reconcile()
	h.wantCalls("check web", "create web")
	equal(t, "vmId", "", h.vm().Status.VMID)
	h.cloud.Hide("s1")
	return h
}

func TestServerThatIsNotOnRecordAndWasDisplacedBlocksTheDeletion(t *testing.T) {
	for name, caps := range profiles {
		t.Run(name, func(t *testing.T) {
			h := harnessWithUnrecordedServer(t, caps)
			h.cloud.FailAlways(cloudfake.GetServer, &cloud.Error{Kind: cloud.Displaced, Op: "get server", Detail: "the VM was moved: move it back"}, false)
			h.remove()
			for range 3 {
				h.later(settleTime)
				h.mustReconcile()
			}
			h.wantCondition(pcapi.DeletingCondition, "True Blocked", "move it back", "deletionPolicy to Orphan")
			h.wantServers("s1")

			h.cloud.Heal(cloudfake.GetServer)
			h.cloud.Show()
			for range 3 {
				h.later(time.Minute)
				h.mustReconcileIfExists()
			}
			h.wantServers()
			h.wantGone()
		})
	}
}

func TestServerThatIsNotOnRecordAndThatNoListingShowsIsDeleted(t *testing.T) {
	for name, caps := range profiles {
		t.Run(name, func(t *testing.T) {
			h := harnessWithUnrecordedServer(t, caps)
			h.remove()
			for range 3 {
				h.later(settleTime)
				h.mustReconcileIfExists()
			}
			h.wantServers()
			h.wantGone()
		})
	}
}

func TestServerThatIsNotOnRecordIsNotReleasedWhileTheCloudCannotBeAsked(t *testing.T) {
	for name, caps := range profiles {
		t.Run(name, func(t *testing.T) {
			h := harnessWithUnrecordedServer(t, caps)
			h.remove()
			h.later(settleTime)
			h.later(settleTime)
			h.inv.MarkUnavailable("it does not answer")
			h.mustReconcile()
			h.wantCondition(pcapi.DeletingCondition, "True WaitingForCloud", "it does not answer")
			h.wantServers("s1")
		})
	}
}

func TestServerThatIsNotOnRecordAndHasAnotherNameOrNoLabelsBlocksTheDeletion(t *testing.T) {
	for name, caps := range profiles {
		t.Run(name, func(t *testing.T) {
			h := harnessWithUnrecordedServer(t, caps)
			h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.Name, s.Labels = "web.example.com", nil })
			h.remove()
			for range 3 {
				h.later(settleTime)
				h.mustReconcile()
			}
			h.wantCondition(pcapi.DeletingCondition, "True Blocked", "s1", "deletionPolicy to Orphan")
			h.wantServers("s1")
		})
	}
}
