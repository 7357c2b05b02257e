package behaviour_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// putForeignServer puts a server that the operator did not create into the cloud.
func (f *fixture) putForeignServer(name string, labels map[string]string) mockcloud.Server {
	f.t.Helper()
	server, err := f.PutServer(mockcloud.Server{Name: name, Labels: labels, CPU: 2, Memory: 4})
	f.t.Expect(err).NotTo(HaveOccurred())
	return server
}

func importServer(id string) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Spec.Import = &pcapi.VMImport{VMID: id} }
}

func observeOnly(vm *pcapi.VM) { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly }

func orphanOnDelete(vm *pcapi.VM) { vm.Spec.DeletionPolicy = pcapi.DeletionPolicyOrphan }

// haveOwnerLabels succeeds on labels that name a VM as the owner of the server.
func haveOwnerLabels(t *T, vm *pcapi.VM) types.GomegaMatcher {
	return SatisfyAll(
		HaveKeyWithValue("samplecontroller.k8s.io/uid", string(vm.UID)),
		HaveKeyWithValue("samplecontroller.k8s.io/cluster", clusterID(t)),
	)
}

// importRefused returns a case of an import that fails with a reason and changes
// nothing in the cloud. prepare returns the id to import.
func importRefused(reason, sentence string, prepare func(*T, *fixture) (id string)) func(*T) {
	return func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		id := prepare(t, f)
		creates := f.createCalls()
		vm := f.createVM("legacy", importServer(id))

		t.Eventually(latest(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, reason, sentence),
			testkit.HaveCondition("Created", metav1.ConditionFalse, reason),
			HaveField("Status.VMID", BeEmpty()),
		))
		deleteObject(t, vm)
		t.Eventually(isGone(vm)).Should(BeTrue())
		t.Expect([]int{f.createCalls(), f.CountCalls("PATCH", ""), f.CountCalls("DELETE", "")}).To(Equal([]int{creates, 0, 0}))
	}
}

func TestImportVM(t *testing.T) { importCases.run(t) }

var importCases = cases{
	"the server is off and its power state is Unmanaged: it is adopted and stays off": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		server := f.putForeignServer("legacy", nil)
		t.Expect(f.SetServerState(server.ID, mockcloud.StateStopped)).To(Succeed())
		vm := f.readyVM("legacy", importServer(server.ID), func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerUnmanaged })
		t.Expect(vm).To(testkit.HaveCondition("Ready", metav1.ConditionTrue, "Stopped"))
		f.waitForPolls(3)
		t.Expect(f.serverOf(vm)()).To(SatisfyAll(HaveField("State", mockcloud.StateStopped), HaveField("Labels", haveOwnerLabels(t, vm))))
		t.Expect(f.CountCalls("PATCH", "")).To(Equal(1), "the owner labels")
	},

	"the server exists: it is adopted without a create, keeps its labels and is owned from then on": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		server := f.putForeignServer("legacy", map[string]string{"team": "blue"})
		vm := f.readyVM("legacy", importServer(server.ID))

		t.Expect(vm).To(SatisfyAll(
			HaveField("Status.VMID", server.ID),
			testkit.HaveCondition("Created", metav1.ConditionTrue, "Imported"),
			testkit.HaveCondition("NameChecked", metav1.ConditionTrue, "Available"),
			HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(50))),
		))
		t.Expect(f.serverOf(vm)()).To(HaveField("Labels", SatisfyAll(haveOwnerLabels(t, vm), HaveKeyWithValue("team", "blue"))))
		t.Expect(f.createCalls()).To(BeZero())
		t.Expect(f.CountCalls("GET", "/check/{name}")).To(BeZero(), "its own server would make the name taken")

		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(8) })
		t.Eventually(f.serverOf(vm)).Should(HaveField("CPU", 8))
		deleteObject(t, vm)
		t.Eventually(isGone(vm)).Should(BeTrue())
		t.Expect(f.serversNamed("legacy")).To(BeEmpty())
	},

	"the server is on a core cloud: its id and name suffice": func(t *T) {
		f := newFixture(t, mockcloud.Options{Profile: mockcloud.Core})
		server := f.putForeignServer("legacy", nil)
		vm := f.readyVM("legacy", importServer(server.ID))

		t.Expect(vm).To(SatisfyAll(
			HaveField("Status.VMID", server.ID), testkit.HaveCondition("Created", metav1.ConditionTrue, "Imported")))
		t.Expect(f.createCalls()).To(BeZero())
	},

	"the server does not exist: the import is rejected": importRefused("Rejected", "check spec.import.vmId",
		func(*T, *fixture) string { return "5b7ff4f0-5cf9-4ac6-a1c2-3a3f3a4d2a10" }),
	"the server has another name: the import is rejected": importRefused("Rejected", `is named "elsewhere" in the cloud: set spec.vmname to that`,
		func(_ *T, f *fixture) string { return f.putForeignServer("elsewhere", nil).ID }),
	"another VM has the server: the import is ambiguous": importRefused("Ambiguous", "another VM object has this vmname or server",
		func(_ *T, f *fixture) string {
			return f.readyVM("first", func(vm *pcapi.VM) { vm.Spec.VMName = "legacy" }).Status.VMID
		}),
	"another cluster owns the server: the import is rejected": importRefused("Rejected", "carries the owner labels of another cluster",
		func(_ *T, f *fixture) string {
			return f.putForeignServer("legacy", map[string]string{
				"samplecontroller.k8s.io/uid": "another-uid", "samplecontroller.k8s.io/cluster": "another-cluster",
			}).ID
		}),
}

