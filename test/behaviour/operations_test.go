package behaviour_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// operating returns the options of a cloud whose changes of servers take d.
func operating(d time.Duration) mockcloud.Options {
	return mockcloud.Options{
		Capabilities: map[mockcloud.Capability]bool{mockcloud.Operations: true},
		Behaviour:    mockcloud.Behaviour{OperationTime: mockcloud.Duration(d)},
	}
}

func worksOn(kind pcapi.VMOperationKind) types.GomegaMatcher {
	return HaveField("Status.Operation", HaveValue(SatisfyAll(HaveField("Kind", kind), HaveField("ID", Not(BeEmpty())))))
}

func restartAllowed(vm *pcapi.VM) { vm.Spec.UpdatePolicy = pcapi.UpdatePolicyRestartAllowed }

var operationCases = cases{
	"changes take time: the status has the operation, and then none": func(t *T) {
		f := newFixture(t, operating(time.Hour))
		vm := f.createVM("web")
		t.Eventually(latest(vm)).Should(SatisfyAll(worksOn(pcapi.VMOperationCreate), HaveField("Status.State", pcapi.VMStateCreating),
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "Creating")))
		t.Expect(f.EndOperations()).To(Succeed())
		vm = waitReady(t, vm)
		t.Expect(vm.Status.Operation).To(BeNil())

		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(4) })
		t.Eventually(latest(vm)).Should(worksOn(pcapi.VMOperationUpdate))
		t.Expect(f.EndOperations()).To(Succeed())
		vm = waitReady(t, vm)
		t.Expect(vm.Status.Operation).To(BeNil())

		deleteObject(t, vm)
		t.Eventually(latest(vm)).Should(SatisfyAll(worksOn(pcapi.VMOperationDelete), testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Requested")))
		t.Expect(f.EndOperations()).To(Succeed())
		t.Eventually(isGone(vm)).Should(BeTrue())
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpUpdate, mockcloud.OpDelete}))
		t.Expect(f.createCalls()).To(Equal(1))
	},

	"a VM is deleted while it is created: its server is deleted after the create": func(t *T) {
		f := newFixture(t, operating(time.Hour))
		vm := f.createVM("web")
		t.Eventually(latest(vm)).Should(worksOn(pcapi.VMOperationCreate))
		deleteObject(t, vm)
		t.Eventually(latest(vm)).Should(HaveField("DeletionTimestamp", Not(BeNil())))
		f.waitForPolls(2)
		t.Expect(f.EndOperations()).To(Succeed())
		t.Eventually(latest(vm)).Should(worksOn(pcapi.VMOperationDelete))
		t.Expect(f.EndOperations()).To(Succeed())
		t.Eventually(isGone(vm)).Should(BeTrue())
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpDelete}))
	},

	"the create of a VM fails later: the VM has the reason of the cloud, and is created once that is over": func(t *T) {
		options := operating(3 * time.Second)
		options.FailOperations = "web"
		f := newFixture(t, options)
		vm := f.createVM("web")
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "QuotaExceeded"))
		t.Expect(f.Servers()).To(BeEmpty())
		healed := f.Behaviour()
		healed.FailOperations = ""
		t.Expect(f.SetBehaviour(healed)).To(Succeed())
		requestReconcile(t, vm)
		waitReady(t, vm)
		t.Expect(f.serversNamed("web")).To(HaveLen(1))
	},

	"more creates than workers take long: the cloud works on all of them at the same time": func(t *T) {
		const replicas = 40
		f := newFixture(t, operating(time.Hour))
		g := f.createGroup("web", replicas)
		t.Eventually(membersOf(g)).Should(SatisfyAll(HaveLen(replicas), HaveEach(worksOn(pcapi.VMOperationCreate))))
		t.Expect(f.EndOperations()).To(Succeed())
		t.Eventually(latest(g)).Should(testkit.BeReady())
		t.Expect(f.createCalls()).To(Equal(replicas))
	},
}

func TestOperations(t *testing.T) { operationCases.run(t) }

var resizeStoppedCases = cases{
	"updatePolicy is NoRestart: the VM stalls, and the server runs on": func(t *T) {
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{ResizeStopped: true}})
		vm := f.readyVM("web")
		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(4) })
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "NeedsRestart"))
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate}))
		edit(t, vm, restartAllowed)
		t.Eventually(f.serverOf(vm)).Should(SatisfyAll(HaveField("CPU", 4), HaveField("State", mockcloud.StateActive)))
		waitReady(t, vm)
	},

	"updatePolicy is RestartAllowed and changes are operations: the server is stopped, changed and started": func(t *T) {
		options := operating(time.Second)
		options.ResizeStopped = true
		f := newFixture(t, options)
		vm := f.readyVM("web", restartAllowed)
		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(4) })
		t.Eventually(f.serverOf(vm)).Should(SatisfyAll(HaveField("CPU", 4), HaveField("State", mockcloud.StateActive)))
		waitReady(t, vm)
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpUpdate, mockcloud.OpUpdate, mockcloud.OpUpdate}))
	},

	"the cpu of a group changes: members are restarted in place, as many as maxUnavailable allows": func(t *T) {
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{ResizeStopped: true}})
		g, vms := f.readyGroup("web", 3, rolling(1, 0))
		f.neverFewer(2, func() {
			edited := edit(t, g, func(g *pcapi.VmGroup) { g.Spec.CPU = pcapi.Cores(4) })
			t.Eventually(latest(g)).Should(beUpdated(edited))
		})
		for i := range vms {
			t.Expect(f.serverOf(&vms[i])()).To(SatisfyAll(HaveField("CPU", 4), HaveField("State", mockcloud.StateActive)))
		}
		t.Expect(f.createdServers()).To(Equal(3))
	},
}

func TestResizeOfStoppedServers(t *testing.T) { resizeStoppedCases.run(t) }
