package vm

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

func createdAfter(after time.Duration) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.CreationTimestamp = metav1.NewTime(startTime.Add(after)) }
}

func withClaim(vm *pcapi.VM) {
	vm.Finalizers, vm.Annotations = []string{pcapi.VMFinalizer}, map[string]string{pcapi.ClaimedNameAnnotation: "web"}
	vm.Status.NameInCloud, vm.Status.Cloud = "web", vm.Spec.CloudRef.Name
}

func TestOneVMCreatesEachUniqueName(t *testing.T) {
	tests := []struct {
		name  string
		vm    *pcapi.VM
		other *pcapi.VM
		want  bool
	}{
		{name: "no other VM has the name: created", vm: vmWith(), other: other("b", func(vm *pcapi.VM) { vm.Spec.VMName = "db" }), want: true},
		{name: "an older VM has the name and no claim: created", vm: vmWith(), other: other("b", createdAfter(-time.Hour)), want: true},
		{name: "a younger VM claimed the name: not created", vm: vmWith(), other: other("b", createdAfter(time.Hour), withClaim)},
		{name: "both claimed the name, this VM is older: created", vm: vmWith(withClaim), other: other("b", createdAfter(time.Hour), withClaim), want: true},
		{name: "both claimed the name, this VM is younger: claim removed", vm: vmWith(withClaim), other: other("b", createdAfter(-time.Hour), withClaim)},
		{name: "both claimed the name at the same age, this VM has the lower UID: created", vm: vmWith(withClaim), other: other("b", withClaim), want: true},
		{name: "another VM recorded the server of this name: not created", vm: vmWith(withClaim), other: other("b", createdAfter(time.Hour), func(vm *pcapi.VM) { vm.Status.VMID = "sb" })},
		{name: "a VM on another Cloud claimed the name: created", vm: vmWith(), other: other("b", func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: "other"} }, withClaim), want: true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := newHarness(t, uniqueNamesOnly, tc.vm, tc.other)
			h.mustReconcile()
			h.later(settleTime) // from when this process observed the claim
			h.mustReconcile()
			equal(t, "created", tc.want, len(h.cloud.ServerIDs()) == 1)
			if !tc.want {
				h.wantCalls()
				h.wantClaim("")
				h.wantCondition(pcapi.NameCheckedCondition, "False Taken", "another VM object")
			}
		})
	}
}

func TestRivalsCountPerFolder(t *testing.T) {
	inFolder := func(folder string) func(*pcapi.VM) { return func(vm *pcapi.VM) { vm.Spec.Folder = folder } }
	perFolder := cloud.NewCapabilities(append([]cloud.Capability{cloud.FolderNames, cloud.Idempotency}, uniqueNamesOnly...)...)
	tests := map[string]struct {
		caps  cloud.Capabilities
		other string
		want  bool
	}{
		"names are unique per folder, same folder: not created":   {perFolder, "a", false},
		"names are unique per folder, another folder: created":    {perFolder, "b", true},
		"names are unique per folder, no folder: created":         {perFolder, "", true},
		"names are unique in the cloud, another folder: not made": {without(cloud.Labels), "b", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, tc.caps, vmWith(inFolder("a")), other("b", createdAfter(time.Hour), withClaim, inFolder(tc.other)))
			h.mustReconcile()
			equal(t, "created", tc.want, len(h.cloud.ServerIDs()) == 1)
		})
	}
}

func TestRefusalOfNameIsThatOfFolder(t *testing.T) {
	h := newHarness(t, cloud.NewCapabilities(append([]cloud.Capability{cloud.FolderNames}, everything...)...), vmWith(func(vm *pcapi.VM) { vm.Spec.Folder = "a" }))
	h.cloud.AddServers(cloud.Server{ID: "x", Name: "web", Folder: "a"})
	h.later(0)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "False Taken")
	h.edit(func(vm *pcapi.VM) { vm.Spec.Folder = "b" })
	h.mustReconcile()
	h.wantCalls("check web", "check web", "create web")
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

