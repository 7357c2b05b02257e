package vm

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

// sameCondition compares conditions without the fields that the engine sets.
func sameCondition(a, b metav1.Condition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// withStatus returns vm with changes of its status.
func withStatus(vm *pcapi.VM, change ...func(*pcapi.VMStatus)) *pcapi.VM {
	for _, f := range change {
		f(&vm.Status)
	}
	return vm
}

func withConditions(conditions ...metav1.Condition) func(*pcapi.VMStatus) {
	return func(s *pcapi.VMStatus) { s.Conditions = conditions }
}

func withStatusUtilization(percent int32) func(*pcapi.VMStatus) {
	return func(s *pcapi.VMStatus) { s.CPUUtilization = &percent }
}

func withCPUUtilization(percent int) func(*cloud.Server) {
	return func(s *cloud.Server) { s.CPUUtilization = &percent }
}

func onHost(host string) func(*cloud.Server) { return func(s *cloud.Server) { s.Host = host } }

// formatCondition formats a condition as "Type=Status Reason: message".
func formatCondition(c metav1.Condition) string {
	return c.Type + "=" + string(c.Status) + " " + c.Reason + ": " + c.Message
}

// statusSummary is a status without the fields that the engine sets.
type statusSummary struct {
	VMID, Host, Cloud string
	CPU               *int32
	State             pcapi.VMState
	Conditions        []string
}

func summarize(s pcapi.VMStatus) statusSummary {
	out := statusSummary{VMID: s.VMID, Host: s.Host, Cloud: s.Cloud, CPU: s.CPUUtilization, State: s.State}
	for _, c := range s.Conditions {
		out.Conditions = append(out.Conditions, formatCondition(c))
	}
	return out
}

const (
	nameFree      = `NameChecked=True Available: the cloud lets "web" be used`
	nameUnchecked = "NameChecked=Unknown CheckFailed: the cloud has not been asked yet whether the name may be used"
)

func TestReport(t *testing.T) {
	five := int32(5)
	lost := reconciler.Stalled(pcapi.LostReason, 0, errors.New("VM s1 is gone"))
	waiting := reconciler.Blocked("Cloud/default", pcapi.CloudUnavailableReason, "waiting for the cloud")
	full := func(state pcapi.VMState, conditions ...string) statusSummary {
		summary := statusSummary{VMID: "s1", Host: "h1", Cloud: "default", State: state, Conditions: conditions}
		if state == pcapi.VMStateRunning {
			summary.CPU = &five
		}
		return summary
	}
	created := metav1.Condition{Type: pcapi.CreatedCondition, Status: metav1.ConditionTrue, Reason: pcapi.AdoptedReason, Message: `VM s1 on Cloud "default"`}
	running := serverWith(onHost("h1"), withCPUUtilization(5))
	old := func(s *pcapi.VMStatus) {
		s.Host, s.Cloud, s.CPUUtilization, s.State = "h1", "default", &five, pcapi.VMStateRunning
	}
	how := func(reason string) func(*observation) { return func(s *observation) { s.How = reason } }
	tests := []struct {
		name    string
		vm      *pcapi.VM
		obs     *observation
		outcome error
		want    statusSummary
	}{
		{
			name: "no server: Pending", vm: vmWith(), obs: obsWith(everything, unavailable), outcome: waiting,
			want: statusSummary{State: pcapi.VMStatePending, Conditions: []string{nameUnchecked, "Created=False Pending: waiting for the cloud"}},
		},
		{
			name: "server created: Created", vm: vmWith(), obs: obsWith(everything, withServer(running), how(pcapi.CreatedReason)),
			want: full(pcapi.VMStateRunning, nameFree, `Created=True Created: VM s1 on Cloud "default"`),
		},
		{
			name: "server is being built: Creating", vm: vmWith(), obs: obsWith(everything, withServer(serverWith(onHost("h1"), withCPUUtilization(5), inState(cloud.StateBuilding))), how(pcapi.CreatedReason)),
			outcome: reconciler.Wait(time.Minute, pcapi.CreatingReason, "building"),
			want:    full(pcapi.VMStateCreating, nameFree, "Created=False Creating: the cloud is building VM s1"),
		},
		{
			name: "server of an earlier create found: Adopted", vm: vmWith(), obs: obsWith(everything, withServer(running), how(pcapi.AdoptedReason)),
			want: full(pcapi.VMStateRunning, nameFree, `Created=True Adopted: VM s1 on Cloud "default"`),
		},
		{
			name: "already Adopted: the reason is kept", vm: withStatus(vmWith(recorded), withConditions(created)),
			obs:  obsWith(everything, withServer(running), how(pcapi.CreatedReason)),
			want: full(pcapi.VMStateRunning, `Created=True Adopted: VM s1 on Cloud "default"`, nameFree),
		},
		{
			name: "server stopped: Stopped", vm: vmWith(recorded), obs: obsWith(everything, withServer(serverWith(onHost("h1"), withCPUUtilization(5), inState(cloud.StateStopped))), how(pcapi.CreatedReason)),
			want: full(pcapi.VMStateStopped, nameFree, `Created=True Created: VM s1 on Cloud "default"`),
		},
		{
			name: "server suspended: Suspended", vm: vmWith(recorded), obs: obsWith(everything, withServer(serverWith(onHost("h1"), withCPUUtilization(5), inState(cloud.StateSuspended))), how(pcapi.CreatedReason)),
			want: full(pcapi.VMStateSuspended, nameFree, `Created=True Created: VM s1 on Cloud "default"`),
		},
		{
			name: "server in error: Failed", vm: vmWith(recorded), obs: obsWith(everything, withServer(serverWith(onHost("h1"), withCPUUtilization(5), inState(cloud.StateError))), how(pcapi.CreatedReason)),
			outcome: reconciler.Stalled(pcapi.ServerErrorReason, 0, errors.New("in error")),
			want:    full(pcapi.VMStateFailed, nameFree, `Created=True Created: VM s1 on Cloud "default"`),
		},
		{
			name: "being deleted by someone else: Deleting", vm: vmWith(recorded), obs: obsWith(everything, withServer(serverWith(onHost("h1"), withCPUUtilization(5), inState(cloud.StateDeleting))), how(pcapi.CreatedReason)),
			want: full(pcapi.VMStateDeleting, nameFree, `Created=True Created: VM s1 on Cloud "default"`),
		},
		{
			name: "server gone: vmId is kept, host and utilization are removed", vm: withStatus(vmWith(recorded), old, withConditions(created)), obs: obsWith(everything, gone), outcome: lost,
			want: statusSummary{VMID: "s1", Cloud: "default", State: pcapi.VMStateLost, Conditions: []string{"Created=False Lost: VM s1 is gone", nameFree}},
		},
		{
			name: "cloud unavailable: the status is kept", vm: withStatus(vmWith(recorded), old, withConditions(created)), obs: obsWith(everything, unavailable), outcome: waiting,
			want: full(pcapi.VMStateRunning, `Created=True Adopted: VM s1 on Cloud "default"`, nameFree),
		},
		{
			name: "another server than the recorded one: the status is kept", vm: withStatus(vmWith(recorded), old, withConditions(created)),
			obs:  obsWith(everything, withServer(serverWith(withID("s2"), onHost("h2"), withCPUUtilization(99), inState(cloud.StateStopped)))),
			want: full(pcapi.VMStateRunning, `Created=True Adopted: VM s1 on Cloud "default"`, nameFree),
		},
		{
			name: "no utilization in the listing: the last one is kept", vm: withStatus(vmWith(recorded), withStatusUtilization(5)), obs: obsWith(everything, withServer(serverWith(onHost("h1"))), how(pcapi.CreatedReason)),
			want: full(pcapi.VMStateRunning, nameFree, `Created=True Created: VM s1 on Cloud "default"`),
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			pure.Report(tc.vm, tc.obs, tc.outcome)
			if diff := cmp.Diff(tc.want, summarize(tc.vm.Status)); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			before := tc.vm.DeepCopy()
			pure.Report(tc.vm, tc.obs, tc.outcome)
			if diff := cmp.Diff(before, tc.vm); diff != "" {
				t.Errorf("a second Report changes the status:\n%s", diff)
			}
		})
	}
}

