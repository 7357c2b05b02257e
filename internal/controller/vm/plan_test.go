package vm

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller/vm/field"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
)

// decision is a plan as text.
type decision struct {
	Steps   []string
	Outcome string
}

// describe formats an outcome without its message.
func describe(outcome error) string {
	again := func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return ", again in " + d.String()
	}
	if e, ok := errors.AsType[*reconciler.WaitError](outcome); ok {
		if e.Quiet {
			return "quietly waiting: " + e.Reason + again(e.After)
		}
		return "waiting: " + e.Reason + again(e.After)
	}
	if e, ok := errors.AsType[*reconciler.BlockedError](outcome); ok {
		return "blocked: " + e.Reason + " by " + e.On
	}
	if e, ok := errors.AsType[*reconciler.StalledError](outcome); ok {
		return "stalled: " + e.Reason + again(e.Recheck)
	}
	if errors.Is(outcome, reconciler.ErrUnknown) {
		return "unknown"
	}
	if outcome != nil {
		return "error: " + outcome.Error()
	}
	return "in sync"
}

type planCase struct {
	name  string
	vm    *pcapi.VM
	obs   *observation
	steps []string
	// outcome is the text of describe, and message a part of the outcome's message.
	outcome, message string
}

func runPlans(t *testing.T, tests []planCase) {
	t.Helper()
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			p := pure.Plan(tc.vm, tc.obs)
			steps, outcome := p.Names(), p.Outcome
			if diff := cmp.Diff(decision{tc.steps, tc.outcome}, decision{steps, describe(outcome)}); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if outcome != nil && (tc.message == "" || !strings.Contains(outcome.Error(), tc.message)) {
				t.Errorf("message %q, want %q in it", outcome, tc.message)
			}
			if err := checkPlan(tc.vm, tc.obs, steps, outcome); err != nil {
				t.Errorf("rule: %v", err)
			}
		})
	}
}

func TestPlanCreate(t *testing.T) {
	fresh := []string{stepCheckName, external.StepClaim, external.StepCreate}
	demanding := vmWith(poweredOff, func(vm *pcapi.VM) {
		vm.Spec.Memory, vm.Spec.Template, vm.Spec.Folder = pcapi.GiB(4), "debian", "web"
	})
	runPlans(t, []planCase{
		{name: "no claim: name check, claim, create", vm: vmWith(), obs: obsWith(everything), steps: fresh, outcome: "in sync"},
		{
			name: "cloud does not support the spec: stalled",
			vm:   demanding, obs: obsWith(cloud.NewCapabilities(cloud.UniqueNames)),
			outcome: "stalled: Unsupported, again in 10m0s", message: "cannot set cpu, memory, template, folder, powerState",
		},
		{name: "cloud unavailable: capabilities are unknown and nothing is refused", vm: demanding, obs: obsWith(nil, unavailable), steps: fresh, outcome: "in sync"},
		{name: "cloud supports the spec: created", vm: demanding, obs: obsWith(everything), steps: fresh, outcome: "in sync"},
		{name: "another VM has the unique name: stalled", vm: vmWith(), obs: obsWith(uniqueNamesOnly, withRival), outcome: "stalled: Taken, again in 1m0s", message: "another VM object"},
		{
			name: "name prohibited recently: stalled without a check", vm: vmWith(),
			obs:     obsWith(everything, func(s *observation) { s.nameErr = errProhibited }),
			outcome: "stalled: Prohibited, again in 10m0s", message: "not allowed",
		},
		{
			name: "name taken recently: stalled with an earlier recheck", vm: vmWith(),
			obs:     obsWith(everything, func(s *observation) { s.nameErr = errTaken }),
			outcome: "stalled: Taken, again in 1m0s", message: "the name is in use",
		},
		{name: "Cloud not allowed: blocked", vm: vmWith(), obs: obsWith(everything, denied), outcome: "blocked: CloudUnavailable by Cloud/default", message: "does not exist"},
	})
}

