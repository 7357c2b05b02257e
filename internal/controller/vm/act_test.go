package vm

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

var errConflict = apierrors.NewConflict(schema.GroupResource{Resource: "vms"}, "a", nil)

func TestALifeOfThreeWritesAndFourCalls(t *testing.T) {
	w := newWorld(t, everything, vmWith())
	equal(t, "result", ctrl.Result{}, w.mustPass())
	w.wantCalls("check web", "create web")
	equal(t, "writes", []string{"object", "status"}, w.writes)
	equal(t, "events", []string{"Normal Created"}, w.events)
	w.wantClaim("web")
	w.wantSays(v1alpha1.NameCheckedCondition, "True Available")
	w.wantSays(v1alpha1.CreatedCondition, "True Created")
	w.wantSays(v1alpha1.ReadyCondition, "True Running")
	equal(t, "vmId", "s1", w.vm().Status.VMID)
	equal(t, "labels of the server", ours, w.cloud.Server("s1").Labels)

	for range 3 {
		w.later(pollInterval)
		equal(t, "result at rest", ctrl.Result{}, w.mustPass())
	}
	w.remove()
	w.mustPass()
	w.wantGone()
	w.wantServers()
	w.wantCalls("delete s1", "get s1")
	equal(t, "writes", []string{"object", "status", "object"}, w.writes)
	equal(t, "events", []string{"Normal Created", "Normal Deleted"}, w.events)
}

func TestTheIntentIsStoredBeforeTheCreateIsSent(t *testing.T) {
	for name, refusal := range map[string]error{"somebody edited the VM meanwhile": errConflict, "the API server is away": errAPIAway} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, everything, vmWith())
			w.refuse["object"] = []error{refusal}
			if _, err := w.pass(); (err == nil) != apierrors.IsConflict(refusal) {
				t.Errorf("Reconcile: %v; want only a conflict to be quiet", err)
			}
			w.wantCalls("check web")
			w.wantServers()
			w.mustPass()
			w.wantCalls("check web", "create web")
			w.wantServers("s1")
		})
	}
}

func TestARefusedCreateLeavesAClaimOnlyWhereItDoesNoHarm(t *testing.T) {
	refusal := func(kind cloud.Kind) *cloud.Error { return &cloud.Error{Kind: kind, Op: "create server", Detail: "no"} }
	tests := []struct {
		name    string
		caps    cloud.Capabilities
		err     *cloud.Error
		claim   string
		again   time.Duration
		ready   string
		created string
	}{
		{name: "the name was taken since it was checked", caps: named, err: refusal(cloud.Taken), again: time.Minute, ready: "False Taken", created: "False Pending"},
		{name: "the name is prohibited after all", caps: named, err: refusal(cloud.Prohibited), again: 10 * time.Minute, ready: "False Prohibited", created: "False Pending"},
		{name: "the cloud has no room", caps: named, err: refusal(cloud.Quota), again: time.Minute, ready: "False QuotaExceeded", created: "False QuotaExceeded"},
		{name: "the cloud does not like the spec", caps: named, err: refusal(cloud.Rejected), again: 10 * time.Minute, ready: "False Rejected", created: "False Rejected"},
		{name: "the cloud was not reached", caps: named, err: errRefused, again: time.Second, ready: "False CloudUnavailable", created: "False Pending"},
		{name: "the cloud has too much to do", caps: named, err: errThrottled, again: 7 * time.Second, ready: "False Pending", created: "False Pending"},
		{name: "labels tell whose a server is: the claim may stay", caps: tokenless, err: refusal(cloud.Quota), claim: "web", again: time.Minute, ready: "False QuotaExceeded", created: "False QuotaExceeded"},
		{name: "labels tell whose a server is: one of that name that no listing shows may be this VM's", caps: tokenless, err: refusal(cloud.Taken), claim: "web", again: time.Second, ready: "False OutcomeUnknown", created: "False OutcomeUnknown"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, tc.caps, vmWith())
			w.cloud.Fail(cloudfake.CreateServer, tc.err, false)
			w.wantAgain(tc.again, w.mustPass())
			w.wantCalls("check web", "create web")
			w.wantClaim(tc.claim)
			w.wantSays(v1alpha1.ReadyCondition, tc.ready)
			w.wantSays(v1alpha1.CreatedCondition, tc.created)

			w.later(11 * time.Minute)
			w.mustPass()
			w.wantServers("s1")
			w.wantSays(v1alpha1.ReadyCondition, "True Running")
		})
	}
}

