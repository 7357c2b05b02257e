package faults

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

// revertVM has the VM reverted to its VMSnapshot. Without keys, a person decides about a
// revert whose answer is lost.
func revertVM(ctx context.Context, w *world) error {
	w.reverted = true
	if w.profile.keyless() {
		w.expect(vm, readyOrUndecided)
	}
	patch := fmt.Sprintf(`{"spec":{"currentSnapshotName":%q}}`, snapshotName)
	return w.env.client.Patch(ctx, w.object(vm), client.RawPatch(types.MergePatchType, []byte(patch)))
}

// keyless reports whether the cloud of the profile lacks idempotency keys.
func (p profile) keyless() bool {
	on, set := p.mock.Capabilities[mockcloud.Idempotency]
	return set && !on
}

// revertReached returns what is missing for the revert; nil if nothing.
func (w *world) revertReached() error {
	if !w.reverted {
		return nil
	}
	r := w.recorder.vm(vm).Status.Revert
	if r != nil && (r.Phase == pcapi.VMRevertSucceeded || r.Phase == pcapi.VMRevertRequested && w.profile.keyless()) {
		return nil
	}
	return fmt.Errorf("status.revert is %+v, want one that has ended", r)
}

// revertViolations compares how often the server was reverted with one revert.
func (w *world) revertViolations() []string {
	if !w.reverted {
		return nil
	}
	reverts := 0
	for _, e := range w.mock.Ledger() {
		if e.Op == mockcloud.OpRevert {
			reverts++
		}
	}
	r := w.recorder.vm(vm).Status.Revert
	if reverts == 1 || reverts == 0 && r != nil && r.Phase == pcapi.VMRevertRequested {
		return nil
	}
	return []string{fmt.Sprintf("the server was reverted %d times for one revert, and status.revert is %+v", reverts, r)}
}
