package behaviour_test

import (
	"context"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

func protect[O client.Object](t *T, object O) {
	t.Helper()
	annotate(t, object, pcapi.DeletionProtectionAnnotation, "true")
}

func unprotect[O client.Object](t *T, object O) {
	t.Helper()
	annotate(t, object, pcapi.DeletionProtectionAnnotation, "")
}

func protectedVM(vm *pcapi.VM) {
	vm.Annotations = map[string]string{pcapi.DeletionProtectionAnnotation: "true"}
}

func TestDeletionProtection(t *testing.T) { protectionCases.run(t) }

// keptServer returns a case of a protected VM that is deleted.
func keptServer(options mockcloud.Options) func(*T) {
	return func(t *T) {
		f := newFixture(t, options)
		vm := f.readyVM("web", protectedVM)
		deleteObject(t, vm)
		t.Eventually(latest(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked", pcapi.DeletionProtectionAnnotation),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Blocked"),
		))
		f.waitForPolls(2)
		t.Expect(f.serversNamed("web")).To(HaveLen(1))
		unprotect(t, vm)
		t.Eventually(isGone(vm)).Should(BeTrue())
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpDelete}))
	}
}

var protectionCases = cases{
	"protected VM is deleted: its server stays until the annotation is removed":                 keptServer(mockcloud.Options{}),
	"protected VM is deleted on a core cloud: its server stays until the annotation is removed": keptServer(mockcloud.Options{Profile: mockcloud.Core}),

	"protected VM with deletionPolicy Orphan is deleted: it is removed and its server stays": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web", protectedVM, func(vm *pcapi.VM) { vm.Spec.DeletionPolicy = pcapi.DeletionPolicyOrphan })
		deleteObject(t, vm)
		t.Eventually(isGone(vm)).Should(BeTrue())
		t.Expect(f.serversNamed("web")).To(HaveLen(1))
	},

	"protected VM whose create got no answer is deleted: its server is recorded and stays": func(t *T) {
		f := newFixture(t, without(mockcloud.Idempotency))
		held := f.addFault(mockcloud.Fault{Match: mockcloud.Match{Method: "POST", Path: "/servers"}, Hold: true, Answer: mockcloud.After})
		vm := f.createVM("web", protectedVM)
		t.Eventually(f.effects).Should(Equal([]mockcloud.Op{mockcloud.OpCreate}))
		deleteObject(t, vm)
		t.Expect(f.DropFault(held)).To(Succeed())
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked", pcapi.DeletionProtectionAnnotation))
		t.Expect(get(t, vm).Status.VMID).To(Equal(f.serversNamed("web")[0]))
		unprotect(t, vm)
		t.Eventually(isGone(vm)).Should(BeTrue())
		t.Expect(f.Servers()).To(BeEmpty())
	},

	"protected Network is deleted: its network stays until the annotation is removed": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		net := f.readyNetwork("net")
		protect(t, net)
		deleteObject(t, net)
		t.Eventually(latest(net)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked", pcapi.DeletionProtectionAnnotation))
		t.Expect(f.Networks()).To(HaveLen(1))
		unprotect(t, net)
		t.Eventually(isGone(net)).Should(BeTrue())
		t.Expect(f.Networks()).To(BeEmpty())
	},

	"protected VM, annotation with another value than true: its server stays": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		for name, value := range map[string]string{"a": "True", "b": "yes", "c": "1"} {
			vm := f.readyVM(name)
			annotate(t, vm, pcapi.DeletionProtectionAnnotation, value)
			deleteObject(t, vm)
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked", pcapi.DeletionProtectionAnnotation))
			t.Expect(f.serversNamed(name)).To(HaveLen(1))
			t.Eventually(eventReasons(vm)).Should(ContainElement("UnknownAnnotation"))
			unprotect(t, vm)
			t.Eventually(isGone(vm)).Should(BeTrue())
		}
	},

	"protected group is deleted, and its members too: their servers stay until the annotation is removed": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		g, members := f.readyGroup("web", 2)
		protect(t, g)
		deleteObject(t, g)
		t.Eventually(latest(g)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked", pcapi.DeletionProtectionAnnotation))
		deleteObject(t, &members[0]) // as the garbage collector does
		t.Eventually(latest(&members[0])).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked", "VmGroup"))
		t.Expect(get(t, &members[1]).DeletionTimestamp).To(BeNil())
		t.Expect(f.Servers()).To(HaveLen(2))
		unprotect(t, g)
		t.Eventually(f.Servers).Should(BeEmpty())
		t.Eventually(isGone(g)).Should(BeTrue())
	},

	"group with a protected member is scaled to 0: the member stays until the annotation is removed": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		g, members := f.readyGroup("web", 3)
		protect(t, &members[1])
		edit(t, g, func(g *pcapi.VmGroup) { g.Spec.Replicas = ptr.To[int32](0) })
		t.Eventually(latest(g)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "MembersStalled", members[1].Name, pcapi.DeletionProtectionAnnotation))
		t.Eventually(membersOf(g)).Should(ConsistOf(HaveField("Name", members[1].Name)))
		unprotect(t, &members[1])
		t.Eventually(latest(g)).Should(testkit.BeReady())
		t.Eventually(f.Servers).Should(BeEmpty())
	},
}

