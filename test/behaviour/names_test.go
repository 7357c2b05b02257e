package behaviour_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// prohibited returns a VM whose name its cloud prohibits, after the name check.
func prohibited(t *T) (*fixture, *pcapi.VM) {
	t.Helper()
	f := newFixture(t, mockcloud.Options{})
	vm := f.createVM("forbidden")
	t.Eventually(latest(vm)).Should(SatisfyAll(
		testkit.HaveCondition("NameChecked", metav1.ConditionFalse, "Prohibited", "forbidden"),
		testkit.HaveCondition("Created", metav1.ConditionFalse, "Pending"),
		testkit.HaveCondition("Ready", metav1.ConditionFalse, "Prohibited"),
		testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Prohibited"),
		HaveField("Status.State", pcapi.VMStateFailed),
		HaveField("Status.VMID", BeEmpty()),
		HaveField("Finalizers", BeEmpty()),
	))
	return f, vm
}

// checkCalls counts the name checks that were sent to the cloud.
func (f *fixture) checkCalls() int { return f.CountCalls("GET", "/check/{name}") }

func TestProhibitedName(t *testing.T) { prohibitedNames.run(t) }

var prohibitedNames = cases{
	"the object is edited and the cloud polled: the name is checked only once": func(t *T) {
		f, vm := prohibited(t)
		annotate(t, vm, "example.com/note", "unrelated")
		edit(t, vm, func(vm *pcapi.VM) { vm.Labels = map[string]string{"team": "blue"} })
		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.DeletionPolicy = pcapi.DeletionPolicyOrphan })
		t.Eventually(latest(vm)).Should(HaveField("Status.ObservedGeneration", BeEquivalentTo(2)), "the edit was reconciled")
		annotate(t, vm, pcapi.PausedAnnotation, "true")
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Paused"))
		annotate(t, vm, pcapi.PausedAnnotation, "")
		t.Eventually(latest(vm)).ShouldNot(testkit.HaveCondition("Reconciling", "", ""))
		f.waitForPolls(3)

		t.Expect(f.checkCalls()).To(Equal(1))
		t.Expect(f.createCalls()).To(BeZero(), "a create was sent for a prohibited name")
		t.Expect(get(t, vm)).To(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Prohibited"))
		t.Eventually(eventReasons(vm)).Should(Equal([]string{"Prohibited"}))
	},

	"the name is corrected: the VM is created": func(t *T) {
		f, vm := prohibited(t)
		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.VMName = "permitted" })

		vm = waitReady(t, vm)
		t.Expect(vm).To(SatisfyAll(
			testkit.HaveCondition("NameChecked", metav1.ConditionTrue, "Available", "permitted"),
			Not(testkit.HaveCondition("Stalled", "", "")),
		))
		t.Expect(f.serversNamed("permitted")).To(Equal([]string{vm.Status.VMID}))
		t.Expect(f.checkCalls()).To(Equal(2))
		t.Expect(f.createCalls()).To(Equal(1))
	},

	"a reconcile is requested: the name is checked again and used once the cloud allows it": func(t *T) {
		f, vm := prohibited(t)
		requestReconcile(t, vm)
		t.Eventually(f.checkCalls).Should(Equal(2), "the name is checked again")
		t.Expect(f.createCalls()).To(BeZero())

		t.Expect(f.SetBehaviour(mockcloud.Behaviour{ProhibitedNames: []string{}, Utilisation: "fixed:50"})).To(Succeed())
		requestReconcile(t, vm)
		waitReady(t, vm)
	},

	"the cloud is unreachable: the object is deleted at once since it cannot have a server": func(t *T) {
		f, vm := prohibited(t)
		f.Disconnect()
		t.Eventually(latest(f.object)).ShouldNot(testkit.BeReady())

		deleteObject(t, vm)
		t.Eventually(isGone(vm)).Should(BeTrue())
	},
}

// keepsForeignServer returns a case of a foreign server whose name a VM wants: it is not changed.
func keepsForeignServer(options mockcloud.Options) func(*T) {
	return func(t *T) {
		f := newFixture(t, options)
		foreign := f.putForeignServer("web", nil)
		f.waitForPolls(1)

		vm := f.createVM("web")
		t.Eventually(latest(vm)).Should(SatisfyAll(
			testkit.HaveCondition("NameChecked", metav1.ConditionFalse, "Taken", "web"),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Taken"),
			HaveField("Status.VMID", BeEmpty()),
		))
		f.waitForPolls(1)
		deleteObject(t, vm)
		t.Eventually(isGone(vm)).Should(BeTrue())

		t.Expect(f.serversNamed("web")).To(Equal([]string{foreign.ID}))
		t.Expect(f.createCalls()).To(BeZero())
		t.Expect(f.CountCalls("DELETE", "")).To(BeZero())
	}
}

