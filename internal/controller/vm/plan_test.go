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
	seen := &scope{now: dawn, cloud: "default", view: inventory.View{Capabilities: caps}}
	for _, f := range change {
		f(seen)
	}
	return seen
}

// later is a scope of some time after the object was made, and deleted.
func later(by time.Duration) func(*scope) {
	return func(seen *scope) { seen.now = seen.now.Add(by) }
}

// holding is a scope that knows the VM's server.
func holding(s cloud.Server) func(*scope) {
	return func(seen *scope) {
		known := s.Clone()
		seen.server, seen.owned, seen.claimed = &known, true, "web"
	}
}

// finding is a scope after a search that found servers worth proof.
func finding(worth proof, servers ...cloud.Server) func(*scope) {
	return func(seen *scope) {
		seen.claimed, seen.looked, seen.proof, seen.candidates = "web", true, worth, servers
	}
}

func away(seen *scope)      { seen.view.Away = "connection refused" }
func claimed(seen *scope)   { seen.claimed = "web" }
func unclaimed(seen *scope) { seen.claimed = "" }
func foreignTo(seen *scope) { seen.owned = false }
func rivalled(seen *scope)  { seen.rival = errRival }
func isGone(seen *scope)    { seen.gone = true }
func settling(seen *scope)  { seen.settles = time.Minute }
func renamed(seen *scope)   { seen.claimed = "former" }
func denied(seen *scope) {
	seen.denied = reconciler.Blocked("Cloud/default", v1alpha1.CloudUnavailableReason, "Cloud %q does not exist", "default")
}

// decision is a plan in words.
type decision struct {
	Steps   []string
	Verdict string
}

// said puts a verdict into words, but for its message.
func said(verdict error) string {
	again := func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return ", again in " + d.String()
	}
	if e, ok := errors.AsType[*reconciler.WaitError](verdict); ok {
		if e.Quiet {
			return "quietly waiting: " + e.Reason + again(e.After)
		}
		return "waiting: " + e.Reason + again(e.After)
	}
	if e, ok := errors.AsType[*reconciler.BlockedError](verdict); ok {
		return "blocked: " + e.Reason + " by " + e.On
	}
	if e, ok := errors.AsType[*reconciler.StalledError](verdict); ok {
		return "stalled: " + e.Reason + again(e.Recheck)
	}
	if errors.Is(verdict, reconciler.ErrUnknown) {
		return "unknown"
	}
	if verdict != nil {
		return "error: " + verdict.Error()
	}
	return "in sync"
}

type planCase struct {
	name  string
	vm    *v1alpha1.VM
	seen  *scope
	steps []string
	// verdict as said puts it, and a part of its message.
	verdict, says string
}

func runPlans(t *testing.T, tests []planCase) {
	t.Helper()
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			steps, verdict := plan(tc.vm, tc.seen)
			if diff := cmp.Diff(decision{tc.steps, tc.verdict}, decision{steps, said(verdict)}); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if verdict != nil && (tc.says == "" || !strings.Contains(verdict.Error(), tc.says)) {
				t.Errorf("message %q, want %q in it", verdict, tc.says)
			}
			if err := lawful(tc.vm, tc.seen, steps, verdict); err != nil {
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
		{name: "nothing was ever sent for it: the name is asked for, the intent stored, then the create sent", vm: vmWith(), seen: seeing(everything), steps: fresh, verdict: "in sync"},
		{
			name: "the cloud has no word for what it asks: nobody is to find a smaller VM than was ordered",
			vm:   demanding, seen: seeing(cloud.NewCapabilities(cloud.UniqueNames)),
			verdict: "stalled: Unsupported, again in 10m0s", says: "cannot set cpu, memory, template, folder, powerState",
		},
		{name: "what the cloud can do is not known while it is away, so nothing is refused yet", vm: demanding, seen: seeing(nil, away), steps: fresh, verdict: "in sync"},
		{name: "a cloud that can do it all refuses nothing", vm: demanding, seen: seeing(everything), steps: fresh, verdict: "in sync"},
		{name: "another VM object has the name where names tell whose a server is", vm: vmWith(), seen: seeing(named, rivalled), verdict: "stalled: Taken, again in 1m0s", says: "another VM object"},
		{
			name: "the name was refused lately: no second question, no create", vm: vmWith(),
			seen:    seeing(everything, func(s *scope) { s.nameErr = errProhibited }),
			verdict: "stalled: Prohibited, again in 10m0s", says: "not this one",
		},
		{
			name: "the name was taken lately: it may be given back sooner than a rule changes", vm: vmWith(),
			seen:    seeing(everything, func(s *scope) { s.nameErr = errTaken }),
			verdict: "stalled: Taken, again in 1m0s", says: "somebody has it",
		},
		{name: "it may not use its Cloud", vm: vmWith(), seen: seeing(everything, denied), verdict: "blocked: CloudUnavailable by Cloud/default", says: "does not exist"},
	})
}