func TestDeletionProtectionPolicy(t *testing.T) {
	setUp := newT(t)
	root, err := testkit.ModuleRoot()
	setUp.Expect(err).NotTo(HaveOccurred())
	policy := filepath.Join(root, "config", "components", "deletion-protection", "policy.yaml")
	kubectl(setUp, "", "apply", "-f", policy)
	t.Cleanup(func() {
		_, err := env.Kubectl(context.WithoutCancel(t.Context()), "", "delete", "--ignore-not-found", "-f", policy)
		setUp.Expect(err).NotTo(HaveOccurred())
	})
	f := newFixture(setUp, mockcloud.Options{})
	vm, group := f.readyVM("web", protectedVM), f.createGroup("group", 0)
	network, gpu := f.createNetwork("net"), &pcapi.GPUInfo{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "gpu"}, Spec: pcapi.GPUInfoSpec{DesAccTime: 1}}
	setUp.Expect(env.Client.Create(t.Context(), gpu)).To(Succeed())
	snap, class := f.createSnapshot(), f.createClass("small", 1, 1)
	setUp.Eventually(func() error { return env.Client.Delete(t.Context(), vm, client.DryRunAll) }).Should(MatchError(ContainSubstring("deletion protection is on")), "the policy is in effect")

	all := env.Client.DeleteAllOf(t.Context(), &pcapi.VM{}, client.InNamespace(f.namespace))
	setUp.Expect(all).To(MatchError(ContainSubstring("deletion protection is on")), "what the end of a namespace sends is refused, too")
	setUp.Expect(get(setUp, vm).GetDeletionTimestamp()).To(BeNil())
	for kind, object := range map[string]client.Object{"VM": vm, "VmGroup": group, "Network": network, "VMSnapshot": snap, "VMClass": class, "GPUInfo": gpu, "Cloud": f.object} {
		protect(setUp, object)
		output, err := env.Kubectl(t.Context(), "", "delete", kind+".samplecontroller.k8s.io", object.GetName(), "--namespace", f.namespace)
		setUp.Expect(err).To(HaveOccurred())
		setUp.Expect(output + err.Error()).To(ContainSubstring("deletion protection is on: remove the annotation " + pcapi.DeletionProtectionAnnotation + " of " + kind + " " + object.GetName() + " first"))
		setUp.Expect(get(setUp, object).GetDeletionTimestamp()).To(BeNil())
		unprotect(setUp, object)
		setUp.Expect(env.Client.Delete(t.Context(), object, client.DryRunAll)).To(Succeed(), kind)
	}
	kubectl(setUp, "", "delete", "-f", policy)
	protect(setUp, vm)
	setUp.Eventually(func() error { return env.Client.Delete(t.Context(), vm, client.DryRunAll) }).Should(Succeed(), "the policy is not in effect for the tests after this one")
	unprotect(setUp, vm)
}
