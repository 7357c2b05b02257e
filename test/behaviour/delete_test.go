package behaviour_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// deletedByKubectl shows what is in the ledger when kubectl delete returns, and what was told.
func deletedByKubectl(options mockcloud.Options, effects []mockcloud.Op, told []string) func(SpecContext) {
	return func(ctx SpecContext) {
		s := newSite(ctx, options)
		vm := s.ready(ctx, "web")

		kubectl(ctx, "", "delete", "vm", "web", "--namespace", s.namespace)

		Expect(s.effects()).To(Equal(effects))
		Expect(s.named("web")).To(BeEmpty())
		Expect(gone(vm)(ctx)).To(BeTrue())
		Eventually(ctx, story(vm)).Should(Equal(told))
	}
}

// deletedAcross shows a deletion that begins in an outage.
func deletedAcross(outage func(*site) (over func())) func(SpecContext) {
	return func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.ready(ctx, "web")
		over := outage(s)

		remove(ctx, vm)
		Eventually(ctx, now(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Deleting", metav1.ConditionTrue, "WaitingForCloud"),
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable"),
		))
		Eventually(ctx, now(s.object)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unreachable"))
		Expect(s.named("web")).To(HaveLen(1))

		over()
		nudge(ctx, s.object)
		Eventually(ctx, gone(vm)).Should(BeTrue())
		Expect(s.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpDelete}))
	}
}

// deletedAgainst shows a deletion of which the cloud does not say that it is done.
func deletedAgainst(times int, fault mockcloud.Fault) func(SpecContext) {
	return func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.ready(ctx, "web")
		fault.Match = mockcloud.Match{Method: "DELETE", Count: times}
		s.fault(fault)

		remove(ctx, vm)
		Eventually(ctx, gone(vm)).Should(BeTrue())
		Expect(s.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpDelete}))
	}
}

var deletions = theme{"deleting a VM", cases{
	"lets kubectl delete return only once the server is gone": deletedByKubectl(mockcloud.Options{},
		[]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpDelete}, []string{"Created", "Deleted"}),
	"lets kubectl delete return only once a core cloud's server is gone": deletedByKubectl(mockcloud.Options{Profile: mockcloud.Core},
		[]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpDelete}, []string{"Created", "Deleted"}),
	"lets kubectl delete return only once the server is gone that the cloud takes its time over": deletedByKubectl(mockcloud.Options{
		Behaviour: mockcloud.Behaviour{DeleteTime: mockcloud.Duration(2 * testkit.PollInterval)},
	}, []mockcloud.Op{mockcloud.OpCreate, mockcloud.OpDelete, mockcloud.OpGone}, []string{"Created", "Deleted"}),

	"waits while the cloud refuses every call, says so, and completes when it is back": deletedAcross(func(s *site) func() {
		s.SetUnavailable(true)
		return func() { s.SetUnavailable(false) }
	}),
	"waits while nobody is at the cloud's address, says so, and completes when it is back": deletedAcross(func(s *site) func() {
		address := s.unplug()
		return func() { s.plug(address) }
	}),

	"survives an answer that is lost":            deletedAgainst(4, mockcloud.Fault{Reset: true, Answer: mockcloud.After}),
	"survives a request that is lost":            deletedAgainst(4, mockcloud.Fault{Reset: true}),
	"survives a failure that did it":             deletedAgainst(4, mockcloud.Fault{Status: 500, Answer: mockcloud.After}),
	"survives a failure":                         deletedAgainst(4, mockcloud.Fault{Status: 502}),
	"survives a server that is busy for a while": deletedAgainst(2, mockcloud.Fault{Status: 409, Body: `{"code":"invalidState"}`}),
	"survives a proxy without a cloud behind it": deletedAgainst(2, mockcloud.Fault{
		Status: 404, ContentType: "text/html", Body: "<html>no backend</html>",
	}),

	"removes the server of a create that was under way, though it comes late": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		held := s.fault(mockcloud.Fault{Match: mockcloud.Match{Method: "POST", Path: "/servers"}, Hold: true})
		vm := s.create(ctx, "web")
		Expect(s.WaitHeld(ctx, held, 1)).To(Succeed())

		remove(ctx, vm)
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Requested"))
		Expect(s.RemoveFault(held)).To(Succeed())

		Eventually(ctx, gone(vm)).Should(BeTrue())
		Expect(s.effects()).To(HaveExactElements(mockcloud.OpCreate, mockcloud.OpDelete))
	},

	"makes room for an object of the same name at once, whose server alone lives": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Behaviour: mockcloud.Behaviour{DeleteTime: mockcloud.Duration(testkit.PollInterval)}})
		old := s.ready(ctx, "web")

		remove(ctx, old)
		Eventually(ctx, gone(old)).Should(BeTrue())
		fresh := s.ready(ctx, "web")

		Expect(fresh.UID).NotTo(Equal(old.UID))
		Expect(fresh.Status.VMID).NotTo(Equal(old.Status.VMID))
		Expect(s.named("web")).To(Equal([]string{fresh.Status.VMID}))
	},

	"is done at once for a server that is gone already": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.ready(ctx, "web")
		Expect(s.DeleteServer(vm.Status.VMID)).To(Succeed())

		remove(ctx, vm)
		Eventually(ctx, gone(vm)).Should(BeTrue())
	},

	"is done at once for a VM whose Cloud never was": func(ctx SpecContext) {
		vm := testkit.VM(newNamespace(ctx, nil), "web", func(vm *v1alpha1.VM) { vm.Spec.CloudRef = &v1alpha1.CloudReference{Name: "cloud-nowhere"} })
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable"))

		remove(ctx, vm)
		Eventually(ctx, gone(vm)).Should(BeTrue())
	},

	"puts a finalizer that was stripped by hand back, so that the server still goes before the object": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.ready(ctx, "web")
		finalizers := vm.Finalizers
		Expect(finalizers).NotTo(BeEmpty())
		s.polls(ctx, 2)

		edit(ctx, vm, func(vm *v1alpha1.VM) { vm.Finalizers = nil })
		Eventually(ctx, now(vm)).Should(HaveField("Finalizers", Equal(finalizers)))

		remove(ctx, vm)
		Eventually(ctx, gone(vm)).Should(BeTrue())
		Expect(s.named("web")).To(BeEmpty())
	},
}}
