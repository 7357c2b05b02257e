package vm

import (
	"testing"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

func TestPlanOfADeletion(t *testing.T) {
	vm := vmWith(recorded, deleted)
	kept := vmWith(recorded, deleted, orphaning)
	full := []string{stepDelete, stepConfirmGone, stepRelease}
	runPlans(t, []planCase{
		{name: "the server is deleted, its absence confirmed, and only then the object let go", vm: vm, obs: seeing(everything, holding(serverWith())), steps: full, outcome: "in sync"},
		{name: "one that is still being built is deleted like any other", vm: vm, obs: seeing(everything, holding(serverWith(in(cloud.StateBuilding)))), steps: full, outcome: "in sync"},
		{name: "the namespace lost its right to the Cloud: what it has there is deleted all the same", vm: vm, obs: seeing(everything, holding(serverWith()), denied), steps: full, outcome: "in sync"},
		{name: "the cloud is at it already: nobody has to be told yet", vm: vm, obs: seeing(everything, holding(serverWith(in(cloud.StateDeleting)))), outcome: "quietly waiting: Requested, again in 30s", says: "is deleting VM s1"},
		{name: "the cloud takes its time", vm: vm, obs: seeing(everything, holding(serverWith(in(cloud.StateDeleting))), later(quiet)), outcome: "waiting: Requested, again in 1m0s", says: "is deleting VM s1"},
		{name: "the cloud itself said that it is gone", vm: vm, obs: seeing(everything, claimed, isGone), steps: []string{stepConfirmGone, stepRelease}, outcome: "in sync"},
		{name: "nothing is known of it: the cloud must say that it is gone", vm: vm, obs: seeing(everything, claimed, away), steps: []string{stepConfirmGone, stepRelease}, outcome: "in sync"},
		{name: "its labels name somebody else: it is not deleted", vm: vm, obs: seeing(everything, holding(serverWith()), foreignTo), outcome: "stalled: Blocked", says: "set spec.deletionPolicy to Orphan"},
		{name: "another VM object that lives records it too: it stays for that one", vm: vm, obs: seeing(named, holding(serverWith(bare)), rivalled), steps: []string{stepRelease}, outcome: "in sync"},
		{name: "a server made twice: the other one goes first", vm: vm, obs: seeing(everything, holding(serverWith()), func(s *scope) { s.duplicates = []cloud.Server{serverWith(id("s2"))} }), steps: []string{stepDeleteDuplicate}, outcome: "in sync"},
		{name: "to be kept: it loses our labels, lest it count as an orphan", vm: kept, obs: seeing(everything, holding(serverWith())), steps: []string{stepUnlabel, stepRelease}, outcome: "in sync"},
		{name: "to be kept, on a cloud without labels", vm: kept, obs: seeing(named, holding(serverWith(bare))), steps: []string{stepRelease}, outcome: "in sync"},
		{name: "to be kept, and no longer ours", vm: kept, obs: seeing(everything, holding(serverWith()), foreignTo), steps: []string{stepRelease}, outcome: "in sync"},
		{name: "to be kept, and its Cloud does not exist any more", vm: kept, obs: seeing(nil, claimed, away, denied, func(s *scope) { s.cloudless = true }), steps: []string{stepRelease}, outcome: "in sync"},
		{name: "to be deleted, and its Cloud does not exist any more: it waits for somebody to say where the server is", vm: vm, obs: seeing(nil, claimed, away, denied, func(s *scope) { s.cloudless = true }), steps: []string{stepConfirmGone, stepRelease}, outcome: "in sync"},
		{name: "only observed: the server is released, or an orphanPolicy would remove it later", vm: vmWith(recorded, deleted, observeOnly), obs: seeing(everything, holding(serverWith())), steps: []string{stepUnlabel, stepRelease}, outcome: "in sync"},
	})
}

func TestPlanOfADeletionBeforeTheServerWasRecorded(t *testing.T) {
	vm := vmWith(deleted)
	kept := vmWith(deleted, orphaning)
	two := []cloud.Server{serverWith(), serverWith(id("s2"))}
	full := []string{stepAdopt, stepDelete, stepConfirmGone, stepRelease}
	runPlans(t, []planCase{
		{name: "a create may have been sent: looked for first", vm: vm, obs: seeing(everything, claimed), steps: []string{stepLook}, outcome: "in sync"},
		{name: "nothing came of it, long enough after", vm: vm, obs: seeing(everything, finding(noProof)), steps: []string{stepRelease}, outcome: "in sync"},
		{name: "something may still come of it, key or not", vm: vm, obs: seeing(everything, finding(noProof), settling), outcome: "waiting: Requested, again in 1m0s", says: "settleTime"},
		{name: "found by its labels", vm: vm, obs: seeing(everything, finding(labelProof, serverWith())), steps: full, outcome: "in sync"},
		{name: "found by its unique name", vm: vm, obs: seeing(named, finding(nameProof, serverWith(bare))), steps: full, outcome: "in sync"},
		{name: "found, and the cloud is at it already: its id is recorded, by which news of it find the VM", vm: vm, obs: seeing(everything, finding(labelProof, serverWith(in(cloud.StateDeleting))), later(quiet)), steps: []string{stepAdopt}, outcome: "waiting: Requested, again in 1m0s", says: "is deleting VM s1"},
		{name: "found twice: one goes at a time", vm: vm, obs: seeing(everything, finding(labelProof, two...)), steps: []string{stepAdopt, stepDeleteDuplicate}, outcome: "in sync"},
		{
			name: "two of one name on a cloud that should keep names unique: neither is deleted by guess", vm: vm, obs: seeing(named, finding(nameProof, two...)),
			outcome: "stalled: Blocked, again in 1m0s", says: `VM s1, s2 named "web" may be this VM`,
		},
		{name: "a name proves nothing here: never deleted by guess", vm: vm, obs: seeing(nameless, finding(noProof, serverWith(bare))), outcome: "stalled: Blocked, again in 1m0s", says: "set spec.deletionPolicy to Orphan"},
		{name: "to be kept: it loses our labels", vm: kept, obs: seeing(everything, finding(labelProof, serverWith())), steps: []string{stepAdopt, stepUnlabel, stepRelease}, outcome: "in sync"},
		{name: "to be kept, and never found: nothing is to be done about it", vm: kept, obs: seeing(everything, claimed), steps: []string{stepRelease}, outcome: "in sync"},
		{name: "to be kept, and perhaps somebody's", vm: kept, obs: seeing(nameless, finding(noProof, serverWith(bare))), steps: []string{stepRelease}, outcome: "in sync"},
	})
}

func TestPlanOfADeletionBeforeAnImportWasRecorded(t *testing.T) {
	vm := vmWith(deleted, importing)
	runPlans(t, []planCase{
		{name: "it was never labelled as ours: left alone", vm: vm, obs: seeing(everything, holding(serverWith(bare)), foreignTo), steps: []string{stepRelease}, outcome: "in sync"},
		{name: "it was labelled as ours, and the pass cut off: deleted as deletionPolicy says", vm: vm, obs: seeing(everything, holding(serverWith())), steps: []string{stepDelete, stepConfirmGone, stepRelease}, outcome: "in sync"},
		{name: "it was labelled as ours and is to be kept", vm: vmWith(deleted, importing, orphaning), obs: seeing(everything, holding(serverWith())), steps: []string{stepUnlabel, stepRelease}, outcome: "in sync"},
		{name: "there is no such server", vm: vm, obs: seeing(everything, claimed, isGone), steps: []string{stepConfirmGone, stepRelease}, outcome: "in sync"},
		{
			name: "another VM object has that server: it was never this one's, whatever was claimed before", vm: vm,
			obs: seeing(named, holding(serverWith(bare)), rivalled), steps: []string{stepRelease}, outcome: "in sync",
		},
		{
			name: "the server has another name: it was never accepted as this one's", vm: vm,
			obs: seeing(named, holding(serverWith(bare, called("db")))), steps: []string{stepRelease}, outcome: "in sync",
		},
		{name: "only to be observed, and not obs: it may carry our labels", vm: vmWith(deleted, importing, observeOnly), obs: seeing(everything, claimed), steps: []string{stepConfirmGone, stepRelease}, outcome: "in sync"},
	})
}

func TestPlanKeepsAPolicyThatIsNotSpelledOut(t *testing.T) {
	defaulted := vmWith(recorded, deleted, func(vm *v1alpha1.VM) { vm.Spec.DeletionPolicy, vm.Spec.ManagementPolicy = "", "" })
	runPlans(t, []planCase{{
		name: "an absent deletionPolicy is Delete, an absent managementPolicy Managed", vm: defaulted, obs: seeing(everything, holding(serverWith())),
		steps: []string{stepDelete, stepConfirmGone, stepRelease}, outcome: "in sync",
	}})
}
