package vmsnapshot

import (
	"context"
	"testing"
	"time"

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
