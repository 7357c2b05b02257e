package vm

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

// alike compares what a condition says, without what the engine or the clock adds.
func alike(a, b metav1.Condition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// has returns a VM that already says something of itself.
func has(vm *v1alpha1.VM, change ...func(*v1alpha1.VMStatus)) *v1alpha1.VM {
	for _, f := range change {
		f(&vm.Status)
	}
	return vm
}

func saying(conditions ...metav1.Condition) func(*v1alpha1.VMStatus) {
	return func(s *v1alpha1.VMStatus) { s.Conditions = conditions }
}

func using(percent int32) func(*v1alpha1.VMStatus) {
	return func(s *v1alpha1.VMStatus) { s.CPUUtilization = &percent }
}

func busy(percent int) func(*cloud.Server) {
	return func(s *cloud.Server) { s.CPUUtilization = &percent }
}

func on(host string) func(*cloud.Server) { return func(s *cloud.Server) { s.Host = host } }

// cond writes a condition as "Type=Status Reason: message".
func cond(c metav1.Condition) string {
	return c.Type + "=" + string(c.Status) + " " + c.Reason + ": " + c.Message
}

// summed is a status without what the engine adds, in words.
type summed struct {
	VMID, Host, Cloud string
	CPU               *int32
	State             v1alpha1.VMState
	Conditions        []string
}

func sum(s v1alpha1.VMStatus) summed {
	out := summed{VMID: s.VMID, Host: s.Host, Cloud: s.Cloud, CPU: s.CPUUtilization, State: s.State}
	for _, c := range s.Conditions {
		out.Conditions = append(out.Conditions, cond(c))
	}
	return out
}

const (
	nameFree    = `NameChecked=True Available: the cloud lets "web" be used`
	nameUnasked = "NameChecked=Unknown CheckFailed: the cloud has not been asked yet whether the name may be used"
)

func TestReport(t *testing.T) {
	five := int32(5)
	lost := reconciler.Stalled(v1alpha1.LostReason, 0, errors.New("VM s1 is gone"))
	waiting := reconciler.Blocked("Cloud/default", v1alpha1.CloudUnavailableReason, "waiting for the cloud")
	full := func(state v1alpha1.VMState, conditions ...string) summed {
		return summed{VMID: "s1", Host: "h1", Cloud: "default", CPU: &five, State: state, Conditions: conditions}
	}
	created := metav1.Condition{Type: v1alpha1.CreatedCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.AdoptedReason, Message: `VM s1 on Cloud "default"`}
	running := serverWith(on("h1"), busy(5))
	old := func(s *v1alpha1.VMStatus) {
		s.Host, s.Cloud, s.CPUUtilization, s.State = "h1", "default", &five, v1alpha1.VMStateRunning
	}
	how := func(reason string) func(*scope) { return func(s *scope) { s.how = reason } }
	tests := []struct {
		name    string
		vm      *v1alpha1.VM
		obs     *scope
		outcome error
		want    summed
	}{
		{
			name: "nothing happened yet", vm: vmWith(), obs: seeing(everything, away), outcome: waiting,
			want: summed{State: v1alpha1.VMStatePending, Conditions: []string{nameUnasked, "Created=False Pending: waiting for the cloud"}},
		},
		{
			name: "the server was just created", vm: vmWith(), obs: seeing(everything, holding(running), how(v1alpha1.CreatedReason)),
			want: full(v1alpha1.VMStateRunning, nameFree, `Created=True Created: VM s1 on Cloud "default"`),
		},
		{
			name: "it is being built: known, not yet created", vm: vmWith(), obs: seeing(everything, holding(serverWith(on("h1"), busy(5), in(cloud.StateBuilding))), how(v1alpha1.CreatedReason)),
			outcome: reconciler.Wait(time.Minute, v1alpha1.CreatingReason, "building"),
			want:    full(v1alpha1.VMStateCreating, nameFree, "Created=False Creating: the cloud is building VM s1"),
		},
		{
			name: "the server of an earlier create was found", vm: vmWith(), obs: seeing(everything, holding(running), how(v1alpha1.AdoptedReason)),
			want: full(v1alpha1.VMStateRunning, nameFree, `Created=True Adopted: VM s1 on Cloud "default"`),
		},
		{
			name: "how it came about is remembered, whatever a later pass believes", vm: has(vmWith(recorded), saying(created)),
			obs:  seeing(everything, holding(running), how(v1alpha1.CreatedReason)),
			want: full(v1alpha1.VMStateRunning, `Created=True Adopted: VM s1 on Cloud "default"`, nameFree),
		},
		{
			name: "it is switched off", vm: vmWith(recorded), obs: seeing(everything, holding(serverWith(on("h1"), busy(5), in(cloud.StateStopped))), how(v1alpha1.CreatedReason)),
			want: full(v1alpha1.VMStateStopped, nameFree, `Created=True Created: VM s1 on Cloud "default"`),
		},
		{
			name: "the cloud reports it broken", vm: vmWith(recorded), obs: seeing(everything, holding(serverWith(on("h1"), busy(5), in(cloud.StateError))), how(v1alpha1.CreatedReason)),
			outcome: reconciler.Stalled(v1alpha1.ServerErrorReason, 0, errors.New("in error")),
			want:    full(v1alpha1.VMStateFailed, nameFree, `Created=True Created: VM s1 on Cloud "default"`),
		},
		{
			name: "somebody deletes it", vm: vmWith(recorded), obs: seeing(everything, holding(serverWith(on("h1"), busy(5), in(cloud.StateDeleting))), how(v1alpha1.CreatedReason)),
			want: full(v1alpha1.VMStateDeleting, nameFree, `Created=True Created: VM s1 on Cloud "default"`),
		},
		{
			name: "it is gone without our doing: its id stays on record, its host and use do not", vm: has(vmWith(recorded), old, saying(created)), obs: seeing(everything, isGone), outcome: lost,
			want: summed{VMID: "s1", Cloud: "default", State: v1alpha1.VMStateLost, Conditions: []string{"Created=False Lost: VM s1 is gone", nameFree}},
		},
		{
			name: "nothing is known of it now: what was said stands", vm: has(vmWith(recorded), old, saying(created)), obs: seeing(everything, away), outcome: waiting,
			want: full(v1alpha1.VMStateRunning, `Created=True Adopted: VM s1 on Cloud "default"`, nameFree),
		},
		{
			name: "another server than the recorded one changes nothing: vmId is set once", vm: has(vmWith(recorded), old, saying(created)),
			obs:  seeing(everything, holding(serverWith(id("s2"), on("h2"), busy(99), in(cloud.StateStopped)))),
			want: full(v1alpha1.VMStateRunning, `Created=True Adopted: VM s1 on Cloud "default"`, nameFree),
		},
		{
			name: "use that the cloud did not tell is kept", vm: has(vmWith(recorded), using(5)), obs: seeing(everything, holding(serverWith(on("h1"))), how(v1alpha1.CreatedReason)),
			want: full(v1alpha1.VMStateRunning, nameFree, `Created=True Created: VM s1 on Cloud "default"`),
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			report(tc.vm, tc.obs, tc.outcome)
			if diff := cmp.Diff(tc.want, sum(tc.vm.Status)); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			before := tc.vm.DeepCopy()
			report(tc.vm, tc.obs, tc.outcome)
			if diff := cmp.Diff(before, tc.vm); diff != "" {
				t.Errorf("a second report of the same is another:\n%s", diff)
			}
		})
	}
}

