package tenancy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// identityIndex is the cache index of Clouds by the cloud that they lead to.
const identityIndex = "identity"

// IndexByIdentity registers the index of Clouds that SameCloud reads.
func IndexByIdentity(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &pcapi.Cloud{}, identityIndex, func(o client.Object) []string {
		return []string{identityOf(o.(*pcapi.Cloud))}
	})
	if err != nil {
		return fmt.Errorf("index Clouds by identity: %w", err)
	}
	return nil
}

// SameCloud returns the names of all Clouds that lead to the same cloud as the
// Cloud with this name, which is among them, sorted: those of the same type with
// the same endpoint. The spelling of an endpoint does not matter: upper case in
// its scheme and host, a final dot of the host, the default port, and slashes at
// the end of the path.
func SameCloud(ctx context.Context, reader client.Reader, name string) ([]string, error) {
	c, err := read(ctx, reader, name)
	if errors.Is(err, errMissing) {
		return []string{name}, nil
	}
	if err != nil {
		return nil, err
	}
	var list pcapi.CloudList
	err = reader.List(ctx, &list, client.MatchingFields{identityIndex: identityOf(c)}, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		return nil, fmt.Errorf("list Clouds that lead to the same cloud: %w", err)
	}
	names := []string{name}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// identityOf returns what identifies the cloud that a Cloud leads to: its type and its
// endpoint.
func identityOf(c *pcapi.Cloud) string {
	return string(cmp.Or(c.Spec.Type, pcapi.CloudTypeREST)) + " " + normalized(c.Spec.Endpoint)
}

// defaultPorts are the ports that an endpoint without a port has, by scheme.
var defaultPorts = map[string]string{"http": "80", "https": "443"}

// normalized returns an endpoint with one spelling for all that mean the same. An
// endpoint that is no URL is returned as it is.
func normalized(endpoint string) string {
	u, err := url.Parse(strings.TrimSpace(endpoint))
	if err != nil || u.Host == "" {
		return endpoint
	}
	scheme := strings.ToLower(u.Scheme)
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	port := cmp.Or(u.Port(), defaultPorts[scheme])
	return fmt.Sprintf("%s://[%s]:%s%s", scheme, host, port, path.Clean("/"+u.Path))
}
