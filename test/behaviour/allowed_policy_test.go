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

func TestAllowedNamespacesPolicy(t *testing.T) {
	setUp := newT(t)
	root, err := testkit.ModuleRoot()
	setUp.Expect(err).NotTo(HaveOccurred())
	policy := filepath.Join(root, "config", "components", "allowed-namespaces", "policy.yaml")
	f := newFixture(setUp, mockcloud.Options{}) // it has no allowedNamespaces, and was there before the policy
	kubectl(setUp, "", "apply", "-f", policy)
	t.Cleanup(func() {
		_, err := env.Kubectl(context.WithoutCancel(t.Context()), "", "delete", "--ignore-not-found", "-f", policy)
		setUp.Expect(err).NotTo(HaveOccurred())
	})
	const required = "spec.allowedNamespaces is required: without it, all namespaces could use the Cloud"
	create := func(selector *metav1.LabelSelector) func() error {
		return func() error {
			c := testkit.Cloud("another", f.URL, func(c *pcapi.Cloud) { c.Spec.AllowedNamespaces = selector })
			return env.Client.Create(t.Context(), c, client.DryRunAll)
		}
	}
	setUp.Eventually(create(nil)).Should(MatchError(ContainSubstring(required)), "the policy is in effect")
	setUp.Expect(create(&metav1.LabelSelector{})()).To(Succeed(), "{} says that all namespaces are meant")
	team := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "platform"}}
	setUp.Expect(create(team)()).To(Succeed())
	bootstrap := cloud.Bootstrap{Client: client.NewDryRunClient(env.Client), Endpoint: f.URL}
	setUp.Expect(bootstrap.Start(t.Context())).To(Succeed(), "the Cloud of --default-cloud-endpoint is accepted")

	// The Cloud from before stays usable: its spec and status are written, and it is used by all.
	edit(setUp, f.object, func(c *pcapi.Cloud) { c.Spec.UtilizationStep = 7 })
	setUp.Eventually(func() int64 { return get(setUp, f.object).Status.ObservedGeneration }).Should(Equal(get(setUp, f.object).Generation))
	f.readyVM("web")

	edit(setUp, f.object, func(c *pcapi.Cloud) { c.Spec.AllowedNamespaces = &metav1.LabelSelector{} })
	_, err = tryEdit(setUp, f.object, func(c *pcapi.Cloud) { c.Spec.AllowedNamespaces = nil })
	setUp.Expect(err).To(MatchError(ContainSubstring(required)), "the field cannot be removed again")
	output, err := env.Kubectl(t.Context(), "", "patch", "cloud", f.object.Name, "--type=merge", "-p", `{"spec":{"allowedNamespaces":null}}`)
	setUp.Expect(err).To(HaveOccurred())
	setUp.Expect(output + err.Error()).To(ContainSubstring(`The clouds "` + f.object.Name + `" is invalid: : ValidatingAdmissionPolicy 'private-cloud-operator-allowed-namespaces'`))
	setUp.Expect(get(setUp, f.object).Spec.AllowedNamespaces).NotTo(BeNil())

	kubectl(setUp, "", "delete", "-f", policy)
	setUp.Eventually(create(nil)).Should(Succeed(), "the policy is not in effect for the tests after this one")
}