// With labels, a name that is taken although no listing shows a server that has it may
// be that of a server which an earlier create made.
func TestTakenNameIsExplainedByServerOfTheSameFolder(t *testing.T) {
	for folder, want := range map[string]string{"a": "False Taken", "b": "False OutcomeUnknown"} {
		t.Run(folder, func(t *testing.T) {
			h := newHarness(t, cloud.NewCapabilities(append([]cloud.Capability{cloud.FolderNames}, everything...)...), vmWith(func(vm *pcapi.VM) { vm.Spec.Folder = "a" }))
			h.cloud.AddServers(cloud.Server{ID: "x", Name: "web", Folder: folder})
			h.poll()
			h.cloud.ModifyServer("x", func(s *cloud.Server) { s.Folder = "c" }) // the name is free when it is checked
			h.cloud.Fail(cloudfake.CreateServer, &cloud.Error{Kind: cloud.Taken, Op: "create server"}, false)
			h.mustReconcile()
			h.wantCalls("check web", "create web")
			h.wantCondition(pcapi.ReadyCondition, want)
		})
	}
}

// A name alone proves nothing where servers of other folders may have it.
func TestNameProvesNothingWhereItIsUniquePerFolder(t *testing.T) {
	caps := cloud.NewCapabilities(append([]cloud.Capability{cloud.FolderNames}, uniqueNamesOnly...)...)
	h := newHarness(t, caps, vmWith())
	h.cloud.Fail(cloudfake.CreateServer, errReset, true)
	h.mustReconcile()
	h.later(time.Second)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "False Ambiguous")
	equal(t, "vmId", "", h.vm().Status.VMID)
}

func TestNameOfAbandonedVMIsTaken(t *testing.T) {
	h := newHarness(t, uniqueNamesOnly, vmWith())
	// Kubernetes removes the VM between its claim and the create, whose answer is lost.
	h.cloud.Fail(cloudfake.CreateServer, errReset, true)
	h.cloud.OnCall(func(_ context.Context, verb cloudfake.Verb, _ string) {
		if vm, ok := h.find(); ok && verb == cloudfake.CreateServer {
			vm.Finalizers = nil
			if err := errors.Join(h.client.Update(t.Context(), vm), h.client.Delete(t.Context(), vm)); err != nil {
				t.Error(err)
			}
		}
	})
	h.mustReconcile()
	h.wantGone()
	h.wantServers("s1")
	if err := h.client.Create(t.Context(), other("b")); err != nil {
		t.Fatal(err)
	}
	h.wantCalls("check web", "create web")
	b := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "b"}}
	reconcile := func(request ctrl.Request) *pcapi.VM {
		t.Helper()
		if _, err := h.reconciler.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		var vm pcapi.VM
		if err := h.client.Get(t.Context(), b.NamespacedName, &vm); err != nil {
			t.Fatal(err)
		}
		return &vm
	}
	h.later(time.Second)
	vm := reconcile(b)
	h.wantCalls()
	equal(t, "claimed name", "", vm.Status.NameInCloud)
	// The abandoned VM has its server deleted, and then the name is free.
	reconcile(ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "a"}})
	h.wantServers()
	h.later(time.Minute)
	equal(t, "vmId", "s2", reconcile(b).Status.VMID)
}

func TestServerRecordedByTwoVMs(t *testing.T) {
	living := other("b", recorded, createdAfter(time.Hour))
	t.Run("one VM is deleted: the server stays", func(t *testing.T) {
		h := harnessWithServer(t, uniqueNamesOnly, onRecord(deleted), serverWith(unlabelled))
		if err := h.client.Create(t.Context(), living.DeepCopy()); err != nil {
			t.Fatalf("Create: %v", err)
		}
		h.mustReconcile()
		h.wantGone()
		h.wantServers("s1")
	})
	t.Run("the younger VM differs: no update", func(t *testing.T) {
		h := newHarness(t, uniqueNamesOnly, onRecord(createdAfter(2*time.Hour)), living.DeepCopy())
		h.cloud.AddServers(serverWith(unlabelled, withCores(1)))
		h.poll()
		h.mustReconcile()
		h.wantCalls()
		h.wantCondition(pcapi.ReadyCondition, "False Ambiguous", "another VM object")
	})
	t.Run("labels name the deleted VM: the server is deleted", func(t *testing.T) {
		h := newHarness(t, everything, onRecord(deleted), living.DeepCopy())
		h.cloud.AddServers(serverWith())
		h.poll()
		h.mustReconcile()
		h.wantCalls("delete s1", "get s1")
		h.wantGone()
	})
}

