package openstack_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/test/specs"
)

var _ = Describe("Another Cloud of the OpenStack", Ordered, func() {
	const name = "another"
	var (
		p      project
		secret *corev1.Secret
		object *pcapi.Cloud
	)
	// rotate makes an application credential and puts it into the Secret.
	rotate := func(ctx context.Context, title string) (id string) {
		GinkgoHelper()
		id, text := newCredential(GinkgoTB(), p, title)
		specs.Edit(ctx, secret, func(s *corev1.Secret) {
			s.Data = map[string][]byte{"applicationCredentialId": []byte(id), "applicationCredentialSecret": []byte(text)}
		})
		return id
	}

	BeforeAll(func(ctx SpecContext) {
		p = newProject(GinkgoTB())
		id, text := newCredential(GinkgoTB(), p, "first")
		secret = secretFor(name, map[string]string{"applicationCredentialId": id, "applicationCredentialSecret": text})
		Expect(env.Client.Create(ctx, secret)).To(Succeed())
		object = openStackCloud(name, p)
	})

	It("the catalog lacks nova: says so, and recovers by itself", func(ctx SpecContext) {
		between.leaveOut("compute")
		DeferCleanup(func() { between.leaveOut("") })
		Expect(env.Client.Create(ctx, object)).To(Succeed())
		Eventually(ctx, specs.Stored(object)).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, pcapi.UnreachableReason,
			"the catalog of services has no public endpoint of a compute service", "the operator needs compute, network and image"))
		between.leaveOut("")
		specs.Ready(ctx, object)
	}, SpecTimeout(5*time.Minute))

	DescribeTable("a block that names what does not exist: stalls, names what there is, and recovers", func(ctx SpecContext, change func(*pcapi.OpenStackCloud), reason string, says []string) {
		right := *object.Spec.OpenStack
		specs.Edit(ctx, object, func(c *pcapi.Cloud) { change(c.Spec.OpenStack) })
		Eventually(ctx, specs.Stored(object)).Should(testkit.HaveCondition(pcapi.StalledCondition, metav1.ConditionTrue, reason, says...))
		specs.Edit(ctx, object, func(c *pcapi.Cloud) { *c.Spec.OpenStack = right })
		specs.Ready(ctx, object)
	},
		Entry("an image", SpecTimeout(5*time.Minute), func(o *pcapi.OpenStackCloud) { o.Images.Default = "absent" }, pcapi.InvalidConfigurationReason,
			[]string{"spec.openstack.images.default", `"absent"`, "there are: small"}),
		Entry("a flavor", SpecTimeout(5*time.Minute), func(o *pcapi.OpenStackCloud) { o.Flavors.Default = "absent" }, pcapi.InvalidConfigurationReason,
			[]string{"spec.openstack.flavors.default", `"absent"`, "t1 (1 CPUs, 512 MiB)"}),
		Entry("a network", SpecTimeout(5*time.Minute), func(o *pcapi.OpenStackCloud) { o.Network.Default = "absent" }, pcapi.InvalidConfigurationReason,
			[]string{"spec.openstack.network.default", `"absent"`, "there are: ext-net"}),
		Entry("a region", SpecTimeout(5*time.Minute), func(o *pcapi.OpenStackCloud) { o.Region = "Absent" }, pcapi.InvalidConfigurationReason,
			[]string{`"Absent"`, "but in RegionOne", "correct spec.openstack.region"}),
		Entry("a project", SpecTimeout(5*time.Minute), func(o *pcapi.OpenStackCloud) { o.Project = "absent" }, pcapi.InvalidConfigurationReason,
			[]string{"the credentials are for project", `spec.openstack.project is "absent"`}),
	)

	It("a server is stopped and deleted by hand, with a poll interval of 10 minutes: the status follows within seconds", func(ctx SpecContext) {
		specs.Edit(ctx, object, func(c *pcapi.Cloud) { c.Spec.PollInterval.Duration = 10 * time.Minute })
		vm := testkit.VM(namespace, "by-hand", func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: name} })
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		id, created := specs.Ready(ctx, vm).Status.VMID, time.Now()
		specs.Edit(ctx, vm, func(vm *pcapi.VM) { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly })
		hand := newClient(GinkgoTB(), p, &wire{})
		_, err := hand.UpdateServer(ctx, id, cloud.Update{cloud.SetPower{State: cloud.PowerOff}})
		Expect(err).NotTo(HaveOccurred())
		began := time.Now()
		Eventually(ctx, specs.Stored(vm)).Should(HaveField("Status.State", pcapi.VMStateStopped))
		AddReportEntry("stopped by hand: seconds until it is in the status", time.Since(began).Seconds())
		specs.Edit(ctx, vm, func(vm *pcapi.VM) { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyManaged })
		Eventually(ctx, specs.Stored(vm)).Should(HaveField("Status.State", pcapi.VMStateRunning), "the operator starts it")
		Eventually(func() time.Duration { return time.Since(created) }).Should(BeNumerically(">", 2*settleTime), "the cloud may show younger servers late")
		_, err = hand.DeleteServer(ctx, id)
		Expect(err).NotTo(HaveOccurred())
		began = time.Now()
		Eventually(ctx, specs.Stored(vm)).Should(HaveField("Status.State", pcapi.VMStateLost))
		AddReportEntry("deleted by hand: seconds until it is in the status", time.Since(began).Seconds())
		specs.Remove(ctx, vm)
		specs.Edit(ctx, object, func(c *pcapi.Cloud) { c.Spec.PollInterval.Duration = 2 * time.Second })
	}, SpecTimeout(5*time.Minute))

	It("an application credential that is rotated under load: no reconcile fails, and the Cloud stays ready", func(ctx SpecContext) {
		first := string(stored(ctx, secret).Data["applicationCredentialId"])
		failed, since := reconcileErrors(), readySince(ctx, object)
		group := newGroup("load", name, 4)
		Expect(env.Client.Create(ctx, group)).To(Succeed())
		Eventually(ctx, specs.Stored(group)).Should(HaveField("Status.Replicas", BeNumerically(">", 0)))
		ended := between.ended()
		second := rotate(ctx, "second")
		Eventually(ctx, func() int { return between.logins(second) }).Should(BeNumerically(">", 0))
		Eventually(ctx, between.ended).Should(BeNumerically(">", ended), "the former session is ended")
		specs.Ready(ctx, object)
		deleteCredential(GinkgoTB(), p, first)
		between.expire(first)
		Eventually(ctx, specs.Stored(group)).Should(HaveField("Status.ReadyReplicas", BeEquivalentTo(4)))
		Expect(reconcileErrors()).To(Equal(failed), "reconciles that failed")
		Expect(readySince(ctx, object)).To(Equal(since), "since when the Cloud is ready")
		Expect(between.logins(second)).To(Equal(1))
	}, SpecTimeout(10*time.Minute))

	It("an application credential that is revoked: the Cloud says so, does not try all the time, and recovers with another one", func(ctx SpecContext) {
		id := string(stored(ctx, secret).Data["applicationCredentialId"])
		deleteCredential(GinkgoTB(), p, id)
		between.expire(id)
		Eventually(ctx, specs.Stored(object)).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, pcapi.AuthenticationFailedReason,
			"the cloud refuses the application credential", "check applicationCredentialId and applicationCredentialSecret in the Secret"))
		group, logins := newGroup("load", name, 0), between.logins(id)
		specs.Edit(ctx, group, func(g *pcapi.VmGroup) { g.Spec.Replicas = new(int32(5)) })
		Consistently(ctx, func() int { return between.logins(id) - logins }).WithTimeout(10*time.Second).Should(BeNumerically("<=", 1), "logins that are refused")
		rotate(ctx, "third")
		specs.Ready(ctx, object)
		Eventually(ctx, specs.Stored(group)).Should(HaveField("Status.ReadyReplicas", BeEquivalentTo(5)))
		specs.Remove(ctx, group)
		specs.Remove(ctx, object)
	}, SpecTimeout(10*time.Minute))
})

// stored returns the Secret as it is stored.
func stored(ctx context.Context, secret *corev1.Secret) *corev1.Secret {
	GinkgoHelper()
	current, err := specs.Stored(secret)(ctx)
	Expect(err).NotTo(HaveOccurred())
	return current
}

// newGroup returns a VmGroup on a Cloud.
func newGroup(name, cloudName string, replicas int32) *pcapi.VmGroup {
	return testkit.VmGroup(namespace, name, func(g *pcapi.VmGroup) {
		g.Spec.CloudRef, g.Spec.Replicas = &pcapi.CloudReference{Name: cloudName}, new(replicas)
	})
}

// readySince returns since when a Cloud is ready.
func readySince(ctx context.Context, object *pcapi.Cloud) time.Time {
	GinkgoHelper()
	return meta.FindStatusCondition(specs.Ready(ctx, object).Status.Conditions, pcapi.ReadyCondition).LastTransitionTime.Time
}

// reconcileErrors returns how many reconciles of each controller failed.
func reconcileErrors() map[string]float64 {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	failed := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_errors_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			failed[fmt.Sprint(metric.GetLabel())] = metric.GetCounter().GetValue()
		}
	}
	return failed
}
