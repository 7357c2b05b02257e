package vmsnapshot

import (
	"context"
	"errors"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// The cloud gives the id to another snapshot of the server before it answers the deletion.
func TestSnapshotWhoseIDIsGivenAgainIsGoneOnceItsDeletionIsAnswered(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(), snapshot())
	h.reconcile()
	h.wantSnapshots("snap1")
	h.cloud.OnAnswer(func(_ context.Context, verb cloudfake.Verb, _ string) {
		if verb == cloudfake.DeleteSnapshot {
			h.cloud.SetSnapshots("s1", cloud.Snapshot{ID: "snap1", Name: "of-others"})
		}
	})
	h.now = h.now.Add(time.Minute)
	h.delete(snapshot())
	h.reconcile()
	h.wantGone()
	h.wantSnapshots("snap1")
}

// The deletion takes effect, its answer is lost, and another snapshot gets the id.
func TestDeletionOfASnapshotWithALostAnswerIsNotSentAgainToTheNextOneWithTheID(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(), snapshot())
	h.reconcile()
	h.now = h.now.Add(time.Minute)
	h.delete(snapshot())
	h.cloud.Fail(cloudfake.DeleteSnapshot, &cloud.Error{Kind: cloud.Unavailable, Op: "delete snapshot", Uncertain: true}, true)
	h.reconcile()
	h.cloud.SetSnapshots("s1", cloud.Snapshot{ID: "snap1", Name: "of-others", CreatedAt: h.now})
	for range 3 {
		h.reconcile()
	}
	h.wantGone()
	h.wantSnapshots("snap1")
}

// The id of the snapshot is not on record, its deletion takes effect and its answer is lost, and another snapshot gets the id.
func TestDeletionOfASnapshotBeforeTheIDIsOnRecordIsNotSentAgainToTheNextOneWithTheID(t *testing.T) {
	t.Parallel()
	for name, created := range map[string]bool{"the cloud says when it was created": true, "the cloud does not say when it was created": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, withKeys, vm(), snapshot())
			h.cloud.OnAnswer(func(_ context.Context, verb cloudfake.Verb, _ string) {
				if verb == cloudfake.CreateSnapshot {
					h.statusErr = errAPIAway
				}
			})
			h.reconcileWithoutStatus()
			h.delete(snapshot())
			h.cloud.Fail(cloudfake.DeleteSnapshot, errReset, true)
			h.reconcileWithoutStatus()
			h.wantSnapshots()
			other := cloud.Snapshot{ID: "snap1", Name: "of-others"}
			if created {
				other.CreatedAt = h.now
			}
			h.cloud.SetSnapshots("s1", other)
			for range 3 {
				h.reconcileWithoutStatus()
			}
			h.now = h.now.Add(2 * settleTime)
			h.reconcileWithoutStatus()
			h.wantSnapshots("snap1")
			h.wantGone()
		})
	}
}

// The VM and its server are gone, and the cloud has given the id of the server, and that of the snapshot, to others.
func TestSnapshotIsGoneIfALaterServerHasTheIDOfItsServer(t *testing.T) {
	t.Parallel()
	for name, removed := range map[string]bool{"the VMSnapshot is deleted": true, "the VMSnapshot is not deleted": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, withKeys, vm(), snapshot())
			h.reconcile()
			h.wantSnapshots("snap1")
			h.now = h.now.Add(2 * settleTime)
			h.cloud.RemoveServers("s1")
			h.cloud.AddServers(cloud.Server{ID: "s1", Name: "of-others", State: cloud.StateActive, CreatedAt: h.now})
			h.cloud.SetSnapshots("s1", cloud.Snapshot{ID: "snap1", Name: "of-others"})
			h.delete(vm())
			h.poll()
			if removed {
				h.delete(snapshot())
			}
			h.reconcileFor(2 * settleTime)
			h.wantSnapshots("snap1")
			if removed {
				h.wantGone()
			} else {
				h.wantCondition(pcapi.CreatedCondition, "False Lost")
			}
		})
	}
}

func TestSnapshotOfAVMOnACloudWhoseClockIsAheadIsReadyAndDeleted(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(), snapshot())
	h.reconcile()
	h.cloud.AddServers(cloud.Server{ID: "s1", Name: "web", State: cloud.StateActive, CreatedAt: h.now.Add(8 * time.Hour)})
	h.poll()
	h.reconcileFor(2 * settleTime)
	h.wantCondition(pcapi.CreatedCondition, "True Created")
	h.delete(snapshot())
	h.reconcileFor(2 * settleTime)
	h.wantSnapshots()
	h.wantGone()
}

// The cloud does not say when it created the server, so that it may be that of the VM, renamed.
func TestSnapshotOfAServerWhoseIDAnUndatedOneHasIsKeptAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(), snapshot())
	h.reconcile()
	h.now = h.now.Add(2 * settleTime)
	h.cloud.SetSnapshots("s1", cloud.Snapshot{ID: "snap1", Name: "of-others"})
	h.poll()
	h.delete(snapshot())
	h.reconcileFor(2 * settleTime)
	h.wantSnapshots("snap1")
	h.wantCondition(pcapi.DeletingCondition, "True Blocked", "Orphan")
}

// The answers 404 have no code: they may come from something in front of the cloud.
func TestSnapshotOfAServerThatIsGoneIsReleasedOnACloudWithoutCodes(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]bool{"a listing lacks the server": true, "a listing has the server": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, withKeys, vm(), snapshot())
			h.reconcile()
			h.now = h.now.Add(2 * settleTime)
			h.delete(vm())
			h.delete(snapshot())
			h.cloud.FailAlways(cloudfake.ListSnapshots, &cloud.Error{Kind: cloud.NotFoundUnproven, Op: "list snapshots"}, false)
			if gone {
				h.cloud.RemoveServers("s1")
			}
			h.reconcile()
			h.poll()
			h.reconcileFor(2 * settleTime)
			if gone {
				h.wantGone()
			} else {
				h.wantSnapshots("snap1")
				h.wantCondition(pcapi.DeletingCondition, "True WaitingForCloud")
			}
		})
	}
}

// One create made two snapshots. The deletion of the second takes effect, its answer is lost, and another snapshot gets its id.
func TestDeletionOfASecondSnapshotIsNotSentAgainToTheNextOneWithTheID(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(), snapshot())
	h.reconcile()
	first := h.cloud.Snapshots("s1")[0]
	second := first
	second.ID = "snap2"
	h.cloud.SetSnapshots("s1", first, second)
	h.cloud.Fail(cloudfake.DeleteSnapshot, errReset, true)
	h.reconcile()
	h.wantSnapshots("snap1")
	h.cloud.SetSnapshots("s1", first, cloud.Snapshot{ID: "snap2", Name: "of-others"})
	h.reconcileFor(10 * time.Minute)
	h.wantSnapshots("snap1", "snap2")
}

// reconcileWithoutStatus reconciles while the status cannot be written.
func (h *harness) reconcileWithoutStatus() {
	h.t.Helper()
	if _, err := h.reconciler.Reconcile(h.t.Context(), ctrl.Request{NamespacedName: key}); err != nil && !errors.Is(err, errAPIAway) {
		h.t.Fatalf("Reconcile: %v", err)
	}
	h.now = h.now.Add(time.Second)
}

var errAPIAway = errors.New("the API server is unavailable")
