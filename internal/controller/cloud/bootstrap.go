package cloud

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// Bootstrap creates the Cloud "default" at an endpoint if there is none. All namespaces
// may use it, which it says, so that the policy of the component allowed-namespaces
// accepts it. It is a runnable of the manager.
type Bootstrap struct {
	Client   client.Client
	Endpoint string
}

// NeedLeaderElection returns true, so that standbys do not write.
func (b Bootstrap) NeedLeaderElection() bool { return true }

// Start creates the Cloud and returns.
func (b Bootstrap) Start(ctx context.Context) error {
	c := pcapi.Cloud{
		ObjectMeta: metav1.ObjectMeta{Name: pcapi.DefaultCloudName},
		Spec:       pcapi.CloudSpec{Type: pcapi.CloudTypeREST, Endpoint: b.Endpoint, AllowedNamespaces: &metav1.LabelSelector{}},
	}
	err := b.Client.Create(ctx, &c)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create Cloud %q at the endpoint of --default-cloud-endpoint: %w", c.Name, err)
	}
	log.FromContext(ctx).Info("created the default Cloud", "cloud", c.Name, "endpoint", b.Endpoint)
	return nil
}
