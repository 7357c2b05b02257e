package vm

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

var dawn = time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)

// everything is what a cloud of the extended profile can do.
var everything = cloud.NewCapabilities(cloud.Idempotency, cloud.Labels, cloud.UniqueNames, cloud.BulkStatus,
	cloud.Power, cloud.Resize, cloud.Folders, cloud.Sizing)

func without(missing ...cloud.Capability) cloud.Capabilities {
	var caps []cloud.Capability
	for _, c := range everything {
		if !(cloud.NewCapabilities(missing...).Has(c)) {
			caps = append(caps, c)
		}
	}
	return cloud.NewCapabilities(caps...)
}

var (
	tokenless = without(cloud.Idempotency)
	nameless  = without(cloud.Idempotency, cloud.Labels, cloud.UniqueNames)
	named     = without(cloud.Idempotency, cloud.Labels)
)

var (
	errProhibited = &cloud.Error{Kind: cloud.Prohibited, Op: `check name "web"`, Detail: "not this one"}
	errTaken      = &cloud.Error{Kind: cloud.Taken, Op: `check name "web"`, Detail: "somebody has it"}
)

// vmWith returns the VM web of spec 2 cores, changed.
func vmWith(change ...func(*v1alpha1.VM)) *v1alpha1.VM {
	cores := int32(2)
	vm := &v1alpha1.VM{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "uid-a", Generation: 1, CreationTimestamp: metav1.NewTime(dawn)},
		Spec: v1alpha1.VMSpec{
			VMName: "web", CloudRef: &v1alpha1.CloudReference{Name: "default"}, CPU: &cores, PowerState: v1alpha1.PowerOn,
			DeletionPolicy: v1alpha1.DeletionPolicyDelete, ManagementPolicy: v1alpha1.ManagementPolicyManaged,
		},
	}
	for _, f := range change {
		f(vm)
	}
	return vm
}

func recorded(vm *v1alpha1.VM) { vm.Status.VMID, vm.Status.Cloud = "s1", "default" }
func importing(vm *v1alpha1.VM) {
	vm.Spec.Import = &v1alpha1.VMImport{VMID: "s1"}
}
func observeOnly(vm *v1alpha1.VM) { vm.Spec.ManagementPolicy = v1alpha1.ManagementPolicyObserveOnly }
func orphaning(vm *v1alpha1.VM)   { vm.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan }
func poweredOff(vm *v1alpha1.VM)  { vm.Spec.PowerState = v1alpha1.PowerOff }
func deleted(vm *v1alpha1.VM) {
	now := metav1.NewTime(dawn)
	vm.DeletionTimestamp = &now
}

// ours are the owner labels of the VM that vmWith returns.
var ours = (&kind{cluster: "cluster"}).ownerLabels(vmWith())

// serverWith returns the server s1 as vmWith wants it, ours, changed.
func serverWith(change ...func(*cloud.Server)) cloud.Server {
	s := cloud.Server{ID: "s1", Name: "web", State: cloud.StateActive, CPU: 2, CreatedAt: dawn, Labels: ours}
	for _, f := range change {
		f(&s)
	}
	return s
}

func id(id string) func(*cloud.Server)         { return func(s *cloud.Server) { s.ID = id } }
func called(name string) func(*cloud.Server)   { return func(s *cloud.Server) { s.Name = name } }
func in(state cloud.State) func(*cloud.Server) { return func(s *cloud.Server) { s.State = state } }
func cores(n int) func(*cloud.Server)          { return func(s *cloud.Server) { s.CPU = n } }
func bare(s *cloud.Server)                     { s.Labels = nil }

// seeing returns a scope on a cloud that can be used.
func seeing(caps cloud.Capabilities, change ...func(*scope)) *scope {
	obs := &scope{now: dawn, cloud: "default", view: inventory.View{Capabilities: caps}}
	for _, f := range change {
		f(obs)
	}
	return obs
}

