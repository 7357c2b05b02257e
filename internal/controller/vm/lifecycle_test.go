package vm

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
)

var errConflict = apierrors.NewConflict(schema.GroupResource{Resource: "vms"}, "a", nil)

func TestReconcileCreatesAndDeletesWithThreeWritesAndFourCalls(t *testing.T) {
	h := newHarness(t, everything, vmWith())
	equal(t, "result", ctrl.Result{}, h.mustReconcile())
	h.wantCalls("check web", "create web")
	equal(t, "writes", []string{"object", "status"}, h.writes)
	equal(t, "events", []string{"Normal Created"}, h.events)
	h.wantClaim("web")
	h.wantCondition(pcapi.NameCheckedCondition, "True Available")
	h.wantCondition(pcapi.CreatedCondition, "True Created")
	h.wantCondition(pcapi.ReadyCondition, "True Running")
	equal(t, "vmId", "s1", h.vm().Status.VMID)
	equal(t, "labels of the server", ownLabels, h.cloud.Server("s1").Labels)

	for range 3 {
		h.later(pollInterval)
		equal(t, "result in sync", ctrl.Result{}, h.mustReconcile())
	}
	h.remove()
	h.mustReconcile()
	h.wantGone()
	h.wantServers()
	h.wantCalls("delete s1", "get s1")
	equal(t, "writes", []string{"object", "status", "object"}, h.writes)
	equal(t, "events", []string{"Normal Created", "Normal Deleted"}, h.events)
}

func TestReconcileStoresClaimBeforeCreate(t *testing.T) {
	for name, refusal := range map[string]error{"the VM was edited meanwhile: no create": errConflict, "the API server is unavailable": errAPIAway} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, everything, vmWith())
			h.refuse["object"] = []error{refusal}
			if _, err := h.reconcile(); (err == nil) != apierrors.IsConflict(refusal) {
				t.Errorf("Reconcile: %v; want an error unless it is a conflict", err)
			}
			h.wantCalls("check web")
			h.wantServers()
			h.mustReconcile()
			h.wantCalls("check web", "create web")
			h.wantServers("s1")
		})
	}
}

func TestRefusedCreateKeepsClaimOnlyWithLabels(t *testing.T) {
	refusal := func(kind cloud.Kind) *cloud.Error { return &cloud.Error{Kind: kind, Op: "create server", Detail: "no"} }
	tests := []struct {
		name    string
		caps    cloud.Capabilities
		err     *cloud.Error
		claim   string
		requeue time.Duration
		ready   string
		created string
	}{
		{name: "name taken since the check: claim removed, Taken", caps: uniqueNamesOnly, err: refusal(cloud.Taken), requeue: time.Minute, ready: "False Taken", created: "False Pending"},
		{name: "name prohibited by the create, without a code: claim removed, Prohibited", caps: uniqueNamesOnly, err: refusal(cloud.Prohibited), requeue: time.Minute, ready: "False Prohibited", created: "False Pending"},
		{name: "quota exceeded: claim removed, QuotaExceeded", caps: uniqueNamesOnly, err: refusal(cloud.Quota), requeue: time.Minute, ready: "False QuotaExceeded", created: "False QuotaExceeded"},
		{name: "spec rejected: claim removed, Rejected", caps: uniqueNamesOnly, err: refusal(cloud.Rejected), requeue: 10 * time.Minute, ready: "False Rejected", created: "False Rejected"},
		{name: "connection refused: claim removed, CloudUnavailable", caps: uniqueNamesOnly, err: errRefused, requeue: time.Second, ready: "False CloudUnavailable", created: "False Pending"},
		{name: "throttled: claim removed, Pending", caps: uniqueNamesOnly, err: errThrottled, requeue: 7 * time.Second, ready: "False Pending", created: "False Pending"},
		{name: "quota exceeded on a cloud with labels: claim kept", caps: withoutKeys, err: refusal(cloud.Quota), claim: "web", requeue: time.Minute, ready: "False QuotaExceeded", created: "False QuotaExceeded"},
		{name: "no host: claim removed, Unschedulable", caps: uniqueNamesOnly, err: refusal(cloud.NoHost), requeue: time.Minute, ready: "False Unschedulable", created: "False Unschedulable"},
		{name: "name taken on a cloud with labels: claim kept, OutcomeUnknown", caps: withoutKeys, err: refusal(cloud.Taken), claim: "web", requeue: time.Second, ready: "False OutcomeUnknown", created: "False OutcomeUnknown"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := newHarness(t, tc.caps, vmWith())
			h.cloud.Fail(cloudfake.CreateServer, tc.err, false)
			h.wantRequeue(tc.requeue, h.mustReconcile())
			h.wantCalls("check web", "create web")
			h.wantClaim(tc.claim)
			h.wantCondition(pcapi.ReadyCondition, tc.ready)
			h.wantCondition(pcapi.CreatedCondition, tc.created)

			h.later(11 * time.Minute)
			h.mustReconcile()
			h.wantServers("s1")
			h.wantCondition(pcapi.ReadyCondition, "True Running")
		})
	}
}

