package vm

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/external"
)

// claimedOnFormerCloud returns a VM with a claim on the Cloud that spec.cloudRef named before.
func claimedOnFormerCloud(vm *pcapi.VM) {
	controllerutil.AddFinalizer(vm, pcapi.VMFinalizer)
	vm.Annotations = map[string]string{pcapi.ClaimedNameAnnotation: vm.Spec.VMName, pcapi.ClaimedCloudAnnotation: "former"}
}

func moved(obs *observation) { obs.Moved, obs.Cloud = true, "former" }

func TestPlanAfterCloudRefEdit(t *testing.T) {
	vm := vmWith(claimedOnFormerCloud)
	runPlans(t, []planCase{
		{name: "claim on the former Cloud: look there first", vm: vm, obs: obsWith(everything, claimed, moved), steps: []string{external.StepLook}, outcome: "in sync"},
		{name: "settle time is not over: wait, even with a key", vm: vm, obs: obsWith(everything, withCandidates(external.NoProof), awaitingSettleTime, moved), outcome: "waiting: OutcomeUnknown, again in 1m0s", message: "settleTime"},
		{name: "create had no effect: claim removed", vm: vm, obs: obsWith(everything, withCandidates(external.NoProof), moved), steps: []string{external.StepUnclaim}, outcome: "waiting: Progressing, again in 1s", message: "named before"},
		{name: "server found on the former Cloud: drift", vm: vm, obs: obsWith(everything, withCandidates(external.OwnerProof, serverWith()), moved), outcome: "stalled: Drift, again in 10m0s", message: `VM s1 is on Cloud "former"`},
		{name: "import begun on the former Cloud: drift", vm: vmWith(claimedOnFormerCloud, importing), obs: obsWith(everything, claimed, moved), outcome: "stalled: Drift, again in 10m0s", message: `VM s1 is on Cloud "former"`},
		{name: "deleted and server found on the former Cloud: deleted there", vm: vmWith(claimedOnFormerCloud, deleted), obs: obsWith(everything, withCandidates(external.OwnerProof, serverWith()), moved), steps: []string{external.StepAdopt, external.StepDelete, external.StepConfirmGone, external.StepRelease}, outcome: "in sync"},
	})
}

func TestRecordedCloud(t *testing.T) {
	for name, test := range map[string]struct {
		vm   *pcapi.VM
		want string
	}{
		"no claim: none": {vmWith(), ""},
		"claim without a record: that of the claim": {vmWith(claimedOnFormerCloud), "former"},
		"recorded server: that of the record":       {vmWith(claimedOnFormerCloud, recorded), "default"},
		"claim without the finalizer: none":         {vmWith(claimedOnFormerCloud, func(vm *pcapi.VM) { vm.Finalizers = nil }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			equal(t, "recorded Cloud", test.want, recordedCloud(test.vm))
		})
	}
}
