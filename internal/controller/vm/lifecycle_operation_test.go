package vm

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

var operating = cloud.NewCapabilities(append([]cloud.Capability{cloud.Operations}, everything...)...)

func operatingWithout(missing ...cloud.Capability) cloud.Capabilities {
	return cloud.NewCapabilities(append([]cloud.Capability{cloud.Operations}, without(missing...)...)...)
}

var errFull = &cloud.Error{Kind: cloud.Quota, Op: "operation", Detail: "the datastore is full"}

// newOperating returns a harness whose cloud answers changes with operations.
func newOperating(t *testing.T, caps cloud.Capabilities, vm *pcapi.VM, servers ...cloud.Server) *harness {
	t.Helper()
	h := newHarness(t, caps, vm)
	h.cloud.AddServers(servers...)
	h.poll()
	h.cloud.SetOperating(true)
	return h
}

// wantOperation checks the kind and the age of status.operation, empty for none.
func (h *harness) wantOperation(kind pcapi.VMOperationKind, age time.Duration) {
	h.t.Helper()
	var got, want *pcapi.VMOperation
	if got = h.vm().Status.Operation; got != nil && kind != "" {
		want = &pcapi.VMOperation{ID: got.ID, Kind: kind, Since: metav1.NewTime(h.now.Add(-age).Local().Truncate(time.Second))}
	}
	if diff := cmp.Diff(want, got); diff != "" || (got == nil) != (kind == "") {
		h.t.Errorf("operation, want %q (-want +got):\n%s", kind, diff)
	}
}

func TestOperationOfCreateIsFollowedWithoutWaiting(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{
		"everything": operating, "without keys": operatingWithout(cloud.Idempotency), "without labels": operatingWithout(cloud.Idempotency, cloud.Labels),
		"without any proof": operatingWithout(cloud.Idempotency, cloud.Labels, cloud.UniqueNames),
	} {
		t.Run(name, func(t *testing.T) {
			h := newOperating(t, caps, vmWith())
			h.wantRequeue(2*time.Second, h.mustReconcile())
			h.wantCalls("check web", "create web")
			claimWrites := len(h.writes)

			h.advance(2 * time.Second)
			h.cloud.SetProgress(47)
			h.wantRequeue(2*time.Second, h.mustReconcile())
			h.wantCalls("operation op1")
			h.wantOperation(pcapi.VMOperationCreate, 2*time.Second)
			h.wantCondition(pcapi.CreatedCondition, "False Creating", "40 %")
			h.wantCondition(pcapi.ReadyCondition, "False Creating", "40 %")
			equal(t, "state", pcapi.VMStateCreating, h.vm().Status.State)
			equal(t, "writes once it takes long", 1, len(h.writes)-claimWrites)

			h.advance(98 * time.Second)
			h.cloud.SetProgress(49)
			h.wantRequeue(20*time.Second, h.mustReconcile())
			equal(t, "writes without visible progress", 1, len(h.writes)-claimWrites)

			h.cloud.FinishOperations()
			h.cloud.TakeCalls()
			h.mustReconcile()
			h.wantCalls("operation op1", "get s1")
			h.wantOperation("", 0)
			h.wantCondition(pcapi.CreatedCondition, "True Created")
			h.wantCondition(pcapi.ReadyCondition, "True Running")
			equal(t, "vmId", "s1", h.vm().Status.VMID)
			h.mustReconcile()
			h.wantCalls()
		})
	}
}

func TestShortOperationIsNotWritten(t *testing.T) {
	h := newOperating(t, operating, vmWith())
	h.mustReconcile()
	equal(t, "writes", []string{"object"}, h.writes)
	h.advance(time.Second)
	h.cloud.FinishOperations()
	h.mustReconcile()
	equal(t, "writes", []string{"object", "status"}, h.writes)
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestOperationIsAskedFirstAfterRestart(t *testing.T) {
	tests := map[string]struct {
		caps  cloud.Capabilities
		end   func(*harness)
		calls []string
		ready string
	}{
		"it still runs: nothing is sent":        {operatingWithout(cloud.Idempotency, cloud.Labels, cloud.UniqueNames), func(*harness) {}, []string{"operation op1"}, "False Creating"},
		"it made the server: recorded":          {operatingWithout(cloud.Idempotency, cloud.Labels, cloud.UniqueNames), func(h *harness) { h.cloud.FinishOperations() }, []string{"operation op1", "get s1"}, "True Running"},
		"it failed: its fault":                  {operating, func(h *harness) { h.cloud.FailOperations(errFull) }, []string{"operation op1"}, "False QuotaExceeded"},
		"it is forgotten: the server is looked": {operatingWithout(cloud.Idempotency), func(h *harness) { h.cloud.ForgetOperations() }, []string{"operation op1"}, "False OutcomeUnknown"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newOperating(t, tc.caps, vmWith())
			h.mustReconcile()
			h.advance(2 * time.Second)
			h.mustReconcile()
			h.cloud.TakeCalls()
			h.start()
			h.connect()
			h.cloud.TakeCalls()
			tc.end(h)
			h.advance(time.Second)
			h.poll()
			h.mustReconcile()
			if tc.ready == "False OutcomeUnknown" {
				h.advance(time.Second)
				h.poll()
				h.mustReconcile()
			}
			h.wantCalls(tc.calls...)
			h.wantCondition(pcapi.ReadyCondition, tc.ready)
		})
	}
}

