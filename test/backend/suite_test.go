// Package backend_test runs the operator with a second backend: a cloud in memory,
// reached through a Dialer of its own and not over HTTP.
package backend_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/setup"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/test/specs"
)

// inMemory is the type of the second backend.
const inMemory pcapi.CloudType = "InMemory"

var (
	env *testkit.Env
	// memory is the cloud that the Cloud "memory" leads to.
	memory    *fake.Cloud
	namespace string
)

func TestBackend(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "the operator with a cloud in memory")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var user *rest.Config
	env, user = specs.Start(ctx, 20*time.Second, 20*time.Millisecond)
	allowType(ctx, inMemory)

	memory = fake.New(fake.Options{Capabilities: cloud.NewCapabilities(
		cloud.Async, cloud.BulkStatus, cloud.Idempotency, cloud.Labels, cloud.Networks, cloud.Power, cloud.Resize, cloud.Sizing,
	)})
	dial := clouds.DialFunc(func(*pcapi.Cloud, *corev1.Secret) (cloud.Client, error) { return memory, nil })
	operator, err := testkit.StartManager(user, setup.Options{
		Namespace: specs.OperatorNamespace, Dialers: map[pcapi.CloudType]clouds.Dialer{inMemory: dial},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(operator.Stop()).To(Succeed()) })

	object := testkit.Cloud("memory", "http://memory.invalid", func(c *pcapi.Cloud) { c.Spec.Type, c.Spec.REST = inMemory, nil })
	Eventually(ctx, func() error { return env.Client.Create(ctx, object.DeepCopy()) }).
		Should(Succeed(), "the API server accepts the type")
	Eventually(ctx, specs.Stored(object)).Should(testkit.BeReady())
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}}
	Expect(env.Client.Create(ctx, made)).To(Succeed())
	namespace = made.Name
})

// allowType adds a type to those that the CRD of Clouds allows.
func allowType(ctx context.Context, added pcapi.CloudType) {
	GinkgoHelper()
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	Expect(env.Client.Get(ctx, client.ObjectKey{Name: "clouds." + pcapi.GroupVersion.Group}, crd)).To(Succeed())
	before := crd.DeepCopy()
	versions, found, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(BeTrue())
	version, ok := versions[0].(map[string]any)
	Expect(ok).To(BeTrue())
	field := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", "type", "enum"}
	allowed, found, err := unstructured.NestedStringSlice(version, field...)
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(BeTrue())
	Expect(unstructured.SetNestedStringSlice(version, append(allowed, string(added)), field...)).To(Succeed())
	Expect(unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")).To(Succeed())
	// The API server writes the status of the CRD at the same time, which a patch does not conflict with.
	Expect(env.Client.Patch(ctx, crd, client.MergeFrom(before))).To(Succeed())
}