func TestTakenName(t *testing.T) { takenNames.run(t) }

var takenNames = cases{
	"a foreign server has the name: it is neither adopted nor deleted":                 keepsForeignServer(mockcloud.Options{}),
	"a foreign server has the name on a core cloud: it is neither adopted nor deleted": keepsForeignServer(mockcloud.Options{Profile: mockcloud.Core}),

	"two objects want one name on a core cloud: the second stalls until the first is gone": func(t *T) {
		f := newFixture(t, mockcloud.Options{Profile: mockcloud.Core})
		first := f.readyVM("first", func(vm *pcapi.VM) { vm.Spec.VMName = "web" })

		second := f.createVM("second", func(vm *pcapi.VM) { vm.Spec.VMName = "web" })
		t.Eventually(latest(second)).Should(SatisfyAll(
			testkit.HaveCondition("NameChecked", metav1.ConditionFalse, "Taken", "another VM object"),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Taken"),
			HaveField("Status.VMID", BeEmpty()),
		))
		f.waitForPolls(2)
		t.Expect(get(t, second)).To(HaveField("Status.VMID", BeEmpty()))
		t.Expect(f.createCalls()).To(Equal(1))

		deleteObject(t, first)
		t.Eventually(isGone(first)).Should(BeTrue())
		requestReconcile(t, second)
		second = waitReady(t, second)
		t.Expect(second.Status.VMID).NotTo(Equal(first.Status.VMID))
		t.Expect(f.serversNamed("web")).To(Equal([]string{second.Status.VMID}))
	},

	"the create finds the name taken after the check: the VM stalls without a finalizer": func(t *T) {
		f := newFixture(t, mockcloud.Options{Profile: mockcloud.Core})
		f.addFault(mockcloud.Fault{Match: mockcloud.Match{Method: "POST", Nth: 1}, Status: 409, Body: `{"code":"nameTaken","detail":"too late"}`})
		vm := f.createVM("web")

		t.Eventually(latest(vm)).Should(SatisfyAll(
			testkit.HaveCondition("NameChecked", metav1.ConditionFalse, "Taken", "the name is in use"),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Taken"),
		))
		t.Expect(get(t, vm)).To(HaveField("Finalizers", BeEmpty()), "a server of this name does not belong to the VM")
		requestReconcile(t, vm)
		waitReady(t, vm)
	},

	"six objects want one name at the same time: exactly one gets it": func(t *T) {
		f := newFixture(t, mockcloud.Options{Profile: mockcloud.Core})
		var contenders []*pcapi.VM
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			contenders = append(contenders, f.createVM(name, func(vm *pcapi.VM) { vm.Spec.VMName = "web" }))
		}

		var winners []string
		for _, vm := range contenders {
			t.Eventually(latest(vm)).Should(Or(testkit.BeReady(), testkit.HaveCondition("NameChecked", metav1.ConditionFalse, "Taken")))
		}
		f.waitForPolls(2)
		for _, vm := range contenders {
			if id := get(t, vm).Status.VMID; id != "" {
				winners = append(winners, id)
			}
		}
		t.Expect(winners).To(HaveLen(1))
		t.Expect(f.serversNamed("web")).To(Equal(winners))
	},

	"the cloud allows equal names: each object has its own server": func(t *T) {
		f := newFixture(t, mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{mockcloud.UniqueNames: false}})
		twin := func(vm *pcapi.VM) { vm.Spec.VMName = "web" }
		first, second := f.readyVM("first", twin), f.readyVM("second", twin)

		t.Expect(first.Status.VMID).NotTo(Equal(second.Status.VMID))
		deleteObject(t, second)
		t.Eventually(isGone(second)).Should(BeTrue())
		t.Expect(f.serversNamed("web")).To(Equal([]string{first.Status.VMID}))
	},
}

func TestUncheckedName(t *testing.T) { uncheckedNames.run(t) }

var uncheckedNames = cases{
	"the name check fails: NameChecked is Unknown and the check is repeated until the cloud answers": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		id := f.addFault(mockcloud.Fault{Match: mockcloud.Match{Path: "/check/**"}, Status: 500})
		vm := f.createVM("web")

		t.Eventually(latest(vm)).Should(SatisfyAll(
			testkit.HaveCondition("NameChecked", metav1.ConditionUnknown, "CheckFailed"),
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable"),
		))
		t.Expect(f.createCalls()).To(BeZero())
		t.Expect(f.RemoveFault(id)).To(Succeed())
		waitReady(t, vm)
	},
}
