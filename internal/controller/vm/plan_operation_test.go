package vm

import (
	"errors"
	"slices"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
)

// checkOperation checks that nothing is sent beside an operation, except the deletion of
// a server that is being changed, and that what has just failed is not sent again at once.
func checkOperation(vm *pcapi.VM, obs *observation, steps []string, outcome error) error {
	deleting := !vm.DeletionTimestamp.IsZero()
	sends := slices.ContainsFunc(steps, func(s string) bool { return slices.Contains(mutations, s) })
	released := slices.Contains(steps, external.StepRelease)
	waits := obs.Working && (!deleting || obs.Operation.Kind != external.OperationUpdate)
	switch {
	case waits && (sends || released):
		return errors.New("the plan changes or releases what the cloud works on")
	case obs.Working && obs.Operation.Kind == external.OperationCreate && slices.Contains(steps, external.StepUnclaim):
		return errors.New("the plan drops the claim of a create that is in progress")
	case waits && outcome == nil:
		return errors.New("the plan is in sync while the cloud works on the object")
	case obs.Fault != nil && !deleting && sends:
		return errors.New("the plan sends a change at once after one that failed")
	case obs.Fault != nil && !obs.FaultOnly && slices.Contains(steps, external.StepUnclaim):
		return errors.New("the plan drops the claim although another create may have taken effect")
	}
	return nil
}

// situationOperation picks what is known of an operation of the VM.
func situationOperation(p pick, vm *pcapi.VM, obs *observation) {
	if !obs.Available() || obs.Denied != nil {
		return
	}
	kinds := []external.OperationKind{external.OperationCreate}
	switch {
	case vm.Status.VMID == "" && vm.Spec.Import != nil:
		return
	case vm.Status.VMID != "" && !vm.DeletionTimestamp.IsZero():
		kinds = []external.OperationKind{external.OperationUpdate, external.OperationDelete}
	case vm.Status.VMID != "":
		kinds = []external.OperationKind{external.OperationUpdate}
	}
	kind := one(p, kinds...)
	switch p(4) {
	case 1:
		obs.Operation = external.Operation{ID: "o1", Kind: kind, Since: obs.Now}
		obs.Working, obs.Progress = true, 40
	case 2:
		obs.Fault, obs.FaultOf, obs.FaultOnly = &cloud.Error{Kind: cloud.Failed, Op: "create the VM", Detail: "the disk is full"}, kind, kind == external.OperationCreate && p.bool()
	case 3:
		obs.Deleted = kind == external.OperationDelete
	}
}
