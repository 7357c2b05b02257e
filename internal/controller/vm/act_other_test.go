package vm

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

func born(after time.Duration) func(*v1alpha1.VM) {
	return func(vm *v1alpha1.VM) { vm.CreationTimestamp = metav1.NewTime(dawn.Add(after)) }
}

func holdingClaim(vm *v1alpha1.VM) {
	vm.Finalizers, vm.Annotations = []string{v1alpha1.VMFinalizer}, map[string]string{v1alpha1.ClaimedNameAnnotation: "web"}
}

func TestOneNameGoesToOneObjectWhereNamesTell(t *testing.T) {
	tests := []struct {
		name  string
		vm    *v1alpha1.VM
		other *v1alpha1.VM
		want  bool
	}{
		{name: "nobody else wants it", vm: vmWith(), other: other("b", func(vm *v1alpha1.VM) { vm.Spec.VMName = "db" }), want: true},
		{name: "somebody else wants it, and has not asked yet", vm: vmWith(), other: other("b", born(-time.Hour)), want: true},
		{name: "somebody else claimed it first, older or not", vm: vmWith(), other: other("b", born(time.Hour), holdingClaim)},
		{name: "both claimed it: the older goes on", vm: vmWith(holdingClaim), other: other("b", born(time.Hour), holdingClaim), want: true},
		{name: "both claimed it: the younger gives up", vm: vmWith(holdingClaim), other: other("b", born(-time.Hour), holdingClaim)},
		{name: "both claimed it in the same second: the lower UID goes on", vm: vmWith(holdingClaim), other: other("b", holdingClaim), want: true},
		{name: "somebody else's VM has it", vm: vmWith(holdingClaim), other: other("b", born(time.Hour), func(vm *v1alpha1.VM) { vm.Status.VMID = "sb" })},
		{name: "on another Cloud", vm: vmWith(), other: other("b", holdingClaim, func(vm *v1alpha1.VM) { vm.Spec.CloudRef = &v1alpha1.CloudReference{Name: "other"} }), want: true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, named, tc.vm, tc.other)
			w.later(settleTime)
			w.mustPass()
			equal(t, "made", tc.want, len(w.cloud.ServerIDs()) == 1)
			if !tc.want {
				w.wantCalls()
				w.wantClaim("")
				w.wantSays(v1alpha1.NameCheckedCondition, "False Taken", "another VM object")
			}
		})
	}
}

func TestAServerThatTwoObjectsRecord(t *testing.T) {
	living := other("b", recorded, born(time.Hour))
	t.Run("is not deleted with one of them", func(t *testing.T) {
		w := settled(t, named, onRecord(deleted), serverWith(bare))
		if err := w.client.Create(t.Context(), living.DeepCopy()); err != nil {
			t.Fatalf("Create: %v", err)
		}
		w.mustPass()
		w.wantGone()
		w.wantServers("s1")
	})
	t.Run("is the older one's to change", func(t *testing.T) {
		w := newWorld(t, named, onRecord(born(2*time.Hour)), living.DeepCopy())
		w.cloud.AddServers(serverWith(bare, cores(1)))
		w.poll()
		w.mustPass()
		w.wantCalls()
		w.wantSays(v1alpha1.ReadyCondition, "False Ambiguous", "another VM object")
	})
	t.Run("is told by its labels where there are any", func(t *testing.T) {
		w := newWorld(t, everything, onRecord(deleted), living.DeepCopy())
		w.cloud.AddServers(serverWith())
		w.poll()
		w.mustPass()
		w.wantCalls("delete s1", "get s1")
		w.wantGone()
	})
}

// movingTo makes the Cloud "second" and has an open VM of "default" sent there.
func movingTo(w *world) *cloudfake.Cloud {
	w.t.Helper()
	if err := w.client.Create(w.t.Context(), &v1alpha1.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "second"}}); err != nil {
		w.t.Fatalf("Create: %v", err)
	}
	second := cloudfake.New(cloudfake.Options{Capabilities: w.cloud.Can(), Clock: w.Now})
	inv := w.directory.Cloud("second")
	inv.Configure(inventory.Settings{PollInterval: pollInterval, SettleTime: settleTime})
	inv.Connect(second, second.Can())
	snap, err := inventory.List(w.t.Context(), second, w.Now)
	if err != nil {
		w.t.Fatalf("List: %v", err)
	}
	inv.Publish(snap)
	w.edit(func(vm *v1alpha1.VM) { vm.Spec.CloudRef = &v1alpha1.CloudReference{Name: "second"} })
	return second
}

