package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VMClassSpec is a size of VMs, and who may use it.
// +kubebuilder:validation:XValidation:rule="has(self.openstack) == has(oldSelf.openstack) && (!has(self.openstack) || self.openstack == oldSelf.openstack)",reason=FieldValueForbidden,fieldPath=".openstack",message="openstack cannot be changed; create another VMClass, and change className of the VMs that are to have its flavor"
type VMClassSpec struct {
	// hardware is the size of the VMs. It cannot be changed: VMs keep the size of the
	// class that they were created with.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",reason=FieldValueForbidden,message="hardware cannot be changed; create another VMClass, and change className of the VMs that are to have its size"
	// +required
	Hardware VMClassHardware `json:"hardware"`

	// openstack is what VMs of the class have on Clouds of type OpenStack. It cannot be
	// changed.
	// +optional
	OpenStack *VMClassOpenStack `json:"openstack,omitempty"`

	// allowedNamespaces selects, by their labels, the namespaces whose VMs may take the
	// class. Absent or empty means all. Can be changed at any time; VMs that have the
	// class keep it.
	// +optional
	AllowedNamespaces *metav1.LabelSelector `json:"allowedNamespaces,omitempty"`

	// description says what the class is for, at most 256 characters. Can be
	// changed at any time.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Description string `json:"description,omitempty"`
}

// VMClassHardware is the size of VMs.
type VMClassHardware struct {
	// cpu is the number of cores, 1-1024.
	// +required
	CPU VMCores `json:"cpu"`

	// memory is the memory: an integer in GiB, 1-65536, or a quantity such as 512Mi,
	// 1Mi-64Ti.
	// +required
	Memory VMMemory `json:"memory"`
}

// VMClassOpenStack is what VMs of a class have on Clouds of type OpenStack.
type VMClassOpenStack struct {
	// flavor is the name of the flavor of the VMs, 1-255 characters. The servers have its
	// size, whatever hardware says.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	Flavor string `json:"flavor"`
}

// VMClass has no status, so operator-sdk cannot generate its part of the CSV: see
// docs/development/add-a-kind.md.

// VMClass is a size of VMs that administrators offer to namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=vmclasses,scope=Cluster,categories=privatecloud
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, private cloud operator"
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.spec.hardware.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.spec.hardware.memory`
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=`.spec.description`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",reason=FieldValueInvalid,fieldPath=".metadata",message="a VMClass's name must not be longer than 63 characters"
type VMClass struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the size, and who may use it.
	// +required
	Spec VMClassSpec `json:"spec"`
}

// VMClassList is a list of VMClass.
//
// +kubebuilder:object:root=true
type VMClassList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []VMClass `json:"items"`
}

// VMClassStatus is the class that a VM has taken.
type VMClassStatus struct {
	// name is the name of the VMClass.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
	// hardware is the size of the class when the VM took it. It stays, also if the
	// class is deleted or created anew with another size.
	// +required
	Hardware VMClassHardware `json:"hardware"`
	// flavor is spec.openstack.flavor of the class when the VM took it. Absent if the class
	// had none.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Flavor string `json:"flavor,omitempty"`
}

func init() {
	SchemeBuilder.Register(&VMClass{}, &VMClassList{})
}
