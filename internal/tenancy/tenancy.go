// Package tenancy resolves which Cloud an object uses, and whether its namespace
// may use it or a VMClass.
//
//	tenancy.go   the Cloud of an object, and access to it and to VMClasses
//	imports.go   which servers and networks of a Cloud a namespace may import
//	flavors.go   the flavors that VMs may name
//	identity.go  which Clouds lead to the same cloud
//	watch.go     which events change this
//	finder.go    the objects that such an event enqueues
//	scope.go     which Clouds are this manager's, and with them their objects
package tenancy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=clouds,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch

// Elsewhere is what users of a kind with a cloudRef can do if a Cloud is of no use to them.
const Elsewhere = "choose another in spec.cloudRef"

// AccessError is returned if a Cloud or a VMClass does not exist, or a namespace may not use
// it. Its text is the same for both, and reveals nothing else: users of a namespace must not
// learn what exists that they may not use.
type AccessError struct {
	// Kind is Cloud or VMClass.
	Kind, Name, Namespace string
	// Missing: it does not exist. Only administrators may learn that.
	Missing bool
}

func (e *AccessError) Error() string { return e.Or(Elsewhere).Error() }

// Or returns the error, with what users can do instead.
func (e *AccessError) Or(instead string) error {
	return fmt.Errorf("%s: %s, or ask an administrator", e.Fact(), instead)
}

// Fact returns the text without what users can do.
func (e *AccessError) Fact() string {
	return fmt.Sprintf("%s %q does not exist, or namespace %q may not use it", e.Kind, e.Name, e.Namespace)
}

// Cause returns for the log which of the two it is.
func (e *AccessError) Cause() string {
	if e.Missing {
		return "it does not exist"
	}
	return "its allowedNamespaces does not select the namespace"
}

// NamespacePendingError is returned if the cache does not have a namespace yet. An
// object can be observed before the namespace that it was created in a moment
// ago: callers try again after NamespaceDelay and report nothing until then.
type NamespacePendingError struct{ Namespace string }

func (e *NamespacePendingError) Error() string {
	return fmt.Sprintf("namespace %q has not been observed yet", e.Namespace)
}

// NamespaceDelay is the time after which a namespace that the cache did not have
// is looked up again.
const NamespaceDelay = time.Second

// CloudFor returns the name of the Cloud that an object uses: the one in its
// cloudRef, else the one in its namespace's label, else "default". The Cloud may
// not exist. It fails with a *NamespacePendingError if the label is needed and the
// namespace has not been observed.
func CloudFor(ctx context.Context, reader client.Reader, namespace string, ref *pcapi.CloudReference) (string, error) {
	if ref != nil {
		return ref.Name, nil
	}
	set, err := labelsOf(ctx, reader, namespace)
	return cmp.Or(set[pcapi.DefaultCloudLabel], pcapi.DefaultCloudName), err
}

// Open returns the Cloud with this name if the namespace may use it, else an
// *AccessError or a *NamespacePendingError. Nobody may use a Cloud
// whose allowedNamespaces is invalid, which the Cloud reports itself. The Cloud is
// shared with the cache: callers MUST NOT change it. Open does not wait until the cache
// has what this process wrote to the Cloud, which is only status and finalizers.
func Open(ctx context.Context, reader client.Reader, namespace, name string) (*pcapi.Cloud, error) {
	c, err := read(ctx, reader, name)
	switch {
	case errors.Is(err, errMissing):
		return nil, &AccessError{Kind: "Cloud", Name: name, Namespace: namespace, Missing: true}
	case err != nil:
		return nil, err
	}
	switch allowed, err := Selects(ctx, reader, c.Spec.AllowedNamespaces, namespace); {
	case err != nil:
		return nil, err
	case !allowed:
		return nil, &AccessError{Kind: "Cloud", Name: name, Namespace: namespace}
	}
	return c, nil
}

// OpenClass returns the VMClass with this name if the namespace may use it, else an
// *AccessError or a *NamespacePendingError. Nobody may use a VMClass whose allowedNamespaces is
// invalid. It is shared with the cache: callers MUST NOT change it.
func OpenClass(ctx context.Context, reader client.Reader, namespace, name string) (*pcapi.VMClass, error) {
	denied := &AccessError{Kind: "VMClass", Name: name, Namespace: namespace}
	var class pcapi.VMClass
	err := reader.Get(ctx, client.ObjectKey{Name: name}, &class, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		denied.Missing = true
		return nil, denied
	}
	if err != nil {
		return nil, fmt.Errorf("read VMClass %q: %w", name, err)
	}
	switch allowed, err := Selects(ctx, reader, class.Spec.AllowedNamespaces, namespace); {
	case err != nil:
		return nil, err
	case !allowed:
		return nil, denied
	}
	return &class, nil
}

// Selects reports whether a field allowedNamespaces selects a namespace. Nil selects all,
// and what is no valid selector none. It fails with a *NamespacePendingError if the
// namespace has not been observed.
func Selects(ctx context.Context, reader client.Reader, allowed *metav1.LabelSelector, namespace string) (bool, error) {
	if allowed == nil {
		return true, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(allowed)
	if err != nil {
		return false, nil //nolint:nilerr // the Cloud reports it; a VMClass has no status
	}
	set, err := labelsOf(ctx, reader, namespace)
	return err == nil && selector.Matches(set), err
}

// Allowed reports whether a Cloud exists and a namespace may use it. It reads from
// the cache and copies nothing.
func Allowed(ctx context.Context, reader client.Reader, namespace, name string) (bool, error) {
	_, err := Open(ctx, reader, namespace, name)
	if _, denied := errors.AsType[*AccessError](err); denied {
		return false, nil
	}
	return err == nil, err
}

// Closing reports whether a Cloud is being deleted. What is on it stays until its
// objects are deleted, and nothing new is created on it.
func Closing(c *pcapi.Cloud) bool { return !c.DeletionTimestamp.IsZero() }

func labelsOf(ctx context.Context, reader client.Reader, namespace string) (labels.Set, error) {
	ns := NamespaceMetadata()
	err := reader.Get(ctx, client.ObjectKey{Name: namespace}, ns, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, &NamespacePendingError{Namespace: namespace}
	}
	if err != nil {
		return nil, fmt.Errorf("read namespace %q: %w", namespace, err)
	}
	return ns.Labels, nil
}

// NamespaceMetadata returns the type of object that the cache holds for namespaces.
func NamespaceMetadata() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Namespace"}}
}