func TestPlanLooksBeforeSecondCreate(t *testing.T) {
	two := []cloud.Server{serverWith(), serverWith(withID("s2"))}
	many := make([]cloud.Server, 7)
	for i := range many {
		many[i] = serverWith(withID(fmt.Sprintf("s%d", i+1)), unlabelled)
	}
	runPlans(t, []planCase{
		{name: "claim of an earlier reconcile: look", vm: vmWith(), obs: obsWith(withoutKeys, claimed), steps: []string{external.StepLook}, outcome: "in sync"},
		{name: "claim and idempotency key: look", vm: vmWith(), obs: obsWith(everything, claimed), steps: []string{external.StepLook}, outcome: "in sync"},
		{name: "created with its claim, key and labels: name check, create", vm: vmWith(), obs: obsWith(everything, claimed, isNew), steps: []string{stepCheckName, external.StepCreate}, outcome: "in sync"},
		{name: "created with its claim, key and labels, found: adopted", vm: vmWith(), obs: obsWith(everything, isNew, withCandidates(external.OwnerProof, serverWith())), steps: []string{external.StepAdopt}, outcome: "in sync"},
		{name: "created with its claim, no key: look", vm: vmWith(), obs: obsWith(withoutKeys, claimed, isNew), steps: []string{external.StepLook}, outcome: "in sync"},
		{name: "created with its claim, key without labels: look", vm: vmWith(), obs: obsWith(without(cloud.Labels, cloud.UniqueNames), claimed, isNew), steps: []string{external.StepLook}, outcome: "in sync"},
		{name: "created with a claim of another name: look", vm: vmWith(), obs: obsWith(everything, claimedOtherName, isNew), steps: []string{external.StepLook}, outcome: "in sync"},
		{name: "created with its claim and reported, name not checked yet: look", vm: vmWith(), obs: obsWith(everything, claimed), steps: []string{external.StepLook}, outcome: "in sync"},
		{
			name: "created with its claim and reported, nothing found: name check, create", vm: vmWith(),
			obs: obsWith(everything, withCandidates(external.NoProof)), steps: []string{stepCheckName, external.StepCreate}, outcome: "in sync",
		},
		{
			name: "created with its claim, name prohibited recently: stalled", vm: vmWith(),
			obs: obsWith(everything, claimed, isNew, func(s *observation) { s.nameErr = errProhibited }), outcome: "stalled: Prohibited, again in 10m0s", message: "not allowed",
		},
		{name: "nothing found and settle time is over: create under the claim", vm: vmWith(), obs: obsWith(withoutKeys, withCandidates(external.NoProof)), steps: []string{external.StepCreate}, outcome: "in sync"},
		{
			name: "nothing found and settle time is not over, no key: wait", vm: vmWith(), obs: obsWith(withoutKeys, withCandidates(external.NoProof), awaitingSettleTime),
			outcome: "waiting: OutcomeUnknown, again in 1m0s", message: "settleTime",
		},
		{name: "nothing found and settle time is not over, key: create again", vm: vmWith(nameChecked), obs: obsWith(everything, withCandidates(external.NoProof), awaitingSettleTime), steps: []string{external.StepCreate}, outcome: "in sync"},
		{name: "found by labels: adopted", vm: vmWith(), obs: obsWith(withoutKeys, withCandidates(external.OwnerProof, serverWith())), steps: []string{external.StepAdopt}, outcome: "in sync"},
		{
			name: "found by labels in an incomplete search: adopted", vm: vmWith(),
			obs: obsWith(withoutKeys, withCandidates(external.OwnerProof, serverWith()), awaitingSettleTime, func(s *observation) { s.Looked = false }), steps: []string{external.StepAdopt}, outcome: "in sync",
		},
		{name: "found while being built: adopted, waiting", vm: vmWith(), obs: obsWith(withoutKeys, withCandidates(external.OwnerProof, serverWith(inState(cloud.StateBuilding)))), steps: []string{external.StepAdopt}, outcome: "waiting: Creating, again in 1m0s", message: "building VM s1"},
		{name: "found and differs from the spec: adopted, updated in the next reconcile", vm: vmWith(), obs: obsWith(withoutKeys, withCandidates(external.OwnerProof, serverWith(withCores(1)))), steps: []string{external.StepAdopt}, outcome: "waiting: Progressing, again in 1s", message: "brought in line"},
		{name: "found under the former name: adopted, updated in the next reconcile", vm: vmWith(claimedFormerName), obs: obsWith(withoutKeys, claimedOtherName, withCandidates(external.OwnerProof, serverWith(withName("former")))), steps: []string{external.StepAdopt}, outcome: "waiting: Progressing, again in 1s", message: "brought in line"},
		{name: "two found by labels: the oldest adopted, the other deleted", vm: vmWith(), obs: obsWith(withoutKeys, withCandidates(external.OwnerProof, two...)), steps: []string{external.StepAdopt, external.StepDeleteDuplicate}, outcome: "in sync"},
		{name: "found by unique name: adopted", vm: vmWith(), obs: obsWith(uniqueNamesOnly, withCandidates(external.NameProof, serverWith(unlabelled))), steps: []string{external.StepAdopt}, outcome: "in sync"},
		{
			name: "two found by unique name: ambiguous", vm: vmWith(), obs: obsWith(uniqueNamesOnly, withCandidates(external.NameProof, two...)),
			outcome: "stalled: Ambiguous, again in 1m0s", message: `VM s1, s2 named "web" may be this VM`,
		},
		{
			name: "found by name that proves nothing: ambiguous", vm: vmWith(), obs: obsWith(withoutProofs, withCandidates(external.NoProof, serverWith(unlabelled))),
			outcome: "stalled: Ambiguous, again in 1m0s", message: "set spec.import.vmId",
		},
		{
			name: "many found by name: ambiguous, counted in the message", vm: vmWith(), obs: obsWith(withoutProofs, withCandidates(external.NoProof, many...)),
			outcome: "stalled: Ambiguous, again in 1m0s", message: `7 VMs named "web" (s1, s2, s3, s4, s5, …)`,
		},
		{
			name: "found by name that proves nothing, key: create again", vm: vmWith(),
			obs: obsWith(without(cloud.Labels, cloud.UniqueNames), withCandidates(external.NoProof, serverWith(unlabelled))), steps: []string{external.StepCreate}, outcome: "in sync",
		},
	})
}

