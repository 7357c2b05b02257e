package vmsnapshot

import (
	"context"
	"errors"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

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

// reconcileWithoutStatus reconciles while the status cannot be written.
func (h *harness) reconcileWithoutStatus() {
	h.t.Helper()
	if _, err := h.reconciler.Reconcile(h.t.Context(), ctrl.Request{NamespacedName: key}); err != nil && !errors.Is(err, errAPIAway) {
		h.t.Fatalf("Reconcile: %v", err)
	}
	h.now = h.now.Add(time.Second)
}

var errAPIAway = errors.New("the API server is unavailable")
