package drift_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin/plugintest"
)

func vm(name string, change ...func(*pcapi.VM)) *pcapi.VM {
	vm := &pcapi.VM{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "u", Generation: 1},
		Spec:       pcapi.VMSpec{VMName: name, CPU: pcapi.Cores(2)},
		Status: pcapi.VMStatus{
			VMID: "s-" + name, NameInCloud: name, Cloud: "east", State: pcapi.VMStateRunning, Hardware: &pcapi.VMHardwareStatus{CPU: 2, Memory: resource.NewQuantity(1<<30, resource.BinarySI)},
			Conditions: []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue, Reason: pcapi.RunningReason}},
		},
	}
	for _, apply := range change {
		apply(vm)
	}
	return vm
}

func cores(n int32) func(*pcapi.VM) { return func(vm *pcapi.VM) { vm.Status.Hardware.CPU = n } }

func observeOnly(vm *pcapi.VM) { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly }

func paused(vm *pcapi.VM) { vm.Annotations = map[string]string{pcapi.PausedAnnotation: "true"} }

func notReady(reason, message string) func(*pcapi.VM) {
	return func(vm *pcapi.VM) {
		vm.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
	}
}

// lost are the conditions of an object whose server or network, at an id, was deleted in the cloud.
func lost(id string) []metav1.Condition {
	message := id + " is gone from the cloud and not by this operator; it is not created again: delete this object, and create another"
	return []metav1.Condition{
		{Type: pcapi.CreatedCondition, Status: metav1.ConditionFalse, Reason: pcapi.LostReason, Message: message},
		{Type: pcapi.ReadyCondition, Status: metav1.ConditionFalse, Reason: pcapi.LostReason, Message: message},
	}
}

func lostVM(vm *pcapi.VM) {
	vm.Status.State, vm.Status.Conditions = pcapi.VMStateLost, lost("VM "+vm.Status.VMID)
}

func TestDriftListsWhatIsLost(t *testing.T) {
	c := plugintest.NewClient(t,
		&pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Status: pcapi.CloudStatus{
			Capabilities: []string{"networks", "power", "resize"},
			Conditions:   []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue, Reason: pcapi.ConnectedReason}},
		}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		vm("in-sync"),
		vm("lost", lostVM),
		vm("lost-and-observed", lostVM, observeOnly),
		vm("lost-and-paused", lostVM, paused),
		&pcapi.Network{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "lost", UID: "u"}, Spec: pcapi.NetworkSpec{CIDR: "10.0.0.0/24"},
			Status: pcapi.NetworkStatus{NetworkID: "n-1", Cloud: "east", CIDR: "10.0.0.0/24", Conditions: lost("network n-1")},
		},
	)
	result := plugintest.Setup{Client: c}.Run(t.Context(), "drift")
	plugintest.Golden(t, "lost", []plugintest.Result{result})
	if result.Code != 2 {
		t.Errorf("the exit code is %d, want 2", result.Code)
	}
}

func TestDrift(t *testing.T) {
	east := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Status: pcapi.CloudStatus{
		Capabilities: []string{"disks", "idempotency", "labels", "power", "resize", "suspend"},
		Conditions:   []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue, Reason: pcapi.ConnectedReason}},
	}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	c := plugintest.NewClient(t, east, namespace,
		vm("in-sync"),
		vm("corrected-soon", cores(4)),
		vm("observed", cores(1), observeOnly),
		vm("paused", paused, func(vm *pcapi.VM) { vm.Status.State = pcapi.VMStateStopped }),
		vm("observed-and-larger-disk", observeOnly, func(vm *pcapi.VM) {
			vm.Spec.Disks, vm.Status.Disks = []pcapi.VMDisk{{Name: "data", Size: "2Gi"}}, []pcapi.VMDiskStatus{{Name: "data", Size: "9Gi"}}
		}),
		vm("paused-and-smaller", paused, func(vm *pcapi.VM) { vm.Status.State, vm.Spec.PowerState = pcapi.VMStateSuspended, pcapi.PowerSuspended }, cores(1)),
		vm("needs-a-stop", cores(1), notReady(pcapi.NeedsRestartReason, "the cloud changes the size of a stopped server only")),
		vm("renamed", notReady(pcapi.DriftReason, "the VM is named \"x\" in the cloud")),
		vm("on-a-missing-cloud", cores(4), func(vm *pcapi.VM) { vm.Status.Cloud = "west" }),
		vm("unreachable", notReady(pcapi.CloudUnavailableReason, "waiting for Cloud east")),
	)
	plugintest.Golden(t, "drift", []plugintest.Result{
		plugintest.Setup{Client: c}.Run(t.Context(), "drift"),
		plugintest.Setup{Client: c}.Run(t.Context(), "drift", "-A", "-o", "json"),
		plugintest.Setup{Client: plugintest.NewClient(t, east, namespace, vm("in-sync"))}.Run(t.Context(), "drift"),
	})
}

// TestDriftReadsEachCloudOnce: no request is made per VM, also if the Cloud may not be read.
func TestDriftReadsEachCloudOnce(t *testing.T) {
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}
	for i := range 50 {
		objects = append(objects, vm(fmt.Sprintf("vm-%02d", i)))
	}
	objects = append(objects, vm("larger", cores(4)))
	gets, lists := 0, 0
	counting := interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			gets++
			if _, ok := o.(*pcapi.Cloud); ok {
				return apierrors.NewForbidden(pcapi.GroupVersion.WithResource("clouds").GroupResource(), key.Name, errors.New("no right to get it"))
			}
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			lists++
			return c.List(ctx, list, options...)
		},
	}
	s := plugintest.Setup{Client: plugintest.Builder(t, objects...).WithInterceptorFuncs(counting).Build()}
	plugintest.Golden(t, "unreadable", []plugintest.Result{s.Run(t.Context(), "drift")})
	if gets > 2 || lists != 2 {
		t.Errorf("%d objects were read and %d lists, want the Cloud and the namespace once, and the VMs and Networks", gets, lists)
	}
}
