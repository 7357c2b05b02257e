package behaviour_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

func TestLabelsThatTheCloudDoesNotKeep(t *testing.T) {
	unkept := cases{}
	for name, quirks := range map[string]mockcloud.Quirks{"drops": {DropLabels: true}, "cuts": {CutLabels: 30}} {
		unkept["the cloud "+name+" labels: VM and Cloud say so, one server is created and not deleted"] = func(t *T) {
			f := newFixture(t, mockcloud.Options{Quirks: quirks})
			vm := f.createVM("web")
			t.Eventually(latest(vm)).Should(SatisfyAll(
				testkit.HaveCondition("Created", metav1.ConditionTrue, "Created"),
				testkit.HaveCondition("Stalled", metav1.ConditionTrue, "LabelsMissing", "set samplecontroller.k8s.io/uid to "+string(vm.UID)),
			))
			t.Eventually(latest(f.object)).Should(testkit.HaveCondition("Conformant", metav1.ConditionFalse, "LabelsNotKept", f.Servers()[0].ID))
			t.Eventually(eventReasons(vm)).Should(Equal([]string{"Created", "LabelsMissing"}))
			f.waitForPolls(2)
			deleteObject(t, vm)
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked", "did not keep the owner labels"))
			edit(t, vm, func(vm *pcapi.VM) { vm.Spec.DeletionPolicy = pcapi.DeletionPolicyOrphan })
			t.Eventually(isGone(vm)).Should(BeTrue())
			t.Expect(f.createdServers()).To(Equal(1))
			t.Expect(f.Servers()).To(HaveLen(1))
		}
	}
	unkept["the answer to the create is lost and the labels are cut: no second create is sent"] = func(t *T) {
		f := newFixture(t, mockcloud.Options{
			Quirks: mockcloud.Quirks{CutLabels: 30}, Capabilities: map[mockcloud.Capability]bool{mockcloud.Idempotency: false, mockcloud.UniqueNames: false},
		})
		f.addFault(mockcloud.Fault{Match: mockcloud.Match{Method: "POST", Path: "/servers", Nth: 1}, Reset: true, Answer: mockcloud.After})
		vm := f.createVM("web")
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "LabelsMissing"))
		f.waitForPolls(3)
		t.Expect(f.createCalls()).To(Equal(1))
	}
	unkept.run(t)
}
