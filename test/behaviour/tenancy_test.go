package behaviour_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// unnamed names no Cloud.
func unnamed(vm *v1alpha1.VM) { vm.Spec.CloudRef = nil }

// useOf has the objects of the site's namespace use a Cloud that name none, and
// leaves the operator the time to hear of it.
func useOf(ctx SpecContext, s *site, cloud string) {
	GinkgoHelper()
	edit(ctx, namespaceOf(ctx, s), func(ns *corev1.Namespace) { ns.Labels[v1alpha1.DefaultCloudLabel] = cloud })
	s.polls(ctx, 2)
}

func closed(c *v1alpha1.Cloud) {
	c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"cloud": "yes"}}
}

var tenants = theme{"a namespace", cases{
	"chooses the Cloud of its objects by a label": func(ctx SpecContext) {
		s, other := newSite(ctx, mockcloud.Options{}), newSite(ctx, mockcloud.Options{})
		useOf(ctx, s, s.object.Name)
		web := s.ready(ctx, "web", unnamed)
		Expect(web.Status.Cloud).To(Equal(s.object.Name))

		useOf(ctx, s, other.object.Name)
		later := s.ready(ctx, "later", unnamed)
		Expect(later.Status.Cloud).To(Equal(other.object.Name))
		Expect(other.named("later")).To(HaveLen(1))

		poke(ctx, web)
		s.polls(ctx, 2)
		Expect(read(ctx, web)).To(SatisfyAll(testkit.BeReady(), HaveField("Status.Cloud", s.object.Name)), "a label that changes moves nothing")
		Expect(s.named("web")).To(Equal([]string{web.Status.VMID}))
		Expect(other.named("web")).To(BeEmpty())

		_, err := tryEdit(ctx, web, func(vm *v1alpha1.VM) { vm.Spec.CloudRef = &v1alpha1.CloudReference{Name: other.object.Name} })
		Expect(err).To(MatchError(ContainSubstring("cloudRef cannot be changed once the VM exists")))
		edit(ctx, web, func(vm *v1alpha1.VM) { vm.Spec.CloudRef = &v1alpha1.CloudReference{Name: s.object.Name} })

		for _, vm := range []*v1alpha1.VM{web, later} {
			remove(ctx, vm)
			Eventually(ctx, gone(vm)).Should(BeTrue())
		}
		Expect(append(s.Servers(), other.Servers()...)).To(BeEmpty())
	},

	"has VMs of one name on several Clouds": func(ctx SpecContext) {
		s, other := newSite(ctx, mockcloud.Options{Profile: mockcloud.Core}), newSite(ctx, mockcloud.Options{Profile: mockcloud.Core})
		same := func(vm *v1alpha1.VM) { vm.Spec.VMName = "web" }
		s.ready(ctx, "here", same)
		s.ready(ctx, "there", same, func(vm *v1alpha1.VM) { vm.Spec.CloudRef.Name = other.object.Name })
		Expect(s.named("web")).To(HaveLen(1))
		Expect(other.named("web")).To(HaveLen(1))
	},

	"that names no Cloud and one that names the same have one VM of a name between them": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Profile: mockcloud.Core})
		useOf(ctx, s, s.object.Name)
		s.ready(ctx, "first", unnamed, func(vm *v1alpha1.VM) { vm.Spec.VMName = "web" })
		second := s.create(ctx, "second", func(vm *v1alpha1.VM) { vm.Spec.VMName = "web" })
		Eventually(ctx, now(second)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Taken"))
		Expect(s.named("web")).To(HaveLen(1))
	},

	"that a Cloud does not allow learns nothing of it": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{}, closed)
		theirs, err := s.PutServer(mockcloud.Server{Name: "theirs"})
		Expect(err).NotTo(HaveOccurred())
		s.polls(ctx, 1)
		s.ResetCalls()
		spy := s.create(ctx, "theirs", func(vm *v1alpha1.VM) {
			vm.Spec.Import = &v1alpha1.VMImport{VMID: theirs.ID}
			vm.Spec.ManagementPolicy = v1alpha1.ManagementPolicyObserveOnly
		})
		probe := s.create(ctx, "probe", func(vm *v1alpha1.VM) { vm.Spec.VMName = "forbidden" })
		for _, vm := range []*v1alpha1.VM{spy, probe} {
			Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "CloudUnavailable", "may not use Cloud"))
			s.polls(ctx, 2)
			Expect(read(ctx, vm)).To(SatisfyAll(
				HaveField("Status.VMID", ""), HaveField("Status.Host", ""), HaveField("Status.Cloud", ""), HaveField("Status.CPUUtilization", BeNil()),
				testkit.HaveCondition("NameChecked", metav1.ConditionUnknown, "CheckFailed"),
			))
		}
		for _, call := range s.Calls() {
			Expect(call.Path).NotTo(Or(ContainSubstring("/check/"), ContainSubstring(theirs.ID)))
		}
	},

	"that a Cloud does not allow deletes nothing there that only a name proves": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Profile: mockcloud.Core}, closed)
		theirs, err := s.PutServer(mockcloud.Server{Name: "theirs"})
		Expect(err).NotTo(HaveOccurred())
		s.polls(ctx, 1)
		forged := s.create(ctx, "theirs", func(vm *v1alpha1.VM) { vm.Finalizers = []string{"samplecontroller.k8s.io/vm"} })
		remove(ctx, forged)
		Eventually(ctx, now(forged)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked", "may not use Cloud"))
		Expect(read(ctx, forged)).To(testkit.HaveCondition("Created", metav1.ConditionFalse, "Pending"))
		s.polls(ctx, 2)
		Expect(s.named("theirs")).To(Equal([]string{theirs.ID}))
		edit(ctx, forged, func(vm *v1alpha1.VM) { vm.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan })
		Eventually(ctx, gone(forged)).Should(BeTrue())
		Expect(s.named("theirs")).To(Equal([]string{theirs.ID}))
	},

	"goes on as soon as its labels open a Cloud to it": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{}, closed)
		vm := s.create(ctx, "web")
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "CloudUnavailable"))
		edit(ctx, namespaceOf(ctx, s), func(ns *corev1.Namespace) { ns.Labels["cloud"] = "yes" })
		untilReady(ctx, vm)
	},

	"goes on as soon as a Cloud is opened to it": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{}, closed)
		useOf(ctx, s, s.object.Name)
		vm := s.create(ctx, "web", unnamed)
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "CloudUnavailable"))
		edit(ctx, s.object, func(c *v1alpha1.Cloud) { c.Spec.AllowedNamespaces = nil })
		untilReady(ctx, vm)
	},

	"is not held up by a Cloud of its own that is away": func(ctx SpecContext) {
		s, dead := newSite(ctx, mockcloud.Options{}), newSite(ctx, mockcloud.Options{})
		dead.unplug()
		stuck := s.create(ctx, "stuck", func(vm *v1alpha1.VM) { vm.Spec.CloudRef.Name = dead.object.Name })
		s.ready(ctx, "web")
		Eventually(ctx, now(stuck)).WithTimeout(30 * time.Second).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable"))
	},
}}
