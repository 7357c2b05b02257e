package vmsnapshot

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

var errKilled = errors.New("killed")

// effects counts writes to the API server and changes of the cloud. The manager is killed
// at one of them, before it or after it.
type effects struct {
	count, killAt int
	after, killed bool
}

// do makes a change, unless the manager is killed before it or was already.
func (e *effects) do(change func() error) error {
	if e.killed {
		return errKilled
	}
	e.count++
	if e.count != e.killAt {
		return change()
	}
	e.killed = true
	if e.after {
		_ = change()
	}
	return errKilled
}

// killing is a client of the cloud whose changes are effects.
type killing struct {
	*cloudfake.Cloud

	effects *effects
}

func (k killing) CreateSnapshot(ctx context.Context, req cloud.CreateSnapshot) (made cloud.Snapshot, err error) {
	err = k.effects.do(func() error { made, err = k.Cloud.CreateSnapshot(ctx, req); return err })
	return made, lost(err)
}

func (k killing) DeleteSnapshot(ctx context.Context, serverID, id string) error {
	return lost(k.effects.do(func() error { return k.Cloud.DeleteSnapshot(ctx, serverID, id) }))
}

func lost(err error) error {
	if errors.Is(err, errKilled) {
		return &cloud.Error{Kind: cloud.Unavailable, Op: "call", Uncertain: true, Err: err}
	}
	return err
}

// reconcileUntil reconciles until done. When the manager was killed, another starts that
// knows nothing of it.
func (h *harness) reconcileUntil(done func(*pcapi.VMSnapshot) bool) {
	h.t.Helper()
	for range 100 {
		var snap pcapi.VMSnapshot
		err := h.client.Get(h.t.Context(), key, &snap)
		if apierrors.IsNotFound(err) || done(&snap) && !h.effects.killed {
			return
		}
		result, _ := h.reconciler.Reconcile(h.t.Context(), ctrl.Request{NamespacedName: key})
		h.now = h.now.Add(max(result.RequeueAfter, time.Second))
		if h.effects.killed {
			h.effects.killed = false
			h.start()
		}
	}
	h.t.Fatalf("not done after 100 reconciles, killed at effect %d", h.effects.killAt)
}

func ready(snap *pcapi.VMSnapshot) bool {
	return meta.IsStatusConditionTrue(snap.Status.Conditions, pcapi.ReadyCondition)
}

func TestKillAtEachEffectLeavesOneSnapshotThenNone(t *testing.T) {
	t.Parallel()
	for name, caps := range map[string]cloud.Capabilities{"with keys": withKeys, "without": plain} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, after the effect: %v", name, after), func(t *testing.T) {
				t.Parallel()
				const most = 20
				killAt := 1
				for ; killAt < most; killAt++ {
					h := newHarness(t, caps, vm(), snapshot())
					h.effects.killAt, h.effects.after = killAt, after
					h.reconcileUntil(ready)
					if n := len(h.cloud.Snapshots("s1")); n != 1 {
						t.Errorf("killed at effect %d: %d snapshots, want one", killAt, n)
					}
					h.delete(snapshot())
					h.reconcileUntil(func(*pcapi.VMSnapshot) bool { return false })
					h.wantSnapshots()
					h.wantGone()
					if h.effects.count < killAt {
						break
					}
				}
				if killAt < 6 || killAt == most {
					t.Errorf("ended at effect %d, want all of the effects of a create and a deletion", killAt)
				}
			})
		}
	}
}