// later is a scope of some time after the object was made, and deleted.
func later(by time.Duration) func(*scope) {
	return func(obs *scope) { obs.now = obs.now.Add(by) }
}

// holding is a scope that knows the VM's server.
func holding(s cloud.Server) func(*scope) {
	return func(obs *scope) {
		known := s.Clone()
		obs.server, obs.owned, obs.claimed = &known, true, "web"
	}
}

// finding is a scope after a search that found servers worth proof.
func finding(worth proof, servers ...cloud.Server) func(*scope) {
	return func(obs *scope) {
		obs.claimed, obs.looked, obs.proof, obs.candidates = "web", true, worth, servers
	}
}

func away(obs *scope)      { obs.view.Unavailable = "connection refused" }
func claimed(obs *scope)   { obs.claimed = "web" }
func unclaimed(obs *scope) { obs.claimed = "" }
func foreignTo(obs *scope) { obs.owned = false }
func rivalled(obs *scope)  { obs.rival = errRival }
func isGone(obs *scope)    { obs.gone = true }
func settling(obs *scope)  { obs.settles = time.Minute }
func renamed(obs *scope)   { obs.claimed = "former" }
func denied(obs *scope) {
	obs.denied = reconciler.Blocked("Cloud/default", v1alpha1.CloudUnavailableReason, "Cloud %q does not exist", "default")
}

// decision is a plan in words.
type decision struct {
	Steps   []string
	Outcome string
}

// said puts a outcome into words, but for its message.
func said(outcome error) string {
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
	vm    *v1alpha1.VM
	obs   *scope
	steps []string
	// outcome as said puts it, and a part of its message.
	outcome, says string
}

func runPlans(t *testing.T, tests []planCase) {
	t.Helper()
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			steps, outcome := plan(tc.vm, tc.obs)
			if diff := cmp.Diff(decision{tc.steps, tc.outcome}, decision{steps, said(outcome)}); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if outcome != nil && (tc.says == "" || !strings.Contains(outcome.Error(), tc.says)) {
				t.Errorf("message %q, want %q in it", outcome, tc.says)
			}
			if err := lawful(tc.vm, tc.obs, steps, outcome); err != nil {
				t.Errorf("unlawful: %v", err)
			}
		})
	}
}

func TestPlanOfANewVM(t *testing.T) {
	fresh := []string{stepCheckName, stepClaim, stepCreate}
	demanding := vmWith(poweredOff, func(vm *v1alpha1.VM) {
		memory := int32(4)
		vm.Spec.Memory, vm.Spec.Template, vm.Spec.Folder = &memory, "debian", "web"
	})
	runPlans(t, []planCase{
		{name: "nothing was ever sent for it: the name is asked for, the intent stored, then the create sent", vm: vmWith(), obs: seeing(everything), steps: fresh, outcome: "in sync"},
		{
			name: "the cloud has no word for what it asks: nobody is to find a smaller VM than was ordered",
			vm:   demanding, obs: seeing(cloud.NewCapabilities(cloud.UniqueNames)),
			outcome: "stalled: Unsupported, again in 10m0s", says: "cannot set cpu, memory, template, folder, powerState",
		},
		{name: "what the cloud can do is not known while it is away, so nothing is refused yet", vm: demanding, obs: seeing(nil, away), steps: fresh, outcome: "in sync"},
		{name: "a cloud that can do it all refuses nothing", vm: demanding, obs: seeing(everything), steps: fresh, outcome: "in sync"},
		{name: "another VM object has the name where names tell whose a server is", vm: vmWith(), obs: seeing(named, rivalled), outcome: "stalled: Taken, again in 1m0s", says: "another VM object"},
		{
			name: "the name was refused lately: no second question, no create", vm: vmWith(),
			obs:     seeing(everything, func(s *scope) { s.nameErr = errProhibited }),
			outcome: "stalled: Prohibited, again in 10m0s", says: "not this one",
		},
		{
			name: "the name was taken lately: it may be given back sooner than a rule changes", vm: vmWith(),
			obs:     seeing(everything, func(s *scope) { s.nameErr = errTaken }),
			outcome: "stalled: Taken, again in 1m0s", says: "somebody has it",
		},
		{name: "it may not use its Cloud", vm: vmWith(), obs: seeing(everything, denied), outcome: "blocked: CloudUnavailable by Cloud/default", says: "does not exist"},
	})
}