func TestForgottenOperationWaitsForSettleTime(t *testing.T) {
	h := newOperating(t, operatingWithout(cloud.Idempotency), vmWith())
	h.mustReconcile()
	h.cloud.ForgetOperations()
	h.advance(10 * time.Minute)
	h.poll()
	h.mustReconcile()
	h.later(settleTime - 2*time.Second)
	h.mustReconcile()
	h.wantCalls("check web", "create web", "operation op1")
	h.later(3 * time.Second)
	h.mustReconcile()
	h.wantCalls("check web", "create web")
}

func TestFailedOperationIsTriedAgain(t *testing.T) {
	tests := map[string]struct {
		caps    cloud.Capabilities
		fault   *cloud.Error
		ready   string
		requeue time.Duration
		claim   string
		again   []string
	}{
		"no room, labels: claim kept":          {operating, errFull, "False QuotaExceeded", time.Minute, "web", []string{"create web"}},
		"no room, no labels: claim removed":    {operatingWithout(cloud.Labels), errFull, "False QuotaExceeded", time.Minute, "", []string{"check web", "create web"}},
		"a fault of its own: back-off":         {operating, &cloud.Error{Kind: cloud.Failed, Op: "operation", Detail: "a host broke"}, "False OperationFailed", time.Second, "web", []string{"create web"}},
		"another server has the name: Taken":   {operating, &cloud.Error{Kind: cloud.Taken, Op: "operation", Detail: "the name is in use"}, "False Taken", time.Minute, "web", []string{"create web"}},
		"a request that makes no sense: stall": {operating, &cloud.Error{Kind: cloud.Rejected, Op: "operation", Detail: "no such template"}, "False Rejected", time.Minute, "web", []string{"create web"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newOperating(t, tc.caps, vmWith())
			h.mustReconcile()
			h.advance(2 * time.Second)
			h.cloud.FailOperations(tc.fault)
			h.wantRequeue(tc.requeue, h.mustReconcile())
			h.wantCalls("check web", "create web", "operation op1")
			said := tc.fault.Detail
			if tc.fault.Kind == cloud.Quota {
				said = "no capacity left" // the cloud's own words concern the platform
			}
			h.wantCondition(pcapi.ReadyCondition, tc.ready, said)
			h.wantOperation("", 0)
			h.wantClaim(tc.claim)

			h.later(tc.requeue + time.Minute)
			h.mustReconcile()
			h.wantCalls(tc.again...)
			h.cloud.FinishOperations()
			h.advance(2 * time.Second)
			h.mustReconcile()
			h.wantCondition(pcapi.ReadyCondition, "True Running")
			h.wantServers("s1")
		})
	}
}

func TestOperationsThatFailInARowBackOff(t *testing.T) {
	h := newOperating(t, operating, vmWith())
	fault := &cloud.Error{Kind: cloud.Failed, Op: "operation", Detail: "a host broke"}
	for want := time.Second; want < time.Minute; want *= 2 {
		h.mustReconcile()
		h.cloud.FailOperations(fault)
		h.advance(2 * time.Second)
		h.wantRequeue(want, h.mustReconcile())
		h.later(want)
	}
}

func TestImportIsAddedDuringCreate(t *testing.T) {
	for name, exists := range map[string]bool{"of a server that exists": true, "of one that does not": false} {
		t.Run(name, func(t *testing.T) {
			h := newOperating(t, operatingWithout(cloud.Idempotency), vmWith())
			h.mustReconcile()
			h.edit(func(vm *pcapi.VM) { vm.Spec.Import = &pcapi.VMImport{VMID: "old"} })
			if exists {
				h.cloud.AddServers(serverWith(withID("old"), unlabelled))
			}
			h.cloud.FinishOperations()
			h.cloud.SetOperating(false)
			for range 4 {
				h.later(settleTime)
				h.mustReconcile()
			}
			if exists {
				equal(t, "vmId", "old", h.vm().Status.VMID)
				h.wantServers("old")
				return
			}
			equal(t, "vmId", "", h.vm().Status.VMID)
			h.wantCondition(pcapi.ReadyCondition, "False Rejected", "the cloud has no VM old")
			h.wantServers("s1")
			h.remove()
			h.later(time.Second)
			h.mustReconcile()
			h.later(time.Second)
			h.mustReconcile()
			h.wantGone()
			h.wantServers()
		})
	}
}

