package vsphere_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/vmware/govmomi/object"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/test/specs"
)

// watchedFolder is that of the Cloud watched, which is listed every ten minutes only.
const watchedFolder = "watched"

var _ = Describe("A vCenter that is listed every ten minutes", Serial, Ordered, func() {
	watched := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: watchedFolder}}

	// observed returns a VM on the Cloud that the operator does not change after it is
	// ready, and whose status has shown a change by hand, so that the watch runs.
	observed := func(ctx context.Context, name string) *pcapi.VM {
		GinkgoHelper()
		vm := testkit.VM(tenantNamespace, name, onWatched)
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		specs.Ready(ctx, vm)
		specs.Edit(ctx, vm, func(vm *pcapi.VM) { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly })
		powerByHand(ctx, vm, false)
		return vm
	}
	discard := func(ctx context.Context, vm *pcapi.VM) {
		GinkgoHelper()
		specs.Edit(ctx, vm, func(vm *pcapi.VM) { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyManaged })
		specs.Remove(ctx, vm)
	}
	readiness := func(ctx context.Context) metav1.Condition {
		GinkgoHelper()
		current := specs.Ready(ctx, watched)
		return *meta.FindStatusCondition(current.Status.Conditions, pcapi.ReadyCondition)
	}

	BeforeAll(func(ctx SpecContext) {
		_, err := vcenter.MakeFolder(ctx, watchedFolder)
		Expect(err).NotTo(HaveOccurred())
		Expect(env.Client.Create(ctx, newCloud(ctx, watchedFolder, func(c *pcapi.Cloud) {
			c.Spec.PollInterval.Duration, c.Spec.VSphere.Folder = 10*time.Minute, watchedFolder
		}))).To(Succeed())
		specs.Ready(ctx, watched)
	})
	AfterAll(func(ctx SpecContext) { specs.Remove(ctx, watched) })
	AfterEach(func() {
		Expect(names()).To(BeEmpty(), "VMs left in the vCenter")
	})

	It("a VM is powered off and on by hand: the status shows it", func(ctx SpecContext) {
		vm := observed(ctx, "switched")
		var most time.Duration
		for n := range 8 {
			most = max(most, powerByHand(ctx, vm, n%2 == 0))
		}
		AddReportEntry("the longest time until the status shows a change by hand", most)
		discard(ctx, vm)
	})

	It("100 VMs are destroyed by hand: the brake is on, and none is created again", func(ctx SpecContext) {
		const vms = 100
		all := make([]*pcapi.VM, vms)
		for n := range all {
			all[n] = testkit.VM(tenantNamespace, fmt.Sprintf("web-%d", n), onWatched, func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff })
			Expect(env.Client.Create(ctx, all[n])).To(Succeed())
		}
		for _, vm := range all {
			specs.Ready(ctx, vm)
		}
		made := time.Now()
		Eventually(ctx, func() time.Duration { return time.Since(made) }).Should(BeNumerically(">", testkit.SettleTime), "the VMs are older than the settle time")
		clones := vcenter.Front.Sent("CloneVM_Task")
		for _, vm := range all {
			task, err := virtualMachine(vm).Destroy(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(task.Wait(ctx)).To(Succeed())
		}
		Eventually(ctx, specs.Stored(watched)).Should(testkit.HaveCondition(pcapi.BrakedCondition, metav1.ConditionTrue, ""))
		fresh := testkit.VM(tenantNamespace, "fresh", onWatched)
		Expect(env.Client.Create(ctx, fresh)).To(Succeed())
		Eventually(ctx, specs.Stored(fresh)).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, "Braked"))
		Expect(vcenter.Front.Sent("CloneVM_Task")).To(Equal(clones))
		Expect(names()).To(BeEmpty())
		Eventually(ctx, specs.Stored(watched)).Should(HaveField("Status.Servers.Known", BeZero()), "all absences were compared")

		specs.Edit(ctx, watched, func(c *pcapi.Cloud) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, pcapi.AcknowledgeAnnotation, c.Status.BrakedSnapshot)
		})
		specs.Ready(ctx, fresh)
		Expect(vcenter.Front.Sent("CloneVM_Task")).To(Equal(clones + 1))
		for _, vm := range slices.Concat(all, []*pcapi.VM{fresh}) {
			specs.Remove(ctx, vm)
		}
	})

	It("the sessions end every few seconds: no change by hand is missed, and the Cloud stays Connected", func(ctx SpecContext) {
		const sessions, lasting = 4, 5 * time.Second
		vm := observed(ctx, "steady")
		before := readiness(ctx)
		on := true
		for range sessions {
			Expect(vcenter.EndSessions(ctx)).To(Succeed())
			for began := time.Now(); time.Since(began) < lasting; on = !on {
				powerByHand(ctx, vm, on)
			}
		}
		Expect(readiness(ctx)).To(Equal(before))
		discard(ctx, vm)
	})

	It("the vCenter is restarted: changes by hand are reported again", func(ctx SpecContext) {
		vm := observed(ctx, "outlasting")
		vcenter.Disconnect()
		Expect(vcenter.EndSessions(ctx)).To(Succeed())
		Eventually(ctx, specs.Stored(watched)).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, pcapi.UnreachableReason))
		Expect(vcenter.Connect()).To(Succeed())
		specs.Ready(ctx, watched)
		for n := range 3 {
			powerByHand(ctx, vm, n%2 == 0)
		}
		discard(ctx, vm)
	})
})

func onWatched(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: watchedFolder} }

// virtualMachine returns the VM of an object in the vCenter.
func virtualMachine(vm *pcapi.VM) *object.VirtualMachine {
	GinkgoHelper()
	made := vcenter.VM(vm.Spec.VMName)
	Expect(made).NotTo(BeNil())
	return object.NewVirtualMachine(vcenter.Admin.Client, made.Self)
}

// powerByHand powers a VM on or off, and returns how long it took until its status showed it.
func powerByHand(ctx context.Context, vm *pcapi.VM, on bool) time.Duration {
	GinkgoHelper()
	change, want := virtualMachine(vm).PowerOff, pcapi.VMStateStopped
	if on {
		change, want = virtualMachine(vm).PowerOn, pcapi.VMStateRunning
	}
	task, err := change(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(task.Wait(ctx)).To(Succeed())
	began := time.Now()
	Eventually(ctx, specs.Stored(vm)).Should(HaveField("Status.State", want))
	return time.Since(began)
}