func TestReportImport(t *testing.T) {
	take := []func(*observation){withServer(serverWith(onHost("h1"))), func(s *observation) { s.How, s.confirmed = pcapi.ImportedReason, true }}
	unread := func(s *observation) { s.confirmed = false }
	refused := reconciler.Stalled(pcapi.RejectedReason, 0, errors.New("no"))
	recordedID := func(vm *pcapi.VM, obs *observation, outcome error) string {
		pure.Report(vm, obs, outcome)
		return vm.Status.VMID
	}
	tests := []struct {
		name    string
		vm      *pcapi.VM
		obs     *observation
		outcome error
		want    string
	}{
		{name: "claimed and labelled: recorded", vm: vmWith(importing), obs: obsWith(everything, take...), want: "s1"},
		{name: "claimed on a cloud without labels: recorded", vm: vmWith(importing), obs: obsWith(uniqueNamesOnly, take...), want: "s1"},
		{name: "ObserveOnly: recorded without a claim", vm: vmWith(importing, observing), obs: obsWith(everything, append(take, notOwned, unclaimed)...), want: "s1"},
		{name: "claimed and labelled, not read: recorded", vm: vmWith(importing), obs: obsWith(everything, append(take, unread)...), want: "s1"},
		{name: "claimed on a cloud without labels, not read: not recorded", vm: vmWith(importing), obs: obsWith(uniqueNamesOnly, append(take, unread)...)},
		{name: "ObserveOnly, not read: not recorded", vm: vmWith(importing, observing), obs: obsWith(everything, append(take, notOwned, unclaimed, unread)...)},
		{name: "not claimed: not recorded", vm: vmWith(importing), obs: obsWith(uniqueNamesOnly, append(take, unclaimed)...)},
		{name: "claimed and not labelled: not recorded", vm: vmWith(importing), obs: obsWith(everything, append(take, notOwned)...), outcome: refused},
		{name: "another VM has the server: not recorded", vm: vmWith(importing), obs: obsWith(everything, append(take, withRival)...), outcome: refused},
		{name: "another VM has the server, ObserveOnly: not recorded", vm: vmWith(importing, observing), obs: obsWith(everything, append(take, withRival)...), outcome: refused},
		{name: "server has another name: not recorded", vm: vmWith(importing), obs: obsWith(everything, append(take, func(s *observation) { s.Resource.Name = "db" })...), outcome: refused},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := recordedID(tc.vm, tc.obs, tc.outcome); got != tc.want {
				t.Errorf("vmId %q, want %q", got, tc.want)
			}
		})
	}
	vm := vmWith(importing)
	pure.Report(vm, obsWith(everything, take...), nil)
	if got := meta.FindStatusCondition(vm.Status.Conditions, pcapi.CreatedCondition).Reason; got != pcapi.ImportedReason {
		t.Errorf("reason %s, want %s", got, pcapi.ImportedReason)
	}
	vm = vmWith(importing)
	pure.Report(vm, obsWith(everything, gone), refused)
	if diff := cmp.Diff(statusSummary{State: pcapi.VMStateFailed, Conditions: []string{nameUnchecked, "Created=False Rejected: no"}}, summarize(vm.Status)); diff != "" {
		t.Errorf("an import of what does not exist (-want +got):\n%s", diff)
	}
}