func TestReportOfAnImport(t *testing.T) {
	take := []func(*scope){holding(serverWith(on("h1"))), func(s *scope) { s.how = v1alpha1.ImportedReason }}
	refused := reconciler.Stalled(v1alpha1.RejectedReason, 0, errors.New("no"))
	recordedID := func(vm *v1alpha1.VM, obs *scope, outcome error) string {
		report(vm, obs, outcome)
		return vm.Status.VMID
	}
	tests := []struct {
		name    string
		vm      *v1alpha1.VM
		obs     *scope
		outcome error
		want    string
	}{
		{name: "claimed and labelled: taken", vm: vmWith(importing), obs: seeing(everything, take...), want: "s1"},
		{name: "claimed on a cloud without labels: taken", vm: vmWith(importing), obs: seeing(named, take...), want: "s1"},
		{name: "only to be observed: taken without a claim", vm: vmWith(importing, observeOnly), obs: seeing(everything, append(take, foreignTo, unclaimed)...), want: "s1"},
		{name: "not claimed yet", vm: vmWith(importing), obs: seeing(named, append(take, unclaimed)...)},
		{name: "claimed, but the cloud did not take the labels: next time", vm: vmWith(importing), obs: seeing(everything, append(take, foreignTo)...), outcome: refused},
		{name: "another VM object has it", vm: vmWith(importing), obs: seeing(everything, append(take, rivalled)...), outcome: refused},
		{name: "another VM object has it, also when only to be observed", vm: vmWith(importing, observeOnly), obs: seeing(everything, append(take, rivalled)...), outcome: refused},
		{name: "it has another name", vm: vmWith(importing), obs: seeing(everything, append(take, func(s *scope) { s.server.Name = "db" })...), outcome: refused},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := recordedID(tc.vm, tc.obs, tc.outcome); got != tc.want {
				t.Errorf("vmId %q, want %q", got, tc.want)
			}
		})
	}
	vm := vmWith(importing)
	report(vm, seeing(everything, take...), nil)
	if got := meta.FindStatusCondition(vm.Status.Conditions, v1alpha1.CreatedCondition).Reason; got != v1alpha1.ImportedReason {
		t.Errorf("reason %s, want %s", got, v1alpha1.ImportedReason)
	}
	vm = vmWith(importing)
	report(vm, seeing(everything, isGone), refused)
	if diff := cmp.Diff(summed{State: v1alpha1.VMStateFailed, Conditions: []string{nameUnasked, "Created=False Rejected: no"}}, sum(vm.Status)); diff != "" {
		t.Errorf("an import of what does not exist (-want +got):\n%s", diff)
	}
}