func TestPlanAfterVMNameEdit(t *testing.T) {
	fresh := []string{stepCheckName, external.StepClaim, external.StepCreate}
	runPlans(t, []planCase{
		{name: "create of the first name had no effect: the second is checked and claimed", vm: vmWith(), obs: obsWith(withoutKeys, withCandidates(external.NoProof), claimedOtherName), steps: fresh, outcome: "in sync"},
		{
			name: "create of the first name had no effect and the second is refused: stalled", vm: vmWith(),
			obs:     obsWith(withoutKeys, withCandidates(external.NoProof), claimedOtherName, func(s *observation) { s.nameErr = errProhibited }),
			outcome: "stalled: Prohibited, again in 10m0s", message: "not allowed",
		},
		{
			name: "settle time of the first name is not over: wait, even with a key", vm: vmWith(),
			obs: obsWith(everything, withCandidates(external.NoProof), claimedOtherName, awaitingSettleTime), outcome: "waiting: OutcomeUnknown, again in 1m0s", message: "settleTime",
		},
		{
			name: "server of the first name found, proves nothing: ambiguous, even with a key", vm: vmWith(),
			obs: obsWith(without(cloud.Labels, cloud.UniqueNames), withCandidates(external.NoProof, serverWith(unlabelled, withName("former"))), claimedOtherName), outcome: "stalled: Ambiguous, again in 1m0s", message: `named "former"`,
		},
		{name: "another VM has the name and the create had no effect: claim removed", vm: vmWith(), obs: obsWith(uniqueNamesOnly, withCandidates(external.NameProof), withRival), steps: []string{external.StepUnclaim}, outcome: "stalled: Taken, again in 1m0s", message: "another VM object"},
		{
			name: "another VM has the name and settle time is not over: wait", vm: vmWith(),
			obs: obsWith(uniqueNamesOnly, withCandidates(external.NameProof), withRival, awaitingSettleTime), outcome: "waiting: OutcomeUnknown, again in 1m0s", message: "settleTime",
		},
		{
			name: "another VM has the name and settle time is not over, key: stalled with the claim", vm: vmWith(),
			obs: obsWith(without(cloud.Labels), withCandidates(external.NameProof), withRival, awaitingSettleTime), outcome: "stalled: Taken, again in 1m0s", message: "another VM object",
		},
	})
}

