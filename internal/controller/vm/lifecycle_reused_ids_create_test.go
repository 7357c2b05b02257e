package vm

import (
	"testing"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// The cloud, which drops the labels of the create, gives the id of a server whose deletion was answered to that of another VM
// before a listing lacks the first one.
func TestIDOfADeletedServerIsThatOfTheCreateOnACloudThatDropsLabels(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{"labels": without(cloud.Idempotency, cloud.UniqueNames), "labels and unique names": without(cloud.Idempotency)} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, vmWith(), other("b", func(vm *pcapi.VM) { vm.Spec.VMName = "db" }))
			h.cloud.SetReusesIDs(true)
			h.mustReconcile()
			h.later(time.Second)
			h.mustReconcile()
			h.cloud.Alter(unlabelled)
			h.remove()
			h.advance(time.Second)
			h.mustReconcile()
			h.reconcileVM("b")
			h.reconcileVM("b")
			equal(t, "vmId of the other VM", "s1", h.other().Status.VMID)
			equal(t, "creates", 2, h.cloud.Sent(cloudfake.CreateServer))
		})
	}
}

// The id of the answer is that of a server which a stranger deleted since the last listing.
func TestIDOfADeletedServerOfAStrangerIsThatOfTheCreate(t *testing.T) {
	for name, caps := range reusing {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, vmWith())
			h.cloud.SetReusesIDs(true)
			h.cloud.AddServers(cloud.Server{ID: "s1", Name: "of-others", State: cloud.StateActive, CreatedAt: startTime})
			h.later(time.Second)
			h.cloud.RemoveServers("s1")
			h.advance(time.Second)
			h.mustReconcile()
			equal(t, "vmId", "s1", h.vm().Status.VMID)
			h.later(time.Second)
			h.mustReconcile()
			h.wantCondition(pcapi.ReadyCondition, "True Running")
		})
	}
}

// The read that would confirm such an answer fails: the last listing still has the server of the stranger.
func TestIDOfADeletedServerOfAStrangerIsUsedOnlyFromAListingBegunAfterTheCreate(t *testing.T) {
	for name, caps := range reusing {
		for failure, err := range map[string]error{"the cloud does not answer": errRefused, "the cloud does not show it yet": errNotFound} {
			t.Run(name+", "+failure, func(t *testing.T) {
				h := newHarness(t, caps, vmWith())
				h.cloud.SetReusesIDs(true)
				h.cloud.AddServers(cloud.Server{ID: "s1", Name: "of-others", State: cloud.StateActive, CreatedAt: startTime})
				h.later(time.Second)
				h.cloud.RemoveServers("s1")
				h.advance(time.Second)
				h.cloud.Fail(cloudfake.GetServer, err, false)
				h.mustReconcile()
				h.advance(time.Second)
				h.mustReconcile()
				if got := h.vm().Status.NameInCloud; got == "of-others" {
					t.Errorf("nameInCloud is %q before a listing", got)
				}
				h.cloud.Heal(cloudfake.GetServer)
				for range 2 {
					h.later(time.Second)
					h.mustReconcile()
				}
				equal(t, "vmId", "s1", h.vm().Status.VMID)
				equal(t, "nameInCloud", "web", h.vm().Status.NameInCloud)
				h.wantCondition(pcapi.ReadyCondition, "True Running")
			})
		}
	}
}

// An operation made the server, and the reads lag behind it.
func TestIDThatAnOperationNamesIsUsedOnlyFromAListingBegunAfterIt(t *testing.T) {
	h := newOperating(t, operatingWithout(cloud.Idempotency, cloud.Labels, cloud.UniqueNames), vmWith())
	h.cloud.SetReusesIDs(true)
	h.cloud.AddServers(cloud.Server{ID: "s1", Name: "of-others", State: cloud.StateActive, CreatedAt: startTime})
	h.later(time.Second)
	h.cloud.RemoveServers("s1")
	h.advance(time.Second)
	h.mustReconcile()
	h.cloud.FinishOperations()
	h.cloud.Fail(cloudfake.GetServer, errNotFound, false)
	h.advance(time.Second)
	h.mustReconcile()
	h.advance(time.Second)
	h.mustReconcile()
	if got := h.vm().Status.NameInCloud; got == "of-others" {
		t.Errorf("nameInCloud is %q before a listing", got)
	}
	h.later(time.Second)
	h.mustReconcile()
	equal(t, "vmId", "s1", h.vm().Status.VMID)
	equal(t, "nameInCloud", "web", h.vm().Status.NameInCloud)
}

// The answer names a live server of a stranger, and the read that would show this fails.
func TestServerOfAStrangerInAnAnswerThatNoReadConfirmsIsNotAdopted(t *testing.T) {
	h := newHarness(t, withoutProofs, vmWith())
	h.cloud.AddServers(cloud.Server{ID: "x", Name: "of-others", State: cloud.StateActive, CreatedAt: startTime})
	h.later(time.Second)
	h.advance(time.Second)
	h.cloud.AnswerCreateWith("x")
	h.cloud.Fail(cloudfake.GetServer, errRefused, false)
	h.mustReconcile()
	h.cloud.AnswerCreateWith("")
	for range 2 {
		h.advance(time.Second)
		h.mustReconcile()
		h.later(time.Second)
		h.mustReconcile()
	}
	if got := h.vm().Status.VMID; got == "x" {
		t.Error("the server of the stranger is on record")
	}
	if !h.cloud.HasServer("x") {
		t.Error("the server of the stranger is gone")
	}
}

// The answer to a create on a cloud with labels names a server of a stranger that has none.
func TestAnswerWithAServerWithoutLabelsThatExistedBeforeIsNotUsed(t *testing.T) {
	for _, named := range []string{"web", "db"} {
		t.Run("the server is named "+named, func(t *testing.T) {
			h := newHarness(t, without(cloud.Idempotency, cloud.UniqueNames), vmWith())
			h.cloud.AddServers(serverWith(unlabelled, withID("x"), withName(named)))
			h.later(time.Second)
			h.advance(time.Second)
			h.cloud.AnswerCreateWith("x")
			h.mustReconcile()
			equal(t, "vmId", "", h.vm().Status.VMID)
			if ready := readyOf(h.vm()); ready == "True Running" {
				t.Errorf("Ready is %s", ready)
			}
			h.cloud.AnswerCreateWith("")
			h.remove()
			for range 4 {
				h.later(settleTime)
				h.mustReconcileIfExists()
			}
			h.wantGone()
			h.wantServers("x")
		})
	}
}