func TestNameCheckedSaysWhatTheCloudSaid(t *testing.T) {
	refusal := func(err error) func(*scope) { return func(s *scope) { s.nameErr = err } }
	checked := func(s *scope) { s.checked = true }
	tests := []struct {
		name string
		vm   *v1alpha1.VM
		obs  *scope
		want string
	}{
		{name: "not asked yet", vm: vmWith(), obs: seeing(everything), want: nameUnasked},
		{name: "allowed in this pass", vm: vmWith(), obs: seeing(everything, checked), want: nameFree},
		{name: "allowed in the pass that claimed it", vm: vmWith(), obs: seeing(everything, claimed), want: nameFree},
		{name: "claimed under another name: this one was not asked for", vm: vmWith(), obs: seeing(everything, renamed), want: nameUnasked},
		{name: "prohibited", vm: vmWith(), obs: seeing(everything, refusal(errProhibited)), want: `NameChecked=False Prohibited: check name "web": not this one`},
		{name: "taken in the cloud", vm: vmWith(), obs: seeing(everything, refusal(errTaken)), want: `NameChecked=False Taken: check name "web": somebody has it`},
		{name: "refused by the create itself, although it was claimed", vm: vmWith(), obs: seeing(everything, claimed, refusal(errTaken)), want: `NameChecked=False Taken: check name "web": somebody has it`},
		{name: "refused by the create itself, right after the check allowed it", vm: vmWith(), obs: seeing(everything, claimed, checked, refusal(errTaken)), want: `NameChecked=False Taken: check name "web": somebody has it`},
		{name: "taken by another VM object", vm: vmWith(), obs: seeing(named, rivalled), want: "NameChecked=False Taken: " + errRival.Error()},
		{name: "the VM exists under it", vm: vmWith(recorded), obs: seeing(everything, away), want: nameFree},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			report(tc.vm, tc.obs, reconciler.Wait(time.Minute, v1alpha1.PendingReason, "x"))
			got := cond(*meta.FindStatusCondition(tc.vm.Status.Conditions, v1alpha1.NameCheckedCondition))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("NameChecked (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCreatedSaysWhyThereIsNoServer(t *testing.T) {
	for reason, want := range map[string]string{
		v1alpha1.OutcomeUnknownReason:   v1alpha1.OutcomeUnknownReason,
		v1alpha1.RejectedReason:         v1alpha1.RejectedReason,
		v1alpha1.UnsupportedReason:      v1alpha1.RejectedReason,
		v1alpha1.QuotaExceededReason:    v1alpha1.QuotaExceededReason,
		v1alpha1.AmbiguousReason:        v1alpha1.AmbiguousReason,
		v1alpha1.ProhibitedReason:       v1alpha1.PendingReason,
		v1alpha1.TakenReason:            v1alpha1.PendingReason,
		v1alpha1.BrakedReason:           v1alpha1.PendingReason,
		v1alpha1.CloudUnavailableReason: v1alpha1.PendingReason,
	} {
		for _, outcome := range []error{reconciler.Wait(time.Minute, reason, "why"), reconciler.Blocked("x", reason, "why"), reconciler.Stalled(reason, 0, errors.New("why"))} {
			vm := vmWith()
			report(vm, seeing(everything), outcome)
			if got := cond(*meta.FindStatusCondition(vm.Status.Conditions, v1alpha1.CreatedCondition)); got != "Created=False "+want+": why" {
				t.Errorf("%s: %s, want reason %s", said(outcome), got, want)
			}
		}
	}
}

func TestCreatedStatesWhatTheCloudCannotGuarantee(t *testing.T) {
	tests := []struct {
		name string
		caps cloud.Capabilities
		says string
	}{
		{name: "a key: exactly once", caps: cloud.NewCapabilities(cloud.Idempotency)},
		{name: "unique names: exactly once", caps: cloud.NewCapabilities(cloud.UniqueNames)},
		{name: "labels alone: two for a while", caps: cloud.NewCapabilities(cloud.Labels), says: "two servers may exist for a while"},
		{name: "nothing: one that only a person can attribute", caps: cloud.NewCapabilities(cloud.Power), says: "only a person can attribute"},
		{name: "a cloud never reached promises and denies nothing", caps: nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			for _, obs := range []*scope{seeing(tc.caps), seeing(tc.caps, holding(serverWith()))} {
				vm := vmWith()
				report(vm, obs, reconciler.Wait(time.Minute, v1alpha1.PendingReason, "x"))
				got := meta.FindStatusCondition(vm.Status.Conditions, v1alpha1.CreatedCondition).Message
				if strings.Contains(got, ";") != (tc.says != "") || !strings.Contains(got, tc.says) {
					t.Errorf("message %q, want %q in it", got, tc.says)
				}
			}
		})
	}
}

func TestDeletingSaysWhatItWaitsFor(t *testing.T) {
	leftover := saying(metav1.Condition{Type: v1alpha1.DeletingCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.RequestedReason})
	tests := []struct {
		name    string
		vm      *v1alpha1.VM
		outcome error
		want    string
	}{
		{name: "an object in life has no such condition", vm: vmWith(recorded)},
		{name: "nor one that has it from nowhere", vm: has(vmWith(recorded), leftover)},
		{name: "the cloud is at it", vm: vmWith(recorded, deleted), outcome: reconciler.Wait(time.Minute, v1alpha1.RequestedReason, "at it"), want: "Deleting=True Requested: at it"},
		{name: "the cloud is away", vm: vmWith(recorded, deleted), outcome: reconciler.Blocked("Cloud/default", v1alpha1.CloudUnavailableReason, "away"), want: "Deleting=True WaitingForCloud: away"},
		{name: "the cloud failed just now", vm: vmWith(recorded, deleted), outcome: reconciler.Wait(time.Second, v1alpha1.CloudUnavailableReason, "reset"), want: "Deleting=True WaitingForCloud: reset"},
		{name: "the brake is on", vm: vmWith(recorded, deleted), outcome: reconciler.Blocked("Cloud/default", v1alpha1.BrakedReason, "braked"), want: "Deleting=True Blocked: braked"},
		{name: "somebody must act", vm: vmWith(recorded, deleted), outcome: reconciler.Stalled(v1alpha1.BlockedReason, 0, errors.New("not ours")), want: "Deleting=True Blocked: not ours"},
		{name: "a pass failed", vm: vmWith(recorded, deleted), outcome: errors.New("broken"), want: "Deleting=True Requested: broken"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			report(tc.vm, seeing(everything, holding(serverWith())), tc.outcome)
			got := ""
			if c := meta.FindStatusCondition(tc.vm.Status.Conditions, v1alpha1.DeletingCondition); c != nil {
				got = cond(*c)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Deleting (-want +got):\n%s", diff)
			}
			if !tc.vm.DeletionTimestamp.IsZero() && tc.vm.Status.State != v1alpha1.VMStateDeleting {
				t.Errorf("state %s, want Deleting", tc.vm.Status.State)
			}
		})
	}
}

