package vm

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller/vm/field"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
)

// mutations are the steps that change something in the cloud.
var mutations = []string{external.StepCreate, stepLabel, stepUpdate, external.StepDeleteDuplicate, external.StepDelete, stepUnlabel}

var allSteps = slices.Concat(mutations, []string{stepCheckName, stepConfirmImport, external.StepClaim, external.StepUnclaim, external.StepLook, external.StepAdopt, external.StepConfirmGone, external.StepRelease})

// checkPlan returns an error if a plan violates one of the rules that hold in every situation.
func checkPlan(vm *pcapi.VM, obs *observation, steps []string, outcome error) error {
	for _, rule := range []func(*pcapi.VM, *observation, []string, error) error{
		checkSteps, checkCreate, checkRename, checkMove, checkDelete, checkPower, checkRelease, checkOperation, checkOutcome,
	} {
		if err := rule(vm, obs, steps, outcome); err != nil {
			return err
		}
	}
	return nil
}

func checkSteps(vm *pcapi.VM, _ *observation, steps []string, _ error) error {
	changes := 0
	for i, step := range steps {
		if !slices.Contains(allSteps, step) {
			return fmt.Errorf("%s is not a step", step)
		}
		if slices.Index(steps, step) != i {
			return fmt.Errorf("%s is planned twice", step)
		}
		if slices.Contains(mutations, step) {
			changes++
		}
	}
	switch {
	case changes > 1:
		return errors.New("more than one step changes the cloud")
	case changes > 0 && vm.Spec.ManagementPolicy == pcapi.ManagementPolicyObserveOnly && !slices.Contains(steps, stepUnlabel):
		return errors.New("the plan changes the cloud for an ObserveOnly VM")
	case slices.Contains(steps, external.StepRelease) && steps[len(steps)-1] != external.StepRelease:
		return errors.New("a step follows the release")
	case slices.Contains(steps, external.StepRelease) && vm.DeletionTimestamp.IsZero():
		return errors.New("the plan releases an object that is not being deleted")
	}
	return nil
}

// checkNeeds checks that each step has a name and a function, and that the steps
// that call the cloud are not run while the cloud is unavailable.
func checkNeeds(planned plan) error {
	callers := slices.Concat(mutations, []string{stepCheckName, external.StepConfirmGone})
	for _, step := range planned.Steps {
		switch {
		case step.Name == "":
			return errors.New("a step has no name")
		case step.Run == nil:
			return fmt.Errorf("%s has no function", step.Name)
		case slices.Contains(callers, step.Name) && !step.Needs.Has(reconciler.NeedsCloud):
			return fmt.Errorf("%s calls the cloud and does not need it", step.Name)
		}
	}
	return nil
}

// proved reports whether the search found a server that certainly belongs to the VM.
func proved(obs *observation) bool {
	n := len(obs.Candidates)
	return (obs.Proof == external.OwnerProof && n > 0) || (obs.Proof == external.NameProof && n == 1)
}

func checkCreate(vm *pcapi.VM, obs *observation, steps []string, _ error) error {
	create := slices.Index(steps, external.StepCreate)
	if create < 0 {
		return nil
	}
	stored := obs.ClaimProved || obs.Capabilities().Has(cloud.Labels)
	keyed := obs.Capabilities().Has(cloud.Idempotency) && obs.Claimed == vm.Spec.VMName && stored
	labelled := keyed && obs.Capabilities().Has(cloud.Labels)
	checked := create == 2 && slices.Equal(steps[:2], []string{stepCheckName, external.StepClaim}) ||
		create == 1 && steps[0] == stepCheckName && labelled
	free := meta.IsStatusConditionTrue(vm.Status.Conditions, pcapi.NameCheckedCondition) || !labelled || obs.Operation.ID != "" || obs.Fault != nil
	switch {
	case !vm.DeletionTimestamp.IsZero(), vm.Status.VMID != "", vm.Spec.Import != nil, obs.Denied != nil:
		return errors.New("the plan creates a server for a VM that must not get a new one")
	case proved(obs):
		return errors.New("the plan creates a server although the VM's server was found")
	case obs.Claimed != "" && !obs.Looked && (!keyed || !obs.New || obs.Moved):
		return errors.New("the plan creates a server before a search for that of an earlier create")
	case !keyed && len(obs.Candidates) > 0:
		return errors.New("the plan creates a server although one was found that may be the VM's")
	case !keyed && obs.SettleTimeLeft > 0:
		return errors.New("the plan creates a server while an earlier create may still take effect")
	case !checked && (create != 0 || obs.Claimed != vm.Spec.VMName || !stored || !free):
		return errors.New("the plan creates a server under a name that was not checked and claimed")
	case obs.detached != nil:
		return errors.New("the plan creates a server although the Network is not ready")
	case !checked && obs.rival != nil:
		return errors.New("the plan creates a server under a name that another VM has")
	case checked && (obs.nameErr != nil || obs.rival != nil):
		return errors.New("the plan checks a name that was refused recently")
	}
	return nil
}

