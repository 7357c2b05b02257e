package vm

import (
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
)

func TestPlanDeletion(t *testing.T) {
	vm := vmWith(recorded, deleted)
	kept := vmWith(recorded, deleted, orphaning)
	full := []string{external.StepDelete, external.StepConfirmGone, external.StepRelease}
	runPlans(t, []planCase{
		{name: "server exists: deleted, confirmed gone, then released", vm: vm, obs: obsWith(everything, withServer(serverWith())), steps: full, outcome: "in sync"},
		{name: "its group is protected: kept", vm: vm, obs: obsWith(everything, withServer(serverWith()), func(s *observation) { s.KeptBy = `VmGroup "web"` }), outcome: "stalled: Blocked, again in 10m0s", message: `remove the annotation samplecontroller.k8s.io/deletion-protection of VmGroup "web" to delete it`},
		{name: "server is being built: deleted", vm: vm, obs: obsWith(everything, withServer(serverWith(inState(cloud.StateBuilding)))), steps: full, outcome: "in sync"},
		{name: "namespace may no longer use the Cloud: deleted", vm: vm, obs: obsWith(everything, withServer(serverWith()), denied), steps: full, outcome: "in sync"},
		{name: "cloud is deleting the server: quiet wait", vm: vm, obs: obsWith(everything, withServer(serverWith(inState(cloud.StateDeleting)))), outcome: "quietly waiting: Requested, again in 5s", message: "is deleting VM s1"},
		{name: "cloud is deleting the server for long: wait is reported", vm: vm, obs: obsWith(everything, withServer(serverWith(inState(cloud.StateDeleting))), later(quiet)), outcome: "waiting: Requested, again in 1m0s", message: "is deleting VM s1"},
		{name: "get returned NotFound: released", vm: vm, obs: obsWith(everything, claimed, gone), steps: []string{external.StepConfirmGone, external.StepRelease}, outcome: "in sync"},
		{name: "cloud unavailable: absence must be confirmed", vm: vm, obs: obsWith(everything, claimed, unavailable), steps: []string{external.StepConfirmGone, external.StepRelease}, outcome: "in sync"},
		{name: "labels name another owner: not deleted", vm: vm, obs: obsWith(everything, withServer(serverWith()), notOwned), outcome: "stalled: Blocked, again in 1m0s", message: "set spec.deletionPolicy to Orphan"},
		{name: "another VM records the server: released without deletion", vm: vm, obs: obsWith(uniqueNamesOnly, withServer(serverWith(unlabelled)), withRival), steps: []string{external.StepRelease}, outcome: "in sync"},
		{name: "duplicate exists: deleted first", vm: vm, obs: obsWith(everything, withServer(serverWith()), func(s *observation) { s.Duplicates = []cloud.Server{serverWith(withID("s2"))} }), steps: []string{external.StepDeleteDuplicate}, outcome: "in sync"},
		{name: "deletionPolicy Orphan: labels removed so that it does not count as an orphan", vm: kept, obs: obsWith(everything, withServer(serverWith())), steps: []string{stepUnlabel, external.StepRelease}, outcome: "in sync"},
		{name: "deletionPolicy Orphan without labels: released", vm: kept, obs: obsWith(uniqueNamesOnly, withServer(serverWith(unlabelled))), steps: []string{external.StepRelease}, outcome: "in sync"},
		{name: "deletionPolicy Orphan and labels name another owner: released", vm: kept, obs: obsWith(everything, withServer(serverWith()), notOwned), steps: []string{external.StepRelease}, outcome: "in sync"},
		{
			name: "deletionPolicy Orphan and some labels removed: the others removed", vm: kept,
			obs:   obsWith(everything, withServer(serverWith()), notOwned, func(s *observation) { s.unlabelling = true }),
			steps: []string{stepUnlabel, external.StepRelease}, outcome: "in sync",
		},
		{name: "deletionPolicy Orphan and Cloud missing: released", vm: kept, obs: obsWith(nil, claimed, unavailable, denied, func(s *observation) { s.CloudMissing = true }), steps: []string{external.StepRelease}, outcome: "in sync"},
		{name: "Cloud missing: absence must be confirmed", vm: vm, obs: obsWith(nil, claimed, unavailable, denied, func(s *observation) { s.CloudMissing = true }), steps: []string{external.StepConfirmGone, external.StepRelease}, outcome: "in sync"},
		{name: "ObserveOnly: labels removed and released", vm: vmWith(recorded, deleted, observing), obs: obsWith(everything, withServer(serverWith())), steps: []string{stepUnlabel, external.StepRelease}, outcome: "in sync"},
	})
}

