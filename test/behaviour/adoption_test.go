package behaviour_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// stranger puts a server into the cloud that somebody else made.
func (s *site) stranger(name string, labels map[string]string) mockcloud.Server {
	GinkgoHelper()
	server, err := s.PutServer(mockcloud.Server{Name: name, Labels: labels, CPU: 2, Memory: 4})
	Expect(err).NotTo(HaveOccurred())
	return server
}

func importing(id string) func(*v1alpha1.VM) {
	return func(vm *v1alpha1.VM) { vm.Spec.Import = &v1alpha1.VMImport{VMID: id} }
}

func observing(vm *v1alpha1.VM) { vm.Spec.ManagementPolicy = v1alpha1.ManagementPolicyObserveOnly }

func orphaning(vm *v1alpha1.VM) { vm.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan }

// ownerLabels are those that say that a server is this VM's.
func ownerLabels(ctx SpecContext, vm *v1alpha1.VM) types.GomegaMatcher {
	return SatisfyAll(
		HaveKeyWithValue("samplecontroller.k8s.io/uid", string(vm.UID)),
		HaveKeyWithValue("samplecontroller.k8s.io/cluster", clusterID(ctx)),
	)
}

// importRefused shows that an import which cannot be meant is refused with its
// reason, and touches nothing.
func importRefused(reason, sentence string, prepare func(SpecContext, *site) (id string)) func(SpecContext) {
	return func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		id := prepare(ctx, s)
		creates := s.posts()
		vm := s.create(ctx, "legacy", importing(id))

		Eventually(ctx, now(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, reason, sentence),
			testkit.HaveCondition("Created", metav1.ConditionFalse, reason),
			HaveField("Status.VMID", BeEmpty()),
		))
		remove(ctx, vm)
		Eventually(ctx, gone(vm)).Should(BeTrue())
		Expect([]int{s.posts(), s.CountCalls("PATCH", ""), s.CountCalls("DELETE", "")}).To(Equal([]int{creates, 0, 0}))
	}
}

var imports = theme{"importing a VM", cases{
	"takes a server over without making one, keeps its own labels, and owns it from then on": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		server := s.stranger("legacy", map[string]string{"team": "blue"})
		vm := s.ready(ctx, "legacy", importing(server.ID))

		Expect(vm).To(SatisfyAll(
			HaveField("Status.VMID", server.ID),
			testkit.HaveCondition("Created", metav1.ConditionTrue, "Imported"),
			testkit.HaveCondition("NameChecked", metav1.ConditionTrue, "Available"),
			HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(50))),
		))
		Expect(s.serverOf(vm)()).To(HaveField("Labels", SatisfyAll(ownerLabels(ctx, vm), HaveKeyWithValue("team", "blue"))))
		Expect(s.posts()).To(BeZero())
		Expect(s.CountCalls("GET", "/check/{name}")).To(BeZero(), "its own server would make the name taken")

		cores := int32(8)
		edit(ctx, vm, func(vm *v1alpha1.VM) { vm.Spec.CPU = &cores })
		Eventually(ctx, s.serverOf(vm)).Should(HaveField("CPU", 8))
		remove(ctx, vm)
		Eventually(ctx, gone(vm)).Should(BeTrue())
		Expect(s.named("legacy")).To(BeEmpty())
	},

	"works on a core cloud, where a server has an id and a name and nothing else": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Profile: mockcloud.Core})
		server := s.stranger("legacy", nil)
		vm := s.ready(ctx, "legacy", importing(server.ID))

		Expect(vm).To(SatisfyAll(
			HaveField("Status.VMID", server.ID), testkit.HaveCondition("Created", metav1.ConditionTrue, "Imported")))
		Expect(s.posts()).To(BeZero())
	},

	"refuses a server that does not exist": importRefused("Rejected", "check spec.import.vmId",
		func(SpecContext, *site) string { return "5b7ff4f0-5cf9-4ac6-a1c2-3a3f3a4d2a10" }),
	"refuses a server of another name": importRefused("Rejected", `is named "elsewhere" in the cloud: set spec.vmname to that`,
		func(_ SpecContext, s *site) string { return s.stranger("elsewhere", nil).ID }),
	"refuses a server that another VM has": importRefused("Ambiguous", "another VM object has this vmname or server",
		func(ctx SpecContext, s *site) string {
			return s.ready(ctx, "first", func(vm *v1alpha1.VM) { vm.Spec.VMName = "legacy" }).Status.VMID
		}),
	"refuses a server that another cluster owns": importRefused("Rejected", "carries the owner labels of another cluster",
		func(_ SpecContext, s *site) string {
			return s.stranger("legacy", map[string]string{
				"samplecontroller.k8s.io/uid": "another-uid", "samplecontroller.k8s.io/cluster": "another-cluster",
			}).ID
		}),
}}

