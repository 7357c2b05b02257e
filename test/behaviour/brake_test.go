package behaviour_test

import (
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// herd returns four VMs at rest.
func herd(ctx SpecContext) (*site, []*v1alpha1.VM) {
	GinkgoHelper()
	s := newSite(ctx, mockcloud.Options{})
	var vms []*v1alpha1.VM
	for _, name := range []string{"a", "b", "c", "d"} {
		vms = append(vms, s.create(ctx, name))
	}
	for i := range vms {
		vms[i] = untilReady(ctx, vms[i])
	}
	s.polls(ctx, 2)
	return s, vms
}

var brakes = theme{"servers that vanish in number", cases{
	"from a listing that is empty, put the brake on, and nothing is created or deleted until it is acknowledged": func(ctx SpecContext) {
		s, vms := herd(ctx)
		empty := s.fault(mockcloud.Fault{Match: mockcloud.Match{Method: "GET", Path: "/servers"}, List: &mockcloud.ListFault{Empty: true}})
		Eventually(ctx, now(s.object)).Should(SatisfyAll(
			testkit.HaveCondition("Braked", metav1.ConditionTrue, "ServersVanished", "lacks 4 servers", "kubectl annotate cloud "+s.object.Name),
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "ServersVanished"),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "ServersVanished"),
		))
		fresh := s.create(ctx, "fresh")
		remove(ctx, vms[0])
		Eventually(ctx, now(fresh)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Braked", "until it is acknowledged"))
		Eventually(ctx, now(vms[0])).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked"))

		By("nor when the listing is whole again, for somebody is to look first")
		Expect(s.RemoveFault(empty)).To(Succeed())
		s.hurry(ctx)
		poke(ctx, fresh)
		poke(ctx, vms[0])
		annotate(ctx, s.object, v1alpha1.AcknowledgeAnnotation, "some-other-snapshot")
		s.hurry(ctx)
		Expect(s.posts()).To(Equal(4))
		Expect(s.CountCalls("DELETE", "")).To(BeZero())
		Expect(read(ctx, s.object)).To(testkit.HaveCondition("Braked", metav1.ConditionTrue, ""))
		for _, vm := range vms[1:] {
			Expect(read(ctx, vm)).To(SatisfyAll(testkit.BeReady(), HaveField("Status.State", v1alpha1.VMStateRunning)))
		}

		By("and go on as the message says")
		acknowledge(ctx, s)
		untilReady(ctx, fresh)
		Eventually(ctx, gone(vms[0])).Should(BeTrue())
		Eventually(ctx, now(s.object)).Should(SatisfyAll(testkit.BeReady(), testkit.HaveCondition("Braked", metav1.ConditionFalse, "Released")))
	},

	"for good, put the brake on, and are told as Lost once that is acknowledged": func(ctx SpecContext) {
		s, vms := herd(ctx)
		Expect(s.DeleteServer(vms[0].Status.VMID)).To(Succeed())
		Expect(s.DeleteServer(vms[1].Status.VMID)).To(Succeed())
		Eventually(ctx, now(s.object)).Should(testkit.HaveCondition("Braked", metav1.ConditionTrue, "ServersVanished", "lacks 2 servers"))

		s.hurry(ctx)
		Expect(read(ctx, vms[0])).To(testkit.BeReady(), "nobody has looked yet")
		acknowledge(ctx, s)
		for _, vm := range vms[:2] {
			Eventually(ctx, now(vm)).Should(HaveField("Status.State", v1alpha1.VMStateLost))
		}
		s.hurry(ctx)
		Expect(read(ctx, s.object)).To(testkit.HaveCondition("Braked", metav1.ConditionFalse, "Released"))
		Expect(s.posts()).To(Equal(4))
	},
}}

var command = regexp.MustCompile(`kubectl annotate cloud (\S+) --overwrite (\S+)=(\S+)$`)

// acknowledge runs the command that the Braked condition names.
func acknowledge(ctx SpecContext, s *site) {
	GinkgoHelper()
	braked := meta.FindStatusCondition(read(ctx, s.object).Status.Conditions, v1alpha1.BrakedCondition)
	words := command.FindStringSubmatch(braked.Message)
	Expect(words).NotTo(BeNil(), "the message names a command: %s", braked.Message)
	kubectl(ctx, "", "annotate", "cloud", words[1], "--overwrite", words[2]+"="+words[3])
}
