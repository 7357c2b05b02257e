package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VMConsoleRequestSpec says which part of the serial console of a VM is read, and for whom.
type VMConsoleRequestSpec struct {
	// vmName is the name of the VM of this namespace whose console is read. Required, 1-253 characters.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="VM",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	VMName string `json:"vmName"`

	// lines is how many of the last lines are read, 1-1000. Defaults to 100. A text of more than
	// 64 KiB is cut at its beginning.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Lines",xDescriptors="urn:alm:descriptor:com.tectonic.ui:number"
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Lines int32 `json:"lines,omitempty"`

	// publicKey is the key that the text is encrypted with: a point of the curve P-256 in the
	// uncompressed form of SEC 1, 65 bytes in base64. Required. Only the holder of the private key can
	// read the text.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Public Key",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:MaxLength=88
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9+/]{87}=$`
	// +required
	PublicKey string `json:"publicKey"`
}

// VMConsoleRequestStatus is the answer to a request.
type VMConsoleRequestStatus struct {
	// console is the text, in base64, encrypted by HPKE (RFC 9180) with DHKEM(P-256, HKDF-SHA256),
	// HKDF-SHA256 and AES-256-GCM: the encapsulated key and the ciphertext. The info is the UID of
	// this object. Set once. The text is empty if the console has printed nothing.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Console"
	// +kubebuilder:validation:MaxLength=88000
	// +optional
	Console string `json:"console,omitempty"`

	// readTime is when the console was read. Five minutes later, this object is deleted.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Read Time"
	// +optional
	ReadTime *metav1.Time `json:"readTime,omitempty"`

	// cloud is the name of the Cloud of the VM.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Cloud"
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Cloud string `json:"cloud,omitempty"`

	// observedGeneration is the generation of the spec that this status reflects.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed Generation"
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, Reconciling and Stalled, which every kind has.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors="urn:alm:descriptor:io.kubernetes.conditions"
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// VMConsoleRequest asks once for the last lines that the serial console of a VM printed. It is
// deleted five minutes after it was answered or, without an answer, after it was first looked at.
//
// +operator-sdk:csv:customresourcedefinitions:displayName="VM Console Request",resources={{Event,v1}}
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=vmconsolerequests,scope=Namespaced,categories=privatecloud
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, private cloud operator"
// +kubebuilder:printcolumn:name="VM",type=string,JSONPath=`.spec.vmName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VMConsoleRequest struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is asked for. It cannot be changed.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",reason=FieldValueForbidden,message="spec cannot be changed; create another VMConsoleRequest"
	// +required
	Spec VMConsoleRequestSpec `json:"spec"`
	// status is the answer.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status VMConsoleRequestStatus `json:"status,omitzero"`
}

// GetConditions returns the conditions of the VMConsoleRequest.
func (r *VMConsoleRequest) GetConditions() []metav1.Condition { return r.Status.Conditions }

// SetConditions replaces the conditions of the VMConsoleRequest.
func (r *VMConsoleRequest) SetConditions(conditions []metav1.Condition) {
	r.Status.Conditions = conditions
}

// SetObservedGeneration records which generation of the spec the status reflects.
func (r *VMConsoleRequest) SetObservedGeneration(generation int64) {
	r.Status.ObservedGeneration = generation
}

// VMConsoleRequestList is a list of VMConsoleRequest.
//
// +kubebuilder:object:root=true
type VMConsoleRequestList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []VMConsoleRequest `json:"items"`
}

func init() {
	SchemeBuilder.Register(&VMConsoleRequest{}, &VMConsoleRequestList{})
}
