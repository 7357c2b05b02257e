package behaviour_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

const fleet = 20

// listingOutage shows that a listing which cannot be used leaves all as it is known.
func listingOutage(fault mockcloud.Fault) func(SpecContext) {
	return func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		one, two := s.ready(ctx, "one"), s.ready(ctx, "two")
		fault.Match = mockcloud.Match{Method: "GET", Path: "/servers"}
		id := s.fault(fault)

		Eventually(ctx, now(s.object)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, ""))
		Expect(read(ctx, s.object)).To(testkit.HaveCondition("Braked", metav1.ConditionFalse, ""))
		Expect(read(ctx, one)).To(testkit.BeReady())
		remove(ctx, two)
		Expect(s.RemoveFault(id)).To(Succeed())
		nudge(ctx, s.object)
		Eventually(ctx, gone(two)).Should(BeTrue())
		Expect(read(ctx, one)).To(testkit.BeReady())
		Expect(s.named("one")).To(Equal([]string{one.Status.VMID}))
	}
}

var outages = theme{"an outage of the cloud", cases{
	"is written to one Cloud and to none of its VMs, storms nothing, and passes without a herd": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		var vms []*v1alpha1.VM
		for n := range fleet {
			vms = append(vms, s.create(ctx, fmt.Sprintf("web-%d", n)))
		}
		for _, vm := range vms {
			untilReady(ctx, vm)
		}
		s.polls(ctx, 2)
		written := len(s.writes())
		s.ResetCalls()

		address := s.unplug()
		Eventually(ctx, now(s.object)).Should(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unreachable", "connection refused"),
			testkit.HaveCondition("Reconciling", metav1.ConditionTrue, ""),
		))
		nudge(ctx, s.object)
		poke(ctx, vms[0])
		nudge(ctx, s.object)
		Consistently(ctx, func() []string { return s.writes()[written:] }, "2s", "200ms").
			Should(HaveEach(ContainSubstring("/clouds/"+s.object.Name)), "an outage is news of the Cloud, not of its VMs")
		Expect(s.writes()[written:]).To(HaveLen(1))
		Expect(read(ctx, vms[1])).To(testkit.BeReady(), "the last that was known of a VM stays")

		s.plug(address)
		nudge(ctx, s.object)
		Eventually(ctx, now(s.object)).Should(testkit.BeReady())
		s.polls(ctx, 2)
		Expect(s.writes()[written:]).To(And(HaveLen(2), HaveEach(ContainSubstring("/clouds/"+s.object.Name))))
		Expect(s.CountCalls("", "/servers/{id}")).To(BeZero(), "the listing tells of every server")
	},

	"ends by itself for all who wait: the Cloud looks again and wakes them": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		old := s.ready(ctx, "old")
		s.SetUnavailable(true)
		var vms []*v1alpha1.VM
		for n := range fleet {
			vms = append(vms, s.create(ctx, fmt.Sprintf("web-%d", n)))
		}
		remove(ctx, old)
		for _, vm := range vms {
			Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable"))
		}
		Expect(s.posts()).To(Equal(1))

		s.SetUnavailable(false)
		for _, vm := range vms {
			untilReady(ctx, vm)
		}
		Eventually(ctx, gone(old)).Should(BeTrue())
		Expect(s.Servers()).To(HaveLen(fleet))
	},

	"ends no asking for the use of VMs where the listing does not tell it": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Profile: mockcloud.Core})
		vm := s.ready(ctx, "web")
		Expect(s.SetUtilisation(vm.Status.VMID, 50)).To(Succeed())
		Eventually(ctx, now(vm)).Should(HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(50))))

		address := s.unplug()
		Eventually(ctx, now(s.object)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unreachable"))
		annotate(ctx, vm, v1alpha1.PausedAnnotation, "true")
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Paused"))
		annotate(ctx, vm, v1alpha1.PausedAnnotation, "")
		Eventually(ctx, now(vm)).Should(testkit.BeReady())

		s.plug(address)
		nudge(ctx, s.object)
		Eventually(ctx, now(s.object)).Should(testkit.BeReady())
		Expect(s.SetUtilisation(vm.Status.VMID, 88)).To(Succeed())
		Eventually(ctx, now(vm)).Should(HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(88))))
	},

	"of the listing by an error leaves what is known alone":            listingOutage(mockcloud.Fault{Status: 500}),
	"of the listing by a portal leaves what is known alone":            listingOutage(mockcloud.Fault{Status: 200, ContentType: "text/html", Body: "<html>log in</html>"}),
	"of the listing by a page cut short leaves what is known alone":    listingOutage(mockcloud.Fault{Truncate: &mockcloud.Truncation{Keep: 20}}),
	"of the listing by nulls leaves what is known alone":               listingOutage(mockcloud.Fault{Corrupt: mockcloud.CorruptNulls}),
	"of the listing by wrong types leaves what is known alone":         listingOutage(mockcloud.Fault{Corrupt: mockcloud.CorruptTypes}),
	"of the listing by a marker that loops leaves what is known alone": listingOutage(mockcloud.Fault{List: &mockcloud.ListFault{Loop: true}}),
	"of the listing by a redirect leaves what is known alone":          listingOutage(mockcloud.Fault{Redirect: "https://elsewhere.example.com/servers"}),
	"of the listing by too large a body leaves what is known alone":    listingOutage(mockcloud.Fault{HugeBytes: 64 << 20}),
	"of the listing by too deep a body leaves what is known alone":     listingOutage(mockcloud.Fault{Depth: 100_000}),
}}

// writes are the operator's, to objects of the site and to its Cloud, events apart.
func (s *site) writes() []string {
	var found []string
	for _, write := range operator.Writes.To("") {
		ours := strings.Contains(write, "/namespaces/"+s.namespace+"/") || strings.Contains(write, "/clouds/"+s.object.Name)
		if ours && !strings.Contains(write, "/events") {
			found = append(found, write)
		}
	}
	return found
}
