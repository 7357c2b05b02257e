package vsphere_test

import (
	"testing"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
)

func TestVMThatIsConvertedToATemplateIsFoundAndItsDeletionWaits(tt *testing.T) {
	s := newSite(tt)
	off := func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff }
	golden, kept := s.vm("golden", off), s.vm("kept", off, func(vm *pcapi.VM) { vm.Spec.DeletionPolicy = pcapi.DeletionPolicyOrphan })
	s.vm("other")
	s.ready(golden)
	s.ready(kept)
	snap := &pcapi.VMSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "snap"}, Spec: pcapi.VMSnapshotSpec{VMName: "golden"}}
	s.create(snap)
	s.ready(snap)
	s.vcenter.Convert(s.vcenter.VM("golden"), true)
	s.vcenter.Convert(s.vcenter.VM("kept"), true)
	const says = `was converted to a template, "/DC0/vm/op/golden"`
	s.Eventually(s.stored(golden)).Should(testkit.HaveCondition(pcapi.StalledCondition, metav1.ConditionTrue, pcapi.DriftReason, says))

	s.Expect(s.env.Client.Delete(s.Context(), snap)).To(Succeed())
	s.Eventually(s.stored(snap)).Should(testkit.HaveCondition(pcapi.DeletingCondition, metav1.ConditionTrue, pcapi.BlockedReason, says, "spec.deletionPolicy"))
	s.edit(snap, func() { snap.Spec.DeletionPolicy = pcapi.DeletionPolicyOrphan })
	s.gone(snap, "the snapshot is released")
	s.Expect(s.env.Client.Delete(s.Context(), golden)).To(Succeed())
	s.Eventually(s.stored(golden)).Should(testkit.HaveCondition(pcapi.DeletingCondition, metav1.ConditionTrue, pcapi.BlockedReason, says, "spec.deletionPolicy"))
	s.remove(kept)
	s.Expect(s.vcenter.Front.Sent("Destroy_Task")).To(BeZero(), "a template is not destroyed")
	s.Expect(s.vcenter.VM("kept")).NotTo(BeNil())

	disk, err := s.vcenter.AttachDisk(s.Context(), s.vcenter.VM("other"), "volumes/a.vmdk")
	s.Expect(err).NotTo(HaveOccurred())
	s.vcenter.Convert(s.vcenter.VM("golden"), false)
	s.gone(golden, "it is a VM again, and is deleted")
	s.Expect(s.vcenter.VM("golden")).To(BeNil())

	other := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "other"}}
	s.ready(other)
	s.remove(other)
	s.Expect(s.vcenter.HasFile(disk)).To(BeTrue(), "the disk that somebody attached is kept")
	s.Eventually(s.notes(other)).Should(ContainElement(SatisfyAll(ContainSubstring("were detached"), ContainSubstring(disk))))
}

func TestVMOfAGroupThatIsMovedIsNotReplaced(tt *testing.T) {
	const members = 3
	s := newSite(tt)
	archive, err := s.vcenter.MakeFolder(s.Context(), "archive")
	s.Expect(err).NotTo(HaveOccurred())
	group := s.group("pool", members)
	s.ready(group)
	var vms pcapi.VMList
	s.Expect(s.env.Client.List(s.Context(), &vms, client.InNamespace(s.name))).To(Succeed())
	member := &vms.Items[0]
	moved := s.vcenter.VM(member.Spec.VMName)
	s.vcenter.Move(moved, archive.Reference())
	s.Eventually(s.stored(member)).Should(testkit.HaveCondition(pcapi.StalledCondition, metav1.ConditionTrue, pcapi.DriftReason,
		`"/DC0/vm/archive/`+member.Spec.VMName+`" now, outside of spec.vsphere.folder`))
	s.Eventually(s.stored(group)).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, ""))
	other := s.vm("other") // once it is Ready, the group has reconciled after the move
	s.ready(other)
	s.Expect(s.vcenter.Front.Sent("CloneVM_Task")).To(Equal(members+1), "no VM was made in its place")
	s.Expect(s.vcenter.Front.Sent("Destroy_Task")).To(BeZero())

	s.edit(group, func() { group.Spec.Replicas = new(int32(0)) })
	s.Eventually(s.stored(member)).Should(testkit.HaveCondition(pcapi.DeletingCondition, metav1.ConditionTrue, pcapi.BlockedReason, "/DC0/vm/archive/"))
	s.Expect(s.vcenter.VM(member.Spec.VMName)).NotTo(BeNil())
	// The folder of the group may be gone by now: it has no other VM.
	s.vcenter.Move(moved, *s.vcenter.VM("other").Parent)
	s.gone(member, "it is back, and is deleted")
	s.remove(group, other)
	s.Expect(s.names()).To(BeEmpty())
}

// notes returns a function that returns the texts of the events of an object.
func (s *site) notes(object client.Object) func() ([]string, error) {
	return func() ([]string, error) {
		var list eventsv1.EventList
		err := s.env.Client.List(s.Context(), &list, client.InNamespace(s.name))
		var notes []string
		for _, event := range list.Items {
			if event.Regarding.UID == object.GetUID() {
				notes = append(notes, event.Note)
			}
		}
		return notes, err
	}
}