func TestARefusedNameIsNotAskedForAgainAndAgain(t *testing.T) {
	edits := map[string]func(*v1alpha1.VM){
		"vmname is edited": func(vm *v1alpha1.VM) { vm.Spec.VMName = "web2" },
		"a pass is asked for": func(vm *v1alpha1.VM) {
			vm.Annotations = map[string]string{v1alpha1.ReconcileRequestedAtAnnotation: "now"}
		},
	}
	for reason, keep := range map[string]time.Duration{v1alpha1.ProhibitedReason: 10 * time.Minute, v1alpha1.TakenReason: time.Minute} {
		world := func(t *testing.T) *world {
			w := newWorld(t, named, vmWith())
			if reason == v1alpha1.ProhibitedReason {
				w.cloud.Prohibit("web", "web2")
			} else {
				w.cloud.AddServers(cloud.Server{ID: "x", Name: "web"})
				w.cloud.AddServers(cloud.Server{ID: "y", Name: "web2"})
				w.later(0)
			}
			w.wantAgain(keep, w.mustPass())
			w.wantCalls("check web")
			w.wantClaim("")
			w.wantSays(v1alpha1.NameCheckedCondition, "False "+reason)
			w.wantSays(v1alpha1.StalledCondition, "True "+reason)
			return w
		}
		t.Run(reason+" is remembered and then asked again", func(t *testing.T) {
			w := world(t)
			writes := len(w.writes)
			w.advance(keep - time.Second)
			w.edit(func(vm *v1alpha1.VM) { vm.Labels = map[string]string{"any": "thing"} })
			w.mustPass()
			w.wantCalls()
			equal(t, "writes for the new generation", 1, len(w.writes)-writes)
			w.mustPass()
			equal(t, "writes for nothing new", 1, len(w.writes)-writes)
			w.advance(2 * time.Second)
			w.mustPass()
			w.wantCalls("check web")
		})
		for name, change := range edits {
			t.Run(reason+" is asked again at once when "+name, func(t *testing.T) {
				w := world(t)
				w.edit(change)
				w.mustPass()
				w.wantCalls("check " + w.vm().Spec.VMName)
				w.mustPass()
				w.wantCalls()
			})
		}
	}
}

func TestABusyCloudIsLeftAloneForAsLongAsItAsks(t *testing.T) {
	w := newWorld(t, everything, vmWith())
	long := *errThrottled
	long.RetryAfter = 3 * time.Minute
	none := *errThrottled
	none.RetryAfter = 0
	w.cloud.Fail(cloudfake.CheckName, &long, false)
	w.cloud.Fail(cloudfake.CheckName, &none, false)
	w.wantAgain(3*time.Minute, w.mustPass())
	w.wantAgain(time.Second, w.mustPass())
	w.wantSays(v1alpha1.NameCheckedCondition, "Unknown CheckFailed")
	w.mustPass()
	w.wantSays(v1alpha1.ReadyCondition, "True Running")
}

func TestWaitsForAFailingCloudGrow(t *testing.T) {
	w := newWorld(t, everything, vmWith())
	for range 8 {
		w.cloud.Fail(cloudfake.CheckName, errRefused, false)
	}
	for want := time.Second; want < 2*time.Minute; want *= 2 {
		w.wantAgain(want, w.mustPass())
	}
	w.wantAgain(2*time.Minute, w.mustPass())
	w.wantSays(v1alpha1.ReadyCondition, "False CloudUnavailable", "connection refused")
	w.mustPass()
	w.wantSays(v1alpha1.ReadyCondition, "True Running")

	w.edit(func(vm *v1alpha1.VM) { *vm.Spec.CPU = 8 })
	w.cloud.Fail(cloudfake.UpdateServer, errRefused, false)
	w.wantAgain(time.Second, w.mustPass())
}

