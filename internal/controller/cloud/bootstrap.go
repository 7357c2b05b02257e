package cloud

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// bootstrapInterval is the time between two attempts to create the Cloud.
const bootstrapInterval = 2 * time.Second

// bootstrapQuiet is how long failures are logged as information, and attempts made every
// bootstrapInterval: a pod is ready by then. Later attempts are made every bootstrapSlow.
const (
	bootstrapQuiet = time.Minute
	bootstrapSlow  = 30 * time.Second
)

// Bootstrap creates the Cloud "default" at an endpoint if there is none. The Cloud allows
// all namespaces explicitly, so that the policy of the component allowed-namespaces and the
// webhook of the bundle accept it. Bootstrap is a runnable of the manager.
type Bootstrap struct {
	Client   client.Client
	Endpoint string
}

// NeedLeaderElection returns true, so that standbys do not write.
func (b Bootstrap) NeedLeaderElection() bool { return true }

// Start creates the Cloud and returns. It waits while the API server reports an internal
// error, as it does while it cannot call the webhook of the bundle: this manager serves
// it, and its pod may not be ready yet.
func (b Bootstrap) Start(ctx context.Context) error {
	begun := time.Now()
	for {
		err := b.create(ctx)
		if err == nil {
			return nil
		}
		if !apierrors.IsInternalError(err) && ctx.Err() == nil {
			return fmt.Errorf("create Cloud %q at the endpoint of --default-cloud-endpoint: %w", pcapi.DefaultCloudName, err)
		}
		const message = "the default Cloud is not created yet"
		again := bootstrapInterval
		if logger := log.FromContext(ctx).WithValues("endpoint", b.Endpoint); time.Since(begun) < bootstrapQuiet {
			logger.Info(message, "reason", err.Error())
		} else {
			again = bootstrapSlow
			logger.Error(err, message)
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return nil
		}
	}
}

// create looks for the Cloud first: the API server would call the webhook also for a create
// that fails because the Cloud exists.
func (b Bootstrap) create(ctx context.Context) error {
	c := pcapi.Cloud{
		ObjectMeta: metav1.ObjectMeta{Name: pcapi.DefaultCloudName},
		Spec:       pcapi.CloudSpec{Type: pcapi.CloudTypeREST, Endpoint: b.Endpoint, AllowedNamespaces: &metav1.LabelSelector{}},
	}
	if err := b.Client.Get(ctx, client.ObjectKeyFromObject(&c), &pcapi.Cloud{}); !apierrors.IsNotFound(err) {
		return err
	}
	err := b.Client.Create(ctx, &c)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err == nil {
		log.FromContext(ctx).Info("created the default Cloud", "cloud", c.Name, "endpoint", b.Endpoint)
	}
	return err
}
