package vsphere_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
)

func TestVMsOfAGroupRunOnDifferentHostsAsLongAsThereAreAny(tt *testing.T) {
	s := newSite(tt)
	apart := func(vm *pcapi.VM) {
		vm.Spec.AntiAffinity = &pcapi.VMAntiAffinity{Group: "db", Policy: pcapi.AntiAffinityRequired}
	}
	hosts := map[string]bool{}
	var vms []*pcapi.VM
	for i := range 3 {
		vm := s.vm(fmt.Sprintf("db-%d", i), apart)
		s.ready(vm)
		hosts[vm.Status.Host] = true
		vms = append(vms, vm)
	}
	s.Expect(hosts).To(HaveLen(3))

	surplus := s.vm("db-3", apart)
	s.Eventually(s.stored(surplus)).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, pcapi.UnschedulableReason, "no host can run the VM", "db-0 runs on "+vms[0].Status.Host))
	s.remove(vms[0])
	s.requestReconcile(surplus)
	s.ready(surplus)
	s.Expect(surplus.Status.Host).To(Equal(vms[0].Status.Host))
	s.Expect(s.vcenter.Rules()).To(HaveLen(1))
	s.remove(vms[1], vms[2], surplus)
	s.Expect(s.vcenter.Rules()).To(BeEmpty())
}