func TestPlanImport(t *testing.T) {
	vm := vmWith(importing)
	runPlans(t, []planCase{
		{name: "another VM has the server: ambiguous", vm: vm, obs: obsWith(everything, withRival), outcome: "stalled: Ambiguous, again in 1m0s", message: "another VM object"},
		{name: "server does not exist: rejected", vm: vm, obs: obsWith(everything, gone), outcome: "stalled: Rejected, again in 10m0s", message: "the cloud has no VM s1"},
		{name: "cloud unavailable: look", vm: vm, obs: obsWith(everything, unavailable), steps: []string{external.StepLook}, outcome: "in sync"},
		{
			name: "server has another name: rejected", vm: vm,
			obs:     obsWith(everything, withServer(serverWith(withName("db"), unlabelled)), notOwned, unclaimed),
			outcome: "stalled: Rejected, again in 10m0s", message: `VM s1 is named "db"`,
		},
		{name: "ObserveOnly: adopted without claim and labels", vm: vmWith(importing, observing), obs: obsWith(everything, withServer(serverWith(unlabelled)), notOwned, unclaimed), steps: []string{stepConfirmImport, external.StepAdopt}, outcome: "in sync"},
		{
			name: "ObserveOnly and in error: adopted, stalled", vm: vmWith(importing, observing), obs: obsWith(everything, withServer(serverWith(unlabelled, inState(cloud.StateError))), notOwned, unclaimed),
			steps: []string{stepConfirmImport, external.StepAdopt}, outcome: "stalled: ServerError, again in 10m0s", message: "in error",
		},
		{name: "unlabelled server: read, claimed, labelled, adopted", vm: vm, obs: obsWith(everything, withServer(serverWith(unlabelled)), notOwned, unclaimed), steps: []string{stepConfirmImport, external.StepClaim, stepLabel, external.StepAdopt}, outcome: "in sync"},
		{name: "labelled by an interrupted reconcile: claimed, adopted", vm: vm, obs: obsWith(everything, withServer(serverWith())), steps: []string{external.StepClaim, external.StepAdopt}, outcome: "in sync"},
		{name: "cloud without labels: read, claimed, adopted", vm: vm, obs: obsWith(uniqueNamesOnly, withServer(serverWith(unlabelled))), steps: []string{stepConfirmImport, external.StepClaim, external.StepAdopt}, outcome: "in sync"},
		{name: "differs from the spec: adopted, updated in the next reconcile", vm: vm, obs: obsWith(everything, withServer(serverWith(withCores(1)))), steps: []string{external.StepClaim, external.StepAdopt}, outcome: "waiting: Progressing, again in 1s", message: "brought in line"},
	})
}

