// Package v1alpha1 holds the kinds of samplecontroller.k8s.io/v1alpha1: what
// people write to have a private cloud follow.
//
// +kubebuilder:object:generate=true
// +groupName=samplecontroller.k8s.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of every kind here.
	GroupVersion = schema.GroupVersion{Group: "samplecontroller.k8s.io", Version: "v1alpha1"}

	// SchemeBuilder collects what AddToScheme registers.
	SchemeBuilder = &builder{}

	// AddToScheme adds the kinds of this group and version to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// builder registers kinds by example, as the files of operator-sdk create api do.
// +kubebuilder:object:generate=false
type builder struct{ kinds []runtime.Object }

// Register adds kinds to those of AddToScheme.
func (b *builder) Register(kinds ...runtime.Object) {
	b.kinds = append(b.kinds, kinds...)
}

// AddToScheme adds every registered kind to scheme.
func (b *builder) AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, b.kinds...)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
