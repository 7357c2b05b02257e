package behaviour_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
		install: func(ctx context.Context) error { return operatorWebhook.RegisterClouds(ctx, "allowed-namespaces", nil) },
		remove: func(ctx context.Context) error {
			return client.IgnoreNotFound(operatorWebhook.Unregister(ctx, "allowed-namespaces"))
		},
		refusal: `admission webhook "allowednamespaces.samplecontroller.k8s.io" denied the request: spec.allowedNamespaces is required`,
	}.test(t)
}

const allowedNamespacesRequired = "spec.allowedNamespaces is required: without it, all namespaces could use the Cloud. " +
	"Select namespaces by their labels, or set it to {} for all namespaces"

func (rule allowedNamespacesRule) test(tt *testing.T) {
	t := newT(tt)
	f := newFixture(t, mockcloud.Options{}) // it has no allowedNamespaces, and was there before the rule
	t.Expect(rule.install(t.Context())).To(Succeed())
	tt.Cleanup(func() { t.Expect(rule.remove(context.WithoutCancel(t.Context()))).To(Succeed()) })
	create := func(selector *metav1.LabelSelector) func() error {
		return func() error {
			c := testkit.Cloud("another", f.URL, func(c *pcapi.Cloud) { c.Spec.AllowedNamespaces = selector })
			return env.Client.Create(t.Context(), c, client.DryRunAll)
		}
	}
	t.Eventually(create(nil)).Should(MatchError(ContainSubstring(allowedNamespacesRequired)), "the rule is in effect")
	t.Expect(create(&metav1.LabelSelector{})()).To(Succeed(), "{} says that all namespaces are meant")
	team := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "platform"}}
	t.Expect(create(team)()).To(Succeed())
	bootstrap := cloud.Bootstrap{Client: unaware{client.NewDryRunClient(env.Client)}, Endpoint: f.URL}
	t.Expect(bootstrap.Start(t.Context())).To(Succeed(), "the Cloud of --default-cloud-endpoint is accepted")

	// The Cloud from before stays usable: its spec and status are written, and it is used by all.
	edit(t, f.object, func(c *pcapi.Cloud) { c.Spec.UtilizationStep = 7 })
	t.Eventually(func() int64 { return get(t, f.object).Status.ObservedGeneration }).Should(Equal(get(t, f.object).Generation))
	f.readyVM("web")

	edit(t, f.object, func(c *pcapi.Cloud) { c.Spec.AllowedNamespaces = &metav1.LabelSelector{} })
	_, err := tryEdit(t, f.object, func(c *pcapi.Cloud) { c.Spec.AllowedNamespaces = nil })
	t.Expect(err).To(MatchError(ContainSubstring(allowedNamespacesRequired)), "the field cannot be removed again")
	output, err := env.Kubectl(t.Context(), "", "patch", "cloud", f.object.Name, "--type=merge", "-p", `{"spec":{"allowedNamespaces":null}}`)
	t.Expect(err).To(HaveOccurred())
	t.Expect(output + err.Error()).To(ContainSubstring(rule.refusal))
	t.Expect(get(t, f.object).Spec.AllowedNamespaces).NotTo(BeNil())

	t.Expect(rule.remove(t.Context())).To(Succeed())
	t.Eventually(create(nil)).Should(Succeed(), "the rule is not in effect for the tests after this one")
}

// unaware reads no Cloud, so that a bootstrap creates it.
type unaware struct{ client.Client }

func (unaware) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(pcapi.GroupVersion.WithResource("clouds").GroupResource(), key.Name)
}

// reviewedCloud creates a Cloud that the webhook reviews, and returns when it does.
func reviewedCloud(t *T, webhook *testkit.Webhook, name string) *fixture {
	t.Helper()
	labels := map[string]string{"reviewed-by": name}
	f := newFixture(t, mockcloud.Options{}, func(c *pcapi.Cloud) {
		c.Labels, c.Spec.AllowedNamespaces = labels, &metav1.LabelSelector{}
	})
	t.Expect(webhook.RegisterClouds(t.Context(), name, labels)).To(Succeed())
	t.cleanup(func(ctx context.Context) { t.Expect(webhook.Unregister(ctx, name)).To(Succeed()) })
	t.Eventually(func() error { return f.openToAll(client.DryRunAll) }).Should(MatchError(ContainSubstring(allowedNamespacesRequired)))
	return f
}

// openToAll removes allowedNamespaces of the Cloud.
func (f *fixture) openToAll(options ...client.PatchOption) error {
	return env.Client.Patch(f.t.Context(), f.object.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"allowedNamespaces":null}}`)), options...)
}

func TestCloudsAreNotWrittenWhileNoReplicaServesTheirWebhook(tt *testing.T) {
	t := newT(tt)
	webhook, lease := newWebhook(t), heldLease(t, "clouds")
	_, stop := serveWebhook(t, webhook, lease)
	f := reviewedCloud(t, webhook, "clouds")
	vm := f.readyVM("web")
	t.Expect(stop()).To(Succeed())

	const uncalled = `failed calling webhook "allowednamespaces.samplecontroller.k8s.io"`
	_, err := tryEdit(t, f.object, func(c *pcapi.Cloud) { c.Spec.UtilizationStep = 7 })
	t.Expect(err).To(MatchError(ContainSubstring(uncalled)), "nobody can change the Cloud")
	f.readyVM("db") // VMs are not affected
	fresh := get(t, f.object)
	base := fresh.DeepCopy()
	fresh.Status.Capabilities = append(fresh.Status.Capabilities, "unknown")
	t.Expect(env.Client.Status().Patch(t.Context(), fresh, client.MergeFrom(base))).To(Succeed(), "its status is not reviewed")

	t.Expect(env.Client.DeleteAllOf(t.Context(), &pcapi.VM{}, client.InNamespace(f.namespace))).To(Succeed())
	t.Eventually(isGone(vm)).Should(BeTrue())
	deleteObject(t, f.object) // deletions are not reviewed
	_, err = tryEdit(t, f.object, func(c *pcapi.Cloud) { c.Finalizers = nil })
	t.Expect(err).To(MatchError(ContainSubstring(uncalled)), "its finalizer cannot be removed")
	t.Eventually(func() bool { return operatorLogged("Reconciler error", f.object.Name, "failed calling webhook") }).Should(BeTrue(), "not by the operator either")
	t.Expect(get(t, f.object).Finalizers).To(ConsistOf(pcapi.CloudFinalizer))

	serveWebhook(t, webhook, lease)
	t.Eventually(isGone(f.object)).Should(BeTrue(), "the deletion completes once a replica serves again")
}

// operatorLogged reports whether a line of the operator's log contains all these texts.
func operatorLogged(texts ...string) bool {
	for line := range strings.Lines(operatorLog.String()) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			return true
		}
	}
	return false
}

func TestLargestCloudCanBeChanged(tt *testing.T) {
	t := newT(tt)
	f := reviewedCloud(t, operatorWebhook, "largest")
	const size = 11 << 17 // 1.375 MiB, with the rest of the Cloud nearly the 1.5 MiB that etcd accepts
	teams := make([]string, size/64)
	for i := range teams {
		teams[i] = fmt.Sprintf("%061d", i) // 64 bytes in JSON
	}
	for step := range int32(2) { // the second review has the large Cloud twice
		edit(t, f.object, func(c *pcapi.Cloud) {
			c.Spec.UtilizationStep = 5 + step
			c.Spec.AllowedNamespaces.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpNotIn, Values: teams}}
		})
	}
	t.Expect(f.openToAll()).To(MatchError(ContainSubstring(allowedNamespacesRequired)))
	f.readyVM("web")
}
