package behaviour_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// withoutCloudRef makes a VM name no Cloud.
func withoutCloudRef(vm *pcapi.VM) { vm.Spec.CloudRef = nil }

// setDefaultCloud sets the Cloud of objects in the fixture's namespace that name
// none, and waits until the operator has had time to observe it.
func (f *fixture) setDefaultCloud(cloud string) {
	f.t.Helper()
	edit(f.t, f.namespaceObject(), func(ns *corev1.Namespace) { ns.Labels[pcapi.DefaultCloudLabel] = cloud })
	f.waitForPolls(2)
}

// restricted makes a Cloud allow only namespaces with a label.
func restricted(c *pcapi.Cloud) {
	c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"cloud": "yes"}}
}

// deniedVM returns a case of a VM in a namespace that may not use the Cloud: its
// status says nothing about the cloud, and no call is sent for it.
func deniedVM(name string, change func(*pcapi.VM, mockcloud.Server)) func(*T) {
	return func(t *T) {
		f := newFixture(t, mockcloud.Options{}, restricted)
		theirs := f.putForeignServer("theirs", nil)
		f.waitForPolls(1)
		f.ResetCalls()
		vm := f.createVM(name, func(vm *pcapi.VM) { change(vm, theirs) })
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable", "may not use it"))
		f.waitForPolls(2)
		t.Expect(get(t, vm)).To(SatisfyAll(
			HaveField("Status.VMID", ""), HaveField("Status.Host", ""), HaveField("Status.Cloud", ""), HaveField("Status.CPUUtilization", BeNil()),
			testkit.HaveCondition("NameChecked", metav1.ConditionUnknown, "CheckFailed"),
		))
		for _, call := range f.Calls() {
			t.Expect(call.Path).NotTo(Or(ContainSubstring("/check/"), ContainSubstring(theirs.ID)))
		}
	}
}

func TestCloudOfNamespace(t *testing.T) { namespaceCases.run(t) }