// moveToSecondCloud creates the Cloud "second" and sets spec.cloudRef of the VM to it.
func moveToSecondCloud(h *harness) *cloudfake.Cloud {
	h.t.Helper()
	if err := h.client.Create(h.t.Context(), &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "second"}}); err != nil {
		h.t.Fatalf("Create: %v", err)
	}
	second := cloudfake.New(cloudfake.Options{Capabilities: h.cloud.Can(), Clock: h.Now})
	inv := h.directory.Cloud("second")
	inv.Configure(inventory.Settings{PollInterval: pollInterval, SettleTime: settleTime})
	inv.Connect(second, second.Can())
	snap, err := inventory.List(h.t.Context(), second, h.Now)
	if err != nil {
		h.t.Fatalf("List: %v", err)
	}
	inv.Publish(snap)
	h.edit(func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: "second"} })
	return second
}

func TestCloudRefEditAfterLostAnswer(t *testing.T) {
	t.Run("server created on the former Cloud: the VM reports drift", func(t *testing.T) {
		h := harnessWithLostAnswer(t, everything, true)
		second := moveToSecondCloud(h)
		h.later(time.Second)
		h.wantRequeue(10*time.Minute, h.mustReconcile())
		h.wantCondition(pcapi.ReadyCondition, "False Drift", `VM s1 is on Cloud "default" already`)
		h.wantCalls()
		equal(t, "calls to the second cloud", []string(nil), second.TakeCalls(cloudfake.ListServers))
		h.remove()
		h.mustReconcile()
		h.wantGone()
		h.wantServers()
	})
	t.Run("create had no effect: the VM is created on the new Cloud", func(t *testing.T) {
		h := harnessWithLostAnswer(t, everything, false)
		second := moveToSecondCloud(h)
		h.later(time.Second)
		h.mustReconcile()
		h.wantCondition(pcapi.CreatedCondition, "False OutcomeUnknown", "settleTime")
		h.later(settleTime)
		h.mustReconcile()
		h.wantClaim("")
		h.mustReconcile()
		h.wantCalls("check web")
		equal(t, "calls to the second cloud", []string{"check web", "create web"}, second.TakeCalls(cloudfake.ListServers))
		equal(t, "cloud", "second", h.vm().Status.Cloud)
	})
}

func TestCreateRequestContainsWholeSpec(t *testing.T) {
	h := newHarness(t, everything, vmWith(poweredOff, func(vm *pcapi.VM) {
		vm.Spec.Memory, vm.Spec.Template, vm.Spec.Folder = pcapi.GiB(4), "debian", "web"
	}))
	h.mustReconcile()
	equal(t, "request", cloud.CreateServer{
		Name: "web", CPU: 2, MemoryMiB: 4 << 10, Template: "debian", Folder: "web", PowerState: cloud.PowerOff, Labels: ownLabels, IdempotencyKey: "uid-a",
	}, h.cloud.Request("uid-a"))
	h.wantCondition(pcapi.ReadyCondition, "True Stopped")
}

func TestOnlyNotFoundMeansGone(t *testing.T) {
	for name, failure := range map[string]*cloud.Error{
		"unavailable: not gone":         errRefused,
		"credentials expired: not gone": {Kind: cloud.Unauthorized, Op: "get server s1"},
		"answer unreadable: not gone":   {Kind: cloud.Unreadable, Op: "get server s1"},
		"throttled: not gone":           errThrottled,
		"get rejected: not gone":        {Kind: cloud.Rejected, Op: "get server s1"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, everything, onRecord())
			h.cloud.Fail(cloudfake.GetServer, failure, false)
			h.mustReconcile()
			if is, _ := h.condition(pcapi.CreatedCondition); is == "False Lost" {
				t.Error("the server counts as lost")
			}
			h = newHarness(t, everything, onRecord(deleted))
			h.cloud.Fail(cloudfake.GetServer, failure, false)
			h.mustReconcile()
			if _, ok := h.find(); !ok {
				t.Error("the finalizer was removed")
			}
		})
	}
}

