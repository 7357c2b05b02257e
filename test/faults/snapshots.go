package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

// snapshotName is the name of the one VMSnapshot of a run.
const snapshotName = "snap"

// ofSnapshots counts changes of VMSnapshots and of the cloud.
func ofSnapshots(e effect) bool {
	return e.side == cloudSide || strings.HasPrefix(e.path, "vmsnapshots/")
}

// snapshotState is what a run expects of its VMSnapshot.
type snapshotState struct {
	// goal is runs or gone.
	goal goal
	// server is the id of the server of the VM.
	server string
	wrong  []string
}

// createSnapshot creates a VMSnapshot of the VM, and expects its snapshot.
func createSnapshot(ctx context.Context, w *world) error {
	w.snapshot = &snapshotState{goal: runs, server: w.recorder.vm(vm).Status.VMID}
	object := w.snapshotObject()
	object.Spec.VMName = vm
	return w.env.client.Create(ctx, object)
}

// removeSnapshot deletes the VMSnapshot.
func removeSnapshot(ctx context.Context, w *world) error {
	w.snapshot.goal = gone
	return w.env.client.Delete(ctx, w.snapshotObject())
}

func (w *world) snapshotObject() *pcapi.VMSnapshot {
	return &pcapi.VMSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: snapshotName}}
}

// snapshotReached returns what is missing for the goal of the VMSnapshot; nil if nothing.
func (w *world) snapshotReached() error {
	if w.snapshot == nil {
		return nil
	}
	object := w.snapshotObject()
	err := w.env.client.Get(context.Background(), client.ObjectKeyFromObject(object), object)
	switch {
	case apierrors.IsNotFound(err) && w.snapshot.goal == gone:
		if left := w.mock.Snapshots(w.snapshot.server); len(left) > 0 {
			w.snapshot.wrong = append(w.snapshot.wrong, fmt.Sprintf("the VMSnapshot is gone, and its snapshot %s is there", left[0].ID))
		}
		return nil
	case err != nil:
		return err
	case w.snapshot.goal == gone:
		return errors.New("the VMSnapshot is there")
	}
	c := meta.FindStatusCondition(object.Status.Conditions, pcapi.ReadyCondition)
	taken := w.mock.Snapshots(w.snapshot.server)
	if c == nil || c.Status != metav1.ConditionTrue || !controllerutil.ContainsFinalizer(object, pcapi.VMSnapshotFinalizer) || len(taken) != 1 || taken[0].ID != object.Status.SnapshotID {
		return fmt.Errorf("the VMSnapshot is not as expected: %+v, in the cloud are %+v", object.Status, taken)
	}
	return nil
}

// snapshotViolations returns what is wrong with the snapshots at rest, and what was wrong
// at any time.
func (w *world) snapshotViolations() []string {
	if w.snapshot == nil {
		return nil
	}
	wrong := slices.Clone(w.snapshot.wrong)
	if err := w.snapshotReached(); err != nil {
		wrong = append(wrong, err.Error())
	}
	alive, most := 0, 0
	for _, e := range w.mock.Ledger() {
		switch e.Op {
		case mockcloud.OpCreateSnapshot:
			alive++
		case mockcloud.OpDeleteSnapshot:
			alive--
		default:
		}
		most = max(most, alive)
	}
	if most > 1 && w.profile.exact {
		wrong = append(wrong, fmt.Sprintf("%d snapshots were alive at once", most))
	}
	return wrong
}
