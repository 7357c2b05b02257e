// Package vsphere_test runs the operator with a Cloud of type VSphere, on a simulator of
// a vCenter.
package vsphere_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
	"github.com/privatecloud/operator/internal/setup"
	"github.com/privatecloud/operator/internal/testkit"
)

const (
	operatorNamespace = "private-cloud-system"
	tenantNamespace   = "myoperator-vms"
)

var (
	env     *testkit.Env
	vcenter *vcsim.Server
	// operator is the manager that runs, as user.
	operator *testkit.Manager
	user     *rest.Config
)

func TestVSphere(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "the operator with a vCenter")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(40 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	ctrl.SetLogger(zap.New(zap.WriteTo(GinkgoWriter)))

	var err error
	vcenter, err = vcsim.Start(ctx)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(vcenter.Close)
	env, err = testkit.Start(testkit.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(env.Stop()).To(Succeed()) })
	user, err = env.OperatorConfig(ctx, operatorNamespace)
	Expect(err).NotTo(HaveOccurred())
	startOperator()
	DeferCleanup(func() { Expect(operator.Stop()).To(Succeed()) })

	Expect(env.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenantNamespace}})).To(Succeed())
	home := newCloud(ctx, pcapi.DefaultCloudName)
	Expect(env.Client.Create(ctx, home)).To(Succeed())
	Eventually(ctx, stored(home)).Should(testkit.BeReady())
})

// startOperator starts a manager.
func startOperator() {
	GinkgoHelper()
	var err error
	operator, err = testkit.StartManager(user, setup.Options{Namespace: operatorNamespace})
	Expect(err).NotTo(HaveOccurred())
}

// newCloud returns a Cloud of the vCenter, whose Secret exists, changed.
func newCloud(ctx context.Context, name string, change ...func(*pcapi.Cloud)) *pcapi.Cloud {
	GinkgoHelper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: name, Labels: map[string]string{pcapi.CredentialsForLabel: name}},
		StringData: map[string]string{"username": "operator@vsphere.local", "password": "secret"},
	}
	Expect(env.Client.Create(ctx, secret)).To(Succeed())
	return testkit.Cloud(name, vcenter.URL, append([]func(*pcapi.Cloud){func(c *pcapi.Cloud) {
		c.Spec.Type, c.Spec.REST = pcapi.CloudTypeVSphere, nil
		c.Spec.CredentialsSecretRef, c.Spec.InsecureAllowHTTP = &pcapi.SecretReference{Name: name}, true
		c.Spec.VSphere = &pcapi.VSphereCloud{
			Datacenter: "DC0", Folder: vcsim.Folder, ResourcePool: "/DC0/host/DC0_C0/Resources", Datastore: "LocalDS_0",
			Templates: pcapi.VSphereTemplates{Folder: "/DC0/vm", Default: vcsim.Template},
		}
	}}, change...)...)
}

// stored returns a function that reads the object from the API server.
func stored[T client.Object](object T) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		read := object.DeepCopyObject().(T)
		err := env.Client.Get(ctx, client.ObjectKeyFromObject(object), read)
		return read, err
	}
}

// ready waits until the object is ready, and returns it.
func ready[T client.Object](ctx context.Context, object T) T {
	GinkgoHelper()
	Eventually(ctx, stored(object)).Should(testkit.BeReady())
	current, err := stored(object)(ctx)
	Expect(err).NotTo(HaveOccurred())
	return current
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

// remove deletes the object and waits until it is gone.
func remove(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Expect(env.Client.Delete(ctx, object)).To(Succeed())
	Eventually(ctx, func(ctx context.Context) bool {
		_, err := stored(object)(ctx)
		return apierrors.IsNotFound(err)
	}).Should(BeTrue())
}
