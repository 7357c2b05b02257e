package plugin_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin/plugintest"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

func TestWhyFollowsAVMToTheLastStep(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "why", func(cloud *testkit.CloudServer) {
		_, err := cloud.AddFault(mockcloud.Fault{Match: mockcloud.Match{Method: "POST", Path: "/servers"}, Status: 422})
		if err != nil {
			t.Fatal(err)
		}
	})
	vm := testkit.VM(f.namespace, "refused")
	f.Expect(env.Client.Create(t.Context(), vm)).To(Succeed())
	f.Eventually(func() (*pcapi.VM, error) {
		return vm, env.Client.Get(t.Context(), client.ObjectKeyFromObject(vm), vm)
	}).Should(testkit.HaveCondition(pcapi.StalledCondition, metav1.ConditionTrue, ""))

	explained := f.run("why", "vm/refused", "-n", f.namespace)
	f.Expect(explained.Code).To(BeZero(), explained.Err)
	f.Expect(explained.Out).To(And(
		MatchRegexp(`(?m)^VM \S+/refused is not Ready until somebody acts since \S+: \w+ — `),
		MatchRegexp(`(?m)^Cloud why is Ready since`),
		MatchRegexp(`(?m)^Cloud why in the operator: brake off; 0 servers at the last listing`),
		MatchRegexp(`(?m)^Claim of VM \S+/refused: `),
		// The first listing may cause another reconcile.
		MatchRegexp(`(?m)^Last step: (Create|Look) at \S+, took \S+: \w+ — `),
	))
	// At rest, a Cloud is polled, and the steps of polls are not recorded.
	f.Expect(f.run("why", "cloud/why").Out).To(HavePrefix("Cloud why is Ready since"))

	f.Expect(env.Client.Delete(t.Context(), vm)).To(Succeed())
	f.Eventually(func() string { return f.run("why", "vm/refused", "-n", f.namespace).Err }).Should(ContainSubstring("does not exist"))
}

// TestRightsInTheNamespaceOfTheOperator shows with the authorizer of a real API server which
// right is missing. There is no kubelet, so that no port can be forwarded.
func TestRightsInTheNamespaceOfTheOperator(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "rights", nil)
	staff, developer := asUser(t, "staff"), asUser(t, "developer")
	noPod := staff.Run(t.Context(), "orphans", "--cloud", f.name)
	f.Expect(noPod.Err).To(ContainSubstring("the right to list pods in namespace private-cloud-operator-system is missing"))

	allow(t, "staff", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}})
	f.Expect(staff.Run(t.Context(), "orphans", "--cloud", f.name).Err).To(ContainSubstring("there is no pod of the operator in namespace private-cloud-operator-system"))

	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: operatorNamespace, Name: "manager",
			Labels: map[string]string{"app.kubernetes.io/name": "private-cloud-operator", "control-plane": "controller-manager"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "operator", Args: []string{"--diagnostics-bind-address=127.0.0.1:8082"}}}},
	}
	f.Expect(env.Client.Create(t.Context(), pod)).To(Succeed())
	t.Cleanup(func() { _ = env.Client.Delete(t.Context(), pod) })
	f.Expect(staff.Run(t.Context(), "orphans", "--cloud", f.name).Err).To(ContainSubstring("no pod of the operator runs"))
	pod.Status.Phase = corev1.PodRunning
	f.Expect(env.Client.Status().Update(t.Context(), pod)).To(Succeed())
	f.Expect(staff.Run(t.Context(), "orphans", "--cloud", f.name).Err).To(ContainSubstring("the right to create pods/portforward in namespace private-cloud-operator-system is missing"))

	allow(t, "staff-forwards", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/portforward"}, Verbs: []string{"create"}}, "staff")
	allowed := staff.Run(t.Context(), "orphans", "--cloud", f.name).Err
	f.Expect(allowed).To(And(ContainSubstring("forward a port to pod private-cloud-operator-system/manager"), Not(ContainSubstring("is missing"))))

	vm := testkit.VM(f.namespace, "web", func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: "missing"} })
	f.Expect(env.Client.Create(t.Context(), vm)).To(Succeed())
	f.Expect(developer.Run(t.Context(), "why", "vm/web", "-n", f.namespace).Code).To(Equal(1), "the VM itself cannot be read")
	_, err := env.Kubectl(t.Context(), "", "create", "rolebinding", "developer", "-n", f.namespace, "--user=developer", "--clusterrole=cluster-admin")
	f.Expect(err).NotTo(HaveOccurred())
	seen := developer.Run(t.Context(), "why", "vm/web", "-n", f.namespace)
	f.Expect(seen.Code).To(BeZero(), seen.Err)
	f.Expect(seen.Out).To(And(
		ContainSubstring("→ Cloud missing cannot be read: the right to get clouds.samplecontroller.k8s.io in the cluster is missing"),
		ContainSubstring("the right to list pods in namespace private-cloud-operator-system is missing"),
	))
}

// asUser returns how to run commands as a user without rights.
func asUser(t *testing.T, name string) plugintest.Setup {
	t.Helper()
	config := rest.CopyConfig(env.Config)
	path := t.TempDir() + "/kubeconfig"
	err := testkit.WriteKubeconfig(path,
		&api.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData},
		&api.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Impersonate: name})
	if err != nil {
		t.Fatal(err)
	}
	return plugintest.Setup{Kubeconfig: path}
}

// allow gives a user a right in the namespace of the operator. The Role has the name of the
// user, or the first name if there are two.
func allow(t *testing.T, role string, rule rbacv1.PolicyRule, user ...string) {
	t.Helper()
	name := append(user, role)[0]
	meta := metav1.ObjectMeta{Namespace: operatorNamespace, Name: role}
	for _, o := range []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		},
	} {
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}
