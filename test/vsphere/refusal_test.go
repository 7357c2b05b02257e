package vsphere_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/vmware/govmomi/vim25/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
)

func TestCloneOntoFullDatastoreIsTriedAgainUntilThereIsRoom(tt *testing.T) {
	s := newSite(tt)
	restore := s.vcenter.FailTasks("CloneVM_Task", &types.NoDiskSpace{FileFault: types.FileFault{File: "[LocalDS_0] full/full.vmdk"}, Datastore: "LocalDS_0"}, nil)
	vm := s.vm("full")
	s.Eventually(s.stored(vm)).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, pcapi.QuotaExceededReason, "create the VM: the cloud has no capacity left"))
	s.Expect(s.names()).To(BeEmpty())
	s.Consistently(func() int { return s.vcenter.Front.Sent("CloneVM_Task") }, "5s").Should(Equal(1), "it is not tried again at once")
	restore()
	s.Eventually(s.stored(vm), "90s").Should(testkit.BeReady(), "without an edit")
	s.Expect(s.vcenter.Front.Sent("CloneVM_Task")).To(Equal(2))
	s.Expect(s.names()).To(ConsistOf("full"))
	s.remove(vm)
}

func TestCloneThatFailsForAWhileShowsItsFaultAndIsTriedAgain(tt *testing.T) {
	s := newSite(tt)
	restore := s.vcenter.FailTasks("CloneVM_Task", &types.Timedout{}, nil)
	vm := s.vm("slow")
	s.Eventually(s.stored(vm)).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, pcapi.OperationFailedReason, "create the VM: the vCenter did not finish it (Timedout)"))
	s.Eventually(func() int { return s.vcenter.Front.Sent("CloneVM_Task") }).Should(BeNumerically(">=", 2))
	restore()
	s.ready(vm)
	s.Expect(s.names()).To(ConsistOf("slow"))
	s.remove(vm)
}

func TestResizeWithoutHotAddNeedsARestartThatIsAllowed(tt *testing.T) {
	tt.Parallel()
	for name, fault := range map[string]types.BaseMethodFault{
		"the number of CPUs": &types.CpuHotPlugNotSupported{},
		"the power state": &types.InvalidPowerState{
			RequestedState: types.VirtualMachinePowerStatePoweredOff, ExistingState: types.VirtualMachinePowerStatePoweredOn,
		},
		"the memory": &types.MemoryHotPlugNotSupported{},
	} {
		tt.Run(name+": is refused by the task", func(tt *testing.T) {
			s := newSite(tt)
			vm := s.vm("grows", func(vm *pcapi.VM) { vm.Spec.CPU, vm.Spec.Memory = pcapi.Cores(2), pcapi.GiB(1) })
			s.ready(vm)
			s.vcenter.RefuseHotAdd(fault)
			s.edit(vm, func() { vm.Spec.CPU, vm.Spec.Memory = pcapi.Cores(4), pcapi.GiB(2) })
			s.Eventually(s.stored(vm)).Should(testkit.HaveCondition(pcapi.StalledCondition, metav1.ConditionTrue, pcapi.NeedsRestartReason))
			s.Consistently(s.size("grows"), "2s").Should(Equal([]any{int32(2), int32(1024), types.VirtualMachinePowerStatePoweredOn}), "it runs as before")

			s.edit(vm, func() { vm.Spec.UpdatePolicy = pcapi.UpdatePolicyRestartAllowed })
			s.Eventually(s.size("grows")).Should(Equal([]any{int32(4), int32(2048), types.VirtualMachinePowerStatePoweredOn}))
			s.ready(vm)
			s.Expect(s.vcenter.Front.Sent("ShutdownGuest")).To(Equal(1))
			s.remove(vm)
		})
	}
}

// size returns a function that returns CPUs, memory and power state of a VM.
func (s *site) size(name string) func() []any {
	return func() []any {
		vm := s.vcenter.VM(name)
		return []any{vm.Config.Hardware.NumCPU, vm.Config.Hardware.MemoryMB, vm.Runtime.PowerState}
	}
}

// Clones take minutes: more of them run than there are workers.
func TestLongClonesHoldNoWorker(tt *testing.T) {
	const members = 40
	s := newSite(tt, func(c *pcapi.Cloud) { c.Spec.Limits = pcapi.CloudLimits{RequestsPerSecond: 500, Burst: 500} })
	restore := s.vcenter.Front.HoldTasks()
	group := s.group("many", members)
	s.Eventually(func() int { return s.vcenter.Front.Sent("CloneVM_Task") }).Should(Equal(members), "all clones run at a time")
	vms := &pcapi.VMList{}
	s.Eventually(func() ([]pcapi.VM, error) {
		return vms.Items, s.env.Client.List(s.Context(), vms, client.InNamespace(s.name))
	}).Should(And(HaveLen(members), HaveEach(HaveField("Status.Conditions", ContainElement(And(
		HaveField("Type", pcapi.CreatedCondition), HaveField("Reason", pcapi.CreatingReason)))))))
	restore()
	s.ready(group)
	s.Expect(s.vcenter.Front.Sent("CloneVM_Task")).To(Equal(members))
	s.Expect(s.names()).To(HaveLen(members))
	s.remove(group)
	s.Eventually(s.names).Should(BeEmpty())
}
