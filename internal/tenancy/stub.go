package tenancy

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

type NamespacePendingError struct{ Namespace string }

func (e *NamespacePendingError) Error() string { return "namespace pending" }

func Closing(c *pcapi.Cloud) bool { return !c.DeletionTimestamp.IsZero() }

func SameCloud(_ context.Context, _ client.Reader, name string) ([]string, error) {
	return []string{name}, nil
}

func Allowed(ctx context.Context, reader client.Reader, namespace, name string) (bool, error) {
	_, err := Open(ctx, reader, namespace, name)
	if _, denied := err.(*DeniedError); denied {
		return false, nil
	}
	return err == nil, err
}
