package behaviour_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// prohibited returns a VM with a name that its cloud prohibits, once that is known.
func prohibited(ctx SpecContext) (*site, *v1alpha1.VM) {
	GinkgoHelper()
	s := newSite(ctx, mockcloud.Options{})
	vm := s.create(ctx, "forbidden")
	Eventually(ctx, now(vm)).Should(SatisfyAll(
		testkit.HaveCondition("NameChecked", metav1.ConditionFalse, "Prohibited", "forbidden"),
		testkit.HaveCondition("Created", metav1.ConditionFalse, "Pending"),
		testkit.HaveCondition("Ready", metav1.ConditionFalse, "Prohibited"),
		testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Prohibited"),
		HaveField("Status.State", v1alpha1.VMStateFailed),
		HaveField("Status.VMID", BeEmpty()),
		HaveField("Finalizers", BeEmpty()),
	))
	return s, vm
}

// checks is how often leave to use a name was asked for.
func (s *site) checks() int { return s.CountCalls("GET", "/check/{name}") }

var prohibitedNames = theme{"a name that the cloud prohibits", cases{
	"is asked for once, whatever else happens to the object and however often the cloud is listed": func(ctx SpecContext) {
		s, vm := prohibited(ctx)
		annotate(ctx, vm, "example.com/note", "to whom it may concern")
		edit(ctx, vm, func(vm *v1alpha1.VM) { vm.Labels = map[string]string{"team": "blue"} })
		edit(ctx, vm, func(vm *v1alpha1.VM) { vm.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan })
		Eventually(ctx, now(vm)).Should(HaveField("Status.ObservedGeneration", BeEquivalentTo(2)), "the edit had a pass of its own")
		annotate(ctx, vm, v1alpha1.PausedAnnotation, "true")
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Paused"))
		annotate(ctx, vm, v1alpha1.PausedAnnotation, "")
		Eventually(ctx, now(vm)).ShouldNot(testkit.HaveCondition("Reconciling", "", ""))
		s.polls(ctx, 3)

		Expect(s.checks()).To(Equal(1))
		Expect(s.posts()).To(BeZero(), "a create was sent for a name that was refused")
		Expect(read(ctx, vm)).To(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Prohibited"))
		Expect(story(vm)(ctx)).To(Equal([]string{"Prohibited"}))
	},

	"can be corrected in place": func(ctx SpecContext) {
		s, vm := prohibited(ctx)
		edit(ctx, vm, func(vm *v1alpha1.VM) { vm.Spec.VMName = "permitted" })

		vm = untilReady(ctx, vm)
		Expect(vm).To(SatisfyAll(
			testkit.HaveCondition("NameChecked", metav1.ConditionTrue, "Available", "permitted"),
			Not(testkit.HaveCondition("Stalled", "", "")),
		))
		Expect(s.named("permitted")).To(Equal([]string{vm.Status.VMID}))
		Expect(s.checks()).To(Equal(2))
		Expect(s.posts()).To(Equal(1))
	},

	"is asked for again on request, and used once the cloud allows it": func(ctx SpecContext) {
		s, vm := prohibited(ctx)
		poke(ctx, vm)
		Eventually(ctx, s.checks).Should(Equal(2), "a request has the name checked again")
		Expect(s.posts()).To(BeZero())

		Expect(s.SetBehaviour(mockcloud.Behaviour{ProhibitedNames: []string{}, Utilisation: "fixed:50"})).To(Succeed())
		poke(ctx, vm)
		untilReady(ctx, vm)
	},

	"lets the object be deleted at once, even with the cloud away, since nothing of it can be there": func(ctx SpecContext) {
		s, vm := prohibited(ctx)
		s.unplug()
		Eventually(ctx, now(s.object)).ShouldNot(testkit.BeReady())

		remove(ctx, vm)
		Eventually(ctx, gone(vm)).Should(BeTrue())
	},
}}

// keepsToItself shows that a stranger's server stays what it is, though a VM wants its name.
func keepsToItself(options mockcloud.Options) func(SpecContext) {
	return func(ctx SpecContext) {
		s := newSite(ctx, options)
		stranger := s.stranger("web", nil)
		s.polls(ctx, 1)

		vm := s.create(ctx, "web")
		Eventually(ctx, now(vm)).Should(SatisfyAll(
			testkit.HaveCondition("NameChecked", metav1.ConditionFalse, "Taken", "web"),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Taken"),
			HaveField("Status.VMID", BeEmpty()),
		))
		s.polls(ctx, 1)
		remove(ctx, vm)
		Eventually(ctx, gone(vm)).Should(BeTrue())

		Expect(s.named("web")).To(Equal([]string{stranger.ID}))
		Expect(s.posts()).To(BeZero())
		Expect(s.CountCalls("DELETE", "")).To(BeZero())
	}
}

var takenNames = theme{"a name that is taken", cases{
	"is not taken over from a stranger, not even when the object goes":                          keepsToItself(mockcloud.Options{}),
	"is not taken over where it is all that tells servers apart, not even when the object goes": keepsToItself(mockcloud.Options{Profile: mockcloud.Core}),

	"stalls the second of two objects on a core cloud, which takes nothing over and follows once the first is gone": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Profile: mockcloud.Core})
		first := s.ready(ctx, "first", func(vm *v1alpha1.VM) { vm.Spec.VMName = "web" })

		second := s.create(ctx, "second", func(vm *v1alpha1.VM) { vm.Spec.VMName = "web" })
		Eventually(ctx, now(second)).Should(SatisfyAll(
			testkit.HaveCondition("NameChecked", metav1.ConditionFalse, "Taken", "another VM object"),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Taken"),
			HaveField("Status.VMID", BeEmpty()),
		))
		s.polls(ctx, 2)
		Expect(read(ctx, second)).To(HaveField("Status.VMID", BeEmpty()))
		Expect(s.posts()).To(Equal(1))

		remove(ctx, first)
		Eventually(ctx, gone(first)).Should(BeTrue())
		poke(ctx, second)
		second = untilReady(ctx, second)
		Expect(second.Status.VMID).NotTo(Equal(first.Status.VMID))
		Expect(s.named("web")).To(Equal([]string{second.Status.VMID}))
	},

	"is told as taken by the create that finds it so, though it was free when it was checked": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Profile: mockcloud.Core})
		s.fault(mockcloud.Fault{Match: mockcloud.Match{Method: "POST", Nth: 1}, Status: 409, Body: `{"code":"nameTaken","detail":"too late"}`})
		vm := s.create(ctx, "web")

		Eventually(ctx, now(vm)).Should(SatisfyAll(
			testkit.HaveCondition("NameChecked", metav1.ConditionFalse, "Taken", "too late"),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Taken"),
		))
		Expect(read(ctx, vm)).To(HaveField("Finalizers", BeEmpty()), "a server of this name is not the VM's")
		poke(ctx, vm)
		untilReady(ctx, vm)
	},

	"is given to one of many objects that want it at the same moment, and to no other": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Profile: mockcloud.Core})
		var rivals []*v1alpha1.VM
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			rivals = append(rivals, s.create(ctx, name, func(vm *v1alpha1.VM) { vm.Spec.VMName = "web" }))
		}

		var winners []string
		for _, vm := range rivals {
			Eventually(ctx, now(vm)).Should(Or(testkit.BeReady(), testkit.HaveCondition("NameChecked", metav1.ConditionFalse, "Taken")))
		}
		s.polls(ctx, 2)
		for _, vm := range rivals {
			if id := read(ctx, vm).Status.VMID; id != "" {
				winners = append(winners, id)
			}
		}
		Expect(winners).To(HaveLen(1))
		Expect(s.named("web")).To(Equal(winners))
	},

	"is shared where the cloud lets servers share it, each object with a server of its own": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{mockcloud.UniqueNames: false}})
		twin := func(vm *v1alpha1.VM) { vm.Spec.VMName = "web" }
		first, second := s.ready(ctx, "first", twin), s.ready(ctx, "second", twin)

		Expect(first.Status.VMID).NotTo(Equal(second.Status.VMID))
		remove(ctx, second)
		Eventually(ctx, gone(second)).Should(BeTrue())
		Expect(s.named("web")).To(Equal([]string{first.Status.VMID}))
	},
}}

var uncheckedNames = theme{"a name that cannot be checked", cases{
	"is neither available nor refused, and checked again until the cloud answers": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		id := s.fault(mockcloud.Fault{Match: mockcloud.Match{Path: "/check/**"}, Status: 500})
		vm := s.create(ctx, "web")

		Eventually(ctx, now(vm)).Should(SatisfyAll(
			testkit.HaveCondition("NameChecked", metav1.ConditionUnknown, "CheckFailed"),
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable"),
		))
		Expect(s.posts()).To(BeZero())
		Expect(s.RemoveFault(id)).To(Succeed())
		untilReady(ctx, vm)
	},
}}
