package drain

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// requestsPerSecond bounds what a drain sends. Requests are sent one after the other,
// and client-go waits where the API server answers 429 with Retry-After.
const requestsPerSecond = 50

// NewClient returns a client for Run that reads without a cache.
func NewClient(config *rest.Config) (client.Client, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst, config.RateLimiter = requestsPerSecond, requestsPerSecond, nil
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, pcapi.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return c, nil
}
