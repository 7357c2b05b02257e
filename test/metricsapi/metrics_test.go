package metricsapi_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
)

const (
	group = "/apis/custom.metrics.k8s.io/"
	// autoscaler is the user of the controller of HorizontalPodAutoscalers.
	autoscaler = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
)

var vmGroup = pcapi.GroupVersion.WithKind("VmGroup").GroupKind()

var _ = Describe("The metrics API", func() {
	var namespace string

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		Eventually(ctx, func(ctx context.Context) error {
			_, err := env.Kubectl(ctx, "", "wait", "--for=condition=Available", "--timeout=0", "apiservice/v1beta1.custom.metrics.k8s.io", "apiservice/v1beta2.custom.metrics.k8s.io")
			return err
		}).Should(Succeed())
	})

	DescribeTable("lists its resources in version", func(ctx SpecContext, version string) {
		var served metav1.APIResourceList
		Expect(json.Unmarshal([]byte(kubectl(ctx, "get", "--raw", group+version)), &served)).To(Succeed())
		Expect(served.APIResources).To(ConsistOf(
			And(HaveField("Name", "vmgroups.samplecontroller.k8s.io/cpu_utilization"), HaveField("Namespaced", true)),
			And(HaveField("Name", "vmgroups.samplecontroller.k8s.io/cpu_utilization_sum"), HaveField("Namespaced", true)),
		))
	}, Entry(nil, "v1beta1"), Entry(nil, "v1beta2"))

	It("serves mean and sum of a group to the autoscaler, with the rights that Kubernetes gives it, and follows changes", func(ctx SpecContext) {
		web := newGroup(ctx, namespace, "web")
		setMean(ctx, web, 60)
		first := newMember(ctx, web, "web-1", 90)
		newMember(ctx, web, "web-2", 31)
		metrics := as(autoscaler).NamespacedMetrics(namespace)
		percent := func(metric string) func() (int64, error) {
			return func() (int64, error) {
				value, err := metrics.GetForObject(vmGroup, "web", metric, labels.Everything())
				if err != nil {
					return 0, err
				}
				return value.Value.Value(), nil
			}
		}
		Eventually(percent("cpu_utilization")).Should(BeEquivalentTo(60))
		Eventually(percent("cpu_utilization_sum")).Should(BeEquivalentTo(121))

		setMean(ctx, web, 21)
		setUse(ctx, first, 10)
		Eventually(percent("cpu_utilization")).Should(BeEquivalentTo(21))
		Eventually(percent("cpu_utilization_sum")).Should(BeEquivalentTo(41))
		Expect(env.Client.Delete(ctx, first)).To(Succeed())
		Eventually(percent("cpu_utilization_sum")).Should(BeEquivalentTo(31))
		Expect(env.Client.Delete(ctx, web)).To(Succeed())
		Eventually(func() error {
			_, err := percent("cpu_utilization")()
			return err
		}).Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
	})

	It("answers NotFound for a group of which no CPU use is known", func(ctx SpecContext) {
		web := newGroup(ctx, namespace, "web")
		Expect(env.Client.Create(ctx, member(web, "web-1"))).To(Succeed())
		Eventually(ctx, func(ctx context.Context) string {
			output, _ := env.Kubectl(ctx, "", "get", "--raw", path(namespace, "web", "cpu_utilization_sum"))
			return output
		}).Should(ContainSubstring("(NotFound): the server could not find the metric cpu_utilization_sum for vmgroups.samplecontroller.k8s.io web: " +
			"the CPU use of none of its members is known"))
	})

	It("selects groups by their labels", func(ctx SpecContext) {
		for name, tier := range map[string]string{"shop": "front", "blog": "front", "store": "back"} {
			setMean(ctx, newGroup(ctx, namespace, name, func(g *pcapi.VmGroup) { g.Labels = map[string]string{"tier": tier} }), 50)
		}
		Eventually(func() ([]string, error) {
			values, err := as(autoscaler).NamespacedMetrics(namespace).
				GetForObjects(vmGroup, labels.SelectorFromSet(labels.Set{"tier": "front"}), "cpu_utilization", labels.Everything())
			if err != nil {
				return nil, err
			}
			var names []string
			for _, value := range values.Items {
				names = append(names, value.DescribedObject.Name)
			}
			return names, nil
		}).Should(ConsistOf("shop", "blog"))
	})

	It("answers users who may view the namespace, and refuses others", func(ctx SpecContext) {
		setMean(ctx, newGroup(ctx, namespace, "web"), 60)
		elsewhere := newNamespace(ctx)
		setMean(ctx, newGroup(ctx, elsewhere, "web"), 60)
		ask := func(user, namespace string) error {
			_, err := as(user).NamespacedMetrics(namespace).GetForObject(vmGroup, "web", "cpu_utilization", labels.Everything())
			return err
		}
		Expect(ask("jane", namespace)).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
		Expect(env.Client.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "jane"},
			// A controller manager aggregates this role into view.
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "private-cloud-operator-vmgroup-metrics-viewer-role"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "jane"}},
		})).To(Succeed())
		Eventually(func() error { return ask("jane", namespace) }).Should(Succeed())
		Expect(ask("jane", elsewhere)).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
	})

	DescribeTable("refuses metrics to a request that does not come through the API server", func(ctx SpecContext, header http.Header, code int) {
		setMean(ctx, newGroup(ctx, namespace, "web"), 60)
		Expect(requestDirectly(ctx, path(namespace, "web", "cpu_utilization"), header)).To(Equal(code))
	},
		Entry("without credentials", nil, http.StatusForbidden),
		Entry("with forged headers of the front proxy", http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}, http.StatusForbidden),
		Entry("with an invalid token", http.Header{"Authorization": {"Bearer nonsense"}}, http.StatusUnauthorized),
	)

	DescribeTable("answers the probes of the kubelet, which sends no credentials", func(ctx SpecContext, probe string) {
		Expect(requestDirectly(ctx, probe, nil)).To(Equal(http.StatusOK))
	}, Entry(nil, "/livez"), Entry(nil, "/readyz"))
})