func TestReportNameChecked(t *testing.T) {
	refusal := func(err error) func(*observation) { return func(s *observation) { s.nameErr = err } }
	checked := func(s *observation) { s.checked = true }
	tests := []struct {
		name string
		vm   *pcapi.VM
		obs  *observation
		want string
	}{
		{name: "not checked: Unknown", vm: vmWith(), obs: obsWith(everything), want: nameUnchecked},
		{name: "allowed in this reconcile: Available", vm: vmWith(), obs: obsWith(everything, checked), want: nameFree},
		{name: "claimed, no keys: Available", vm: vmWith(), obs: obsWith(withoutKeys, claimed), want: nameFree},
		{name: "claimed and checked earlier: Available", vm: vmWith(nameChecked), obs: obsWith(everything, claimed), want: nameFree},
		{name: "created with its claim: Unknown", vm: vmWith(), obs: obsWith(everything, claimed), want: nameUnchecked},
		{name: "created with its claim, create in progress: Available", vm: vmWith(), obs: obsWith(everything, claimed, func(s *observation) { s.Operation.ID = "op1" }), want: nameFree},
		{name: "claimed, cloud unavailable: Unknown", vm: vmWith(), obs: obsWith(nil, claimed, unavailable), want: nameUnchecked},
		{name: "another name is claimed: Unknown", vm: vmWith(), obs: obsWith(everything, claimedOtherName), want: nameUnchecked},
		{name: "prohibited by the check: Prohibited", vm: vmWith(), obs: obsWith(everything, refusal(errProhibited)), want: `NameChecked=False Prohibited: check name "web": not allowed`},
		{name: "taken in the cloud: Taken", vm: vmWith(), obs: obsWith(everything, refusal(errTaken)), want: `NameChecked=False Taken: check name "web": the name is in use`},
		{name: "claimed and refused by the create: Taken", vm: vmWith(), obs: obsWith(everything, claimed, refusal(errTaken)), want: `NameChecked=False Taken: check name "web": the name is in use`},
		{name: "checked, claimed and refused by the create: Taken", vm: vmWith(), obs: obsWith(everything, claimed, checked, refusal(errTaken)), want: `NameChecked=False Taken: check name "web": the name is in use`},
		{name: "taken by another VM: Taken", vm: vmWith(), obs: obsWith(uniqueNamesOnly, withRival), want: "NameChecked=False Taken: " + errRival.Error()},
		{name: "server recorded: Available", vm: vmWith(recorded), obs: obsWith(everything, unavailable), want: nameFree},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			pure.Report(tc.vm, tc.obs, reconciler.Wait(time.Minute, pcapi.PendingReason, "x"))
			got := formatCondition(*meta.FindStatusCondition(tc.vm.Status.Conditions, pcapi.NameCheckedCondition))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("NameChecked (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReportDeleting(t *testing.T) {
	leftover := withConditions(metav1.Condition{Type: pcapi.DeletingCondition, Status: metav1.ConditionTrue, Reason: pcapi.RequestedReason})
	tests := []struct {
		name    string
		vm      *pcapi.VM
		outcome error
		want    string
	}{
		{name: "not deleted: no condition", vm: vmWith(recorded)},
		{name: "not deleted, with the condition: removed", vm: withStatus(vmWith(recorded), leftover)},
		{name: "deletion requested: Requested", vm: vmWith(recorded, deleted), outcome: reconciler.Wait(time.Minute, pcapi.RequestedReason, "in progress"), want: "Deleting=True Requested: in progress"},
		{name: "cloud unavailable: WaitingForCloud", vm: vmWith(recorded, deleted), outcome: reconciler.Blocked("Cloud/default", pcapi.CloudUnavailableReason, "unavailable"), want: "Deleting=True WaitingForCloud: unavailable"},
		{name: "last call failed: WaitingForCloud", vm: vmWith(recorded, deleted), outcome: reconciler.Wait(time.Second, pcapi.CloudUnavailableReason, "reset"), want: "Deleting=True WaitingForCloud: reset"},
		{name: "brake on: Blocked", vm: vmWith(recorded, deleted), outcome: reconciler.Blocked("Cloud/default", pcapi.BrakedReason, "braked"), want: "Deleting=True Blocked: braked"},
		{name: "stalled: Blocked", vm: vmWith(recorded, deleted), outcome: reconciler.Stalled(pcapi.BlockedReason, 0, errors.New("labels differ")), want: "Deleting=True Blocked: labels differ"},
		{name: "reconcile failed: Requested", vm: vmWith(recorded, deleted), outcome: errors.New("broken"), want: "Deleting=True Requested: broken"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			pure.Report(tc.vm, obsWith(everything, withServer(serverWith())), tc.outcome)
			got := ""
			if c := meta.FindStatusCondition(tc.vm.Status.Conditions, pcapi.DeletingCondition); c != nil {
				got = formatCondition(*c)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Deleting (-want +got):\n%s", diff)
			}
			if !tc.vm.DeletionTimestamp.IsZero() && tc.vm.Status.State != pcapi.VMStateDeleting {
				t.Errorf("state %s, want Deleting", tc.vm.Status.State)
			}
		})
	}
}

func TestReportUtilizationInSteps(t *testing.T) {
	tests := []struct {
		name          string
		step          int
		was           []func(*pcapi.VMStatus)
		now           int
		want          int32
		unknownBefore bool
	}{
		{name: "first value is 0: written", step: 10, now: 0, want: 0, unknownBefore: true},
		{name: "less than a step up: not written", step: 5, was: []func(*pcapi.VMStatus){withStatusUtilization(50)}, now: 54, want: 50},
		{name: "a step up: written", step: 5, was: []func(*pcapi.VMStatus){withStatusUtilization(50)}, now: 55, want: 55},
		{name: "less than a step down: not written", step: 5, was: []func(*pcapi.VMStatus){withStatusUtilization(50)}, now: 46, want: 50},
		{name: "a step down: written", step: 5, was: []func(*pcapi.VMStatus){withStatusUtilization(50)}, now: 45, want: 45},
		{name: "no step set: every percent is written", step: 0, was: []func(*pcapi.VMStatus){withStatusUtilization(50)}, now: 51, want: 51},
		{name: "unchanged: not written", step: 0, was: []func(*pcapi.VMStatus){withStatusUtilization(50)}, now: 50, want: 50},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			vm := withStatus(vmWith(recorded), tc.was...)
			pure.Report(vm, obsWith(everything, withServer(serverWith(withCPUUtilization(tc.now))), func(s *observation) { s.View.Settings.UtilizationStep = tc.step }), nil)
			if diff := cmp.Diff(&tc.want, vm.Status.CPUUtilization); diff != "" {
				t.Errorf("cpuUtilization (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReportSummary(t *testing.T) {
	tests := []struct {
		name string
		vm   *pcapi.VM
		obs  *observation
		want reconciler.Summary
	}{
		{name: "running: Running", vm: vmWith(recorded), obs: obsWith(everything, withServer(serverWith())), want: reconciler.Summary{Reason: "Running", Message: "VM s1 is as the spec says"}},
		{name: "stopped: Stopped", vm: vmWith(recorded, poweredOff), obs: obsWith(everything, withServer(serverWith(inState(cloud.StateStopped)))), want: reconciler.Summary{Reason: "Stopped", Message: "VM s1 is as the spec says"}},
		{
			name: "utilization is read on demand: requeued", vm: vmWith(recorded), obs: obsWith(everything, withServer(serverWith()), func(s *observation) { s.refresh = time.Minute }),
			want: reconciler.Summary{Reason: "Running", Message: "VM s1 is as the spec says", RequeueAfter: time.Minute},
		},
		{name: "deleted, server gone: Deleted", vm: vmWith(recorded, deleted), obs: obsWith(everything, withServer(serverWith()), gone), want: reconciler.Summary{Reason: "Deleted", Message: `VM s1 is gone from Cloud "default"`}},
		{name: "deleted, server kept: Orphaned", vm: vmWith(recorded, deleted, orphaning), obs: obsWith(everything, withServer(serverWith())), want: reconciler.Summary{Reason: "Orphaned", Message: `VM s1 stays on Cloud "default" and no longer belongs to an object`}},
		{name: "deleted without a server: Deleted", vm: vmWith(deleted), obs: obsWith(everything), want: reconciler.Summary{Reason: "Deleted", Message: `nothing of it is on Cloud "default"`}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, pure.Report(tc.vm, tc.obs, nil)); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReportIsStableOverTime guards against messages with a time, a wait or a
// measured value, which would be written again at every reconcile.
func TestReportIsStableOverTime(t *testing.T) {
	exhaust(func(p pick) {
		vm, obs := situation(p)
		twin := vm.DeepCopy()
		planned := pure.Plan(vm, obs)
		steps, outcome := planned.Names(), planned.Outcome
		pure.Report(vm, obs, outcome)

		later := *obs
		later.Now, later.SettleTimeLeft, later.refresh = obs.Now.Add(7*time.Hour), obs.SettleTimeLeft/3, obs.refresh/3
		if obs.Resource != nil {
			s := *obs.Resource
			s.CreatedAt, s.UpdatedAt, s.CPUUtilization = s.CreatedAt.Add(time.Hour), s.UpdatedAt.Add(time.Hour), new(int)
			later.Resource = &s
		}
		again := pure.Plan(twin, &later)
		pure.Report(twin, &later, again.Outcome)
		if !slices.Equal(steps, again.Names()) {
			t.Fatalf("steps change over time:\n%s", cmp.Diff(steps, again.Names()))
		}
		if !slices.EqualFunc(vm.Status.Conditions, twin.Status.Conditions, sameCondition) {
			t.Fatalf("conditions change over time:\n%s\n%s", cmp.Diff(summarize(vm.Status), summarize(twin.Status)), describeSituation(vm, obs))
		}
	})
}
