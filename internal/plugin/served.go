package plugin

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const noOperator = "the operator is not installed in this cluster: check --context, or install it: https://github.com/privatecloud/operator/blob/main/docs/install.md"

// unknownKind says why the cluster does not have a kind of the operator: it has none of them,
// or those of an older operator.
func (e *Env) unknownKind(kind string) string {
	served, err := e.served()
	if err != nil || !served {
		return noOperator
	}
	return fmt.Sprintf("the operator of this cluster is older than this plugin, and has no kind %s: upgrade the operator: https://github.com/privatecloud/operator/blob/main/docs/install.md#upgrade", kind)
}

// served reports whether the cluster has any kind of the operator. It asks the API server:
// the client of kubectl remembers for hours which kinds a cluster had.
func (e *Env) served() (bool, error) {
	config, err := e.RESTConfig()
	if err != nil {
		return false, err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return false, fmt.Errorf("connect to the API server: %w", err)
	}
	groups, err := client.ServerGroups()
	if err != nil {
		return false, fmt.Errorf("read which kinds the cluster has: %w", err)
	}
	return slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == pcapi.GroupVersion.Group }), nil
}