func TestPlanExisting(t *testing.T) {
	vm := vmWith(recorded)
	runPlans(t, []planCase{
		{name: "as the spec says: in sync", vm: vm, obs: obsWith(everything, withServer(serverWith())), outcome: "in sync"},
		{name: "Cloud no longer allowed: blocked", vm: vm, obs: obsWith(everything, withServer(serverWith()), denied), outcome: "blocked: CloudUnavailable by Cloud/default", message: "does not exist"},
		{name: "server gone: lost, not created again", vm: vm, obs: obsWith(everything, gone), outcome: "stalled: Lost", message: "it is not created again"},
		{name: "cloud unavailable: unknown", vm: vm, obs: obsWith(everything, unavailable), outcome: "unknown", message: "nothing is known"},
		{name: "ObserveOnly with drift: neither updated nor claimed", vm: vmWith(recorded, observing), obs: obsWith(everything, withServer(serverWith(unlabelled, withCores(1))), notOwned, unclaimed), outcome: "in sync"},
		{name: "ObserveOnly with the labels of the VM, finalizer removed: restored", vm: vmWith(recorded, observing), obs: obsWith(everything, withServer(serverWith(withCores(1))), unclaimed), steps: []string{external.StepClaim}, outcome: "in sync"},
		{name: "ObserveOnly, cloud without labels: not claimed", vm: vmWith(recorded, observing), obs: obsWith(uniqueNamesOnly, withServer(serverWith(unlabelled)), unclaimed), outcome: "in sync"},
		{name: "ObserveOnly and being deleted: waiting", vm: vmWith(recorded, observing), obs: obsWith(everything, withServer(serverWith(inState(cloud.StateDeleting)))), outcome: "waiting: Deleting, again in 1m0s", message: "not by this operator"},
		{name: "duplicate exists: deleted first", vm: vm, obs: obsWith(everything, withServer(serverWith(withCores(1))), func(s *observation) { s.Duplicates = []cloud.Server{serverWith(withID("s2"))} }), steps: []string{external.StepDeleteDuplicate}, outcome: "in sync"},
		{name: "being built: waiting", vm: vm, obs: obsWith(everything, withServer(serverWith(inState(cloud.StateBuilding)))), outcome: "waiting: Creating, again in 1m0s", message: "building"},
		{name: "being deleted by someone else: waiting", vm: vm, obs: obsWith(everything, withServer(serverWith(inState(cloud.StateDeleting)))), outcome: "waiting: Deleting, again in 1m0s", message: "not by this operator"},
		{name: "in error: stalled", vm: vm, obs: obsWith(everything, withServer(serverWith(inState(cloud.StateError)))), outcome: "stalled: ServerError, again in 10m0s", message: "the cloud reports VM s1 in error: look there for the cause"},
		{name: "in error, and the cloud says why: said, without addresses", vm: vm, obs: obsWith(everything, withServer(serverWith(inState(cloud.StateError), func(s *cloud.Server) { s.Fault = "No valid host was found (http://10.0.0.5:8774)" }))), outcome: "stalled: ServerError, again in 10m0s", message: "the cloud reports VM s1 in error: No valid host was found (…"},
		{name: "unknown state: stalled without an update", vm: vm, obs: obsWith(everything, withServer(serverWith(inState(cloud.StateUnknown), withCores(1)))), outcome: "stalled: UnknownState, again in 10m0s", message: "does not know"},
		{name: "named by the cloud: no drift", vm: vmWith(recorded, func(vm *pcapi.VM) { vm.Status.NameInCloud = "web.example.com" }), obs: obsWith(everything, withServer(serverWith(withName("web.example.com")))), outcome: "in sync"},
		{name: "renamed in the cloud: drift", vm: vm, obs: obsWith(everything, withServer(serverWith(withName("db")))), outcome: "stalled: Drift", message: `named "db" in the cloud, not "web"`},
		{name: "other cores: updated", vm: vm, obs: obsWith(everything, withServer(serverWith(withCores(1)))), steps: []string{stepUpdate}, outcome: "in sync"},
		{name: "other cores and no resize: unsupported", vm: vm, obs: obsWith(without(cloud.Resize), withServer(serverWith(withCores(1)))), outcome: "stalled: Unsupported, again in 10m0s", message: "cannot set cpu"},
		{name: "neither resize nor power: unsupported", vm: vmWith(recorded, poweredOff, func(vm *pcapi.VM) { vm.Spec.Memory = pcapi.GiB(2) }), obs: obsWith(without(cloud.Resize, cloud.Power), withServer(serverWith(withCores(1), withMemory(1)))), outcome: "stalled: Unsupported, again in 10m0s", message: "cannot set cpu, memory, powerState"},
		{name: "runs and powerState Off: updated", vm: vmWith(recorded, poweredOff), obs: obsWith(everything, withServer(serverWith())), steps: []string{stepUpdate}, outcome: "in sync"},
		{name: "stopped and powerState On: updated", vm: vm, obs: obsWith(everything, withServer(serverWith(inState(cloud.StateStopped)))), steps: []string{stepUpdate}, outcome: "in sync"},
		{name: "stopped and powerState Off: in sync", vm: vmWith(recorded, poweredOff), obs: obsWith(everything, withServer(serverWith(inState(cloud.StateStopped)))), outcome: "in sync"},
		{name: "an older VM records the server: ambiguous", vm: vm, obs: obsWith(uniqueNamesOnly, withServer(serverWith(unlabelled, withCores(1))), withRival), outcome: "stalled: Ambiguous, again in 1m0s", message: "another VM object"},
		{name: "labels name another owner and differs: blocked", vm: vm, obs: obsWith(everything, withServer(serverWith(withCores(1))), notOwned), outcome: "stalled: Blocked, again in 1m0s", message: "does not carry this object's owner labels"},
		{name: "labels name another owner, as the spec says: in sync", vm: vm, obs: obsWith(everything, withServer(serverWith()), notOwned), outcome: "in sync"},
		{
			name: "imported as ObserveOnly and now Managed: labelled", vm: vmWith(recorded, importing),
			obs: obsWith(everything, withServer(serverWith(unlabelled)), notOwned, unclaimed), steps: []string{stepConfirmImport, stepLabel}, outcome: "in sync",
		},
		{
			name: "imported, unlabelled and differs: labelled, updated in the next reconcile", vm: vmWith(recorded, importing),
			obs: obsWith(everything, withServer(serverWith(unlabelled, withCores(1))), notOwned), steps: []string{stepConfirmImport, stepLabel}, outcome: "waiting: Progressing, again in 1s", message: "brought in line",
		},
		{
			name: "imported and labelled for another owner since: blocked", vm: vmWith(recorded, importing),
			obs: obsWith(everything, withServer(serverWith(withCores(1))), notOwned), outcome: "stalled: Blocked, again in 1m0s", message: "does not carry this object's owner labels",
		},
	})
}

