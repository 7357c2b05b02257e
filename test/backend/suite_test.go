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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/setup"
	"github.com/privatecloud/operator/internal/testkit"
)

const (
	operatorNamespace = "private-cloud-system"
	// inMemory is the type of the second backend.
	inMemory pcapi.CloudType = "InMemory"
)

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
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	ctrl.SetLogger(zap.New(zap.WriteTo(GinkgoWriter)))

	var err error
	env, err = testkit.Start(testkit.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(env.Stop()).To(Succeed()) })
	allowType(ctx, inMemory)
	user, err := env.OperatorConfig(ctx, operatorNamespace)
	Expect(err).NotTo(HaveOccurred())

	memory = fake.New(fake.Options{Capabilities: cloud.NewCapabilities(
		cloud.Async, cloud.BulkStatus, cloud.Idempotency, cloud.Labels, cloud.Networks, cloud.Power, cloud.Resize, cloud.Sizing,
	)})
	dial := clouds.DialFunc(func(*pcapi.Cloud, *corev1.Secret) (cloud.Client, error) { return memory, nil })
	operator, err := testkit.StartManager(user, setup.Options{
		Namespace: operatorNamespace, Dialers: map[pcapi.CloudType]clouds.Dialer{inMemory: dial},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(operator.Stop()).To(Succeed()) })

	object := testkit.Cloud("memory", "http://memory.invalid", func(c *pcapi.Cloud) { c.Spec.Type, c.Spec.REST = inMemory, nil })
	Eventually(ctx, func() error { return env.Client.Create(ctx, object.DeepCopy()) }).
		Should(Succeed(), "the API server accepts the type")
	Eventually(ctx, stored(object)).Should(testkit.BeReady())
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

// stored returns a function that reads the object from the API server.
func stored[T client.Object](object T) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		read := object.DeepCopyObject().(T)
		err := env.Client.Get(ctx, client.ObjectKeyFromObject(object), read)
		return read, err
	}
}

// edit changes an object as a user does.
func edit[T client.Object](ctx context.Context, object T, change func(T)) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) error {
		current, err := stored(object)(ctx)
		if err != nil {
			return err
		}
		change(current)
		return env.Client.Update(ctx, current)
	}).Should(Succeed())
}
