package behaviour_test

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// createClass creates a VMClass whose name no other test uses.
func (f *fixture) createClass(name string, cpu, memory int32, change ...func(*pcapi.VMClass)) *pcapi.VMClass {
	f.t.Helper()
	class := &pcapi.VMClass{
		ObjectMeta: metav1.ObjectMeta{Name: f.className(name)},
		Spec:       pcapi.VMClassSpec{Hardware: pcapi.VMClassHardware{CPU: *pcapi.Cores(cpu), Memory: *pcapi.GiB(memory)}},
	}
	for _, each := range change {
		each(class)
	}
	f.t.Expect(env.Client.Create(f.t.Context(), class)).To(Succeed())
	f.t.cleanup(func(ctx context.Context) {
		f.t.Expect(client.IgnoreNotFound(env.Client.Delete(ctx, class))).To(Succeed())
	})
	return class
}

func (f *fixture) className(name string) string { return name + "-" + f.object.Name }

func (f *fixture) haveSize(vm *pcapi.VM, cpu, memory int) {
	f.t.Helper()
	f.t.Eventually(f.serverOf(vm)).Should(SatisfyAll(HaveField("CPU", cpu), HaveField("Memory", memory)))
	f.t.Eventually(latest(vm)).Should(HaveField("Status.Hardware", HaveValue(SatisfyAll(
		HaveField("CPU", BeEquivalentTo(cpu)), HaveField("Memory.String()", fmt.Sprintf("%dGi", memory))))))
}

func TestVMClass(t *testing.T) {
	cases{
		"the class is created after the VM: the VM waits, takes its size, and keeps it when the class is deleted": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			name := f.className("small")
			vm := f.createVM("web", func(vm *pcapi.VM) { vm.Spec.ClassName = name })
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "ClassUnavailable", `VMClass "`+name+`" does not exist, or namespace`))
			t.Expect(f.createCalls()).To(BeZero())

			class := f.createClass("small", 2, 4)
			ready := waitReady(t, vm)
			f.haveSize(ready, 2, 4)
			t.Expect(ready.Status.Class).To(HaveValue(Equal(pcapi.VMClassStatus{Name: name, Hardware: class.Spec.Hardware})))

			t.Expect(env.Client.Delete(t.Context(), class)).To(Succeed())
			f.waitForPolls(2)
			t.Expect(get(t, vm)).To(SatisfyAll(testkit.BeReady(), HaveField("Status.Class.Name", name)))
		},

		"the namespace gets the label that the class requires: the VM continues": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			class := f.createClass("large", 8, 16, func(c *pcapi.VMClass) {
				c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "analytics"}}
			})
			vm := f.createVM("web", func(vm *pcapi.VM) { vm.Spec.ClassName = class.Name })
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "ClassUnavailable", "may not use it"))
			t.Expect(f.createCalls()).To(BeZero())

			edit(t, f.namespaceObject(), func(ns *corev1.Namespace) { ns.Labels["team"] = "analytics" })
			f.haveSize(waitReady(t, vm), 8, 16)
		},

		"a group names another class: its members are resized and keep their servers": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			small, large := f.createClass("small", 1, 2), f.createClass("large", 4, 8)
			group, members := f.readyGroup("web", 2, func(g *pcapi.VmGroup) { g.Spec.CPU, g.Spec.Memory, g.Spec.ClassName = nil, nil, small.Name })
			for i := range members {
				f.haveSize(&members[i], 1, 2)
			}
			edit(t, group, func(g *pcapi.VmGroup) { g.Spec.ClassName = large.Name })
			for i := range members {
				f.haveSize(&members[i], 4, 8)
			}
			t.Eventually(latest(group)).Should(testkit.BeReady())
			t.Expect(f.createdServers()).To(Equal(2))
		},
	}.run(t)
}
