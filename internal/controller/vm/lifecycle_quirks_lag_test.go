package vm

import (
	"testing"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// A PATCH to a server that the cloud does not show yet is refused with 404. That is
// no reason to stall.
func TestChangeOfServerThatReadsDoNotShowYetDoesNotStall(t *testing.T) {
	h := newHarness(t, everything, vmWith())
	h.mustReconcile()
	h.hideReads(errNotFound)
	h.cloud.FailAlways(cloudfake.UpdateServer, errNotFound, false)
	h.advance(time.Second)
	h.edit(func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(4) })
	h.mustReconcile()
	if got, message := h.condition(pcapi.StalledCondition); got != "" {
		t.Errorf("Stalled=%s (%s) a second after the create", got, message)
	}
}

// A listing that lags behind shows the deleted server of a predecessor, and not the
// server of the VM's own create yet: it must not be adopted by its name.
func TestLaggingListingDoesNotProveServerOfPredecessor(t *testing.T) {
	h := newHarness(t, uniqueNamesOnly, vmWith())
	dead := cloud.Server{ID: "dead", Name: "web", State: cloud.StateActive}
	h.cloud.AddServers(dead)
	h.poll()
	h.advance(time.Second)
	h.cloud.RemoveServers("dead")
	h.cloud.Fail(cloudfake.CreateServer, errReset, true)
	h.mustReconcile()
	own := h.cloud.ServerIDs()
	h.cloud.Hide(own[0])
	h.cloud.AddServers(dead) // as reads show it
	h.later(time.Second)
	h.cloud.RemoveServers("dead")
	h.mustReconcile()
	if id := h.vm().Status.VMID; id == "dead" {
		t.Error("the VM adopted the dead server of a predecessor; its own server is lost")
	}
	h.cloud.Show()
	h.later(settleTime)
	h.mustReconcile()
	h.later(time.Second)
	h.mustReconcile()
	equal(t, "vmId", own[0], h.vm().Status.VMID)
}

// Reads lag behind: the server to import was created a moment ago. Nothing advises to
// delete the object before the settle time has passed.
func TestImportOfServerThatReadsDoNotShowYetIsNotRejected(t *testing.T) {
	h := newHarness(t, everything, vmWith(importing, func(vm *pcapi.VM) { vm.CreationTimestamp.Time = startTime.Add(time.Hour) }))
	h.cloud.AddServers(serverWith(unlabelled))
	h.hideReads(errNotFound)
	for range 3 {
		h.later(10 * time.Second)
		h.mustReconcile()
		if got, message := h.condition(pcapi.StalledCondition); got != "" {
			t.Fatalf("Stalled=%s (%s)", got, message)
		}
	}
	h.showReads()
	h.later(time.Minute)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

// A listing that began before any DELETE was answered proves nothing, also if it lacks
// the server, as one that is capped does.
func TestListingBegunBeforeDeleteDoesNotProveThatServerIsGone(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(), serverWith())
	h.mustReconcile()
	h.cloud.Hide("s1")
	h.later(settleTime + time.Minute)
	h.mustReconcile() // GET returns it
	h.later(pollInterval)
	h.remove()
	h.cloud.FailAlways(cloudfake.DeleteServer, errUnproven, false) // a gateway answers
	h.cloud.FailAlways(cloudfake.GetServer, errUnproven, false)
	h.advance(time.Second)
	h.mustReconcile()
	if _, ok := h.find(); !ok {
		t.Fatal("the object was released by a listing that began before the DELETE, and its server exists")
	}
	h.showReads()
	h.cloud.Heal(cloudfake.DeleteServer)
	for range 3 {
		h.later(time.Minute)
		h.mustReconcile()
	}
	h.wantServers()
	h.wantGone()
}

// The cloud accepts the deletion of a new server and works on it, and reads lag behind
// the create: they do not show the server yet.
func TestServerOfAcceptedDeletionThatReadsDoNotShowYetIsNotGone(t *testing.T) {
	for _, answer := range []*cloud.Error{errNotFound, errUnproven} {
		h := newHarness(t, everything, vmWith())
		h.mustReconcile()
		h.cloud.SetSlow(true)
		h.hideReads(answer)
		h.advance(time.Second)
		h.remove()
		for range 3 {
			h.mustReconcile()
			h.later(5 * time.Second)
		}
		if _, ok := h.find(); !ok {
			t.Fatalf("%s: the object was released, and its server is being deleted", answer.Kind)
		}
		h.showReads()
		h.later(settleTime / 2)
		h.mustReconcile()
		h.vm() // the server is shown, being deleted
		h.cloud.Finish()
		for range 2 {
			h.later(settleTime)
			h.mustReconcile()
		}
		h.wantGone()
	}
}
