// Package tenancy resolves which Cloud an object uses, and whether its namespace
// may use it.
//
//	tenancy.go  the Cloud of an object, and access to it
//	watch.go    which events change this
//	finder.go   the objects that such an event enqueues
package tenancy

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=clouds,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// MissingError is returned if a Cloud does not exist.
type MissingError struct{ Cloud string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("Cloud %q does not exist: create it, or choose another in spec.cloudRef", e.Cloud)
}

// DeniedError is returned if a namespace may not use a Cloud. It reveals nothing
// else about that Cloud.
type DeniedError struct{ Namespace, Cloud string }

func (e *DeniedError) Error() string {
	return fmt.Sprintf("namespace %q may not use Cloud %q: choose another in spec.cloudRef, or ask the administrator of the Cloud", e.Namespace, e.Cloud)
}

// CloudFor returns the name of the Cloud that an object uses: the one in its
// cloudRef, else the one in its namespace's label, else "default". The Cloud may
// not exist.
func CloudFor(ctx context.Context, reader client.Reader, namespace string, ref *pcapi.CloudReference) (string, error) {
	if ref != nil {
		return ref.Name, nil
	}
	set, err := labelsOf(ctx, reader, namespace)
	return cmp.Or(set[pcapi.DefaultCloudLabel], pcapi.DefaultCloudName), err
}

// Open returns the Cloud with this name if the namespace may use it, else a
// *MissingError or a *DeniedError. The Cloud is shared with the cache: callers
// MUST NOT change it.
func Open(ctx context.Context, reader client.Reader, namespace, name string) (*pcapi.Cloud, error) {
	var c pcapi.Cloud
	err := reader.Get(ctx, client.ObjectKey{Name: name}, &c)
	switch {
	case apierrors.IsNotFound(err):
		return nil, &MissingError{Cloud: name}
	case err != nil:
		return nil, fmt.Errorf("read Cloud %q: %w", name, err)
	case c.Spec.AllowedNamespaces == nil:
		return &c, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(c.Spec.AllowedNamespaces)
	if err != nil {
		return nil, fmt.Errorf("read allowedNamespaces of Cloud %q: %w", name, err)
	}
	set, err := labelsOf(ctx, reader, namespace)
	if err != nil {
		return nil, err
	}
	if !selector.Matches(set) {
		return nil, &DeniedError{Namespace: namespace, Cloud: name}
	}
	return &c, nil
}

func labelsOf(ctx context.Context, reader client.Reader, namespace string) (labels.Set, error) {
	ns := namespaceMetadata()
	if err := reader.Get(ctx, client.ObjectKey{Name: namespace}, ns); err != nil {
		return nil, fmt.Errorf("read namespace %q: %w", namespace, err)
	}
	return ns.Labels, nil
}

// namespaceMetadata returns the type of object that the cache holds for namespaces.
func namespaceMetadata() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Namespace"}}
}
