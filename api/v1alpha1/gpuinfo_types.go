package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlacedCondition tells whether a GPUInfo has a node reserved.
const PlacedCondition = "Placed"

// NoneAvailable stands in suitableNodeName and suitableHostName when nothing fits.
const NoneAvailable = "None available"

// Reasons of a GPUInfo's conditions.
const (
	// PlacedReason: a node that fits is reserved.
	PlacedReason = "Placed"
	// NoneAvailableReason: no node fits now; asked again whenever nodes, servers
	// or hosts change.
	NoneAvailableReason = "NoneAvailable"
	// ExpiredReason: the hours that were asked for are over, and the node is free
	// for others again; nothing is chosen anew before somebody asks for it.
	ExpiredReason = "Expired"
)

// GPUInfoSpec is what is asked of a node.
type GPUInfoSpec struct {
	// desAccTime is for how many hours the host must be available, 1-87600.
	// Required.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Desired Access Time in Hours",xDescriptors="urn:alm:descriptor:com.tectonic.ui:number"
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=87600
	// +required
	DesAccTime int64 `json:"desAccTime"`

	// gpuRequired is whether the host must have a GPU (true) or must have none
	// (false). Defaults to false.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="GPU Required",xDescriptors="urn:alm:descriptor:com.tectonic.ui:booleanSwitch"
	// +kubebuilder:default=false
	// +optional
	GPURequired bool `json:"gpuRequired"`

	// cloudRef names the Cloud that this cluster's nodes run on. Defaults to the
	// Cloud that the namespace's label samplecontroller.k8s.io/default-cloud
	// names, else to the Cloud "default".
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Cloud"
	// +optional
	CloudRef *CloudReference `json:"cloudRef,omitempty"`
}

// GPUReservation is the part of a host's available hours that a GPUInfo holds.
type GPUReservation struct {
	// host is the cloud's host.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Host string `json:"host"`
	// cloud is the name of the Cloud whose host that is.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Cloud string `json:"cloud"`
	// generation is the generation of the spec that the reservation was made for.
	// +required
	Generation int64 `json:"generation"`
	// since is when the choice was made.
	// +required
	Since metav1.Time `json:"since"`
	// until is when it ends: desAccTime after since.
	// +required
	Until metav1.Time `json:"until"`
}

// GPUCandidate is a node that was looked at.
type GPUCandidate struct {
	// nodeName is the Kubernetes node, and the cloud's server of the same name.
	// +kubebuilder:validation:MaxLength=253
	// +required
	NodeName string `json:"nodeName"`
	// hostName is the cloud's host that the server runs on, as far as it is known.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	HostName string `json:"hostName,omitempty"`
	// message says why the node was chosen, passed over or refused.
	// +kubebuilder:validation:MaxLength=256
	// +required
	Message string `json:"message"`
}

// GPUInfoStatus is the node that was found.
type GPUInfoStatus struct {
	// suitableNodeName is the Kubernetes node to use, or "None available".
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Suitable Node"
	// +kubebuilder:validation:MaxLength=253
	// +optional
	SuitableNodeName string `json:"suitableNodeName,omitempty"`

	// suitableHostName is the cloud's host that the node runs on, or "None
	// available".
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Suitable Host"
	// +kubebuilder:validation:MaxLength=253
	// +optional
	SuitableHostName string `json:"suitableHostName,omitempty"`

	// nodeCPUUsage is the CPU use of the node's server in MHz.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Node CPU Usage in MHz"
	// +optional
	NodeCPUUsage int64 `json:"nodeCPUUsage"`

	// nodeMemoryUsage is the memory use of the node's server in MB.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Node Memory Usage in MB"
	// +optional
	NodeMemoryUsage int64 `json:"nodeMemoryUsage"`

	// availableAcceleratorTime is for how many hours the host is available, as
	// the cloud tells.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Available Accelerator Time in Hours"
	// +optional
	AvailableAcceleratorTime int64 `json:"availableAcceleratorTime"`

	// reservation holds the chosen host's hours against other GPUInfos until it
	// ends; absent when nothing is placed.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Reservation"
	// +optional
	Reservation *GPUReservation `json:"reservation,omitempty"`

	// candidates are the nodes that were looked at, the chosen one first, then
	// those that fit, then the refused ones; the first 64.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Candidates"
	// +listType=map
	// +listMapKey=nodeName
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Candidates []GPUCandidate `json:"candidates,omitempty"`

	// expiredGeneration is the generation of the spec whose hours are over;
	// absent once another choice was asked for.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Expired Generation"
	// +optional
	ExpiredGeneration int64 `json:"expiredGeneration,omitempty"`

	// lastHandledReconcileAt is the value of the annotation
	// samplecontroller.k8s.io/reconcile-requested-at that was answered last, cut
	// after 256 characters. After the hours are over, another value asks for
	// another choice.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Last Handled Request"
	// +kubebuilder:validation:MaxLength=256
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	// observedGeneration is the generation of the spec that this status
	// answers to.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed Generation"
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: Ready, Reconciling and Stalled as everywhere, and Placed.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors="urn:alm:descriptor:io.kubernetes.conditions"
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GPUInfo asks for the Kubernetes node that suits a long-running job best, and
// reserves its host's hours for it.
//
// +operator-sdk:csv:customresourcedefinitions:displayName="GPU Info",resources={{Node,v1},{Event,v1}}
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=gpuinfos,scope=Namespaced,shortName=gpu,categories=privatecloud
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, private cloud operator"
// +kubebuilder:printcolumn:name="Desired Access Time (hrs)",type=integer,JSONPath=`.spec.desAccTime`
// +kubebuilder:printcolumn:name="GPU Required",type=boolean,JSONPath=`.spec.gpuRequired`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.suitableNodeName`
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.status.suitableHostName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GPUInfo struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is asked of a node.
	// +required
	Spec GPUInfoSpec `json:"spec"`
	// status is the node that was found.
	// +optional
	Status GPUInfoStatus `json:"status,omitzero"`
}

// GetConditions returns the conditions of the GPUInfo.
func (g *GPUInfo) GetConditions() []metav1.Condition { return g.Status.Conditions }

// SetConditions replaces the conditions of the GPUInfo.
func (g *GPUInfo) SetConditions(conditions []metav1.Condition) { g.Status.Conditions = conditions }

// SetObservedGeneration records which generation of the spec the status
// answers to.
func (g *GPUInfo) SetObservedGeneration(generation int64) { g.Status.ObservedGeneration = generation }

// GPUInfoList is a list of GPUInfo.
//
// +kubebuilder:object:root=true
type GPUInfoList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []GPUInfo `json:"items"`
}

func init() {
	SchemeBuilder.Register(&GPUInfo{}, &GPUInfoList{})
}
