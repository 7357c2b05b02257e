package top_test

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin/plugintest"
)

func vm(namespace, name string, change ...func(*pcapi.VM)) *pcapi.VM {
	vm := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	vm.Status.Cloud, vm.Status.State = "east", pcapi.VMStateRunning
	vm.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue}}
	for _, apply := range change {
		apply(vm)
	}
	return vm
}

func using(percent int32) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Status.CPUUtilization = new(percent) }
}

func sized(cores int32, memory string) func(*pcapi.VM) {
	return func(vm *pcapi.VM) {
		vm.Status.Hardware = &pcapi.VMHardwareStatus{CPU: cores, Memory: new(resource.MustParse(memory))}
	}
}

func memberOf(uid types.UID) func(*pcapi.VM) {
	return func(vm *pcapi.VM) {
		vm.OwnerReferences = []metav1.OwnerReference{{UID: uid, Kind: "VmGroup", Controller: new(true)}}
	}
}

func notReady(vm *pcapi.VM) { vm.Status.Conditions[0].Status = metav1.ConditionFalse }

func group(name string, uid types.UID, replicas int32) *pcapi.VmGroup {
	g := &pcapi.VmGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uid}}
	g.Status.Replicas = replicas
	return g
}

func objects() []client.Object {
	east := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
	east.Status.Servers = &pcapi.CloudServers{Known: 12, Managed: 5, Orphaned: 1}
	return []client.Object{
		vm("default", "web-1", memberOf("web"), using(20), sized(2, "4Gi")),
		vm("default", "web-2", memberOf("web"), using(91), sized(2, "4Gi")),
		vm("default", "web-3", memberOf("web"), using(100), sized(2, "4Gi"), notReady),
		vm("default", "idle", using(0), sized(1, "512Mi"), func(vm *pcapi.VM) { vm.Status.Host = "host-7" }),
		vm("default", "new", func(vm *pcapi.VM) { vm.Status = pcapi.VMStatus{} }),
		vm("team-b", "other", using(50), sized(8, "16Gi")),
		group("web", "web", 3), group("empty", "empty", 0), east,
		&pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "new"}},
	}
}

func TestTop(t *testing.T) {
	s := plugintest.Setup{Client: plugintest.NewClient(t, objects()...)}
	for _, args := range [][]string{
		{"top"},
		{"top", "vms", "-A", "--sort-by=cpu"},
		{"top", "vms", "-n", "team-b", "-o", "json"},
		{"top", "vms", "-n", "nothing"},
		{"top", "vms", "-n", "nothing", "-o", "json"},
		{"top", "groups"},
		{"top", "groups", "-o", "json"},
		{"top", "clouds"},
		{"top", "clouds", "--sort-by=cpu", "-o", "json"},
		{"top", "servers"},
		{"top", "--sort-by=memory"},
		{"top", "--all"},
	} {
		t.Run(fmt.Sprint(args), func(t *testing.T) {
			plugintest.Golden(t, plugintest.FileName(args...), []plugintest.Result{s.Run(t.Context(), args...)})
		})
	}
}

func TestTopCloudsWithoutTheRightToListVMs(t *testing.T) {
	denied := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if _, ok := list.(*pcapi.VMList); ok {
			return apierrors.NewForbidden(pcapi.GroupVersion.WithResource("vms").GroupResource(), "", nil)
		}
		return c.List(ctx, list, options...)
	}}
	s := plugintest.Setup{Client: plugintest.Builder(t, objects()...).WithInterceptorFuncs(denied).Build()}
	plugintest.Golden(t, "clouds-only", []plugintest.Result{s.Run(t.Context(), "top", "clouds")})
}