func TestPlanLooksBeforeItCreatesAgain(t *testing.T) {
	two := []cloud.Server{serverWith(), serverWith(id("s2"))}
	many := make([]cloud.Server, 7)
	for i := range many {
		many[i] = serverWith(id(fmt.Sprintf("s%d", i+1)), bare)
	}
	runPlans(t, []planCase{
		{name: "a claim of an earlier pass: a create may have been sent", vm: vmWith(), seen: seeing(tokenless, claimed), steps: []string{stepLook}, verdict: "in sync"},
		{name: "a key makes a second create harmless, but looking is cheaper than a second one", vm: vmWith(), seen: seeing(everything, claimed), steps: []string{stepLook}, verdict: "in sync"},
		{name: "looked and found nothing, long enough after: the create may be sent, and the claim still says that the name was free", vm: vmWith(), seen: seeing(tokenless, finding(noProof)), steps: []string{stepCreate}, verdict: "in sync"},
		{
			name: "found nothing yet: without a key, a create may take effect later", vm: vmWith(), seen: seeing(tokenless, finding(noProof), settling),
			verdict: "waiting: OutcomeUnknown, again in 1m0s", says: "settleTime",
		},
		{name: "found nothing yet: with a key, the create is simply sent again", vm: vmWith(), seen: seeing(everything, finding(noProof), settling), steps: []string{stepCreate}, verdict: "in sync"},
		{name: "its owner labels prove it ours", vm: vmWith(), seen: seeing(tokenless, finding(labelProof, serverWith())), steps: []string{stepAdopt}, verdict: "in sync"},
		{
			name: "it is proved ours: no need to look any further", vm: vmWith(),
			seen: seeing(tokenless, finding(labelProof, serverWith()), settling, func(s *scope) { s.looked = false }), steps: []string{stepAdopt}, verdict: "in sync",
		},
		{name: "it is found while still being built", vm: vmWith(), seen: seeing(tokenless, finding(labelProof, serverWith(in(cloud.StateBuilding)))), steps: []string{stepAdopt}, verdict: "waiting: Creating, again in 1m0s", says: "building VM s1"},
		{name: "the spec was edited since its create: followed in the next pass", vm: vmWith(), seen: seeing(tokenless, finding(labelProof, serverWith(cores(1)))), steps: []string{stepAdopt}, verdict: "waiting: Progressing, again in 1s", says: "brought in line"},
		{name: "vmname was edited since its create", vm: vmWith(), seen: seeing(tokenless, renamed, finding(labelProof, serverWith(called("former")))), steps: []string{stepAdopt}, verdict: "waiting: Progressing, again in 1s", says: "brought in line"},
		{name: "one create made two servers: the older is kept", vm: vmWith(), seen: seeing(tokenless, finding(labelProof, two...)), steps: []string{stepAdopt, stepDeleteDuplicate}, verdict: "in sync"},
		{name: "names are unique and this one was free when it was claimed", vm: vmWith(), seen: seeing(named, finding(nameProof, serverWith(bare))), steps: []string{stepAdopt}, verdict: "in sync"},
		{
			name: "two of one name on a cloud that should keep names unique: never guess", vm: vmWith(), seen: seeing(named, finding(nameProof, two...)),
			verdict: "stalled: Ambiguous, again in 1m0s", says: `VM s1, s2 named "web" may be this VM`,
		},
		{
			name: "a name proves nothing here: never guess, and never send another create", vm: vmWith(), seen: seeing(nameless, finding(noProof, serverWith(bare))),
			verdict: "stalled: Ambiguous, again in 1m0s", says: "set spec.import.vmId",
		},
		{
			name: "many of one name are counted, not listed", vm: vmWith(), seen: seeing(nameless, finding(noProof, many...)),
			verdict: "stalled: Ambiguous, again in 1m0s", says: `7 VMs named "web" (s1, s2, s3, s4, s5, …)`,
		},
		{
			name: "somebody's server of this name does not matter where a key makes the create safe", vm: vmWith(),
			seen: seeing(without(cloud.Labels, cloud.UniqueNames), finding(noProof, serverWith(bare))), steps: []string{stepCreate}, verdict: "in sync",
		},
	})
}