func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	made := testkit.Namespace("metrics-", nil)
	Expect(env.Client.Create(ctx, made)).To(Succeed())
	return made.Name
}

// as returns the client that the controller of HorizontalPodAutoscalers uses, for a user.
func as(user string) custom_metrics.CustomMetricsClient {
	GinkgoHelper()
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	found, err := discovery.NewDiscoveryClientForConfig(env.Config)
	Expect(err).NotTo(HaveOccurred())
	return custom_metrics.NewForConfig(config, env.Client.RESTMapper(), custom_metrics.NewAvailableAPIsGetter(found))
}

// requestDirectly sends a request to the metrics API without the API server, and
// returns the status code of the answer.
func requestDirectly(ctx context.Context, path string, header http.Header) int {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", port, path), nil)
	Expect(err).NotTo(HaveOccurred())
	request.Header = header
	direct := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := direct.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	Expect(err).NotTo(HaveOccurred())
	return response.StatusCode
}

func path(namespace, name, metric string) string {
	return group + "v1beta2/namespaces/" + namespace + "/vmgroups.samplecontroller.k8s.io/" + name + "/" + metric
}

func newGroup(ctx context.Context, namespace, name string, change ...func(*pcapi.VmGroup)) *pcapi.VmGroup {
	GinkgoHelper()
	made := testkit.VmGroup(namespace, name, change...)
	Expect(env.Client.Create(ctx, made)).To(Succeed())
	return made
}

func setMean(ctx context.Context, group *pcapi.VmGroup, percent int32) {
	GinkgoHelper()
	before := group.DeepCopy()
	group.Status.CPUUtilization = &percent
	Expect(env.Client.Status().Patch(ctx, group, client.MergeFrom(before))).To(Succeed())
}

func member(owner *pcapi.VmGroup, name string) *pcapi.VM {
	return testkit.VM(owner.Namespace, name, func(vm *pcapi.VM) {
		vm.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, pcapi.GroupVersion.WithKind("VmGroup"))}
	})
}

func newMember(ctx context.Context, owner *pcapi.VmGroup, name string, percent int32) *pcapi.VM {
	GinkgoHelper()
	made := member(owner, name)
	Expect(env.Client.Create(ctx, made)).To(Succeed())
	setUse(ctx, made, percent)
	return made
}

func setUse(ctx context.Context, vm *pcapi.VM, percent int32) {
	GinkgoHelper()
	before := vm.DeepCopy()
	vm.Status.CPUUtilization = &percent
	Expect(env.Client.Status().Patch(ctx, vm, client.MergeFrom(before))).To(Succeed())
}
