// Package specs has what the suites share that run the operator with one type of cloud.
package specs

import (
	"context"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/privatecloud/operator/internal/testkit"
)

// OperatorNamespace is the namespace of the operator.
const OperatorNamespace = "private-cloud-system"

var objects client.Client

// Start starts an API server until the suite ends, and returns the account of the
// operator. Assertions give up after timeout and look every interval.
func Start(ctx context.Context, timeout, interval time.Duration) (*testkit.Env, *rest.Config) {
	ginkgo.GinkgoHelper()
	ctrl.SetLogger(zap.New(zap.WriteTo(ginkgo.GinkgoWriter)))
	env, err := testkit.Start(testkit.Options{})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(func() { gomega.Expect(env.Stop()).To(gomega.Succeed()) })
	account, err := env.OperatorConfig(ctx, OperatorNamespace)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	Use(env, timeout, interval)
	return env, account
}

// Use is Start for an API server that runs already.
func Use(env *testkit.Env, timeout, interval time.Duration) {
	gomega.SetDefaultEventuallyTimeout(timeout)
	gomega.SetDefaultEventuallyPollingInterval(interval)
	gomega.EnforceDefaultTimeoutsWhenUsingContexts()
	objects = env.Client
}

// Stored returns a function that reads the object from the API server.
func Stored[T client.Object](object T) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		read := object.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has the type of the original
		err := objects.Get(ctx, client.ObjectKeyFromObject(object), read)
		return read, err
	}
}

// Ready waits until the object is ready, and returns it.
func Ready[T client.Object](ctx context.Context, object T) T {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, Stored(object)).Should(testkit.BeReady())
	current, err := Stored(object)(ctx)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return current
}

// Edit changes an object as a user does.
func Edit[T client.Object](ctx context.Context, object T, change func(T)) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(ctx context.Context) error {
		current, err := Stored(object)(ctx)
		if err != nil {
			return err
		}
		change(current)
		return objects.Update(ctx, current)
	}).Should(gomega.Succeed())
}

// Remove deletes the object and waits until it is gone.
func Remove(ctx context.Context, object client.Object) {
	ginkgo.GinkgoHelper()
	gomega.Expect(objects.Delete(ctx, object)).To(gomega.Succeed())
	Gone(ctx, object)
}

// Gone waits until the object is gone.
func Gone(ctx context.Context, object client.Object) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(ctx context.Context) bool {
		_, err := Stored(object)(ctx)
		return apierrors.IsNotFound(err)
	}).Should(gomega.BeTrue())
}
