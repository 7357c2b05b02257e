package vsphere_test

import (
	"context"
	"strings"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/test/specs"
)

var _ = Describe("A VM of a vCenter that the operator did not make", Serial, func() {
	It("is imported by its UUID in upper case, changed and deleted", func(ctx SpecContext) {
		id := cloneByHand(ctx, "legacy")
		vm := testkit.VM(tenantNamespace, "imported", func(vm *pcapi.VM) {
			vm.Spec.Import, vm.Spec.VMName = &pcapi.VMImport{VMID: strings.ToUpper(id)}, "legacy"
		})
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		imported := specs.Ready(ctx, vm)
		Expect(imported.Status.VMID).To(Equal(id))
		Expect(imported).To(testkit.HaveCondition(pcapi.CreatedCondition, metav1.ConditionTrue, pcapi.ImportedReason))
		specs.Edit(ctx, vm, func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(4) })
		Eventually(ctx, func() int32 { return vcenter.VM("legacy").Config.Hardware.NumCPU }).Should(BeEquivalentTo(4))
		Expect(names()).To(ConsistOf("legacy"))
		specs.Remove(ctx, vm)
		Expect(names()).To(BeEmpty())
	})
})

// cloneByHand makes a VM in the operator's folder as a user of the vCenter does, and
// returns its instance UUID.
func cloneByHand(ctx context.Context, name string) string {
	GinkgoHelper()
	finder := find.NewFinder(vcenter.Admin.Client)
	datacenter, err := finder.DefaultDatacenter(ctx)
	Expect(err).NotTo(HaveOccurred())
	finder.SetDatacenter(datacenter)
	folder, err := finder.Folder(ctx, vcsim.Folder)
	Expect(err).NotTo(HaveOccurred())
	pool, err := finder.ResourcePool(ctx, "/DC0/host/DC0_C0/Resources")
	Expect(err).NotTo(HaveOccurred())
	id, in := uuid.NewString(), pool.Reference()
	task, err := object.NewVirtualMachine(vcenter.Admin.Client, vcenter.TemplateVM().Self).
		Clone(ctx, folder, name, types.VirtualMachineCloneSpec{
			Location: types.VirtualMachineRelocateSpec{Pool: &in}, Config: &types.VirtualMachineConfigSpec{InstanceUuid: id}, PowerOn: true,
		})
	Expect(err).NotTo(HaveOccurred())
	Expect(task.Wait(ctx)).To(Succeed())
	return id
}
