package behaviour_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

var clouds = theme{"a Cloud", cases{
	"tells what its cloud can do": func(ctx SpecContext) {
		extended, core := newSite(ctx, mockcloud.Options{}), newSite(ctx, mockcloud.Options{Profile: mockcloud.Core})

		Expect(read(ctx, extended.object).Status.Capabilities).To(ContainElements("idempotency", "labels", "uniqueNames", "bulkStatus"))
		Expect(read(ctx, core.object).Status.Capabilities).To(Equal([]string{"uniqueNames"}), "which nobody but its spec says")
		bare := newSite(ctx, mockcloud.Options{Profile: mockcloud.Core}, func(c *v1alpha1.Cloud) { c.Spec.REST = &v1alpha1.RESTCloud{UniqueNames: new(false)} })
		Expect(read(ctx, bare.object).Status.Capabilities).To(BeEmpty())
	},

	"asks for the use of each VM only where the listing does not tell it": func(ctx SpecContext) {
		extended, core := newSite(ctx, mockcloud.Options{}), newSite(ctx, mockcloud.Options{Profile: mockcloud.Core})
		for _, s := range []*site{extended, core} {
			vm := s.ready(ctx, "web")
			Expect(s.SetUtilisation(vm.Status.VMID, 61)).To(Succeed())
			Eventually(ctx, now(vm)).Should(HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(61))))
			s.ResetCalls()
			s.polls(ctx, 3)
		}
		Expect(extended.CountCalls("", "/servers/{id}/status")).To(BeZero())
		Expect(core.CountCalls("GET", "/servers/{id}/status")).To(BeNumerically("~", 3, 1), "once a poll interval")
		Expect(core.CountCalls("", "/servers/{id}")).To(BeZero())
	},

	"is not deleted while VMs refer to it, says so, and goes when the last is gone": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.ready(ctx, "web")

		remove(ctx, s.object)
		Eventually(ctx, now(s.object)).Should(SatisfyAll(
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "InUse", "VMs and Networks that refer to this Cloud: 1; delete them first"),
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "InUse"),
		))
		Expect(s.named("web")).To(HaveLen(1))
		remove(ctx, vm)
		Eventually(ctx, gone(vm)).Should(BeTrue())
		Expect(s.named("web")).To(BeEmpty(), "its VMs can still be deleted")
		nudge(ctx, s.object)
		Eventually(ctx, gone(s.object)).Should(BeTrue())
	},

	"is used by the namespaces that it allows, and by no other": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{}, func(c *v1alpha1.Cloud) {
			c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"cloud": "yes"}}
		})
		denied := s.create(ctx, "web")
		Eventually(ctx, now(denied)).Should(SatisfyAll(
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "CloudUnavailable", `namespace "`+s.namespace+`" may not use Cloud "`+s.object.Name+`"`),
			testkit.HaveCondition("Created", metav1.ConditionFalse, "Pending"),
		))
		s.namespace = newNamespace(ctx, map[string]string{"cloud": "yes"})
		s.ready(ctx, "allowed")
		Expect(s.named("web")).To(BeEmpty())
		remove(ctx, denied)
		Eventually(ctx, gone(denied)).Should(BeTrue())
	},

	"lets a VM go whose namespace is not allowed any more": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.ready(ctx, "web")
		edit(ctx, s.object, func(c *v1alpha1.Cloud) {
			c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"cloud": "yes"}}
		})
		poke(ctx, vm)
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "CloudUnavailable"))
		Expect(read(ctx, vm)).To(HaveField("Status.VMID", vm.Status.VMID))

		remove(ctx, vm)
		Eventually(ctx, gone(vm)).Should(BeTrue())
		Expect(s.named("web")).To(BeEmpty())
	},
}}

// leak puts a server into the cloud that looks like one of an object of this namespace.
func (s *site) leak(name, uid, cluster string) mockcloud.Server {
	GinkgoHelper()
	return s.stranger(name, map[string]string{
		"samplecontroller.k8s.io/uid": uid, "samplecontroller.k8s.io/cluster": cluster,
		"samplecontroller.k8s.io/namespace": s.namespace, "samplecontroller.k8s.io/name": name,
	})
}

var orphans = theme{"servers that carry this cluster's labels and belong to no VM", cases{
	"are counted and left alone as long as nobody says otherwise": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		s.leak("leaked", "a-uid-that-is-gone", clusterID(ctx))
		Eventually(ctx, now(s.object)).Should(HaveField("Status.Servers", HaveValue(Equal(v1alpha1.CloudServers{Known: 1, Orphaned: 1}))))

		s.polls(ctx, 2)
		Expect(s.named("leaked")).To(HaveLen(1))
	},

	"are removed where the Cloud says so, and nothing of another cluster or of nobody's is": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{}, func(c *v1alpha1.Cloud) { c.Spec.OrphanPolicy = v1alpha1.OrphanPolicyDelete })
		vm := s.ready(ctx, "web")
		s.leak("leaked", "a-uid-that-is-gone", clusterID(ctx))
		s.leak("web", "the-uid-of-the-web-before", clusterID(ctx))
		theirs := s.leak("theirs", "a-uid-that-is-gone", "another-cluster")
		nobodys := s.stranger("nobodys", map[string]string{"team": "red"})
		unprovable := s.stranger("unprovable", map[string]string{"samplecontroller.k8s.io/cluster": clusterID(ctx)})

		ids := func() []string {
			var ids []string
			for _, server := range s.Servers() {
				ids = append(ids, server.ID)
			}
			return ids
		}
		Eventually(ctx, ids).Should(ConsistOf(vm.Status.VMID, theirs.ID, nobodys.ID, unprovable.ID))
		s.polls(ctx, 2)
		Expect(ids()).To(ConsistOf(vm.Status.VMID, theirs.ID, nobodys.ID, unprovable.ID))
		Expect(read(ctx, vm)).To(testkit.BeReady())
	},
}}
