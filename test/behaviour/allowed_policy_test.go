package behaviour_test

import (
	"context"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/controller/cloud"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// allowedNamespacesRule is what requires allowedNamespaces: the admission policy, or the
// webhook of the bundle. Both have the same rule, and the same message.
type allowedNamespacesRule struct {
	install, remove func(context.Context) error
	// refusal is how kubectl reports a refusal.
	refusal string
}

func TestAllowedNamespacesPolicy(t *testing.T) {
	root, err := testkit.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	policy := filepath.Join(root, "config", "components", "allowed-namespaces", "policy.yaml")
	kubectlWith := func(args ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := env.Kubectl(ctx, "", append(args, "-f", policy)...)
			return err
		}
	}
	allowedNamespacesRule{
		install: kubectlWith("apply"),
		remove:  kubectlWith("delete", "--ignore-not-found"),
		refusal: "is invalid: : ValidatingAdmissionPolicy 'private-cloud-operator-allowed-namespaces'",
	}.test(t)
}

func TestAllowedNamespacesWebhook(t *testing.T) {
	allowedNamespacesRule{
		install: operatorWebhook.RegisterClouds,
		remove: func(ctx context.Context) error {
			return client.IgnoreNotFound(operatorWebhook.Unregister(ctx, testkit.CloudWebhook))
		},
		refusal: `admission webhook "allowednamespaces.samplecontroller.k8s.io" denied the request: spec.allowedNamespaces is required`,
	}.test(t)
}

func (rule allowedNamespacesRule) test(tt *testing.T) {
	t := newT(tt)
	f := newFixture(t, mockcloud.Options{}) // it has no allowedNamespaces, and was there before the rule
	t.Expect(rule.install(t.Context())).To(Succeed())
	tt.Cleanup(func() { t.Expect(rule.remove(context.WithoutCancel(t.Context()))).To(Succeed()) })
	const required = "spec.allowedNamespaces is required: without it, all namespaces could use the Cloud. " +
		"Select namespaces by their labels, or set it to {} for all namespaces"
	create := func(selector *metav1.LabelSelector) func() error {
		return func() error {
			c := testkit.Cloud("another", f.URL, func(c *pcapi.Cloud) { c.Spec.AllowedNamespaces = selector })
			return env.Client.Create(t.Context(), c, client.DryRunAll)
		}
	}
	t.Eventually(create(nil)).Should(MatchError(ContainSubstring(required)), "the rule is in effect")
	t.Expect(create(&metav1.LabelSelector{})()).To(Succeed(), "{} says that all namespaces are meant")
	team := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "platform"}}
	t.Expect(create(team)()).To(Succeed())
	bootstrap := cloud.Bootstrap{Client: client.NewDryRunClient(env.Client), Endpoint: f.URL}
	t.Expect(bootstrap.Start(t.Context())).To(Succeed(), "the Cloud of --default-cloud-endpoint is accepted")

	// The Cloud from before stays usable: its spec and status are written, and it is used by all.
	edit(t, f.object, func(c *pcapi.Cloud) { c.Spec.UtilizationStep = 7 })
	t.Eventually(func() int64 { return get(t, f.object).Status.ObservedGeneration }).Should(Equal(get(t, f.object).Generation))
	f.readyVM("web")

	edit(t, f.object, func(c *pcapi.Cloud) { c.Spec.AllowedNamespaces = &metav1.LabelSelector{} })
	_, err := tryEdit(t, f.object, func(c *pcapi.Cloud) { c.Spec.AllowedNamespaces = nil })
	t.Expect(err).To(MatchError(ContainSubstring(required)), "the field cannot be removed again")
	output, err := env.Kubectl(t.Context(), "", "patch", "cloud", f.object.Name, "--type=merge", "-p", `{"spec":{"allowedNamespaces":null}}`)
	t.Expect(err).To(HaveOccurred())
	t.Expect(output + err.Error()).To(ContainSubstring(rule.refusal))
	t.Expect(get(t, f.object).Spec.AllowedNamespaces).NotTo(BeNil())

	t.Expect(rule.remove(t.Context())).To(Succeed())
	t.Eventually(create(nil)).Should(Succeed(), "the rule is not in effect for the tests after this one")
}