func TestRefusedNameIsCheckedAgainOnlyWhenDueOrRequested(t *testing.T) {
	edits := map[string]func(*pcapi.VM){
		"vmname is edited": func(vm *pcapi.VM) { vm.Spec.VMName = "web2" },
		"a reconcile is requested": func(vm *pcapi.VM) {
			vm.Annotations = map[string]string{pcapi.ReconcileRequestedAtAnnotation: "now"}
		},
	}
	for reason, keep := range map[string]time.Duration{pcapi.ProhibitedReason: 10 * time.Minute, pcapi.TakenReason: time.Minute} {
		harness := func(t *testing.T) *harness {
			h := newHarness(t, uniqueNamesOnly, vmWith())
			if reason == pcapi.ProhibitedReason {
				h.cloud.Prohibit("web", "web2")
			} else {
				h.cloud.AddServers(cloud.Server{ID: "x", Name: "web"})
				h.cloud.AddServers(cloud.Server{ID: "y", Name: "web2"})
				h.later(0)
			}
			h.wantRequeue(keep, h.mustReconcile())
			h.wantCalls("check web")
			h.wantClaim("")
			h.wantCondition(pcapi.NameCheckedCondition, "False "+reason)
			h.wantCondition(pcapi.StalledCondition, "True "+reason)
			return h
		}
		t.Run(reason+": checked again when the recheck is due", func(t *testing.T) {
			h := harness(t)
			writes := len(h.writes)
			h.advance(keep - time.Second)
			h.edit(func(vm *pcapi.VM) { vm.Labels = map[string]string{"any": "thing"} })
			h.mustReconcile()
			h.wantCalls()
			equal(t, "writes for the new generation", 1, len(h.writes)-writes)
			h.mustReconcile()
			equal(t, "writes when nothing changed", 1, len(h.writes)-writes)
			h.advance(2 * time.Second)
			h.mustReconcile()
			h.wantCalls("check web")
		})
		for name, change := range edits {
			t.Run(reason+": checked again at once when "+name, func(t *testing.T) {
				h := harness(t)
				h.edit(change)
				h.mustReconcile()
				h.wantCalls("check " + h.vm().Spec.VMName)
				h.mustReconcile()
				h.wantCalls()
			})
		}
	}
}

func TestThrottledCallWaitsForRetryAfter(t *testing.T) {
	h := newHarness(t, everything, vmWith())
	long := *errThrottled
	long.RetryAfter = 3 * time.Minute
	none := *errThrottled
	none.RetryAfter = 0
	h.cloud.Fail(cloudfake.CheckName, &long, false)
	h.cloud.Fail(cloudfake.CheckName, &none, false)
	h.wantRequeue(3*time.Minute, h.mustReconcile())
	h.wantRequeue(time.Second, h.mustReconcile())
	h.wantCondition(pcapi.NameCheckedCondition, "Unknown CheckFailed")
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestFailedCallsBackOffExponentially(t *testing.T) {
	h := newHarness(t, everything, vmWith())
	for range 8 {
		h.cloud.Fail(cloudfake.CheckName, errRefused, false)
	}
	for want := time.Second; want < 2*time.Minute; want *= 2 {
		h.wantRequeue(want, h.mustReconcile())
	}
	h.wantRequeue(2*time.Minute, h.mustReconcile())
	h.wantCondition(pcapi.ReadyCondition, "False CloudUnavailable", "does not answer")
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True Running")

	h.edit(func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(8) })
	h.cloud.Fail(cloudfake.UpdateServer, errRefused, false)
	h.wantRequeue(time.Second, h.mustReconcile())
}

func TestUnavailableCloudIsNotCalled(t *testing.T) {
	for name, vm := range map[string]*pcapi.VM{
		"new VM: no call":            vmWith(),
		"VM to be imported: no call": vmWith(importing),
		"create with unknown outcome: no call": vmWith(func(vm *pcapi.VM) {
			vm.Finalizers, vm.Annotations = []string{pcapi.VMFinalizer}, external.ClaimAnnotations("web", "default")
		}),
		"deleted VM: no call": onRecord(deleted),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, everything, vm)
			h.inv.MarkUnavailable("connection refused")
			equal(t, "result: the VM is enqueued when the cloud is available", ctrl.Result{}, h.mustReconcile())
			h.mustReconcile()
			h.wantCalls()
			equal(t, "writes", []string{"status"}, h.writes)
			h.wantCondition(pcapi.ReadyCondition, "False CloudUnavailable", `Cloud "default"`, "connection refused")
			if !vm.DeletionTimestamp.IsZero() {
				h.wantCondition(pcapi.DeletingCondition, "True WaitingForCloud")
			}
			h.wantEnqueued()
			h.poll()
			h.wantEnqueued("a")
		})
	}
}

