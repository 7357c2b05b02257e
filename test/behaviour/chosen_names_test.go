package behaviour_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

func TestNamesThatTheCloudChooses(t *testing.T) {
	chosen := cases{}
	for name, options := range map[string]mockcloud.Options{
		"adds a domain":          {Quirks: mockcloud.Quirks{DomainNames: true}},
		"cuts names":             {Quirks: mockcloud.Quirks{CutNames: 5}},
		"decomposes names":       {Quirks: mockcloud.Quirks{DecomposedNames: true}},
		"changes case":           {Quirks: mockcloud.Quirks{NormalizeNames: true}},
		"core, adds a domain":    {Profile: mockcloud.Core, Quirks: mockcloud.Quirks{DomainNames: true}},
		"core, decomposes names": {Profile: mockcloud.Core, Quirks: mockcloud.Quirks{DecomposedNames: true}},
	} {
		chosen["the cloud "+name+": the VM is Ready, a later name is drift, and the server is deleted"] = func(t *T) {
			f := newFixture(t, options)
			vm := f.readyVM("web", func(vm *pcapi.VM) { vm.Spec.VMName = "Web-caf\u00e9" })
			f.waitForPolls(2)
			t.Expect(get(t, vm)).To(testkit.BeReady())
			t.Expect(f.SetQuirks(mockcloud.Quirks{})).To(Succeed())
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Drift", vm.Status.NameInCloud))
			t.Expect(f.SetQuirks(options.Quirks)).To(Succeed())
			t.Eventually(latest(vm)).Should(testkit.BeReady())
			deleteObject(t, vm)
			t.Eventually(isGone(vm)).Should(BeTrue())
			t.Expect(f.effects()).To(HaveExactElements(mockcloud.OpCreate, mockcloud.OpDelete))
		}
	}
	chosen["the cloud adds a domain: a group is ready, and leaves nothing"] = func(t *T) {
		f := newFixture(t, mockcloud.Options{Quirks: mockcloud.Quirks{DomainNames: true}})
		g, _ := f.readyGroup("web", 3)
		t.Expect(g.Status.Phase).To(Equal(pcapi.VmGroupRunning))
		deleteObject(t, g)
		t.Eventually(isGone(g)).Should(BeTrue())
		t.Eventually(f.Servers).Should(BeEmpty())
		t.Expect(f.createdServers()).To(Equal(3))
	}
	chosen.run(t)
}