func TestPlanAfterVmnameWasEdited(t *testing.T) {
	fresh := []string{stepCheckName, stepClaim, stepCreate}
	runPlans(t, []planCase{
		{name: "nothing came of the first name: the second is asked for and claimed", vm: vmWith(), seen: seeing(tokenless, finding(noProof), renamed), steps: fresh, verdict: "in sync"},
		{
			name: "nothing came of the first name, and the second is refused", vm: vmWith(),
			seen:    seeing(tokenless, finding(noProof), renamed, func(s *scope) { s.nameErr = errProhibited }),
			verdict: "stalled: Prohibited, again in 10m0s", says: "not this one",
		},
		{
			name: "a server of the first name may still come: its key does not fit a create of the second", vm: vmWith(),
			seen: seeing(everything, finding(noProof), renamed, settling), verdict: "waiting: OutcomeUnknown, again in 1m0s", says: "settleTime",
		},
		{
			name: "a server of the first name may be ours: its key does not fit a create of the second", vm: vmWith(),
			seen: seeing(without(cloud.Labels, cloud.UniqueNames), finding(noProof, serverWith(bare, called("former"))), renamed), verdict: "stalled: Ambiguous, again in 1m0s", says: `named "former"`,
		},
		{name: "another VM object has the name: the claim is given up, since nothing came of it", vm: vmWith(), seen: seeing(named, finding(nameProof), rivalled), steps: []string{stepUnclaim}, verdict: "stalled: Taken, again in 1m0s", says: "another VM object"},
		{
			name: "another VM object has the name, but a create of ours may still take effect", vm: vmWith(),
			seen: seeing(named, finding(nameProof), rivalled, settling), verdict: "waiting: OutcomeUnknown, again in 1m0s", says: "settleTime",
		},
		{
			name: "another VM object has the name, but a create of ours may still take effect, key or not", vm: vmWith(),
			seen: seeing(without(cloud.Labels), finding(nameProof), rivalled, settling), verdict: "stalled: Taken, again in 1m0s", says: "another VM object",
		},
	})
}

func TestPlanOfAnImport(t *testing.T) {
	vm := vmWith(importing)
	runPlans(t, []planCase{
		{name: "another VM object has that server", vm: vm, seen: seeing(everything, rivalled), verdict: "stalled: Ambiguous, again in 1m0s", says: "another VM object"},
		{name: "there is no such server", vm: vm, seen: seeing(everything, isGone), verdict: "stalled: Rejected, again in 10m0s", says: "the cloud has no VM s1"},
		{name: "the cloud could not be asked", vm: vm, seen: seeing(everything, away), steps: []string{stepLook}, verdict: "in sync"},
		{
			name: "it has another name: a typing error may not take over somebody's server", vm: vm,
			seen:    seeing(everything, holding(serverWith(called("db"), bare)), foreignTo, unclaimed),
			verdict: "stalled: Rejected, again in 10m0s", says: `VM s1 is named "db"`,
		},
		{name: "only to be observed: it is neither claimed nor labelled", vm: vmWith(importing, observeOnly), seen: seeing(everything, holding(serverWith(bare)), foreignTo, unclaimed), steps: []string{stepAdopt}, verdict: "in sync"},
		{
			name: "only to be observed, and in error", vm: vmWith(importing, observeOnly), seen: seeing(everything, holding(serverWith(bare, in(cloud.StateError))), foreignTo, unclaimed),
			steps: []string{stepAdopt}, verdict: "stalled: ServerError, again in 10m0s", says: "in error",
		},
		{name: "it is claimed, labelled as ours, and taken", vm: vm, seen: seeing(everything, holding(serverWith(bare)), foreignTo, unclaimed), steps: []string{stepClaim, stepLabel, stepAdopt}, verdict: "in sync"},
		{name: "its labels are ours already, from a pass that was cut off", vm: vm, seen: seeing(everything, holding(serverWith())), steps: []string{stepClaim, stepAdopt}, verdict: "in sync"},
		{name: "the cloud has no labels", vm: vm, seen: seeing(named, holding(serverWith(bare))), steps: []string{stepClaim, stepAdopt}, verdict: "in sync"},
		{name: "it differs from the spec: followed in the next pass", vm: vm, seen: seeing(everything, holding(serverWith(cores(1)))), steps: []string{stepClaim, stepAdopt}, verdict: "waiting: Progressing, again in 1s", says: "brought in line"},
	})
}