func TestNothingIsAskedOfACloudThatIsAway(t *testing.T) {
	for name, vm := range map[string]*v1alpha1.VM{
		"a new VM":                 vmWith(),
		"one to be imported":       vmWith(importing),
		"one whose create is open": vmWith(func(vm *v1alpha1.VM) { vm.Finalizers = []string{v1alpha1.VMFinalizer} }),
		"one to be deleted":        onRecord(deleted),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, everything, vm)
			w.inv.MarkUnavailable("connection refused")
			equal(t, "result: the cloud's return wakes it", ctrl.Result{}, w.mustPass())
			w.mustPass()
			w.wantCalls()
			equal(t, "writes", []string{"status"}, w.writes)
			w.wantSays(v1alpha1.ReadyCondition, "False CloudUnavailable", `Cloud "default"`, "connection refused")
			if !vm.DeletionTimestamp.IsZero() {
				w.wantSays(v1alpha1.DeletingCondition, "True WaitingForCloud")
			}
			w.wantWoken()
			w.poll()
			w.wantWoken("a")
		})
	}
}

func TestAVMAtRestDoesNotCareThatTheCloudIsAway(t *testing.T) {
	w := newWorld(t, everything, onRecord())
	w.cloud.AddServers(serverWith())
	w.poll()
	w.mustPass()
	w.inv.MarkUnavailable("connection refused")
	writes := len(w.writes)
	equal(t, "result", ctrl.Result{}, w.mustPass())
	equal(t, "writes", writes, len(w.writes))
	w.wantSays(v1alpha1.ReadyCondition, "True Running")
}

func TestACloudThatIsNotListedYetIsWaitedForInSilence(t *testing.T) {
	w := newWorld(t, everything, vmWith())
	w.start()
	w.wantAgain(patience, w.mustPass())
	equal(t, "writes", []string(nil), w.writes)
	w.advance(patience)
	equal(t, "result", ctrl.Result{}, w.mustPass())
	w.wantSays(v1alpha1.ReadyCondition, "False CloudUnavailable")
	w.connect()
	w.wantWoken("a")
	w.wantCalls()
}

func TestTheBrakeHoldsCreatesAndDeletesBack(t *testing.T) {
	tests := []struct {
		name  string
		vm    *v1alpha1.VM
		there []cloud.Server
	}{
		{name: "a new VM is not even asked for: its claim would outlive the moment in which its name was free", vm: vmWith()},
		{name: "a create whose outcome is open is not repeated", vm: vmWith(func(vm *v1alpha1.VM) { vm.Finalizers = []string{v1alpha1.VMFinalizer} })},
		{name: "a deletion waits", vm: onRecord(deleted), there: []cloud.Server{serverWith()}},
		{name: "the deletion of a server that vanished waits: its absence is what is in doubt", vm: onRecord(deleted)},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, everything, tc.vm)
			for _, s := range tc.there {
				w.cloud.AddServers(s)
			}
			w.later(settleTime)
			w.inv.Brake(true)
			equal(t, "result: the brake's release wakes it", ctrl.Result{}, w.mustPass())
			w.wantCalls()
			w.wantSays(v1alpha1.ReadyCondition, "False Braked", `Cloud "default"`, "acknowledged")
			if !tc.vm.DeletionTimestamp.IsZero() {
				w.wantSays(v1alpha1.DeletingCondition, "True Blocked")
			}
			claim := len(tc.vm.Finalizers)
			equal(t, "finalizers", claim, len(w.vm().Finalizers))
			w.woken = nil
			w.inv.Brake(false)
			w.wantWoken("a")
			w.mustPass()
			if tc.vm.DeletionTimestamp.IsZero() {
				w.wantServers("s1")
			} else {
				w.wantGone()
			}
		})
	}
}