func TestPlanLooksBeforeItCreatesAgain(t *testing.T) {
	two := []cloud.Server{serverWith(), serverWith(id("s2"))}
	many := make([]cloud.Server, 7)
	for i := range many {
		many[i] = serverWith(id(fmt.Sprintf("s%d", i+1)), bare)
	}
	runPlans(t, []planCase{
		{name: "a claim of an earlier pass: a create may have been sent", vm: vmWith(), obs: seeing(tokenless, claimed), steps: []string{stepLook}, outcome: "in sync"},
		{name: "a key makes a second create harmless, but looking is cheaper than a second one", vm: vmWith(), obs: seeing(everything, claimed), steps: []string{stepLook}, outcome: "in sync"},
		{name: "looked and found nothing, long enough after: the create may be sent, and the claim still says that the name was free", vm: vmWith(), obs: seeing(tokenless, finding(noProof)), steps: []string{stepCreate}, outcome: "in sync"},
		{
			name: "found nothing yet: without a key, a create may take effect later", vm: vmWith(), obs: seeing(tokenless, finding(noProof), settling),
			outcome: "waiting: OutcomeUnknown, again in 1m0s", says: "settleTime",
		},
		{name: "found nothing yet: with a key, the create is simply sent again", vm: vmWith(), obs: seeing(everything, finding(noProof), settling), steps: []string{stepCreate}, outcome: "in sync"},
		{name: "its owner labels prove it ours", vm: vmWith(), obs: seeing(tokenless, finding(labelProof, serverWith())), steps: []string{stepAdopt}, outcome: "in sync"},
		{
			name: "it is proved ours: no need to look any further", vm: vmWith(),
			obs: seeing(tokenless, finding(labelProof, serverWith()), settling, func(s *scope) { s.looked = false }), steps: []string{stepAdopt}, outcome: "in sync",
		},
		{name: "it is found while still being built", vm: vmWith(), obs: seeing(tokenless, finding(labelProof, serverWith(in(cloud.StateBuilding)))), steps: []string{stepAdopt}, outcome: "waiting: Creating, again in 1m0s", says: "building VM s1"},
		{name: "the spec was edited since its create: followed in the next pass", vm: vmWith(), obs: seeing(tokenless, finding(labelProof, serverWith(cores(1)))), steps: []string{stepAdopt}, outcome: "waiting: Progressing, again in 1s", says: "brought in line"},
		{name: "vmname was edited since its create", vm: vmWith(), obs: seeing(tokenless, renamed, finding(labelProof, serverWith(called("former")))), steps: []string{stepAdopt}, outcome: "waiting: Progressing, again in 1s", says: "brought in line"},
		{name: "one create made two servers: the older is kept", vm: vmWith(), obs: seeing(tokenless, finding(labelProof, two...)), steps: []string{stepAdopt, stepDeleteDuplicate}, outcome: "in sync"},
		{name: "names are unique and this one was free when it was claimed", vm: vmWith(), obs: seeing(named, finding(nameProof, serverWith(bare))), steps: []string{stepAdopt}, outcome: "in sync"},
		{
			name: "two of one name on a cloud that should keep names unique: never guess", vm: vmWith(), obs: seeing(named, finding(nameProof, two...)),
			outcome: "stalled: Ambiguous, again in 1m0s", says: `VM s1, s2 named "web" may be this VM`,
		},
		{
			name: "a name proves nothing here: never guess, and never send another create", vm: vmWith(), obs: seeing(nameless, finding(noProof, serverWith(bare))),
			outcome: "stalled: Ambiguous, again in 1m0s", says: "set spec.import.vmId",
		},
		{
			name: "many of one name are counted, not listed", vm: vmWith(), obs: seeing(nameless, finding(noProof, many...)),
			outcome: "stalled: Ambiguous, again in 1m0s", says: `7 VMs named "web" (s1, s2, s3, s4, s5, …)`,
		},
		{
			name: "somebody's server of this name does not matter where a key makes the create safe", vm: vmWith(),
			obs: seeing(without(cloud.Labels, cloud.UniqueNames), finding(noProof, serverWith(bare))), steps: []string{stepCreate}, outcome: "in sync",
		},
	})
}