func TestChangeByOperation(t *testing.T) {
	h := newOperating(t, operating, onRecord(), serverWith(withCores(1)))
	h.wantRequeue(2*time.Second, h.mustReconcile())
	h.advance(5 * time.Second)
	h.mustReconcile()
	h.wantCalls("update s1", "operation op1")
	h.wantOperation(pcapi.VMOperationUpdate, 5*time.Second)
	h.wantCondition(pcapi.ReadyCondition, "False Progressing", "is changing VM s1")
	h.cloud.FinishOperations()
	h.advance(2 * time.Second)
	h.mustReconcile()
	h.wantCalls("operation op1", "get s1")
	h.wantCondition(pcapi.ReadyCondition, "True Running")
	h.wantOperation("", 0)
}

func TestUnavailableCloudKeepsRecordedOperation(t *testing.T) {
	h := newOperating(t, operating, vmWith())
	h.mustReconcile()
	h.advance(3 * time.Second)
	h.mustReconcile()
	h.cloud.TakeCalls()
	h.inv.MarkUnavailable("connection refused")
	h.mustReconcile()
	h.wantCalls()
	h.wantOperation(pcapi.VMOperationCreate, 3*time.Second)
	h.wantCondition(pcapi.ReadyCondition, "False CloudUnavailable")
}

func TestOperationThatCannotBeReadIsAskedAgain(t *testing.T) {
	h := newOperating(t, operatingWithout(cloud.Idempotency, cloud.Labels, cloud.UniqueNames), vmWith())
	h.mustReconcile()
	h.cloud.Fail(cloudfake.GetOperation, &cloud.Error{Kind: cloud.NotFoundUnproven, Op: "get operation"}, false)
	h.later(time.Hour)
	h.wantRequeue(time.Second, h.mustReconcile())
	h.cloud.FinishOperations()
	h.advance(time.Second)
	h.mustReconcile()
	h.wantCalls("check web", "create web", "operation op1", "operation op1", "get s1")
	h.wantServers("s1")
}

func TestOperationThatMadeAnotherServerIsNotUsed(t *testing.T) {
	h := newOperating(t, operating, vmWith())
	h.mustReconcile()
	h.cloud.FinishOperations()
	h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.Labels = nil })
	h.advance(2 * time.Second)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "False Ambiguous", "owner labels")
	equal(t, "vmId", "", h.vm().Status.VMID)
}

func TestBusyServerDoesNotMakeCloudUnavailable(t *testing.T) {
	for name, tc := range map[string]struct {
		vm   *pcapi.VM
		verb cloudfake.Verb
	}{"change": {onRecord(), cloudfake.UpdateServer}, "deletion": {onRecord(deleted), cloudfake.DeleteServer}} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, everything, tc.vm)
			h.cloud.AddServers(serverWith(withCores(1)))
			h.poll()
			for range 2 {
				h.cloud.Fail(tc.verb, &cloud.Error{Kind: cloud.Busy, Op: "call", Detail: "a task is in progress"}, false)
			}
			h.wantRequeue(time.Second, h.mustReconcile())
			h.wantRequeue(2*time.Second, h.mustReconcile())
			h.wantCondition(pcapi.ReadyCondition, "False Progressing", "a task is in progress")
			equal(t, "poll requested", false, h.inv.View().Unavailable != "")
			h.mustReconcile()
			if tc.verb == cloudfake.UpdateServer {
				h.wantCondition(pcapi.ReadyCondition, "True Running")
			} else {
				h.wantGone()
			}
		})
	}
}

// harnessWithOperationOnRecord returns a harness with a VM whose status shows the operation of the create, which has made s1 by now.
func harnessWithOperationOnRecord(t *testing.T) *harness {
	t.Helper()
	h := newOperating(t, operating, vmWith())
	h.mustReconcile()
	h.advance(2 * time.Second)
	h.mustReconcile()
	h.wantOperation(pcapi.VMOperationCreate, 2*time.Second)
	h.cloud.FinishOperations()
	return h
}

// An operation of an earlier process names the server that it made. By now, the cloud may have given
// the id to another server.
func TestServerThatAnOperationMadeAndThatHasOtherLabelsIsNotUsed(t *testing.T) {
	ofB := map[string]string{inventory.UIDLabel: "uid-b", inventory.ClusterLabel: "cluster"}
	tests := map[string]struct {
		labels  map[string]string
		remove  bool
		created string
		gone    bool
	}{
		"labels of another owner": {labels: ofB, created: "False Ambiguous"},
		"no labels":               {created: "False Ambiguous"},
		"labels of another owner, and the VM is deleted": {labels: ofB, remove: true, gone: true},
		"no labels, and the VM is deleted":               {remove: true, created: "False Ambiguous"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := harnessWithOperationOnRecord(t)
			h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.Labels = test.labels })
			h.start()
			h.connect()
			if test.remove {
				h.remove()
			}
			for range 3 {
				h.later(settleTime + time.Second)
				h.mustReconcileIfExists()
			}
			h.wantServers("s1")
			if test.gone {
				h.wantGone()
				return
			}
			h.wantCondition(pcapi.CreatedCondition, test.created, "does not carry this object's owner labels")
		})
	}
}
