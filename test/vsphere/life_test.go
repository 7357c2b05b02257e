package vsphere_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/test/specs"
)

var _ = Describe("A vCenter", Serial, func() {
	AfterEach(func() {
		Expect(names()).To(BeEmpty(), "VMs left in the vCenter")
	})

	It("a VM: is created once, resized, powered off and deleted", func(ctx SpecContext) {
		before := vcenter.Front.Sent("CloneVM_Task")
		vm := testkit.VM(tenantNamespace, "web", func(vm *pcapi.VM) {
			vm.Spec.CPU, vm.Spec.Tags = pcapi.Cores(2), map[string]pcapi.TagValue{"env": "prod", "team": "a"}
		})
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		made := specs.Ready(ctx, vm)
		Expect(made.Status.VMID).To(Equal(string(made.UID)), "the id of the VM is the UID of its object")
		Expect(vcenter.Front.Sent("CloneVM_Task") - before).To(Equal(1))
		Expect(vcenter.VM("web").Config.Hardware.NumCPU).To(BeEquivalentTo(2))
		Expect(vcenter.VM("web").Config.InstanceUuid).To(Equal(made.Status.VMID))

		Expect(vcsim.Labels(vcenter.VM("web"))).To(SatisfyAll(HaveKeyWithValue("env", "prod"), HaveKeyWithValue("team", "a")))

		specs.Edit(ctx, vm, func(vm *pcapi.VM) {
			vm.Spec.CPU, vm.Spec.Tags = pcapi.Cores(4), map[string]pcapi.TagValue{"env": "test"}
		})
		Eventually(ctx, func() map[string]string { return vcsim.Labels(vcenter.VM("web")) }).Should(SatisfyAll(HaveKeyWithValue("env", "test"), Not(HaveKey("team"))))
		Eventually(ctx, func() int32 { return vcenter.VM("web").Config.Hardware.NumCPU }).Should(BeEquivalentTo(4))
		specs.Edit(ctx, vm, func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff })
		Eventually(ctx, specs.Stored(vm)).Should(HaveField("Status.State", pcapi.VMStateStopped))
		specs.Edit(ctx, vm, func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOn })
		specs.Ready(ctx, vm)
		specs.Edit(ctx, vm, func(vm *pcapi.VM) { vm.Spec.NextRestartTime = new(metav1.NewTime(time.Now().Truncate(time.Second))) })
		Eventually(ctx, specs.Stored(vm)).Should(SatisfyAll(testkit.BeReady(), HaveField("Status.LastRestart", HaveValue(HaveField("Result", pcapi.VMRestarted)))))
		Expect(vcenter.Front.Sent("ShutdownGuest")).To(Equal(2))
		specs.Remove(ctx, vm)
	})

	It("a VM: is suspended, also by hand, resumed, and deleted while it is suspended", func(ctx SpecContext) {
		vm := testkit.VM(tenantNamespace, "asleep")
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		specs.Ready(ctx, vm)
		before := vcenter.Front.Sent("SuspendVM_Task")
		task, err := virtualMachine(vcenter, vm).Suspend(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(task.Wait(ctx)).To(Succeed())
		Eventually(ctx, powered(vm)).Should(Equal(types.VirtualMachinePowerStatePoweredOn), "the spec says On")
		specs.Ready(ctx, vm)

		specs.Edit(ctx, vm, func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerSuspended })
		Eventually(ctx, specs.Stored(vm)).Should(SatisfyAll(testkit.BeReady(), HaveField("Status.State", pcapi.VMStateSuspended)))
		Expect(vcenter.Front.Sent("SuspendVM_Task") - before).To(Equal(1))
		specs.Edit(ctx, vm, func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff })
		Eventually(ctx, powered(vm)).Should(Equal(types.VirtualMachinePowerStatePoweredOff))
		specs.Edit(ctx, vm, func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerSuspended })
		Eventually(ctx, powered(vm)).Should(Equal(types.VirtualMachinePowerStateSuspended))
		specs.Remove(ctx, vm)
	})

	It("a VM with disks: gets them with its clone, they grow, and one that is removed in the vCenter is not made again", func(ctx SpecContext) {
		vm := testkit.VM(tenantNamespace, "store", func(vm *pcapi.VM) { vm.Spec.Disks = []pcapi.VMDisk{{Name: "data", Size: "2Gi"}} })
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		Expect(specs.Ready(ctx, vm).Status.Disks).To(Equal([]pcapi.VMDiskStatus{{Name: "data", Size: "2Gi"}}))
		specs.Edit(ctx, vm, func(vm *pcapi.VM) {
			vm.Spec.Disks = []pcapi.VMDisk{{Name: "data", Size: "3Gi"}, {Name: "logs", Size: "1Gi"}}
		})
		Eventually(ctx, specs.Stored(vm)).Should(HaveField("Status.Disks", []pcapi.VMDiskStatus{{Name: "data", Size: "3Gi"}, {Name: "logs", Size: "1Gi"}}))
		specs.Ready(ctx, vm)
		Expect(vcsim.Disks(vcenter.VM("store"))).To(Equal(map[string]int{"data": 3, "logs": 1}))

		Expect(vcenter.RemoveDisk(ctx, "store", "data")).To(Succeed())
		Eventually(ctx, specs.Stored(vm)).Should(SatisfyAll(
			testkit.HaveCondition(pcapi.StalledCondition, metav1.ConditionTrue, pcapi.DriftReason, `the disk "data" was removed`),
			HaveField("Status.Disks", []pcapi.VMDiskStatus{{Name: "data", Lost: true}, {Name: "logs", Size: "1Gi"}}),
		))
		Expect(vcsim.Disks(vcenter.VM("store"))).To(Equal(map[string]int{"logs": 1}))
		specs.Remove(ctx, vm)
	})

	It("a VM whose create's answer is lost: gets one VM", func(ctx SpecContext) {
		restore := vcenter.Front.Lose("CloneVM_Task")
		vm := testkit.VM(tenantNamespace, "lost")
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		Eventually(ctx, names).Should(ConsistOf("lost"))
		restore()
		specs.Ready(ctx, vm)
		Expect(names()).To(ConsistOf("lost"))
		specs.Remove(ctx, vm)
	})

	It("a VM whose clone fails: shows why, and is created once that has ended", func(ctx SpecContext) {
		restore := vcenter.Front.FailClones()
		vm := testkit.VM(tenantNamespace, "failing")
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		Eventually(ctx, specs.Stored(vm)).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, "", "spec.location.pool"))
		restore()
		specs.Edit(ctx, vm, func(vm *pcapi.VM) {
			metav1.SetMetaDataAnnotation(&vm.ObjectMeta, pcapi.ReconcileRequestedAtAnnotation, "now")
		})
		specs.Ready(ctx, vm)
		specs.Remove(ctx, vm)
	})

	It("a VM whose clone takes time: shows that it is being created, and how far it is", func(ctx SpecContext) {
		restore := vcenter.Front.HoldTasks()
		DeferCleanup(restore)
		vm := testkit.VM(tenantNamespace, "slow")
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		Eventually(ctx, specs.Stored(vm)).Should(And(
			testkit.HaveCondition(pcapi.CreatedCondition, metav1.ConditionFalse, pcapi.CreatingReason, "40 %"), HaveField("Status.Operation.ID", HavePrefix("create/task-"))))
		restore()
		Expect(specs.Ready(ctx, vm).Status.Operation).To(BeNil())
		specs.Remove(ctx, vm)
	})

	It("a VmGroup: gets a folder with its VMs, is scaled, and its folder is removed with it", func(ctx SpecContext) {
		const folder = tenantNamespace + "-vmgroup-sample"
		group := testkit.VmGroup(tenantNamespace, "vmgroup-sample")
		kubectl(ctx, groupManifest, "apply", "-f", "-")
		Eventually(ctx, messages).Should(ContainElement(And(ContainSubstring("my-operator-template"), ContainSubstring(vcsim.Template))), "the VMs say which templates there are")
		Expect(names()).To(BeEmpty())
		kubectl(ctx, "", "patch", "vmgroup", group.Name, "-n", group.Namespace, "--type=merge", "-p", `{"spec":{"template":"`+vcsim.Template+`"}}`)
		specs.Ready(ctx, group)
		Expect(names()).To(HaveLen(3))
		Expect(vcenter.FolderNames()).To(ContainElement(folder))
		for _, name := range names() {
			vm := vcenter.VM(name)
			Expect(vcenter.Model.Map().Get(*vm.Parent).(*simulator.Folder).Name).To(Equal(folder))
			Expect([]int32{vm.Config.Hardware.NumCPU, vm.Config.Hardware.MemoryMB}).To(Equal([]int32{2, 1024}))
			Expect(origin(vm)).To(ContainSubstring(`"template":"` + vcsim.Template + `"`))
		}
		for _, replicas := range []int{5, 2} {
			kubectl(ctx, "", "scale", "vmgroup", group.Name, "-n", group.Namespace, fmt.Sprintf("--replicas=%d", replicas))
			Eventually(ctx, names).Should(HaveLen(replicas))
			specs.Ready(ctx, group)
		}

		// The template that the manifest names exists now, and replaces the VMs.
		Expect(vcenter.MakeTemplate(ctx, "my-operator-template")).To(Succeed())
		kubectl(ctx, groupManifest, "apply", "-f", "-")
		Eventually(ctx, func() []string {
			var from []string
			for _, name := range names() {
				from = append(from, origin(vcenter.VM(name)))
			}
			return from
		}).Should(And(HaveLen(3), HaveEach(ContainSubstring(`"template":"my-operator-template"`))))
		specs.Ready(ctx, group)
		specs.Remove(ctx, group)
		Eventually(ctx, names).Should(BeEmpty())
		Eventually(ctx, vcenter.FolderNames).ShouldNot(ContainElement(folder))
	})

	It("a Cloud that names what does not exist: is InvalidConfiguration and says what there is", func(ctx SpecContext) {
		broken := newCloud(ctx, "broken", func(c *pcapi.Cloud) { c.Spec.VSphere.Datastore = "tape" })
		Expect(env.Client.Create(ctx, broken)).To(Succeed())
		Eventually(ctx, specs.Stored(broken)).Should(testkit.HaveCondition(pcapi.StalledCondition, metav1.ConditionTrue, pcapi.InvalidConfigurationReason, "tape", "LocalDS_0"))
		specs.Edit(ctx, broken, func(c *pcapi.Cloud) { c.Spec.VSphere.Datastore = "LocalDS_0" })
		specs.Ready(ctx, broken)
		specs.Remove(ctx, broken)
	})

	It("a GPUInfo: finds a node on a host with graphics that is not in maintenance mode", func(ctx SpecContext) {
		vm := testkit.VM(tenantNamespace, "worker-1")
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		made := specs.Ready(ctx, vm)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}, Spec: corev1.NodeSpec{ProviderID: "vsphere://" + made.Status.VMID}}
		Expect(env.Client.Create(ctx, node)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(env.Client.Delete(ctx, node)).To(Succeed()) })
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Test", LastHeartbeatTime: metav1.Now()}}
		Expect(env.Client.Status().Update(ctx, node)).To(Succeed())
		host := *vcenter.VM("worker-1").Runtime.Host
		maintain := func(in bool) {
			vcenter.Change(host, types.PropertyChange{Name: "runtime.inMaintenanceMode", Val: in})
		}
		gpu := &pcapi.GPUInfo{ObjectMeta: metav1.ObjectMeta{Namespace: tenantNamespace, Name: "gpuinfo-sample"}}
		none := testkit.HaveCondition(pcapi.PlacedCondition, metav1.ConditionFalse, pcapi.NoneAvailableReason)
		kubectl(ctx, gpuManifest, "apply", "-n", tenantNamespace, "-f", "-")
		Eventually(ctx, specs.Stored(gpu)).Should(And(none, HaveField("Status.Candidates", ContainElement(HaveField("Message", "the host has no GPU")))))

		vcenter.Change(host, types.PropertyChange{Name: "config.graphicsInfo", Val: []types.HostGraphicsInfo{{DeviceName: "gpu", GraphicsType: "sharedDirect"}}})
		found := specs.Ready(ctx, gpu)
		Expect(found.Status.SuitableNodeName).To(Equal("worker-1"))
		Expect(found.Status.SuitableHostName).To(Equal(vcenter.Model.Map().Get(host).(*simulator.HostSystem).Name))
		maintain(true)
		Eventually(ctx, specs.Stored(gpu)).Should(And(none, HaveField("Status.Candidates", ContainElement(HaveField("Message", "the cloud does not list its host")))))
		maintain(false)
		Expect(specs.Ready(ctx, gpu).Status.SuitableNodeName).To(Equal("worker-1"))
		specs.Remove(ctx, gpu)
		specs.Remove(ctx, vm)
	})
})