func TestPlanOfAnExistingVM(t *testing.T) {
	vm := vmWith(recorded)
	runPlans(t, []planCase{
		{name: "all is as the spec says", vm: vm, seen: seeing(everything, holding(serverWith())), verdict: "in sync"},
		{name: "its Cloud was closed to this namespace", vm: vm, seen: seeing(everything, holding(serverWith()), denied), verdict: "blocked: CloudUnavailable by Cloud/default", says: "does not exist"},
		{name: "it is gone without our doing: not made again, for vmId never changes", vm: vm, seen: seeing(everything, isGone), verdict: "stalled: Lost", says: "it is not made again"},
		{name: "nothing is known of it: nothing is said either", vm: vm, seen: seeing(everything, away), verdict: "unknown", says: "nothing is known"},
		{name: "only to be observed: its drift is not mended, nor is it claimed", vm: vmWith(recorded, observeOnly), seen: seeing(everything, holding(serverWith(cores(1))), unclaimed), verdict: "in sync"},
		{name: "only to be observed, and being deleted by somebody", vm: vmWith(recorded, observeOnly), seen: seeing(everything, holding(serverWith(in(cloud.StateDeleting)))), verdict: "waiting: Deleting, again in 1m0s", says: "not by this operator"},
		{name: "somebody took the finalizer off: it is put back before anything else", vm: vm, seen: seeing(everything, holding(serverWith(cores(1))), unclaimed), steps: []string{stepClaim, stepUpdate}, verdict: "in sync"},
		{name: "a server made twice: the other one goes first", vm: vm, seen: seeing(everything, holding(serverWith(cores(1))), func(s *scope) { s.duplicates = []cloud.Server{serverWith(id("s2"))} }), steps: []string{stepDeleteDuplicate}, verdict: "in sync"},
		{name: "it is being built", vm: vm, seen: seeing(everything, holding(serverWith(in(cloud.StateBuilding)))), verdict: "waiting: Creating, again in 1m0s", says: "building"},
		{name: "somebody deletes it", vm: vm, seen: seeing(everything, holding(serverWith(in(cloud.StateDeleting)))), verdict: "waiting: Deleting, again in 1m0s", says: "not by this operator"},
		{name: "the cloud reports it broken", vm: vm, seen: seeing(everything, holding(serverWith(in(cloud.StateError)))), verdict: "stalled: ServerError, again in 10m0s", says: "in error"},
		{name: "a state without a word is watched, never changed", vm: vm, seen: seeing(everything, holding(serverWith(in(cloud.StateUnknown), cores(1)))), verdict: "stalled: UnknownState, again in 10m0s", says: "does not know"},
		{name: "somebody renamed it: we cannot rename", vm: vm, seen: seeing(everything, holding(serverWith(called("db")))), verdict: "stalled: Drift", says: `named "db" in the cloud, not "web"`},
		{name: "it has other cores", vm: vm, seen: seeing(everything, holding(serverWith(cores(1)))), steps: []string{stepUpdate}, verdict: "in sync"},
		{name: "the cloud cannot resize", vm: vm, seen: seeing(without(cloud.Resize), holding(serverWith(cores(1)))), verdict: "stalled: Unsupported, again in 10m0s", says: "cannot set cpu"},
		{name: "the cloud can neither resize nor switch", vm: vmWith(recorded, poweredOff, func(vm *v1alpha1.VM) { vm.Spec.Memory = vm.Spec.CPU }), seen: seeing(without(cloud.Resize, cloud.Power), holding(serverWith(cores(1)))), verdict: "stalled: Unsupported, again in 10m0s", says: "cannot set cpu, memory, powerState"},
		{name: "it runs and is meant not to", vm: vmWith(recorded, poweredOff), seen: seeing(everything, holding(serverWith())), steps: []string{stepUpdate}, verdict: "in sync"},
		{name: "it does not run and is meant to", vm: vm, seen: seeing(everything, holding(serverWith(in(cloud.StateStopped)))), steps: []string{stepUpdate}, verdict: "in sync"},
		{name: "it does not run and is not meant to", vm: vmWith(recorded, poweredOff), seen: seeing(everything, holding(serverWith(in(cloud.StateStopped)))), verdict: "in sync"},
		{name: "another VM object records it too, and is older", vm: vm, seen: seeing(named, holding(serverWith(bare, cores(1))), rivalled), verdict: "stalled: Ambiguous, again in 1m0s", says: "another VM object"},
		{name: "its labels name somebody else: it is watched, not changed", vm: vm, seen: seeing(everything, holding(serverWith(cores(1))), foreignTo), verdict: "stalled: Blocked", says: "does not carry this object's owner labels"},
		{name: "its labels name somebody else, but nothing needs changing", vm: vm, seen: seeing(everything, holding(serverWith()), foreignTo), verdict: "in sync"},
		{
			name: "imported when it was only to be observed, now to be managed: it gets its labels first", vm: vmWith(recorded, importing),
			seen: seeing(everything, holding(serverWith(bare)), foreignTo, unclaimed), steps: []string{stepClaim, stepLabel}, verdict: "in sync",
		},
		{
			name: "imported, unlabelled and different: labels first, the rest in the next pass", vm: vmWith(recorded, importing),
			seen: seeing(everything, holding(serverWith(bare, cores(1))), foreignTo), steps: []string{stepLabel}, verdict: "waiting: Progressing, again in 1s", says: "brought in line",
		},
		{
			name: "imported, and labelled as somebody else's since: it is not taken back", vm: vmWith(recorded, importing),
			seen: seeing(everything, holding(serverWith(cores(1))), foreignTo), verdict: "stalled: Blocked", says: "does not carry this object's owner labels",
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
