package vm

import (
	"context"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// harnessWithNewServer returns a harness whose VM got server s1 a second ago. If listed, a listing has shown it.
func harnessWithNewServer(t *testing.T, listed bool) *harness {
	t.Helper()
	h := newHarness(t, withoutProofs, vmWith())
	h.mustReconcile()
	h.advance(time.Second)
	if listed {
		h.poll()
		h.mustReconcile()
	}
	h.cloud.TakeCalls()
	return h
}

// notFoundWithoutCode makes reads answer 404 without a code.
func (h *harness) notFoundWithoutCode() { h.cloud.FailAlways(cloudfake.GetServer, errUnproven, false) }

// wantStillThere fails if the VM was released.
func (h *harness) wantStillThere(why string) {
	h.t.Helper()
	if _, ok := h.find(); !ok {
		h.t.Fatalf("the VM is released, %s", why)
	}
}

func TestVMDeletedSoonAfterItsCreateIsGoneWithTheNextListing(t *testing.T) {
	for name, tc := range map[string]struct {
		listed bool
		// delete deletes the VM: the cloud accepts it, and the server is gone afterwards.
		delete func(*harness)
	}{
		"the cloud answers that the server is gone":                         {true, (*harness).deleteAtOnce},
		"the cloud answers that the server is gone, and no listing had it":  {false, (*harness).deleteAtOnce},
		"the cloud accepts the deletion, and does not show the server then": {true, (*harness).deleteUnseen},
		"the cloud accepts the deletion, and shows the server for a while": {true, func(h *harness) {
			h.cloud.Ignore(cloudfake.DeleteServer)
			h.remove()
			h.mustReconcile()
			h.later(time.Second)
			h.mustReconcile()
			h.cloud.RemoveServers("s1")
			h.notFoundWithoutCode()
			h.advance(time.Second)
			h.mustReconcile()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithNewServer(t, tc.listed)
			tc.delete(h)
			h.wantStillThere("and no listing lacks its server")
			h.later(time.Second)
			h.mustReconcile()
			h.wantGone()
		})
	}
}

func (h *harness) deleteAtOnce() {
	h.notFoundWithoutCode()
	h.remove()
	h.mustReconcile()
}

func (h *harness) deleteUnseen() {
	h.cloud.Ignore(cloudfake.DeleteServer)
	h.notFoundWithoutCode()
	h.remove()
	h.mustReconcile()
	h.cloud.RemoveServers("s1")
}

// A plain deletion soon after the create sends what a later one sends.
func TestVMDeletedSoonAfterItsCreateNeedsNoOtherCalls(t *testing.T) {
	h := harnessWithNewServer(t, true)
	h.remove()
	h.mustReconcile()
	h.wantCalls("delete s1", "get s1")
	h.wantGone()
}

func TestServerThatNoReadShowsSoonAfterItsCreateIsNotProvedGone(t *testing.T) {
	hide := func(h *harness) { h.cloud.Hide("s1"); h.notFoundWithoutCode() }
	accepted := func(h *harness) {
		h.cloud.Ignore(cloudfake.DeleteServer)
		h.remove()
		h.mustReconcile()
	}
	for name, tc := range map[string]struct {
		listed bool
		delete func(*harness)
	}{
		"no listing had it, and the cloud accepted its deletion": {false, func(h *harness) { hide(h); accepted(h) }},
		"the answer to its deletion is lost": {true, func(h *harness) {
			hide(h)
			h.cloud.FailAlways(cloudfake.DeleteServer, errReset, false)
			h.remove()
			h.mustReconcile()
		}},
		"its deletion is answered with 404": {true, func(h *harness) {
			hide(h)
			h.cloud.FailAlways(cloudfake.DeleteServer, errUnproven, false)
			h.remove()
			h.mustReconcile()
		}},
		"a read shows it after the answer that it is gone, and no listing had it": {false, func(h *harness) {
			h.cloud.OnAnswer(func(_ context.Context, verb cloudfake.Verb, _ string) {
				if verb == cloudfake.DeleteServer {
					h.cloud.AddServers(serverWith(unlabelled))
					h.cloud.Hide("s1")
				}
			})
			h.remove()
			h.mustReconcile()
			h.notFoundWithoutCode()
			h.cloud.FailAlways(cloudfake.DeleteServer, errUnproven, false)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithNewServer(t, tc.listed)
			tc.delete(h)
			for range 3 {
				h.later(time.Second)
				h.mustReconcile()
				h.wantStillThere("and its server exists")
			}
			h.wantServers("s1")
		})
	}
}

func TestListingThatIsIncompleteOrOlderThanTheDeletionProvesNothingSoonAfterACreate(t *testing.T) {
	t.Run("older", func(t *testing.T) {
		h := harnessWithNewServer(t, true)
		h.cloud.Hide("s1")
		h.advance(time.Second)
		h.poll() // before the deletion
		h.deleteAtOnce()
		h.advance(time.Second)
		h.mustReconcile()
		h.wantStillThere("and no listing is newer than the deletion")
	})
	t.Run("incomplete", func(t *testing.T) {
		h := harnessWithNewServer(t, true)
		h.deleteAtOnce()
		h.advance(time.Second)
		h.pollIncomplete()
		h.mustReconcile()
		h.wantStillThere("and the listing is incomplete")
	})
}

// Reads hide a server while its deletion is under way, and that fails.
func TestListingBeforeADeletionThatFailedDoesNotCount(t *testing.T) {
	h := newOperating(t, operating, onRecord(), serverWith())
	h.mustReconcile()
	h.later(settleTime + time.Minute)
	h.remove()
	h.mustReconcile()
	h.hideReads(errUnproven)
	h.cloud.FailOperations(&cloud.Error{Kind: cloud.Failed, Op: "delete"})
	h.advance(2 * time.Second)
	h.mustReconcile()
	for range 3 {
		h.later(time.Second)
		h.mustReconcile()
		h.wantStillThere("and its deletion failed")
	}
	h.wantServers("s1")
}

// TestServerThatOnlyAWatchReportedIsNotProvedGone: what the cloud reports at once, its reads may show later.
func TestServerThatOnlyAWatchReportedIsNotProvedGone(t *testing.T) {
	h := newHarness(t, profiles["labels alone"], vmWith())
	h.cloud.Fail(cloudfake.CreateServer, errReset, true)
	h.mustReconcile()
	h.cloud.Hide("s1")
	if err := h.inv.Apply(h.cloud, cloud.Change{Servers: []cloud.Server{h.cloud.Server("s1")}, AsOf: h.now}); err != nil {
		t.Fatalf("Apply: %v", err)
	}
	h.advance(time.Second)
	h.mustReconcile()
	h.mustReconcile()
	equal(t, "vmId", "s1", h.vm().Status.VMID)
	h.cloud.Ignore(cloudfake.DeleteServer)
	h.notFoundWithoutCode()
	h.remove()
	h.mustReconcile()
	for range 3 {
		h.later(time.Second)
		h.mustReconcile()
		h.wantStillThere("and its server exists")
	}
	h.later(settleTime)
	h.mustReconcile()
	h.wantGone()
}
