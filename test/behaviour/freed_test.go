package behaviour_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// handedOn returns a case of a VM that wants what another one has, which is deleted: it waits, with a message that contains
// these texts, and goes on when the other one is gone.
func handedOn(profile mockcloud.Profile, before, after func(f *fixture, vm *pcapi.VM), says ...string) func(*T) {
	return func(t *T) {
		f := newFixture(t, mockcloud.Options{Profile: profile}, func(c *pcapi.Cloud) { c.Spec.Imports = pcapi.ImportPolicyAny })
		beside := newFixture(t, mockcloud.Options{}, rarelyListed)
		first := f.readyVM("first", func(vm *pcapi.VM) { vm.Spec.VMName = "web"; before(f, vm) })
		annotate(t, first, pcapi.PausedAnnotation, "true")
		deleteObject(t, first)

		second := f.createVM("second", func(vm *pcapi.VM) {
			vm.Spec.VMName, vm.Spec.Import = "web", nil
			after(f, vm)
			if vm.Spec.Import != nil {
				vm.Spec.Import.VMID = first.Status.VMID
			}
		})
		wait := testkit.HaveCondition("Ready", metav1.ConditionFalse, "Progressing", "which is being deleted: waiting until that is gone")
		for _, text := range says {
			wait = SatisfyAll(wait, testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Progressing", text))
		}
		t.Eventually(latest(second)).Should(SatisfyAll(wait, Not(testkit.HaveCondition("Stalled", "", "")), HaveField("Status.State", pcapi.VMStatePending)))
		checks := f.checkCalls()
		f.waitForPolls(2)
		t.Expect(f.checkCalls()).To(Equal(checks), "nothing is asked meanwhile")

		annotate(t, first, pcapi.PausedAnnotation, "")
		if second.Spec.Import == nil { // an import waits for a listing
			t.Eventually(isGone(first)).Should(BeTrue())
			for _, name := range inTurn {
				beside.readyVM(name)
			}
			t.Expect(get(t, second)).To(testkit.BeReady(), "it went on before three that were created later, one after the other, are Ready")
		}
		waitReady(t, second)
		t.Expect(eventReasons(second)(t.Context())).NotTo(ContainElement(BeElementOf("Taken", "AddressInUse", "Ambiguous")), "it did not wait for a recheck")
		t.Expect(isGone(first)(t.Context())).To(BeTrue())
		t.Expect(f.serversNamed(second.Spec.VMName)).To(HaveLen(1))
	}
}

func unchanged(*fixture, *pcapi.VM) {}

func elsewhere(f *fixture, vm *pcapi.VM) { vm.Namespace = newNamespace(f.t, nil) }

func keepsItsServer(_ *fixture, vm *pcapi.VM) { vm.Spec.DeletionPolicy = pcapi.DeletionPolicyOrphan }

func imported(_ *fixture, vm *pcapi.VM) { vm.Spec.Import = &pcapi.VMImport{} }

func TestWhatVMHasThatIsBeingDeletedIsAwaited(t *testing.T) {
	cases{
		"the name, in one namespace":                         handedOn("", unchanged, unchanged, `the name "web" is still that of VM "first"`),
		"the name, in one namespace, on a core cloud":        handedOn(mockcloud.Core, unchanged, unchanged, `the name "web" is still that of VM "first"`),
		"the name, in another namespace, which is not named": handedOn("", unchanged, elsewhere, `is still that of a VM object of another namespace`),
		"the name, in another namespace, on a core cloud":    handedOn(mockcloud.Core, unchanged, elsewhere, `is still that of a VM object of another namespace`),
		"the server that is to be imported":                  handedOn("", keepsItsServer, imported, `is still that of VM "first"`),
		"the server that is to be imported, on a core cloud": handedOn(mockcloud.Core, keepsItsServer, imported, `is still that of VM "first"`),
		"a static address": handedOn("", func(f *fixture, vm *pcapi.VM) {
			f.readyNetwork("net", func(n *pcapi.Network) { n.Spec.CIDR, n.Spec.Gateway = "10.1.0.0/24", "10.1.0.1" })
			on("net", "10.1.0.77")(vm)
		}, func(_ *fixture, vm *pcapi.VM) {
			vm.Spec.VMName = "db"
			on("net", "10.1.0.77")(vm)
		}, `spec.network.interfaces[on-net].addresses: 10.1.0.77 on Network "net" is still that of VM "first"`),
	}.run(t)
}
