package vm

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/privatecloud/operator/api/v1alpha1"
)

// elsewhere claims the VM on another Cloud than its spec names now.
func elsewhere(vm *v1alpha1.VM) {
	controllerutil.AddFinalizer(vm, Finalizer)
	vm.Annotations = map[string]string{ClaimedNameAnnotation: vm.Spec.VMName, ClaimedCloudAnnotation: "former"}
}

func movedAway(obs *scope) { obs.moved, obs.cloud = true, "former" }

func TestPlanAfterCloudRefWasEdited(t *testing.T) {
	vm := vmWith(elsewhere)
	runPlans(t, []planCase{
		{name: "the Cloud of the claim is searched before anything is made on the new one", vm: vm, obs: seeing(everything, claimed, movedAway), steps: []string{stepLook}, outcome: "in sync"},
		{name: "a server may still come of the first create: a key does not help on another cloud", vm: vm, obs: seeing(everything, finding(noProof), settling, movedAway), outcome: "waiting: OutcomeUnknown, again in 1m0s", says: "settleTime"},
		{name: "nothing came of it: the claim is taken back, and the next pass is about the new Cloud", vm: vm, obs: seeing(everything, finding(noProof), movedAway), steps: []string{stepUnclaim}, outcome: "waiting: Progressing, again in 1s", says: "named before"},
		{name: "a server came of it: it is not made twice", vm: vm, obs: seeing(everything, finding(labelProof, serverWith()), movedAway), outcome: "stalled: Drift, again in 10m0s", says: `VM s1 is on Cloud "former"`},
		{name: "an import was begun on the first Cloud", vm: vmWith(elsewhere, importing), obs: seeing(everything, claimed, movedAway), outcome: "stalled: Drift, again in 10m0s", says: `VM s1 is on Cloud "former"`},
		{name: "deleted: what came of it is deleted where it is", vm: vmWith(elsewhere, deleted), obs: seeing(everything, finding(labelProof, serverWith()), movedAway), steps: []string{stepAdopt, stepDelete, stepConfirmGone, stepRelease}, outcome: "in sync"},
	})
}

func TestTheCloudThatAVMIsOn(t *testing.T) {
	for name, test := range map[string]struct {
		vm   *v1alpha1.VM
		want string
	}{
		"none, before a claim":                    {vmWith(), ""},
		"the claim's, while nothing is on record": {vmWith(elsewhere), "former"},
		"that of the record, which cannot change": {vmWith(elsewhere, recorded), "default"},
		"none, once the finalizer was taken off":  {vmWith(elsewhere, func(vm *v1alpha1.VM) { vm.Finalizers = nil }), ""},
	} {
		if got := recordedCloud(test.vm); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