var observation = theme{"observing a VM", cases{
	"shows its status and changes nothing in the cloud, not even when it is deleted": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		server := s.stranger("legacy", map[string]string{"team": "blue"})
		cores := int32(16)
		vm := s.ready(ctx, "legacy", importing(server.ID), observing, func(vm *v1alpha1.VM) {
			vm.Spec.CPU, vm.Spec.PowerState = &cores, v1alpha1.PowerOff
		})
		Expect(s.SetUtilisation(server.ID, 77)).To(Succeed())
		Eventually(ctx, now(vm)).Should(HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(77))))
		Expect(vm).To(HaveField("Finalizers", BeEmpty()))
		remove(ctx, vm)
		Eventually(ctx, gone(vm)).Should(BeTrue())

		after, exists := s.Server(server.ID)
		Expect(exists).To(BeTrue())
		Expect(after).To(SatisfyAll(HaveField("Labels", server.Labels), HaveField("CPU", 2), HaveField("State", mockcloud.StateActive)))
		for _, method := range []string{"POST", "PATCH", "DELETE"} {
			Expect(s.CountCalls(method, "")).To(BeZero(), method)
		}
	},

	"can turn into managing it, which takes it over": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.ready(ctx, "legacy", importing(s.stranger("legacy", nil).ID), observing)
		cores := int32(8)
		edit(ctx, vm, func(vm *v1alpha1.VM) {
			vm.Spec.ManagementPolicy, vm.Spec.CPU = v1alpha1.ManagementPolicyManaged, &cores
		})

		Eventually(ctx, s.serverOf(vm)).Should(SatisfyAll(HaveField("CPU", 8), HaveField("Labels", ownerLabels(ctx, vm))))
		Eventually(ctx, now(vm)).Should(testkit.BeReady())
		remove(ctx, vm)
		Eventually(ctx, gone(vm)).Should(BeTrue())
		Expect(s.named("legacy")).To(BeEmpty())
	},
}}

func orphaned(options mockcloud.Options) func(SpecContext) {
	return func(ctx SpecContext) {
		s := newSite(ctx, options)
		vm := s.ready(ctx, "web", orphaning)
		remove(ctx, vm)
		Eventually(ctx, gone(vm)).Should(BeTrue())

		Expect(s.serverOf(vm)()).To(HaveField("Labels", BeEmpty()))
		Expect(s.CountCalls("DELETE", "")).To(BeZero())
		Eventually(ctx, story(vm)).Should(Equal([]string{"Created", "Orphaned"}))
		heir := s.ready(ctx, "heir", importing(vm.Status.VMID), func(vm *v1alpha1.VM) { vm.Spec.VMName = "web" })
		Expect(heir.Status.VMID).To(Equal(vm.Status.VMID))
	}
}

var releases = theme{"orphaning a VM", cases{
	"leaves the server, takes the labels off, and lets another object import it": orphaned(mockcloud.Options{}),
	"leaves the server of a core cloud, and lets another object import it":       orphaned(mockcloud.Options{Profile: mockcloud.Core}),

	"lets go of a server that is not the VM's own any more": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.ready(ctx, "web")
		server, _ := s.Server(vm.Status.VMID)
		server.Labels = map[string]string{"team": "red"}
		_, err := s.PutServer(server)
		Expect(err).NotTo(HaveOccurred())
		s.polls(ctx, 1)

		remove(ctx, vm)
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked",
			"does not carry this object's owner labels", "set spec.deletionPolicy to Orphan"))
		edit(ctx, vm, orphaning)
		Eventually(ctx, gone(vm)).Should(BeTrue())
		Expect(s.serverOf(vm)()).To(HaveField("Labels", Equal(map[string]string{"team": "red"})))
	},
}}

var pauses = theme{"pausing a VM", cases{
	"leaves it alone, its deletion included, until it is resumed": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.ready(ctx, "web")
		annotate(ctx, vm, v1alpha1.PausedAnnotation, "true")
		Eventually(ctx, now(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Paused", "remove it to go on"), testkit.BeReady()))

		edit(ctx, vm, func(vm *v1alpha1.VM) { vm.Spec.PowerState = v1alpha1.PowerOff })
		s.polls(ctx, 2)
		Expect(s.serverOf(vm)()).To(HaveField("State", mockcloud.StateActive))
		annotate(ctx, vm, v1alpha1.PausedAnnotation, "")
		Eventually(ctx, now(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionTrue, "Stopped"), Not(testkit.HaveCondition("Reconciling", "", ""))))

		annotate(ctx, vm, v1alpha1.PausedAnnotation, "true")
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Paused"))
		remove(ctx, vm)
		s.polls(ctx, 2)
		Expect(s.named("web")).To(HaveLen(1))
		annotate(ctx, vm, v1alpha1.PausedAnnotation, "")
		Eventually(ctx, gone(vm)).Should(BeTrue())
		Expect(s.named("web")).To(BeEmpty())
	},

	"from the first moment keeps anything from being made": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.create(ctx, "web", func(vm *v1alpha1.VM) {
			vm.Annotations = map[string]string{v1alpha1.PausedAnnotation: "true"}
		})
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Paused"))
		s.polls(ctx, 1)
		Expect(s.CountCalls("GET", "/check/{name}")).To(BeZero())
		Expect(s.posts()).To(BeZero())

		annotate(ctx, vm, v1alpha1.PausedAnnotation, "")
		untilReady(ctx, vm)
	},
}}