func TestUtilisationIsWrittenInSteps(t *testing.T) {
	tests := []struct {
		name          string
		step          int
		was           []func(*v1alpha1.VMStatus)
		now           int
		want          int32
		unknownBefore bool
	}{
		{name: "the first value counts, even 0", step: 10, now: 0, want: 0, unknownBefore: true},
		{name: "less than a step up is not told", step: 5, was: []func(*v1alpha1.VMStatus){using(50)}, now: 54, want: 50},
		{name: "a step up is told", step: 5, was: []func(*v1alpha1.VMStatus){using(50)}, now: 55, want: 55},
		{name: "less than a step down is not told", step: 5, was: []func(*v1alpha1.VMStatus){using(50)}, now: 46, want: 50},
		{name: "a step down is told", step: 5, was: []func(*v1alpha1.VMStatus){using(50)}, now: 45, want: 45},
		{name: "a Cloud that says nothing means every percent", step: 0, was: []func(*v1alpha1.VMStatus){using(50)}, now: 51, want: 51},
		{name: "the same is the same", step: 0, was: []func(*v1alpha1.VMStatus){using(50)}, now: 50, want: 50},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			vm := has(vmWith(recorded), tc.was...)
			report(vm, seeing(everything, holding(serverWith(busy(tc.now))), func(s *scope) { s.view.Settings.UtilizationStep = tc.step }), nil)
			if diff := cmp.Diff(&tc.want, vm.Status.CPUUtilization); diff != "" {
				t.Errorf("cpuUtilization (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	tests := []struct {
		name string
		vm   *v1alpha1.VM
		obs  *scope
		want reconciler.Summary
	}{
		{name: "it runs", vm: vmWith(recorded), obs: seeing(everything, holding(serverWith())), want: reconciler.Summary{Reason: "Running", Message: "VM s1 is as the spec says"}},
		{name: "it is off", vm: vmWith(recorded, poweredOff), obs: seeing(everything, holding(serverWith(in(cloud.StateStopped)))), want: reconciler.Summary{Reason: "Stopped", Message: "VM s1 is as the spec says"}},
		{
			name: "its use has to be asked for", vm: vmWith(recorded), obs: seeing(everything, holding(serverWith()), func(s *scope) { s.refresh = time.Minute }),
			want: reconciler.Summary{Reason: "Running", Message: "VM s1 is as the spec says", RequeueAfter: time.Minute},
		},
		{name: "its server is proved gone", vm: vmWith(recorded, deleted), obs: seeing(everything, holding(serverWith()), isGone), want: reconciler.Summary{Reason: "Deleted", Message: `VM s1 is gone from Cloud "default"`}},
		{name: "its server stays", vm: vmWith(recorded, deleted, orphaning), obs: seeing(everything, holding(serverWith())), want: reconciler.Summary{Reason: "Orphaned", Message: `VM s1 stays on Cloud "default" and is nobody's now`}},
		{name: "it never had one", vm: vmWith(deleted), obs: seeing(everything), want: reconciler.Summary{Reason: "Deleted", Message: `nothing of it is on Cloud "default"`}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, report(tc.vm, tc.obs, nil)); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
		})
	}
}

