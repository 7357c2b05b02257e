package tenancy

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// SameCloud returns the names of all Clouds that lead to the same cloud as the
// Cloud with this name, which is among them, sorted: those of the same type with
// the same endpoint. The spelling of an endpoint does not matter: upper case in
// its scheme and host, a final dot of the host, the default port, and slashes at
// the end of the path.
func SameCloud(ctx context.Context, reader client.Reader, name string) ([]string, error) {
	var list pcapi.CloudList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Clouds: %w", err)
	}
	byIdentity := make(map[identity][]string, len(list.Items))
	same := identity{}
	for i := range list.Items {
		c := &list.Items[i]
		id := identityOf(c)
		byIdentity[id] = append(byIdentity[id], c.Name)
		if c.Name == name {
			same = id
		}
	}
	names := byIdentity[same]
	if len(names) == 0 {
		return []string{name}, nil // the Cloud does not exist
	}
	slices.Sort(names)
	return names, nil
}

// identity identifies a cloud. Clouds with equal identities lead to the same cloud.
type identity struct {
	kind     pcapi.CloudType
	endpoint string
}

func identityOf(c *pcapi.Cloud) identity {
	return identity{kind: cmp.Or(c.Spec.Type, pcapi.CloudTypeREST), endpoint: normalized(c.Spec.Endpoint)}
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