func TestVMInSyncStaysReadyWhileCloudIsUnavailable(t *testing.T) {
	h := newHarness(t, everything, onRecord())
	h.cloud.AddServers(serverWith())
	h.poll()
	h.mustReconcile()
	h.inv.MarkUnavailable("connection refused")
	writes := len(h.writes)
	equal(t, "result", ctrl.Result{}, h.mustReconcile())
	equal(t, "writes", writes, len(h.writes))
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestVMWaitsQuietlyForFirstListing(t *testing.T) {
	h := newHarness(t, everything, vmWith())
	h.start()
	h.wantRequeue(patience, h.mustReconcile())
	equal(t, "writes", []string(nil), h.writes)
	h.advance(patience)
	equal(t, "result", ctrl.Result{}, h.mustReconcile())
	h.wantCondition(pcapi.ReadyCondition, "False CloudUnavailable")
	h.connect()
	h.wantEnqueued("a")
	h.wantCalls()
}

func TestBrakeBlocksCreatesAndDeletes(t *testing.T) {
	tests := []struct {
		name    string
		vm      *pcapi.VM
		servers []cloud.Server
	}{
		{name: "new VM: neither the name check nor the claim is made", vm: vmWith()},
		{name: "create with unknown outcome: not repeated", vm: vmWith(func(vm *pcapi.VM) { vm.Finalizers = []string{pcapi.VMFinalizer} })},
		{name: "deleted VM: the deletion waits", vm: onRecord(deleted), servers: []cloud.Server{serverWith()}},
		{name: "deleted VM whose server is not listed: the deletion waits", vm: onRecord(deleted)},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := newHarness(t, everything, tc.vm)
			for _, s := range tc.servers {
				h.cloud.AddServers(s)
			}
			h.later(settleTime)
			h.inv.Brake(true)
			equal(t, "result: the VM is enqueued when the brake is released", ctrl.Result{}, h.mustReconcile())
			h.wantCalls()
			h.wantCondition(pcapi.ReadyCondition, "False Braked", `Cloud "default"`, "acknowledged")
			if !tc.vm.DeletionTimestamp.IsZero() {
				h.wantCondition(pcapi.DeletingCondition, "True Blocked")
			}
			claim := len(tc.vm.Finalizers)
			equal(t, "finalizers", claim, len(h.vm().Finalizers))
			h.enqueued = nil
			h.inv.Brake(false)
			h.wantEnqueued("a")
			h.mustReconcile()
			if tc.vm.DeletionTimestamp.IsZero() {
				h.wantServers("s1")
			} else {
				h.wantGone()
			}
		})
	}
}

func TestBrakeAllowsUpdates(t *testing.T) {
	h := newHarness(t, everything, onRecord())
	h.cloud.AddServers(serverWith(withCores(1)))
	h.poll()
	h.inv.Brake(true)
	h.mustReconcile()
	h.wantCalls("update s1")
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestServerIsLostOnlyAfterGetReturnsNotFound(t *testing.T) {
	h := newHarness(t, everything, onRecord())
	h.cloud.AddServers(serverWith())
	h.poll()
	h.mustReconcile()
	h.cloud.Hide("s1")
	h.later(pollInterval)
	h.mustReconcile()
	h.wantCalls("get s1")
	h.wantCondition(pcapi.ReadyCondition, "True Running")

	h.cloud.RemoveServers("s1")
	h.later(pollInterval)
	h.inv.Brake(true)
	h.mustReconcile()
	h.wantCalls()
	h.wantCondition(pcapi.ReadyCondition, "True Running")

	h.inv.Brake(false)
	equal(t, "result", ctrl.Result{}, h.mustReconcile())
	h.wantCalls("get s1")
	h.wantCondition(pcapi.CreatedCondition, "False Lost", "VM s1", "delete this object and create another")
	h.wantCondition(pcapi.StalledCondition, "True Lost")
	equal(t, "vmId", "s1", h.vm().Status.VMID)
	equal(t, "state", pcapi.VMStateLost, h.vm().Status.State)
	h.wantServers()

	h.remove()
	h.mustReconcile()
	h.wantGone()
}

func TestRemovedFinalizerIsRestored(t *testing.T) {
	h := newHarness(t, everything, onRecord(func(vm *pcapi.VM) { vm.Finalizers, vm.Annotations = nil, nil }))
	h.cloud.AddServers(serverWith())
	h.poll()
	h.mustReconcile()
	h.wantClaim("web")
	h.wantCalls()
}

func TestListingEnqueuesVMWhoseIDIsNotInCache(t *testing.T) {
	for name, caps := range profiles {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, vmWith())
			h.mustReconcile()
			h.later(time.Second)
			h.wantEnqueued("a")
		})
	}
}

func TestCreateOmitsUnsupportedFields(t *testing.T) {
	h := newHarness(t, cloud.NewCapabilities(cloud.UniqueNames), vmWith(func(vm *pcapi.VM) { vm.Spec.CPU = nil }))
	h.mustReconcile()
	h.wantServers("s1")
	equal(t, "labels", map[string]string(nil), h.cloud.Server("s1").Labels)
	if _, listed := h.cloud.Server("s1").Labels[inventory.UIDLabel]; listed {
		t.Error("labels were sent")
	}
}
