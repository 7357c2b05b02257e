package vm

import (
	"slices"
	"testing"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

// pollIncomplete lists the cloud, whose listing is known to lack servers.
func (h *harness) pollIncomplete() {
	h.t.Helper()
	h.inv.Polling()
	snap, err := inventory.List(h.t.Context(), h.cloud, h.Now)
	if err != nil {
		h.t.Fatalf("List: %v", err)
	}
	snap.Incomplete = true
	h.inv.Publish(snap)
}

// wantHeld checks that the deletion waits in spite of incomplete listings, and says why.
func (h *harness) wantHeld(message string) {
	h.t.Helper()
	for range 3 {
		h.advance(settleTime)
		h.pollIncomplete()
		h.mustReconcile()
	}
	h.wantServers("s1")
	h.wantCondition(pcapi.DeletingCondition, "True Requested", message, "Conformant")
}

func TestIncompleteListingDoesNotProveThatADeletedServerIsGone(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(deleted), serverWith())
	h.hideReads(errUnproven) // a gateway answers
	h.cloud.FailAlways(cloudfake.DeleteServer, errUnproven, false)
	h.mustReconcile()
	h.wantHeld("waiting for a complete listing")

	h.cloud.Heal(cloudfake.DeleteServer, cloudfake.GetServer)
	h.advance(time.Minute)
	h.mustReconcile()
	h.wantServers()
	h.wantGone()
}

func TestServerIsLostOnAnIncompleteListingOnlyByTheCloudsOwnWord(t *testing.T) {
	for answer, want := range map[*cloud.Error]string{errUnproven: "True Created", errNotFound: "False Lost"} {
		t.Run(string(answer.Kind), func(t *testing.T) {
			h := harnessWithServer(t, everything, onRecord(), serverWith())
			h.mustReconcile()
			h.hideReads(answer)
			h.advance(settleTime + time.Minute)
			h.pollIncomplete()
			h.mustReconcile()
			h.wantCondition(pcapi.CreatedCondition, want)
		})
	}
}

func TestDeletionThatTheCloudAnsweredWith204EndsOnAnIncompleteListing(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(), serverWith())
	h.mustReconcile()
	h.later(settleTime + time.Minute)
	h.cloud.FailAlways(cloudfake.GetServer, errUnproven, false)
	h.remove()
	h.mustReconcile()
	h.wantServers()
	h.advance(time.Second)
	h.pollIncomplete()
	h.mustReconcile()
	h.wantGone()
}

func TestIncompleteListingDoesNotShowThatALostCreateHadNoEffect(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{"labels alone": profiles["labels alone"], "names alone": uniqueNamesOnly} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithLostAnswer(t, caps, true)
			h.cloud.Hide("s1")
			for range 3 {
				h.advance(settleTime)
				h.pollIncomplete()
				h.mustReconcile()
			}
			h.wantCalls()
			h.wantCondition(pcapi.CreatedCondition, "False OutcomeUnknown", "Conformant")

			h.remove()
			h.mustReconcile()
			h.wantHeld("waiting for a complete listing")
			h.cloud.Show()
			h.later(time.Second)
			h.mustReconcile()
			h.wantServers()
			h.wantGone()
		})
	}
}

func TestLostCreateIsRepeatedWithItsKeyOnAnIncompleteListing(t *testing.T) {
	h := harnessWithLostAnswer(t, everything, true)
	h.cloud.Hide("s1")
	h.advance(time.Second)
	h.pollIncomplete()
	h.mustReconcile()
	h.wantServers("s1")
	equal(t, "vmId", "s1", h.vm().Status.VMID)
}

func TestReadOfAServerThatTheListingLacksIsRecordedAsUnlisted(t *testing.T) {
	tests := map[string]struct {
		change func(*harness)
		want   []string
	}{
		"the listing had to show it": {func(h *harness) { h.later(settleTime + time.Minute) }, []string{"s1"}},
		"the listing may lag":        {func(h *harness) { h.later(time.Second) }, nil},
		"the VM is being deleted":    {func(h *harness) { h.later(settleTime + time.Minute); h.remove() }, []string{"s1"}},
		"the server is being deleted": {func(h *harness) {
			h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.State = cloud.StateDeleting })
			h.later(settleTime + time.Minute)
		}, nil},
		"the cloud does not return it either": {func(h *harness) {
			h.cloud.FailAlways(cloudfake.GetServer, errUnproven, false)
			h.later(settleTime + time.Minute)
		}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, everything, vmWith())
			h.mustReconcile()
			h.cloud.Hide("s1")
			test.change(h)
			h.mustReconcile()
			equal(t, "unlisted", test.want, slices.Sorted(slices.Values(h.inv.TakeUnlisted())))
			equal(t, "unlisted, taken again", 0, len(h.inv.TakeUnlisted()))
		})
	}
}

func TestReadAfterTheDeletionWasSentIsNotRecordedAsUnlisted(t *testing.T) {
	h := newHarness(t, everything, vmWith())
	h.mustReconcile()
	h.later(settleTime + time.Minute)
	h.mustReconcile()
	h.remove()
	h.cloud.SetSlow(true)
	h.cloud.Alter(func(s *cloud.Server) { s.State = cloud.StateActive }) // reads lag behind the deletion
	h.mustReconcile()
	h.cloud.Hide("s1")
	for range 3 {
		h.later(time.Minute)
		h.mustReconcileIfExists()
	}
	equal(t, "unlisted", 0, len(h.inv.TakeUnlisted()))
}