// checkRename checks that the claimed name, by which the server of an earlier create is
// found, is replaced only when that create can no longer take effect.
func checkRename(vm *pcapi.VM, obs *observation, steps []string, _ error) error {
	if obs.Claimed == "" || vm.Status.VMID != "" || vm.Spec.Import != nil || !vm.DeletionTimestamp.IsZero() {
		return nil
	}
	if (slices.Contains(steps, external.StepClaim) || slices.Contains(steps, external.StepUnclaim)) &&
		(len(obs.Candidates) > 0 || !obs.FaultOnly && (!obs.Looked || obs.SettleTimeLeft > 0)) {
		return errors.New("the plan replaces the claim of a create that may still take effect")
	}
	return nil
}

// checkMove checks that a VM whose create may have been sent to one Cloud does not
// change anything on another.
func checkMove(vm *pcapi.VM, obs *observation, steps []string, _ error) error {
	if !obs.Moved || !vm.DeletionTimestamp.IsZero() {
		return nil
	}
	for _, step := range []string{external.StepCreate, external.StepClaim, external.StepAdopt, stepLabel, stepUpdate} {
		if slices.Contains(steps, step) {
			return fmt.Errorf("the plan runs %s on a Cloud that the spec does not name", step)
		}
	}
	return nil
}

func checkDelete(vm *pcapi.VM, obs *observation, steps []string, _ error) error {
	adopts := slices.Contains(steps, external.StepAdopt)
	kept := vm.Spec.DeletionPolicy == pcapi.DeletionPolicyOrphan
	switch {
	case slices.Contains(steps, external.StepDelete):
		owned := (obs.Resource != nil && obs.Owned) || (adopts && proved(obs) && len(obs.Candidates) == 1)
		accepted := vm.Spec.Import == nil || vm.Status.VMID != "" || (obs.Resource.Name == vm.Spec.VMName && obs.Capabilities().Has(cloud.Labels))
		switch {
		case vm.DeletionTimestamp.IsZero(), kept:
			return errors.New("the plan deletes a server that must stay")
		case obs.Absent && !obs.Gone:
			return errors.New("the plan deletes a server that the cloud does not show")
		case !obs.Capabilities().Has(cloud.Labels) && vm.Status.VMID != "" && obs.Resource.Name != vm.Status.NameInCloud:
			return errors.New("the plan deletes a server that may be another one with the same id")
		case !owned, !accepted, obs.rival != nil:
			return errors.New("the plan deletes a server that is not proved to be the VM's")
		case !slices.Contains(steps, external.StepConfirmGone):
			return errors.New("the plan does not confirm the deletion")
		}
	case slices.Contains(steps, external.StepDeleteDuplicate):
		among := obs.Proof == external.OwnerProof && len(obs.Candidates) > 1 && adopts
		beside := obs.Resource != nil && obs.Owned && len(obs.Duplicates) > 0
		if !among && !beside {
			return errors.New("the plan deletes a duplicate that is not proved to be the VM's")
		}
	case slices.Contains(steps, stepUpdate) && (obs.Resource == nil || !obs.Owned || obs.rival != nil):
		return errors.New("the plan changes a server that is not the VM's")
	case slices.Contains(steps, stepUnlabel) && !obs.Owned && !obs.unlabelling && (!adopts || !proved(obs)):
		return errors.New("the plan removes the labels of a server that is not the VM's")
	case slices.Contains(steps, external.StepAdopt) && obs.importErr != nil && vm.DeletionTimestamp.IsZero():
		return errors.New("the plan imports a server that the Cloud does not allow")
	case slices.Contains(steps, stepLabel) && (vm.Spec.Import == nil || obs.Resource == nil || obs.rival != nil || obs.Foreign):
		return errors.New("the plan labels a server that the VM must not take over")
	case slices.Contains(steps, stepLabel) && steps[0] != stepConfirmImport:
		return errors.New("the plan labels a server that it does not read first")
	case adopts && vm.Spec.Import != nil && vm.DeletionTimestamp.IsZero() && (!obs.Owned || !obs.Capabilities().Has(cloud.Labels)) && steps[0] != stepConfirmImport:
		return errors.New("the plan imports a server without labels that it does not read first")
	}
	return nil
}

