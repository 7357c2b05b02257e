package vsphere_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/vmware/govmomi/object"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
	"github.com/privatecloud/operator/internal/testkit"
)

// newWatched returns a site whose vCenter is listed every ten minutes only.
func newWatched(tt *testing.T) *site {
	tt.Helper()
	return newSite(tt, func(c *pcapi.Cloud) { c.Spec.PollInterval.Duration = 10 * time.Minute })
}

// observedVM returns a VM on the Cloud that the operator does not change after it is
// ready, and whose status has shown a change by hand, so that the watch runs.
func (s *site) observedVM(name string) *pcapi.VM {
	s.Helper()
	vm := s.vm(name)
	s.ready(vm)
	s.edit(vm, func() { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly })
	s.Eventually(s.stored(vm)).Should(HaveField("Status.ObservedGeneration", vm.Generation), "else a change by hand is corrected")
	s.powerByHand(vm, false)
	return vm
}

func (s *site) discard(vm *pcapi.VM) {
	s.Helper()
	s.edit(vm, func() { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyManaged })
	s.remove(vm)
	s.Expect(s.names()).To(BeEmpty(), "VMs left in the vCenter")
}

func TestPowerStateThatIsChangedByHandShowsAtOnce(tt *testing.T) {
	s := newWatched(tt)
	vm := s.observedVM("switched")
	var most time.Duration
	for n := range 8 {
		most = max(most, s.powerByHand(vm, n%2 == 0))
	}
	s.Logf("the longest time until the status shows a change by hand: %v", most)
	s.discard(vm)
}

func TestManyVMsThatAreDestroyedByHandSetTheBrake(tt *testing.T) {
	const vms = 100
	s := newWatched(tt)
	all := make([]client.Object, vms)
	for n := range all {
		all[n] = s.vm(fmt.Sprintf("web-%d", n), func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff })
	}
	for _, vm := range all {
		s.ready(vm)
	}
	ready := time.Now()
	s.Eventually(func() time.Duration { return time.Since(ready) }).Should(BeNumerically(">", testkit.SettleTime), "the VMs are older than the settle time")
	clones := s.vcenter.Front.Sent("CloneVM_Task")
	for _, vm := range s.vcenter.VMs() {
		if vm.Config.Template {
			continue
		}
		task, err := object.NewVirtualMachine(s.vcenter.Admin.Client, vm.Self).Destroy(s.Context())
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(task.Wait(s.Context())).To(Succeed())
	}
	s.Eventually(s.stored(s.cloud())).Should(testkit.HaveCondition(pcapi.BrakedCondition, metav1.ConditionTrue, ""))
	fresh := s.vm("fresh")
	s.Eventually(s.stored(fresh)).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, "Braked"))
	s.Expect(s.vcenter.Front.Sent("CloneVM_Task")).To(Equal(clones))
	s.Expect(s.names()).To(BeEmpty())
	s.Eventually(s.stored(s.cloud())).Should(HaveField("Status.Servers.Known", BeZero()), "all absences were compared")

	c := s.cloud()
	s.edit(c, func() {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, pcapi.AcknowledgeAnnotation, c.Status.BrakedSnapshot)
	})
	s.ready(fresh)
	s.Expect(s.vcenter.Front.Sent("CloneVM_Task")).To(Equal(clones + 1))
	s.remove(slices.Concat(all, []client.Object{fresh})...)
}

func TestWatchOutlivesSessionsThatEndEveryFewSeconds(tt *testing.T) {
	const sessions, lasting = 4, 5 * time.Second
	s := newWatched(tt)
	vm := s.observedVM("steady")
	before := s.readiness()
	on := true
	for range sessions {
		s.Expect(s.vcenter.EndSessions(s.Context())).To(Succeed())
		for began := time.Now(); time.Since(began) < lasting; on = !on {
			s.powerByHand(vm, on)
		}
	}
	s.Expect(s.readiness()).To(Equal(before))
	s.discard(vm)
}

func TestWatchGoesOnAfterTheVCenterWasRestarted(tt *testing.T) {
	s := newWatched(tt)
	vm := s.observedVM("outlasting")
	s.vcenter.Disconnect()
	s.Expect(s.vcenter.EndSessions(s.Context())).To(Succeed())
	s.Eventually(s.stored(s.cloud())).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, pcapi.UnreachableReason))
	s.Expect(s.vcenter.Connect()).To(Succeed())
	s.ready(s.cloud())
	for n := range 3 {
		s.powerByHand(vm, n%2 == 0)
	}
	s.discard(vm)
}

// readiness returns the condition Ready of the Cloud, which is ready.
func (s *site) readiness() metav1.Condition {
	s.Helper()
	c := s.cloud()
	s.ready(c)
	return *meta.FindStatusCondition(c.Status.Conditions, pcapi.ReadyCondition)
}

// virtualMachine returns the VM of an object in a vCenter.
func virtualMachine(v *vcsim.Server, vm *pcapi.VM) *object.VirtualMachine {
	return object.NewVirtualMachine(v.Admin.Client, v.VM(vm.Spec.VMName).Self)
}

// powerByHand powers a VM on or off, and returns how long it took until its status showed it.
func (s *site) powerByHand(vm *pcapi.VM, on bool) time.Duration {
	s.Helper()
	made := virtualMachine(s.vcenter, vm)
	change, want := made.PowerOff, pcapi.VMStateStopped
	if on {
		change, want = made.PowerOn, pcapi.VMStateRunning
	}
	task, err := change(s.Context())
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(task.Wait(s.Context())).To(Succeed())
	began := time.Now()
	s.Eventually(s.stored(vm)).Should(HaveField("Status.State", want))
	return time.Since(began)
}