func TestPlanAfterVmnameWasEdited(t *testing.T) {
	fresh := []string{stepCheckName, stepClaim, stepCreate}
	runPlans(t, []planCase{
		{name: "nothing came of the first name: the second is asked for and claimed", vm: vmWith(), obs: seeing(tokenless, finding(noProof), renamed), steps: fresh, outcome: "in sync"},
		{
			name: "nothing came of the first name, and the second is refused", vm: vmWith(),
			obs:     seeing(tokenless, finding(noProof), renamed, func(s *scope) { s.nameErr = errProhibited }),
			outcome: "stalled: Prohibited, again in 10m0s", says: "not this one",
		},
		{
			name: "a server of the first name may still come: its key does not fit a create of the second", vm: vmWith(),
			obs: seeing(everything, finding(noProof), renamed, settling), outcome: "waiting: OutcomeUnknown, again in 1m0s", says: "settleTime",
		},
		{
			name: "a server of the first name may be ours: its key does not fit a create of the second", vm: vmWith(),
			obs: seeing(without(cloud.Labels, cloud.UniqueNames), finding(noProof, serverWith(bare, called("former"))), renamed), outcome: "stalled: Ambiguous, again in 1m0s", says: `named "former"`,
		},
		{name: "another VM object has the name: the claim is given up, since nothing came of it", vm: vmWith(), obs: seeing(named, finding(nameProof), rivalled), steps: []string{stepUnclaim}, outcome: "stalled: Taken, again in 1m0s", says: "another VM object"},
		{
			name: "another VM object has the name, but a create of ours may still take effect", vm: vmWith(),
			obs: seeing(named, finding(nameProof), rivalled, settling), outcome: "waiting: OutcomeUnknown, again in 1m0s", says: "settleTime",
		},
		{
			name: "another VM object has the name, but a create of ours may still take effect, key or not", vm: vmWith(),
			obs: seeing(without(cloud.Labels), finding(nameProof), rivalled, settling), outcome: "stalled: Taken, again in 1m0s", says: "another VM object",
		},
	})
}

func TestPlanOfAnImport(t *testing.T) {
	vm := vmWith(importing)
	runPlans(t, []planCase{
		{name: "another VM object has that server", vm: vm, obs: seeing(everything, rivalled), outcome: "stalled: Ambiguous, again in 1m0s", says: "another VM object"},
		{name: "there is no such server", vm: vm, obs: seeing(everything, isGone), outcome: "stalled: Rejected, again in 10m0s", says: "the cloud has no VM s1"},
		{name: "the cloud could not be asked", vm: vm, obs: seeing(everything, away), steps: []string{stepLook}, outcome: "in sync"},
		{
			name: "it has another name: a typing error may not take over somebody's server", vm: vm,
			obs:     seeing(everything, holding(serverWith(called("db"), bare)), foreignTo, unclaimed),
			outcome: "stalled: Rejected, again in 10m0s", says: `VM s1 is named "db"`,
		},
		{name: "only to be observed: it is neither claimed nor labelled", vm: vmWith(importing, observeOnly), obs: seeing(everything, holding(serverWith(bare)), foreignTo, unclaimed), steps: []string{stepAdopt}, outcome: "in sync"},
		{
			name: "only to be observed, and in error", vm: vmWith(importing, observeOnly), obs: seeing(everything, holding(serverWith(bare, in(cloud.StateError))), foreignTo, unclaimed),
			steps: []string{stepAdopt}, outcome: "stalled: ServerError, again in 10m0s", says: "in error",
		},
		{name: "it is claimed, labelled as ours, and taken", vm: vm, obs: seeing(everything, holding(serverWith(bare)), foreignTo, unclaimed), steps: []string{stepClaim, stepLabel, stepAdopt}, outcome: "in sync"},
		{name: "its labels are ours already, from a pass that was cut off", vm: vm, obs: seeing(everything, holding(serverWith())), steps: []string{stepClaim, stepAdopt}, outcome: "in sync"},
		{name: "the cloud has no labels", vm: vm, obs: seeing(named, holding(serverWith(bare))), steps: []string{stepClaim, stepAdopt}, outcome: "in sync"},
		{name: "it differs from the spec: followed in the next pass", vm: vm, obs: seeing(everything, holding(serverWith(cores(1)))), steps: []string{stepClaim, stepAdopt}, outcome: "waiting: Progressing, again in 1s", says: "brought in line"},
	})
}