func TestTheBrakeLetsChangesPass(t *testing.T) {
	w := newWorld(t, everything, onRecord())
	w.cloud.AddServers(serverWith(cores(1)))
	w.poll()
	w.inv.Brake(true)
	w.mustPass()
	w.wantCalls("update s1")
	w.wantSays(v1alpha1.ReadyCondition, "True Running")
}

func TestAServerThatVanishedIsLostOnlyWhenTheCloudItselfSaysSo(t *testing.T) {
	w := newWorld(t, everything, onRecord())
	w.cloud.AddServers(serverWith())
	w.poll()
	w.mustPass()
	w.cloud.Hide("s1")
	w.later(pollInterval)
	w.mustPass()
	w.wantCalls("get s1")
	w.wantSays(v1alpha1.ReadyCondition, "True Running")

	w.cloud.RemoveServers("s1")
	w.later(pollInterval)
	w.inv.Brake(true)
	w.mustPass()
	w.wantCalls()
	w.wantSays(v1alpha1.ReadyCondition, "True Running")

	w.inv.Brake(false)
	equal(t, "result", ctrl.Result{}, w.mustPass())
	w.wantCalls("get s1")
	w.wantSays(v1alpha1.CreatedCondition, "False Lost", "VM s1", "delete this object and create another")
	w.wantSays(v1alpha1.StalledCondition, "True Lost")
	equal(t, "vmId", "s1", w.vm().Status.VMID)
	equal(t, "state", v1alpha1.VMStateLost, w.vm().Status.State)
	w.wantServers()

	w.remove()
	w.mustPass()
	w.wantGone()
}

func TestAStrippedFinalizerIsPutBack(t *testing.T) {
	w := newWorld(t, everything, onRecord(func(vm *v1alpha1.VM) { vm.Finalizers, vm.Annotations = nil, nil }))
	w.cloud.AddServers(serverWith())
	w.poll()
	w.mustPass()
	w.wantClaim("web")
	w.wantCalls()
}

func TestUtilisationIsAskedForWhereTheListingDoesNotTell(t *testing.T) {
	w := newWorld(t, without(cloud.BulkStatus), onRecord())
	w.cloud.AddServers(serverWith())
	w.poll()
	equal(t, "result", ctrl.Result{RequeueAfter: pollInterval, Priority: new(handler.LowPriority)}, w.mustPass())
	w.wantCalls("status s1")
	w.mustPass()
	w.wantCalls()
	equal(t, "cpuUtilization", int32(42), *w.vm().Status.CPUUtilization)

	w.advance(pollInterval)
	w.cloud.Fail(cloudfake.ServerStatus, errRefused, false)
	w.mustPass()
	equal(t, "cpuUtilization when the cloud does not say", int32(42), *w.vm().Status.CPUUtilization)
	w.wantSays(v1alpha1.ReadyCondition, "True Running")
}

func TestUtilisationOfANewVMIsAskedForEvenIfNothingWakesIt(t *testing.T) {
	w := newWorld(t, without(cloud.BulkStatus), vmWith())
	equal(t, "result", ctrl.Result{RequeueAfter: pollInterval, Priority: new(handler.LowPriority)}, w.mustPass())
	w.wantServers("s1")
	w.advance(pollInterval)
	w.mustPass()
	equal(t, "cpuUtilization", int32(42), *w.vm().Status.CPUUtilization)
}

func TestANewServerFindsItsVMBeforeItsIDIsInTheCache(t *testing.T) {
	for name, caps := range profiles {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, caps, vmWith())
			w.mustPass()
			w.later(time.Second)
			w.wantWoken("a")
		})
	}
}

func TestACreateAsksForNothingThatTheCloudHasNoWordFor(t *testing.T) {
	w := newWorld(t, cloud.NewCapabilities(cloud.UniqueNames), vmWith(func(vm *v1alpha1.VM) { vm.Spec.CPU = nil }))
	w.mustPass()
	w.wantServers("s1")
	equal(t, "labels", map[string]string(nil), w.cloud.Server("s1").Labels)
	if _, listed := w.cloud.Server("s1").Labels[inventory.UIDLabel]; listed {
		t.Error("labels were sent")
	}
}