// TestConditionsHoldNothingThatChangesByItself: a message with a time, a wait
// or a measured value in it would be written again at every pass.
func TestConditionsHoldNothingThatChangesByItself(t *testing.T) {
	exhaust(func(p pick) {
		vm, obs := situation(p)
		twin := *vm
		steps, outcome := plan(vm, obs)
		report(vm, obs, outcome)

		later := *obs
		later.now, later.settles, later.refresh = obs.now.Add(7*time.Hour), obs.settles/3, obs.refresh/3
		if obs.server != nil {
			s := *obs.server
			s.CreatedAt, s.UpdatedAt, s.CPUUtilization = s.CreatedAt.Add(time.Hour), s.UpdatedAt.Add(time.Hour), new(int)
			later.server = &s
		}
		again, verdictLater := plan(&twin, &later)
		report(&twin, &later, verdictLater)
		if !slices.Equal(steps, again) {
			t.Fatalf("steps change by themselves:\n%s", cmp.Diff(steps, again))
		}
		if !slices.EqualFunc(vm.Status.Conditions, twin.Status.Conditions, alike) {
			t.Fatalf("conditions change by themselves:\n%s\n%s", cmp.Diff(sum(vm.Status), sum(twin.Status)), sketch(vm, obs))
		}
	})
}
