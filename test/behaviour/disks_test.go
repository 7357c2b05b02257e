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

func withRootDisk(size pcapi.VMDiskSize, of pcapi.VMDiskType) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Spec.RootDisk = &pcapi.VMRootDisk{Size: size, Type: of} }
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
			t.Expect(ready.Status.Disks).To(Equal([]pcapi.VMDiskStatus{{Name: "data", Size: "20Gi", Type: "standard"}}))

			edit(t, vm, withDisks(diskOf("data", "30Gi"), diskOf("logs", "1Ti")))
			grown := []mockcloud.Disk{{Name: "data", Size: 30, Type: "standard"}, {Name: "logs", Size: 1024, Type: "standard"}}
			t.Eventually(f.serverOf(ready)).Should(HaveField("Disks", grown))
			waitReady(t, vm)
			t.Eventually(latest(vm)).Should(HaveField("Status.Disks", []pcapi.VMDiskStatus{{Name: "data", Size: "30Gi", Type: "standard"}, {Name: "logs", Size: "1Ti", Type: "standard"}}))

			f.setDisks(ready, mockcloud.Disk{Name: "data", Size: 30, Type: "standard"})
			t.Eventually(latest(vm)).Should(SatisfyAll(
				testkit.HaveCondition("Ready", metav1.ConditionFalse, "Drift", `the disk "logs" was removed`),
				HaveField("Status.Disks", []pcapi.VMDiskStatus{{Name: "data", Size: "30Gi", Type: "standard"}, {Name: "logs", Lost: true}}),
			))
			edit(t, vm, withDisks(diskOf("data", "30Gi")))
			waitReady(t, vm)

			larger := []mockcloud.Disk{{Name: "data", Size: 40, Type: "standard"}, {Name: "other", Size: 1, Type: "standard"}}
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
			t.Expect(f.serverOf(ready)()).To(HaveField("Disks", []mockcloud.Disk{{Name: "data", Size: 21, Type: "standard"}}))
		},
		"a disk is kept, and then another one instead: changed in place, and the deletion of the VM keeps that one": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			kept := diskOf("data", "20Gi")
			kept.DeletionPolicy = pcapi.VMDiskKeep
			vm := f.createVM("web", withDisks(kept, diskOf("logs", "1Gi")))
			ready := waitReady(t, vm)
			t.Expect(ready.Status.Disks).To(Equal([]pcapi.VMDiskStatus{{Name: "data", Size: "20Gi", Type: "standard", DeletionPolicy: pcapi.VMDiskKeep}, {Name: "logs", Size: "1Gi", Type: "standard"}}))
			other := diskOf("logs", "1Gi")
			other.DeletionPolicy = pcapi.VMDiskKeep
			edit(t, vm, withDisks(diskOf("data", "20Gi"), other))
			t.Eventually(latest(vm)).Should(HaveField("Status.Disks", []pcapi.VMDiskStatus{{Name: "data", Size: "20Gi", Type: "standard"}, {Name: "logs", Size: "1Gi", Type: "standard", DeletionPolicy: pcapi.VMDiskKeep}}))
			t.Expect(env.Client.Delete(t.Context(), vm)).To(Succeed())
			t.Eventually(func() []string {
				entries := f.Ledger()
				return entries[len(entries)-1].KeptDisks
			}).Should(Equal([]string{"logs"}))
		},
		"an edit of a group keeps a disk and replaces the members: the disks of all of them are kept": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			disk := diskOf("data", "10Gi")
			g, _ := f.readyGroup("pool", 4, func(g *pcapi.VmGroup) { g.Spec.Disks = []pcapi.VMDisk{disk} })
			disk.DeletionPolicy = pcapi.VMDiskKeep
			edit(t, g, func(g *pcapi.VmGroup) { g.Spec.Disks, g.Spec.Template = []pcapi.VMDisk{disk}, "other" })
			t.Eventually(func() (kept []string) {
				for _, entry := range f.Ledger() {
					if entry.Op == mockcloud.OpDelete && entry.Final || entry.Op == mockcloud.OpGone {
						kept = append(kept, entry.KeptDisks...)
					}
				}
				return kept
			}).Should(Equal([]string{"data", "data", "data", "data"}))
		},
		"the members of a group get what happens to a disk without being replaced": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			disk := diskOf("data", "10Gi")
			g, members := f.readyGroup("pool", 2, func(g *pcapi.VmGroup) { g.Spec.Disks = []pcapi.VMDisk{disk} })
			disk.DeletionPolicy = pcapi.VMDiskKeep
			edit(t, g, func(g *pcapi.VmGroup) { g.Spec.Disks = []pcapi.VMDisk{disk} })
			for i := range members {
				t.Eventually(f.serverOf(&members[i])).Should(HaveField("Disks", []mockcloud.Disk{{Name: "data", Size: 10, Type: "standard", Keep: true}}))
			}
			t.Expect(f.createCalls()).To(Equal(2))
		},
		"the disk of a group grows: its members keep their servers": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			disks := func(size pcapi.VMDiskSize) func(*pcapi.VmGroup) {
				return func(g *pcapi.VmGroup) { g.Spec.Disks = []pcapi.VMDisk{diskOf("data", size)} }
			}
			g, members := f.readyGroup("pool", 2, disks("10Gi"))
			edit(t, g, disks("20Gi"))
			for i := range members {
				t.Eventually(f.serverOf(&members[i])).Should(HaveField("Disks", []mockcloud.Disk{{Name: "data", Size: 20, Type: "standard"}}))
			}
			t.Expect(f.createCalls()).To(Equal(2))
		},
		"a root disk and disks of types: created so, the root disk grows, and is never made smaller": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			vm := f.createVM("web", withRootDisk("20Gi", "fast"), withDisks(pcapi.VMDisk{Name: "data", Size: "1Gi", Type: "fast"}))
			ready := waitReady(t, vm)
			t.Expect(ready.Status.RootDisk).To(Equal(&pcapi.VMRootDiskStatus{Size: "20Gi", Type: "fast"}))
			t.Expect(ready.Status.Disks).To(Equal([]pcapi.VMDiskStatus{{Name: "data", Size: "1Gi", Type: "fast"}}))

			edit(t, vm, withRootDisk("30Gi", "fast"))
			t.Eventually(f.serverOf(ready)).Should(HaveField("RootDisk", &mockcloud.RootDisk{Size: 30, Type: "fast"}))
			waitReady(t, vm)

			server, err := f.serverOf(ready)()
			t.Expect(err).NotTo(HaveOccurred())
			server.RootDisk = &mockcloud.RootDisk{Size: 40, Type: "fast"}
			_, err = f.PutServer(server)
			t.Expect(err).NotTo(HaveOccurred())
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unsupported", "set spec.rootDisk.size to 40Gi"))
			edit(t, vm, withRootDisk("40Gi", "fast"))
			waitReady(t, vm)
			t.Expect(f.createCalls()).To(Equal(1))
		},
		"a type that the cloud does not have, and then one that it has: the VM says so, and is created with that": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			vm := f.createVM("web", withRootDisk("", "nowhere"))
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Rejected", `there is no type of disks "nowhere"`))
			edit(t, vm, withRootDisk("", "fast"))
			t.Expect(waitReady(t, vm).Status.RootDisk).To(Equal(&pcapi.VMRootDiskStatus{Size: "10Gi", Type: "fast"}))
		},
		"the root disk of a group grows: its members keep their servers": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			root := func(size pcapi.VMDiskSize) func(*pcapi.VmGroup) {
				return func(g *pcapi.VmGroup) { g.Spec.RootDisk = &pcapi.VMRootDisk{Size: size} }
			}
			g, members := f.readyGroup("pool", 2, root("10Gi"))
			edit(t, g, root("20Gi"))
			for i := range members {
				t.Eventually(f.serverOf(&members[i])).Should(HaveField("RootDisk", &mockcloud.RootDisk{Size: 20, Type: "standard"}))
			}
			t.Expect(f.createCalls()).To(Equal(2))
		},
		"the cloud lacks rootDisk: Unsupported, and nothing is sent": func(t *T) {
			f := newFixture(t, mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{mockcloud.WithRootDisk: false}})
			vm := f.createVM("web", withRootDisk("20Gi", ""))
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unsupported", "rootDisk"))
			t.Expect(f.createCalls()).To(BeZero())
		},
		"the cloud lacks the capability: Unsupported, and nothing is sent": func(t *T) {
			f := newFixture(t, mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{mockcloud.Disks: false}})
			vm := f.createVM("web", withDisks(diskOf("data", "20Gi")))
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unsupported", "disks"))
			t.Expect(f.createCalls()).To(BeZero())
		},
	}.run(t)
}
