// Package volume is a worked example for docs/development/add-a-kind.md: a kind
// Volume whose objects are backed by the volumes of a cloud. It is used by tests
// only, and supplies what internal/external needs of a kind.
//
//	volume.go  the Volume object
//	cloud.go   a cloud in memory that has volumes
//	kind.go    the Volume kind for internal/external
package volume

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// Volume is a volume in a private cloud.
type Volume struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status"`
}

// Spec is what a user asks for.
type Spec struct {
	CloudRef *pcapi.CloudReference `json:"cloudRef"`
	// SizeGiB can grow.
	SizeGiB int `json:"sizeGiB"`
}

// Status is what was last observed.
type Status struct {
	VolumeID           string             `json:"volumeId"`
	Cloud              string             `json:"cloud"`
	ObservedGeneration int64              `json:"observedGeneration"`
	Conditions         []metav1.Condition `json:"conditions"`
}

// List is a list of Volumes.
type List struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Volume `json:"items"`
}

// GetConditions returns the conditions of the Volume.
func (v *Volume) GetConditions() []metav1.Condition { return v.Status.Conditions }

// SetConditions replaces the conditions of the Volume.
func (v *Volume) SetConditions(conditions []metav1.Condition) { v.Status.Conditions = conditions }

// SetObservedGeneration records the generation that the status was computed for.
func (v *Volume) SetObservedGeneration(generation int64) { v.Status.ObservedGeneration = generation }

// DeepCopyObject returns a copy.
func (v *Volume) DeepCopyObject() runtime.Object {
	c := *v
	v.DeepCopyInto(&c.ObjectMeta)
	c.Status.Conditions = slices.Clone(v.Status.Conditions)
	return &c
}

// DeepCopyObject returns a copy.
func (l *List) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = slices.Clone(l.Items)
	return &c
}

// AddToScheme adds the kind to a scheme.
func AddToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(schema.GroupVersion{Group: "example.com", Version: "v1"}, &Volume{}, &List{})
}