func TestDifference(t *testing.T) {
	tests := []struct {
		name   string
		vm     *pcapi.VM
		server cloud.Server
		want   cloud.Update
	}{
		{name: "field not set: no difference", vm: &pcapi.VM{}, server: serverWith(withCores(9))},
		{
			name: "the cloud reports no sizes: no difference", server: serverWith(withCores(0)),
			vm: vmWith(func(vm *pcapi.VM) { vm.Spec.Memory = pcapi.GiB(8) }),
		},
		{name: "powerState not set: On", vm: &pcapi.VM{}, server: serverWith(inState(cloud.StateStopped)), want: cloud.Update{cloud.SetPower{State: cloud.PowerOn}}},
		{name: "suspended, powerState On: On", vm: &pcapi.VM{}, server: serverWith(inState(cloud.StateSuspended)), want: cloud.Update{cloud.SetPower{State: cloud.PowerOn}}},
		{name: "suspended, powerState Off: On first", vm: vmWith(poweredOff), server: serverWith(inState(cloud.StateSuspended)), want: cloud.Update{cloud.SetPower{State: cloud.PowerOn}}},
		{name: "stopped, powerState Suspended: On first", vm: vmWith(suspended), server: serverWith(inState(cloud.StateStopped)), want: cloud.Update{cloud.SetPower{State: cloud.PowerOn}}},
		{name: "suspended, powerState Suspended: no difference", vm: vmWith(suspended), server: serverWith(inState(cloud.StateSuspended))},
		{
			name: "all fields differ: all are set", server: serverWith(withMemory(1)),
			vm: vmWith(poweredOff, func(vm *pcapi.VM) {
				vm.Spec.CPU, vm.Spec.Memory = pcapi.Cores(4), pcapi.GiB(8)
			}),
			want: cloud.Update{cloud.SetCPU(4), cloud.SetMemory(8 << 10), cloud.SetPower{State: cloud.PowerOff}},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, field.Difference(tc.vm, tc.server)); diff != "" {
				t.Errorf("difference (-want +got):\n%s", diff)
			}
		})
	}
}