func TestPlanOfAnExistingVM(t *testing.T) {
	vm := vmWith(recorded)
	runPlans(t, []planCase{
		{name: "all is as the spec says", vm: vm, obs: seeing(everything, holding(serverWith())), outcome: "in sync"},
		{name: "its Cloud was closed to this namespace", vm: vm, obs: seeing(everything, holding(serverWith()), denied), outcome: "blocked: CloudUnavailable by Cloud/default", says: "does not exist"},
		{name: "it is gone without our doing: not made again, for vmId never changes", vm: vm, obs: seeing(everything, isGone), outcome: "stalled: Lost", says: "it is not made again"},
		{name: "nothing is known of it: nothing is said either", vm: vm, obs: seeing(everything, away), outcome: "unknown", says: "nothing is known"},
		{name: "only to be observed: its drift is not mended, nor is it claimed", vm: vmWith(recorded, observeOnly), obs: seeing(everything, holding(serverWith(cores(1))), unclaimed), outcome: "in sync"},
		{name: "only to be observed, and being deleted by somebody", vm: vmWith(recorded, observeOnly), obs: seeing(everything, holding(serverWith(in(cloud.StateDeleting)))), outcome: "waiting: Deleting, again in 1m0s", says: "not by this operator"},
		{name: "somebody took the finalizer off: it is put back before anything else", vm: vm, obs: seeing(everything, holding(serverWith(cores(1))), unclaimed), steps: []string{stepClaim, stepUpdate}, outcome: "in sync"},
		{name: "a server made twice: the other one goes first", vm: vm, obs: seeing(everything, holding(serverWith(cores(1))), func(s *scope) { s.duplicates = []cloud.Server{serverWith(id("s2"))} }), steps: []string{stepDeleteDuplicate}, outcome: "in sync"},
		{name: "it is being built", vm: vm, obs: seeing(everything, holding(serverWith(in(cloud.StateBuilding)))), outcome: "waiting: Creating, again in 1m0s", says: "building"},
		{name: "somebody deletes it", vm: vm, obs: seeing(everything, holding(serverWith(in(cloud.StateDeleting)))), outcome: "waiting: Deleting, again in 1m0s", says: "not by this operator"},
		{name: "the cloud reports it broken", vm: vm, obs: seeing(everything, holding(serverWith(in(cloud.StateError)))), outcome: "stalled: ServerError, again in 10m0s", says: "in error"},
		{name: "a state without a word is watched, never changed", vm: vm, obs: seeing(everything, holding(serverWith(in(cloud.StateUnknown), cores(1)))), outcome: "stalled: UnknownState, again in 10m0s", says: "does not know"},
		{name: "somebody renamed it: we cannot rename", vm: vm, obs: seeing(everything, holding(serverWith(called("db")))), outcome: "stalled: Drift", says: `named "db" in the cloud, not "web"`},
		{name: "it has other cores", vm: vm, obs: seeing(everything, holding(serverWith(cores(1)))), steps: []string{stepUpdate}, outcome: "in sync"},
		{name: "the cloud cannot resize", vm: vm, obs: seeing(without(cloud.Resize), holding(serverWith(cores(1)))), outcome: "stalled: Unsupported, again in 10m0s", says: "cannot set cpu"},
		{name: "the cloud can neither resize nor switch", vm: vmWith(recorded, poweredOff, func(vm *v1alpha1.VM) { vm.Spec.Memory = vm.Spec.CPU }), obs: seeing(without(cloud.Resize, cloud.Power), holding(serverWith(cores(1)))), outcome: "stalled: Unsupported, again in 10m0s", says: "cannot set cpu, memory, powerState"},
		{name: "it runs and is meant not to", vm: vmWith(recorded, poweredOff), obs: seeing(everything, holding(serverWith())), steps: []string{stepUpdate}, outcome: "in sync"},
		{name: "it does not run and is meant to", vm: vm, obs: seeing(everything, holding(serverWith(in(cloud.StateStopped)))), steps: []string{stepUpdate}, outcome: "in sync"},
		{name: "it does not run and is not meant to", vm: vmWith(recorded, poweredOff), obs: seeing(everything, holding(serverWith(in(cloud.StateStopped)))), outcome: "in sync"},
		{name: "another VM object records it too, and is older", vm: vm, obs: seeing(named, holding(serverWith(bare, cores(1))), rivalled), outcome: "stalled: Ambiguous, again in 1m0s", says: "another VM object"},
		{name: "its labels name somebody else: it is watched, not changed", vm: vm, obs: seeing(everything, holding(serverWith(cores(1))), foreignTo), outcome: "stalled: Blocked", says: "does not carry this object's owner labels"},
		{name: "its labels name somebody else, but nothing needs changing", vm: vm, obs: seeing(everything, holding(serverWith()), foreignTo), outcome: "in sync"},
		{
			name: "imported when it was only to be observed, now to be managed: it gets its labels first", vm: vmWith(recorded, importing),
			obs: seeing(everything, holding(serverWith(bare)), foreignTo, unclaimed), steps: []string{stepClaim, stepLabel}, outcome: "in sync",
		},
		{
			name: "imported, unlabelled and different: labels first, the rest in the next pass", vm: vmWith(recorded, importing),
			obs: seeing(everything, holding(serverWith(bare, cores(1))), foreignTo), steps: []string{stepLabel}, outcome: "waiting: Progressing, again in 1s", says: "brought in line",
		},
		{
			name: "imported, and labelled as somebody else's since: it is not taken back", vm: vmWith(recorded, importing),
			obs: seeing(everything, holding(serverWith(cores(1))), foreignTo), outcome: "stalled: Blocked", says: "does not carry this object's owner labels",
		},
	})
}

func TestDifferenceNamesEachFieldOnce(t *testing.T) {
	four, eight := 4, 8
	on, off := cloud.PowerOn, cloud.PowerOff
	tests := []struct {
		name   string
		vm     *v1alpha1.VM
		server cloud.Server
		want   cloud.UpdateServer
	}{
		{name: "what the spec leaves open is the cloud's to choose", vm: &v1alpha1.VM{}, server: serverWith(cores(9))},
		{name: "an absent powerState means On", vm: &v1alpha1.VM{}, server: serverWith(in(cloud.StateStopped)), want: cloud.UpdateServer{PowerState: &on}},
		{
			name: "all at once", server: serverWith(),
			vm: vmWith(poweredOff, func(vm *v1alpha1.VM) {
				cpu, memory := int32(4), int32(8)
				vm.Spec.CPU, vm.Spec.Memory = &cpu, &memory
			}),
			want: cloud.UpdateServer{CPU: &four, MemoryGiB: &eight, PowerState: &off},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, difference(tc.vm, tc.server)); diff != "" {
				t.Errorf("difference (-want +got):\n%s", diff)
			}
		})
	}
}