// checkPower checks that a server that is suspended only resumes, and one that does not run is
// not suspended.
func checkPower(vm *pcapi.VM, obs *observation, steps []string, _ error) error {
	if !slices.Contains(steps, stepUpdate) {
		return nil
	}
	update := firstChange(vm, obs, field.Difference(vm, *obs.Resource))
	power, switches := update.Power()
	switch caps := obs.Capabilities(); {
	case len(update) == 0:
		return errors.New("the plan changes nothing")
	case obs.Resource.State == cloud.StateSuspended && (update.Resizes() || !switches && !update.Has(cloud.LabelPart) || switches && power.State != cloud.PowerOn):
		return errors.New("the plan changes a server that is suspended otherwise than to resume it or to change its tags")
	case update.Has(cloud.LabelPart) && (update.Resizes() || switches):
		return errors.New("the plan changes tags together with something else")
	case power.State == cloud.PowerSuspended && (obs.Resource.State != cloud.StateActive || update.Resizes()):
		return errors.New("the plan suspends a server that does not run, or changes its size with that")
	case vm.Spec.PowerState == pcapi.PowerSuspended && !caps.Has(cloud.Suspend):
		return errors.New("the plan changes the power state towards one that the cloud lacks")
	}
	return nil
}

// hasRival reports whether another VM has the server or its name.
func hasRival(obs *observation) bool { return obs.rival != nil }

func checkRelease(vm *pcapi.VM, obs *observation, steps []string, _ error) error {
	managed := vm.Spec.ManagementPolicy != pcapi.ManagementPolicyObserveOnly
	unaccepted := vm.Status.VMID == "" && vm.Spec.Import != nil && obs.Resource != nil && (!obs.Owned || obs.Resource.Name != vm.Spec.VMName || !obs.Capabilities().Has(cloud.Labels))
	noEffect := vm.Status.VMID == "" && vm.Spec.Import == nil && obs.Looked && obs.SettleTimeLeft == 0 && len(obs.Candidates) == 0
	kept := !managed || vm.Spec.DeletionPolicy == pcapi.DeletionPolicyOrphan
	open := vm.Status.VMID == "" && vm.Spec.Import == nil && obs.Capabilities().Has(cloud.Labels) && !obs.CloudMissing && !proved(obs)
	if slices.Contains(steps, external.StepRelease) && kept && open && !noEffect && len(obs.Candidates) == 0 {
		return errors.New("the plan releases an object whose open create may leave a server with its labels")
	}
	if slices.Contains(steps, external.StepRelease) && obs.Absent && !obs.Gone && !kept {
		return errors.New("the plan releases an object whose server is not proved gone")
	}
	if slices.Contains(steps, external.StepRelease) && !slices.Contains(steps, external.StepConfirmGone) && !kept && !noEffect && !unaccepted && !hasRival(obs) {
		return errors.New("the plan releases an object whose server is not proved gone")
	}
	return nil
}