func TestReadErrorFailsReconcile(t *testing.T) {
	h := newHarness(t, uniqueNamesOnly, vmWith())
	h.kind.Client = unreadable{h.client}
	if _, err := h.reconcile(); err == nil {
		t.Error("the reconcile did not fail")
	}
	h.wantCalls()
	h.wantCondition(pcapi.ReadyCondition, "False Error")

	h = newHarness(t, uniqueNamesOnly, vmWith())
	h.kind.Client = unlistable{h.client}
	if _, err := h.reconcile(); err == nil {
		t.Error("the reconcile did not fail, although other VMs may have the name")
	}
	h.wantCalls()
}

type unreadable struct{ client.Client }

func (unreadable) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errAPIAway
}

// The cloud does not list the new server yet, so that the answer to the create is all that
// is known of it.
func TestDeletionIsNotSentAgainToTheNextServerWithTheID(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{"labels": everything, "names": uniqueNamesOnly} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, vmWith())
			h.mustReconcile()
			h.cloud.RemoveServers("s1")
			h.remove()
			h.advance(time.Second)
			h.mustReconcile()
			h.later(time.Second)
			h.mustReconcile()
			h.cloud.AddServers(cloud.Server{ID: "s1", Name: "of-others", State: cloud.StateActive})
			h.advance(time.Second) // no listing shows it
			h.mustReconcile()
			for range 4 {
				h.later(settleTime / 2)
				h.mustReconcile()
			}
			h.wantServers("s1")
			h.wantCondition(pcapi.ReadyCondition, "False Blocked")
		})
	}
}

func TestDeletionIsNotSentAgainBeforeTheIDIsOnRecord(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{"labels": without(cloud.Idempotency), "labels and keys": everything, "names": uniqueNamesOnly} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, vmWith())
			h.cloud.Fail(cloudfake.CreateServer, errReset, true)
			h.mustReconcile()
			h.later(time.Second)
			h.cloud.RemoveServers("s1")
			h.remove()
			h.advance(time.Second)
			h.mustReconcile()
			h.cloud.AddServers(cloud.Server{ID: "s1", Name: "of-others", State: cloud.StateActive})
			h.advance(time.Second)
			h.mustReconcile()
			h.later(settleTime)
			h.mustReconcile()
			h.later(settleTime)
			h.mustReconcile()
			h.wantServers("s1")
			h.wantGone()
		})
	}
}

func TestImportedIDThatTheCloudGivesToAnotherServerIsNotLabelled(t *testing.T) {
	for name, another := range map[string]func(*harness) cloud.Server{
		"another name": func(*harness) cloud.Server { return serverWith(unlabelled, withName("of-others"), onHost("host-7")) },
		"created after the import": func(h *harness) cloud.Server {
			return serverWith(unlabelled, onHost("host-7"), func(s *cloud.Server) { s.CreatedAt = h.now })
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithServer(t, everything, vmWith(importing), serverWith(unlabelled))
			h.mustReconcile()
			h.cloud.RemoveServers("s1")
			h.later(settleTime + time.Minute)
			h.mustReconcile()
			h.cloud.AddServers(another(h))
			for range 3 {
				h.later(time.Minute)
				h.mustReconcile()
			}
			equal(t, "labels", map[string]string(nil), h.cloud.Server("s1").Labels)
			h.wantCondition(pcapi.ReadyCondition, "False Blocked", "does not carry this object's owner labels")
			equal(t, "host", "", h.vm().Status.Host)
			h.remove()
			h.later(time.Second)
			h.mustReconcile()
			h.wantServers("s1")
			h.wantCondition(pcapi.ReadyCondition, "False Blocked", "does not carry this object's owner labels")
		})
	}
}

type unlistable struct{ client.Client }

func (unlistable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errAPIAway
}

func paused(vm *pcapi.VM) { vm.Annotations = map[string]string{pcapi.PausedAnnotation: "true"} }

func TestPausedVMIsNotReconciled(t *testing.T) {
	h := newHarness(t, everything, vmWith(paused))
	equal(t, "result", ctrl.Result{}, h.mustReconcile())
	h.wantCalls()
	h.wantClaim("")
	h.edit(func(vm *pcapi.VM) { vm.Annotations = nil })
	h.mustReconcile()
	h.wantServers("s1")
}