// groupManifest and gpuManifest are manifests of guides to operators on vSphere.
const (
	groupManifest = `apiVersion: samplecontroller.k8s.io/v1alpha1
kind: VmGroup
metadata:
  name: vmgroup-sample
  namespace: myoperator-vms
spec:
  cpu: 2
  memory: 1
  replicas: 3
  template: my-operator-template
`
	gpuManifest = `apiVersion: samplecontroller.k8s.io/v1alpha1
kind: GPUInfo
metadata:
  name: gpuinfo-sample
spec:
  # Add fields here
  desAccTime: 100
  gpuRequired: True
`
)

// powered returns the power state of the VM of an object in the vCenter.
func powered(vm *pcapi.VM) func() types.VirtualMachinePowerState {
	return func() types.VirtualMachinePowerState { return vcenter.VM(vm.Spec.VMName).Runtime.PowerState }
}

// kubectl runs kubectl as an administrator.
func kubectl(ctx context.Context, input string, args ...string) {
	GinkgoHelper()
	_, err := env.Kubectl(ctx, input, args...)
	Expect(err).NotTo(HaveOccurred())
}

// origin returns the part of the mark of a VM that says how it came to be.
func origin(vm *simulator.VirtualMachine) string {
	for _, option := range vm.Config.ExtraConfig {
		if value := option.GetOptionValue(); value.Key == "privatecloud.origin" {
			return fmt.Sprint(value.Value)
		}
	}
	return ""
}

// names returns the names of the VMs that are no templates.
func names() []string { return namesIn(vcenter) }

// messages returns those of the conditions of all VMs.
func messages(ctx context.Context) ([]string, error) {
	var vms pcapi.VMList
	if err := env.Client.List(ctx, &vms); err != nil {
		return nil, err
	}
	var all []string
	for _, vm := range vms.Items {
		for _, condition := range vm.Status.Conditions {
			all = append(all, fmt.Sprintf("%s: %s", vm.Name, condition.Message))
		}
	}
	return all, nil
}