func checkOutcome(vm *pcapi.VM, obs *observation, steps []string, outcome error) error {
	_, waits := errors.AsType[*reconciler.WaitError](outcome)
	_, blocks := errors.AsType[*reconciler.BlockedError](outcome)
	_, stalls := errors.AsType[*reconciler.StalledError](outcome)
	known := outcome == nil || waits || blocks || stalls || errors.Is(outcome, reconciler.ErrUnknown)
	// Without a server, a VM is in sync only after a step that finds, creates or proves something.
	idle := outcome == nil && len(steps) == 0 && (vm.Status.VMID == "" || obs.Resource == nil || !vm.DeletionTimestamp.IsZero())
	switch {
	case !known:
		return fmt.Errorf("%w is not an outcome", outcome)
	case (waits || blocks || stalls) && (reconciler.Reason(outcome) == "" || outcome.Error() == ""):
		return errors.New("the outcome has no reason or no message")
	case idle:
		return errors.New("the plan is in sync without steps although there is no server")
	}
	return nil
}

func TestPlanFollowsRulesInEverySituation(t *testing.T) {
	broken := 0
	n := exhaust(func(p pick) {
		vm, obs := situation(p)
		vmBefore, before := vm.DeepCopy(), cloneObservation(obs)
		planned := pure.Plan(vm, obs)
		steps, outcome := planned.Names(), planned.Outcome
		err := errors.Join(checkPlan(vm, obs, steps, outcome), checkNeeds(planned))
		if !reflect.DeepEqual(vmBefore, vm) || !sameObservation(before, obs) {
			err = errors.Join(err, errors.New("Plan changed its input"))
		}
		pure.Report(vm, obs, outcome)
		if !sameObservation(before, obs) {
			err = errors.Join(err, errors.New("Report changed the observation"))
		}
		if err != nil && broken < 10 {
			broken++
			t.Errorf("%v\nplan %v, %s\n%s", err, steps, describe(outcome), describeSituation(vm, obs))
		}
	})
	if n < 30_000 {
		t.Errorf("%d situations were tried, want at least 30000", n)
	}
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte{}, "web", "web", int32(2), 2)
	f.Add([]byte{0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 2}, "web", "", int32(0), 0)
	f.Add([]byte{1, 3, 0, 0, 1, 0, 2, 1, 1, 0, 1, 2}, "", "db", int32(-1), 1<<30)
	f.Add([]byte{255, 254, 253, 252, 251, 250, 249, 248, 247, 246}, "\xff", "%s%d", int32(1<<30), -1)
	f.Fuzz(func(t *testing.T, data []byte, wanted, has string, cores int32, cpu int) {
		at := -1
		vm, obs := situation(func(n int) int {
			at++
			if at >= len(data) {
				return 0
			}
			return int(data[at]) % n
		})
		vm.Spec.VMName, vm.Spec.CPU = wanted, pcapi.Cores(cores)
		for i := range obs.Candidates {
			obs.Candidates[i].Name, obs.Candidates[i].CPU = has, cpu
		}
		if obs.Resource != nil {
			obs.Resource.Name, obs.Resource.CPU = has, cpu
		}
		before, was := vm.DeepCopy(), describeSituation(vm, obs)
		planned := pure.Plan(vm, obs)
		steps, outcome := planned.Names(), planned.Outcome
		if err := checkPlan(vm, obs, steps, outcome); err != nil {
			t.Errorf("%v\nplan %v, %s\n%s", err, steps, describe(outcome), was)
		}
		if diff := cmp.Diff(before, vm) + cmp.Diff(was, describeSituation(vm, obs)); diff != "" {
			t.Errorf("Plan changed its input:\n%s", diff)
		}
		repeated := pure.Plan(vm, obs)
		again, outcomeAgain := repeated.Names(), repeated.Outcome
		if diff := cmp.Diff(decision{steps, describe(outcome)}, decision{again, describe(outcomeAgain)}); diff != "" {
			t.Errorf("Plan is not deterministic:\n%s", diff)
		}
		pure.Report(vm, obs, outcome)
	})
}