func TestObserveVM(t *testing.T) { observeCases.run(t) }

var observeCases = cases{
	"a VM is observed and then deleted: its status is shown and the server is not changed": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		server := f.putForeignServer("legacy", map[string]string{"team": "blue"})
		vm := f.readyVM("legacy", importServer(server.ID), observeOnly, func(vm *pcapi.VM) {
			vm.Spec.CPU, vm.Spec.PowerState = pcapi.Cores(16), pcapi.PowerOff
		})
		t.Expect(f.SetUtilisation(server.ID, 77)).To(Succeed())
		t.Eventually(latest(vm)).Should(HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(77))))
		t.Expect(vm).To(HaveField("Finalizers", BeEmpty()))
		deleteObject(t, vm)
		t.Eventually(isGone(vm)).Should(BeTrue())

		after, exists := f.Server(server.ID)
		t.Expect(exists).To(BeTrue())
		t.Expect(after).To(SatisfyAll(HaveField("Labels", server.Labels), HaveField("CPU", 2), HaveField("State", mockcloud.StateActive)))
		for _, method := range []string{"POST", "PATCH", "DELETE"} {
			t.Expect(f.CountCalls(method, "")).To(BeZero(), method)
		}
	},

	"managementPolicy becomes Managed: the server is adopted": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("legacy", importServer(f.putForeignServer("legacy", nil).ID), observeOnly)
		edit(t, vm, func(vm *pcapi.VM) {
			vm.Spec.ManagementPolicy, vm.Spec.CPU = pcapi.ManagementPolicyManaged, pcapi.Cores(8)
		})

		t.Eventually(f.serverOf(vm)).Should(SatisfyAll(HaveField("CPU", 8), HaveField("Labels", haveOwnerLabels(t, vm))))
		t.Eventually(latest(vm)).Should(testkit.BeReady())
		deleteObject(t, vm)
		t.Eventually(isGone(vm)).Should(BeTrue())
		t.Expect(f.serversNamed("legacy")).To(BeEmpty())
	},
}

func orphaned(options mockcloud.Options) func(*T) {
	return func(t *T) {
		f := newFixture(t, options)
		vm := f.readyVM("web", orphanOnDelete)
		deleteObject(t, vm)
		t.Eventually(isGone(vm)).Should(BeTrue())

		t.Expect(f.serverOf(vm)()).To(HaveField("Labels", BeEmpty()))
		t.Expect(f.CountCalls("DELETE", "")).To(BeZero())
		t.Eventually(eventReasons(vm)).Should(Equal([]string{"Created", "Orphaned"}))
		importer := f.readyVM("importer", importServer(vm.Status.VMID), func(vm *pcapi.VM) { vm.Spec.VMName = "web" })
		t.Expect(importer.Status.VMID).To(Equal(vm.Status.VMID))
	}
}

func TestOrphanVM(t *testing.T) { orphanCases.run(t) }

var orphanCases = cases{
	"deletionPolicy is Orphan: the server stays without owner labels and can be imported": orphaned(mockcloud.Options{}),
	"deletionPolicy is Orphan on a core cloud: the server stays and can be imported":      orphaned(mockcloud.Options{Profile: mockcloud.Core}),

	"the server lost its owner labels: the deletion is blocked until deletionPolicy is Orphan": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web")
		server, _ := f.Server(vm.Status.VMID)
		server.Labels = map[string]string{"team": "red"}
		_, err := f.PutServer(server)
		t.Expect(err).NotTo(HaveOccurred())
		f.waitForPolls(1)

		deleteObject(t, vm)
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked",
			"the cloud did not keep the owner labels", "set spec.deletionPolicy to Orphan"))
		edit(t, vm, orphanOnDelete)
		t.Eventually(isGone(vm)).Should(BeTrue())
		t.Expect(f.serverOf(vm)()).To(HaveField("Labels", Equal(map[string]string{"team": "red"})))
	},
}

func TestPauseVM(t *testing.T) { pauseCases.run(t) }

var pauseCases = cases{
	"a VM is paused: nothing is changed or deleted until it is resumed": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web")
		annotate(t, vm, pcapi.PausedAnnotation, "true")
		t.Eventually(latest(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Paused", "remove the annotation"), testkit.BeReady()))

		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff })
		f.waitForPolls(2)
		t.Expect(f.serverOf(vm)()).To(HaveField("State", mockcloud.StateActive))
		annotate(t, vm, pcapi.PausedAnnotation, "")
		t.Eventually(latest(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionTrue, "Stopped"), Not(testkit.HaveCondition("Reconciling", "", ""))))

		annotate(t, vm, pcapi.PausedAnnotation, "true")
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Paused"))
		deleteObject(t, vm)
		f.waitForPolls(2)
		t.Expect(f.serversNamed("web")).To(HaveLen(1))
		annotate(t, vm, pcapi.PausedAnnotation, "")
		t.Eventually(isGone(vm)).Should(BeTrue())
		t.Expect(f.serversNamed("web")).To(BeEmpty())
	},

	"a VM is paused from the start: nothing is created until it is resumed": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.createVM("web", func(vm *pcapi.VM) {
			vm.Annotations = map[string]string{pcapi.PausedAnnotation: "true"}
		})
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Paused"))
		f.waitForPolls(1)
		t.Expect(f.CountCalls("GET", "/check/{name}")).To(BeZero())
		t.Expect(f.createCalls()).To(BeZero())

		annotate(t, vm, pcapi.PausedAnnotation, "")
		waitReady(t, vm)
	},
}
