package behaviour_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

func diskOf(name string, size pcapi.VMDiskSize) pcapi.VMDisk {
	return pcapi.VMDisk{Name: name, Size: size}
}

func withDisks(disks ...pcapi.VMDisk) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Spec.Disks = disks }
}

// setDisks changes the disks of the server of a VM behind the operator's back.
func (f *fixture) setDisks(vm *pcapi.VM, disks ...mockcloud.Disk) {
	server, err := f.serverOf(vm)()
	f.t.Expect(err).NotTo(HaveOccurred())
	server.Disks = disks
	_, err = f.PutServer(server)
	f.t.Expect(err).NotTo(HaveOccurred())
}

func TestDisks(t *testing.T) {
	cases{
		"a disk grows, another is added, one is removed in the cloud, and one is larger there: in place, reported, and never made anew": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			vm := f.createVM("web", withDisks(diskOf("data", "20Gi")))
			ready := waitReady(t, vm)
			t.Expect(ready.Status.Disks).To(Equal([]pcapi.VMDiskStatus{{Name: "data", Size: "20Gi"}}))

			edit(t, vm, withDisks(diskOf("data", "30Gi"), diskOf("logs", "1Ti")))
			grown := []mockcloud.Disk{{Name: "data", Size: 30}, {Name: "logs", Size: 1024}}
			t.Eventually(f.serverOf(ready)).Should(HaveField("Disks", grown))
			waitReady(t, vm)
			t.Eventually(latest(vm)).Should(HaveField("Status.Disks", []pcapi.VMDiskStatus{{Name: "data", Size: "30Gi"}, {Name: "logs", Size: "1Ti"}}))

			f.setDisks(ready, mockcloud.Disk{Name: "data", Size: 30})
			t.Eventually(latest(vm)).Should(SatisfyAll(
				testkit.HaveCondition("Ready", metav1.ConditionFalse, "Drift", `the disk "logs" was removed`),
				HaveField("Status.Disks", []pcapi.VMDiskStatus{{Name: "data", Size: "30Gi"}, {Name: "logs", Lost: true}}),
			))
			edit(t, vm, withDisks(diskOf("data", "30Gi")))
			waitReady(t, vm)

			larger := []mockcloud.Disk{{Name: "data", Size: 40}, {Name: "other", Size: 1}}
			f.setDisks(ready, larger...)
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unsupported", "set its size in spec.disks to 40Gi"))
			edit(t, vm, withDisks(diskOf("data", "40Gi")))
			waitReady(t, vm)
			t.Expect(f.createCalls()).To(Equal(1))
			t.Expect(f.serverOf(ready)()).To(HaveField("Disks", larger))
		},
		"a size that the cloud refuses, and then a smaller one: the VM says so, and the disk grows to that": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			vm := f.createVM("web", withDisks(diskOf("data", "20Gi")))
			ready := waitReady(t, vm)
			edit(t, vm, withDisks(diskOf("data", "64Ti")))
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Rejected", "16384 GiB"))
			edit(t, vm, withDisks(diskOf("data", "21Gi")))
			waitReady(t, vm)
			t.Expect(f.serverOf(ready)()).To(HaveField("Disks", []mockcloud.Disk{{Name: "data", Size: 21}}))
		},
		"the disk of a group grows: its members keep their servers": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			disks := func(size pcapi.VMDiskSize) func(*pcapi.VmGroup) {
				return func(g *pcapi.VmGroup) { g.Spec.Disks = []pcapi.VMDisk{diskOf("data", size)} }
			}
			g, members := f.readyGroup("pool", 2, disks("10Gi"))
			edit(t, g, disks("20Gi"))
			for i := range members {
				t.Eventually(f.serverOf(&members[i])).Should(HaveField("Disks", []mockcloud.Disk{{Name: "data", Size: 20}}))
			}
			t.Expect(f.createCalls()).To(Equal(2))
		},
		"the cloud lacks the capability: Unsupported, and nothing is sent": func(t *T) {
			f := newFixture(t, mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{mockcloud.Disks: false}})
			vm := f.createVM("web", withDisks(diskOf("data", "20Gi")))
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unsupported", "disks"))
			t.Expect(f.createCalls()).To(BeZero())
		},
	}.run(t)
}
