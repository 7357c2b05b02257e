package imports

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin"
	"github.com/privatecloud/operator/internal/tenancy"
)

// target is where the VMs are to be: a namespace and a Cloud.
type target struct {
	namespace string
	cloud     string
	policy    cloudPolicy
	// isDefault is whether the Cloud is known to be that of objects without a cloudRef.
	isDefault bool
	// denied is whether the namespace is known not to be one that may use the Cloud.
	denied bool
	// names are those of the VMs of the namespace.
	names names
	// nodes are those of the cluster whose servers are left out, and nodesUnknown is that
	// they may not be listed.
	nodes        nodes
	nodesUnknown bool
}

func (t *target) allows(id string) bool { return t.policy.allows(t.namespace, id) }

// advice returns what has to be set before the manifests are applied; empty if nothing.
func (t *target) advice(planned, unlisted int) string {
	text := t.policy.advice(planned, unlisted, t.namespace)
	if t.denied && planned > 0 {
		text += fmt.Sprintf("Namespace %s may not use Cloud %q: see spec.allowedNamespaces of the Cloud\n", t.namespace, t.cloud)
	}
	return text
}

// targetOf reads what the manifests depend on, with the Nodes if withNodes. What the user may not read is not known.
func targetOf(ctx context.Context, env *plugin.Env, cloudName string, withNodes bool) (target, error) {
	t := target{cloud: cloudName, policy: cloudPolicy{name: cloudName}, names: names{}}
	var err error
	if t.namespace, err = env.Namespace(); err != nil {
		return t, err
	}
	c, err := env.Client()
	if err != nil {
		return t, err
	}
	var of pcapi.Cloud
	switch err := c.Get(ctx, client.ObjectKey{Name: cloudName}, &of); {
	case err == nil:
		t.policy = policyOf(&of)
	case apierrors.IsNotFound(err):
		return t, fmt.Errorf("Cloud %q does not exist: see kubectl get clouds", cloudName)
	case !apierrors.IsForbidden(err):
		return t, fmt.Errorf("read Cloud %q: %w", cloudName, err)
	}
	if err := t.readNamespace(ctx, c, &of); err != nil {
		return t, err
	}
	if withNodes {
		err := plugin.Each(ctx, c, &corev1.NodeList{}, func(n *corev1.Node) error {
			t.nodes.add(n)
			return nil
		})
		if t.nodesUnknown = apierrors.IsForbidden(err); err != nil && !t.nodesUnknown {
			return t, err
		}
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(pcapi.GroupVersion.WithKind("VMList"))
	err = plugin.Each(ctx, c, list, func(vm *metav1.PartialObjectMetadata) error {
		t.names[vm.Name] = true
		return nil
	}, client.InNamespace(t.namespace))
	return t, err
}

// readNamespace finds out which Cloud is the default of the namespace, and whether the
// namespace may use the Cloud. One that does not exist yet may get any label.
func (t *target) readNamespace(ctx context.Context, c client.Client, of *pcapi.Cloud) error {
	byDefault, err := tenancy.CloudFor(ctx, c, t.namespace, nil)
	_, pending := errors.AsType[*tenancy.NamespacePendingError](err)
	if pending || apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return err
	}
	t.isDefault = byDefault == t.cloud
	if t.policy.known {
		allowed, err := tenancy.Selects(ctx, c, of.Spec.AllowedNamespaces, t.namespace)
		t.denied = err == nil && !allowed
	}
	return nil
}