var namespaceCases = cases{
	"the namespace has the default Cloud label: new objects use that Cloud and existing ones stay": func(t *T) {
		f, other := newFixture(t, mockcloud.Options{}), newFixture(t, mockcloud.Options{})
		f.setDefaultCloud(f.object.Name)
		web := f.readyVM("web", withoutCloudRef)
		t.Expect(web.Status.Cloud).To(Equal(f.object.Name))

		f.setDefaultCloud(other.object.Name)
		later := f.readyVM("later", withoutCloudRef)
		t.Expect(later.Status.Cloud).To(Equal(other.object.Name))
		t.Expect(other.serversNamed("later")).To(HaveLen(1))

		requestReconcile(t, web)
		f.waitForPolls(2)
		t.Expect(get(t, web)).To(SatisfyAll(testkit.BeReady(), HaveField("Status.Cloud", f.object.Name)), "a change of the label moves no VM")
		t.Expect(f.serversNamed("web")).To(Equal([]string{web.Status.VMID}))
		t.Expect(other.serversNamed("web")).To(BeEmpty())

		_, err := tryEdit(t, web, func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: other.object.Name} })
		t.Expect(err).To(MatchError(ContainSubstring("cloudRef cannot be changed once the VM exists")))
		edit(t, web, func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: f.object.Name} })

		for _, vm := range []*pcapi.VM{web, later} {
			deleteObject(t, vm)
			t.Eventually(isGone(vm)).Should(BeTrue())
		}
		t.Expect(append(f.Servers(), other.Servers()...)).To(BeEmpty())
	},

	"two VMs have one name on two Clouds: both are created": func(t *T) {
		f, other := newFixture(t, mockcloud.Options{Profile: mockcloud.Core}), newFixture(t, mockcloud.Options{Profile: mockcloud.Core})
		same := func(vm *pcapi.VM) { vm.Spec.VMName = "web" }
		f.readyVM("here", same)
		f.readyVM("there", same, func(vm *pcapi.VM) { vm.Spec.CloudRef.Name = other.object.Name })
		t.Expect(f.serversNamed("web")).To(HaveLen(1))
		t.Expect(other.serversNamed("web")).To(HaveLen(1))
	},

	"one VM names its Cloud and another uses the label: the second of one name stalls": func(t *T) {
		f := newFixture(t, mockcloud.Options{Profile: mockcloud.Core})
		f.setDefaultCloud(f.object.Name)
		f.readyVM("first", withoutCloudRef, func(vm *pcapi.VM) { vm.Spec.VMName = "web" })
		second := f.createVM("second", func(vm *pcapi.VM) { vm.Spec.VMName = "web" })
		t.Eventually(latest(second)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Taken"))
		t.Expect(f.serversNamed("web")).To(HaveLen(1))
	},

	"the namespace may not use the Cloud: the import of a server reveals nothing": deniedVM("theirs", func(vm *pcapi.VM, server mockcloud.Server) {
		vm.Spec.Import = &pcapi.VMImport{VMID: server.ID}
		vm.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly
	}),
	"the namespace may not use the Cloud: a prohibited name is not checked": deniedVM("probe", func(vm *pcapi.VM, _ mockcloud.Server) {
		vm.Spec.VMName = "forbidden"
	}),

	"the namespace may not use the Cloud: no call is sent for its Network": func(t *T) {
		f := newFixture(t, mockcloud.Options{}, restricted)
		f.waitForPolls(1)
		f.ResetCalls()
		net := f.createNetwork("net")
		t.Eventually(latest(net)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable", "may not use it"))
		f.waitForPolls(2)
		t.Expect(f.CountCalls("", "")).To(Equal(f.CountCalls("GET", "/servers")), "calls beside polls: %v", f.Calls())
	},

	"allowedNamespaces is no selector: objects are denied and none is retried": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		f.readyVM("before")
		edit(t, f.object, func(c *pcapi.Cloud) {
			c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Like"}}}
		})
		denied := testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable", "may not use it")
		for _, object := range []client.Object{f.createVM("web"), f.createNetwork("net"), f.createGroup("group", 1), f.createGPUInfo("job", 1)} {
			t.Eventually(latest(object)).Should(denied)
		}
		edit(t, f.object, func(c *pcapi.Cloud) { c.Spec.AllowedNamespaces = nil })
		f.readyVM("after")
	},

	"the Cloud is being deleted: a group creates no member and goes on on another Cloud": func(t *T) {
		f, other := newFixture(t, mockcloud.Options{}), newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web")
		deleteObject(t, f.object)
		g := f.createGroup("group", 2)
		t.Eventually(latest(g)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable", "is being deleted"))
		t.Expect(f.createCalls()).To(Equal(1), "only that of the VM before")
		edit(t, g, func(g *pcapi.VmGroup) { g.Spec.CloudRef.Name = other.object.Name })
		t.Eventually(latest(g)).Should(testkit.BeReady())
		t.Expect(other.Servers()).To(HaveLen(2))
		deleteObject(t, vm)
		t.Eventually(isGone(f.object)).Should(BeTrue())
	},

	"the namespace may not use a core Cloud: a server of the same name is not deleted": func(t *T) {
		f := newFixture(t, mockcloud.Options{Profile: mockcloud.Core}, restricted)
		theirs, err := f.PutServer(mockcloud.Server{Name: "theirs"})
		t.Expect(err).NotTo(HaveOccurred())
		f.waitForPolls(1)
		forged := f.createVM("theirs", func(vm *pcapi.VM) { vm.Finalizers = []string{"samplecontroller.k8s.io/vm"} })
		deleteObject(t, forged)
		t.Eventually(latest(forged)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked", "may not use it"))
		t.Expect(get(t, forged)).To(testkit.HaveCondition("Created", metav1.ConditionFalse, "Pending"))
		f.waitForPolls(2)
		t.Expect(f.serversNamed("theirs")).To(Equal([]string{theirs.ID}))
		edit(t, forged, func(vm *pcapi.VM) { vm.Spec.DeletionPolicy = pcapi.DeletionPolicyOrphan })
		t.Eventually(isGone(forged)).Should(BeTrue())
		t.Expect(f.serversNamed("theirs")).To(Equal([]string{theirs.ID}))
	},

	"the namespace's labels change to allowed ones: its VM is created": func(t *T) {
		f := newFixture(t, mockcloud.Options{}, restricted)
		vm := f.createVM("web")
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable"))
		edit(t, f.namespaceObject(), func(ns *corev1.Namespace) { ns.Labels["cloud"] = "yes" })
		waitReady(t, vm)
	},

	"allowedNamespaces is removed: the VM of the namespace is created": func(t *T) {
		f := newFixture(t, mockcloud.Options{}, restricted)
		f.setDefaultCloud(f.object.Name)
		vm := f.createVM("web", withoutCloudRef)
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable"))
		edit(t, f.object, func(c *pcapi.Cloud) { c.Spec.AllowedNamespaces = nil })
		waitReady(t, vm)
	},

	"one of two Clouds is unreachable: VMs on the other are created": func(t *T) {
		f, dead := newFixture(t, mockcloud.Options{}), newFixture(t, mockcloud.Options{})
		dead.Disconnect()
		stuck := f.createVM("stuck", func(vm *pcapi.VM) { vm.Spec.CloudRef.Name = dead.object.Name })
		f.readyVM("web")
		t.Eventually(latest(stuck)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable"))
	},
}