func TestPlanDeletionBeforeServerIsRecorded(t *testing.T) {
	vm := vmWith(deleted)
	kept := vmWith(deleted, orphaning)
	two := []cloud.Server{serverWith(), serverWith(withID("s2"))}
	full := []string{external.StepAdopt, external.StepDelete, external.StepConfirmGone, external.StepRelease}
	runPlans(t, []planCase{
		{name: "a create may have been sent: look", vm: vm, obs: obsWith(everything, claimed), steps: []string{external.StepLook}, outcome: "in sync"},
		{name: "create had no effect and settle time is over: released", vm: vm, obs: obsWith(everything, withCandidates(external.NoProof)), steps: []string{external.StepRelease}, outcome: "in sync"},
		{name: "settle time is not over: wait, even with a key", vm: vm, obs: obsWith(everything, withCandidates(external.NoProof), awaitingSettleTime), outcome: "waiting: Requested, again in 1m0s", message: "settleTime"},
		{name: "found by labels: adopted and deleted", vm: vm, obs: obsWith(everything, withCandidates(external.OwnerProof, serverWith())), steps: full, outcome: "in sync"},
		{name: "found by unique name: adopted and deleted", vm: vm, obs: obsWith(uniqueNamesOnly, withCandidates(external.NameProof, serverWith(unlabelled))), steps: full, outcome: "in sync"},
		{name: "found and being deleted: adopted so that events enqueue the VM", vm: vm, obs: obsWith(everything, withCandidates(external.OwnerProof, serverWith(inState(cloud.StateDeleting))), later(quiet)), steps: []string{external.StepAdopt}, outcome: "waiting: Requested, again in 1m0s", message: "is deleting VM s1"},
		{name: "two found by labels: one deleted at a time", vm: vm, obs: obsWith(everything, withCandidates(external.OwnerProof, two...)), steps: []string{external.StepAdopt, external.StepDeleteDuplicate}, outcome: "in sync"},
		{
			name: "two found by unique name: blocked", vm: vm, obs: obsWith(uniqueNamesOnly, withCandidates(external.NameProof, two...)),
			outcome: "stalled: Blocked, again in 1m0s", message: `VM s1, s2 named "web" may be this VM`,
		},
		{name: "found by name that proves nothing: blocked", vm: vm, obs: obsWith(withoutProofs, withCandidates(external.NoProof, serverWith(unlabelled))), outcome: "stalled: Blocked, again in 1m0s", message: "set spec.deletionPolicy to Orphan"},
		{name: "deletionPolicy Orphan and found: labels removed", vm: kept, obs: obsWith(everything, withCandidates(external.OwnerProof, serverWith())), steps: []string{external.StepAdopt, stepUnlabel, external.StepRelease}, outcome: "in sync"},
		{name: "deletionPolicy Orphan and not searched: searched first", vm: kept, obs: obsWith(everything, claimed), steps: []string{external.StepLook}, outcome: "in sync"},
		{name: "deletionPolicy Orphan and found by name that proves nothing: released", vm: kept, obs: obsWith(withoutProofs, withCandidates(external.NoProof, serverWith(unlabelled))), steps: []string{external.StepRelease}, outcome: "in sync"},
	})
}

func TestPlanDeletionBeforeImportIsRecorded(t *testing.T) {
	vm := vmWith(deleted, importing)
	runPlans(t, []planCase{
		{name: "server was never labelled: released without deletion", vm: vm, obs: obsWith(everything, withServer(serverWith(unlabelled)), notOwned), steps: []string{external.StepRelease}, outcome: "in sync"},
		{name: "server was labelled by an interrupted reconcile: deleted", vm: vm, obs: obsWith(everything, withServer(serverWith())), steps: []string{external.StepDelete, external.StepConfirmGone, external.StepRelease}, outcome: "in sync"},
		{name: "server was labelled and deletionPolicy Orphan: labels removed", vm: vmWith(deleted, importing, orphaning), obs: obsWith(everything, withServer(serverWith())), steps: []string{stepUnlabel, external.StepRelease}, outcome: "in sync"},
		{name: "server does not exist: absence must be confirmed", vm: vm, obs: obsWith(everything, claimed, gone), steps: []string{external.StepConfirmGone, external.StepRelease}, outcome: "in sync"},
		{
			name: "another VM has the server: released without deletion", vm: vm,
			obs: obsWith(uniqueNamesOnly, withServer(serverWith(unlabelled)), withRival), steps: []string{external.StepRelease}, outcome: "in sync",
		},
		{
			name: "server has another name: released without deletion", vm: vm,
			obs: obsWith(uniqueNamesOnly, withServer(serverWith(unlabelled, withName("db")))), steps: []string{external.StepRelease}, outcome: "in sync",
		},
		{name: "ObserveOnly and not observed: absence must be confirmed", vm: vmWith(deleted, importing, observing), obs: obsWith(everything, claimed), steps: []string{external.StepConfirmGone, external.StepRelease}, outcome: "in sync"},
	})
}

func TestPlanAppliesDefaultPolicies(t *testing.T) {
	defaulted := vmWith(recorded, deleted, func(vm *pcapi.VM) { vm.Spec.DeletionPolicy, vm.Spec.ManagementPolicy = "", "" })
	runPlans(t, []planCase{{
		name: "no policies: Delete and Managed", vm: defaulted, obs: obsWith(everything, withServer(serverWith())),
		steps: []string{external.StepDelete, external.StepConfirmGone, external.StepRelease}, outcome: "in sync",
	}})
}