func TestAnOpenCreateIsNotLeftBehindOnAnotherCloud(t *testing.T) {
	t.Run("its server was made: the VM stays with it", func(t *testing.T) {
		w := open(t, everything, true)
		second := movingTo(w)
		w.later(time.Second)
		w.wantAgain(10*time.Minute, w.mustPass())
		w.wantSays(v1alpha1.ReadyCondition, "False Drift", `VM s1 is on Cloud "default" already`)
		w.wantCalls()
		equal(t, "calls to the second cloud", []string(nil), second.TakeCalls(cloudfake.ListServers))
		w.remove()
		w.mustPass()
		w.wantGone()
		w.wantServers()
	})
	t.Run("nothing came of it: the VM moves on", func(t *testing.T) {
		w := open(t, everything, false)
		second := movingTo(w)
		w.later(time.Second)
		w.mustPass()
		w.wantSays(v1alpha1.CreatedCondition, "False OutcomeUnknown", "settleTime")
		w.later(settleTime)
		w.mustPass()
		w.wantClaim("")
		w.mustPass()
		w.wantCalls()
		equal(t, "calls to the second cloud", []string{"check web", "create web"}, second.TakeCalls(cloudfake.ListServers))
		equal(t, "cloud", "second", w.vm().Status.Cloud)
	})
}

func TestACreateSaysAllThatTheSpecSays(t *testing.T) {
	w := newWorld(t, everything, vmWith(poweredOff, func(vm *v1alpha1.VM) {
		memory := int32(4)
		vm.Spec.Memory, vm.Spec.Template, vm.Spec.Folder = &memory, "debian", "web"
	}))
	w.mustPass()
	equal(t, "request", cloud.CreateServer{
		Name: "web", CPU: 2, MemoryGiB: 4, Template: "debian", Folder: "web", PowerState: cloud.PowerOff, Labels: ours, IdempotencyKey: "uid-a",
	}, w.cloud.Request("uid-a"))
	w.wantSays(v1alpha1.ReadyCondition, "True Stopped")
}

func TestAnythingButADefiniteAnswerIsNoAbsence(t *testing.T) {
	for name, failure := range map[string]*cloud.Error{
		"the cloud is away":                   errRefused,
		"the credentials expired":             {Kind: cloud.Unauthorized, Op: "get server s1"},
		"the answer makes no sense":           {Kind: cloud.Unreadable, Op: "get server s1"},
		"the cloud has too much to do":        errThrottled,
		"the cloud does not like to be asked": {Kind: cloud.Rejected, Op: "get server s1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, everything, onRecord())
			w.cloud.Fail(cloudfake.GetServer, failure, false)
			w.mustPass()
			if is, _ := w.says(v1alpha1.CreatedCondition); is == "False Lost" {
				t.Error("it counts as lost")
			}
			w = newWorld(t, everything, onRecord(deleted))
			w.cloud.Fail(cloudfake.GetServer, failure, false)
			w.mustPass()
			if _, ok := w.find(); !ok {
				t.Error("the object was let go")
			}
		})
	}
}

func TestWhatCannotBeReadFailsThePass(t *testing.T) {
	w := newWorld(t, named, vmWith())
	w.kind.Client = unreadable{w.client}
	if _, err := w.pass(); err == nil {
		t.Error("the pass did not fail")
	}
	w.wantCalls()
	w.wantSays(v1alpha1.ReadyCondition, "False Error")

	w = newWorld(t, named, vmWith())
	w.kind.Client = unlistable{w.client}
	if _, err := w.pass(); err == nil {
		t.Error("the pass did not fail, although other VMs may have the name")
	}
	w.wantCalls()
}

type unreadable struct{ client.Client }

func (unreadable) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errAPIAway
}

type unlistable struct{ client.Client }

func (unlistable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errAPIAway
}

func TestNothingIsDoneWhilePaused(t *testing.T) {
	w := newWorld(t, everything, vmWith(func(vm *v1alpha1.VM) { vm.Annotations = map[string]string{v1alpha1.PausedAnnotation: "true"} }))
	equal(t, "result", ctrl.Result{}, w.mustPass())
	w.wantCalls()
	w.wantClaim("")
	w.edit(func(vm *v1alpha1.VM) { vm.Annotations = nil })
	w.mustPass()
	w.wantServers("s1")
}
