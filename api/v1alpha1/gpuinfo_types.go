package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlacedCondition reports whether a node is reserved for the GPUInfo.
const PlacedCondition = "Placed"

// NoneAvailable is the value of suitableNodeName and suitableHostName if no node fits.
const NoneAvailable = "None available"

// Reasons of a GPUInfo's conditions.
const (
	// PlacedReason surfaces when a node is reserved.
	PlacedReason = "Placed"
	// NoneAvailableReason surfaces when no node fits. The operator tries again
	// whenever nodes, servers or hosts change.
	NoneAvailableReason = "NoneAvailable"
	// ExpiredReason surfaces when the reservation has ended and its hours are free
	// for other GPUInfos. The operator chooses another node only on request.
	ExpiredReason = "Expired"
)

// GPUInfoSpec defines the node that is wanted.
type GPUInfoSpec struct {
	// desAccTime is the number of hours for which the host must be available.
	// Required, 1-87600. A change makes the operator choose again.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Desired Access Time in Hours",xDescriptors="urn:alm:descriptor:com.tectonic.ui:number"
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=87600
	// +required
	DesAccTime int64 `json:"desAccTime"`

	// gpuRequired is whether the host must have a GPU. If false, the host must have
	// none. Defaults to false.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="GPU Required",xDescriptors="urn:alm:descriptor:com.tectonic.ui:booleanSwitch"
	// +kubebuilder:default=false
	// +optional
	GPURequired bool `json:"gpuRequired"`

	// cloudRef names the Cloud that this cluster's nodes run on. Defaults to the
	// Cloud in the namespace's label samplecontroller.k8s.io/default-cloud, else
	// to the Cloud "default".
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Cloud"
	// +optional
	CloudRef *CloudReference `json:"cloudRef,omitempty"`
}

// GPUReservation is the part of a host's available hours that is reserved for a GPUInfo.
type GPUReservation struct {
	// host is the name of the cloud's host.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Host string `json:"host"`
	// cloud is the name of the Cloud that the host belongs to.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Cloud string `json:"cloud"`
	// generation of the spec that the reservation was made for.
	// +required
	Generation int64 `json:"generation"`
	// since is when the reservation begins: when the node was chosen.
	// +required
	Since metav1.Time `json:"since"`
	// until is when the reservation ends: desAccTime after since.
	// +required
	Until metav1.Time `json:"until"`
}

// GPUCandidate is a node that the operator considered.
type GPUCandidate struct {
	// nodeName is the name of the Kubernetes node and of its server in the cloud.
	// +kubebuilder:validation:MaxLength=253
	// +required
	NodeName string `json:"nodeName"`
	// hostName is the cloud's host that the server runs on. Absent if unknown.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	HostName string `json:"hostName,omitempty"`
	// message says why the node was chosen, passed over or refused.
	// +kubebuilder:validation:MaxLength=256
	// +required
	Message string `json:"message"`
}

// GPUInfoStatus is the node that was chosen.
type GPUInfoStatus struct {
	// suitableNodeName is the name of the Kubernetes node to use, or "None
	// available".
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

	// nodeCPUUsage is the CPU usage of the node's server in MHz.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Node CPU Usage in MHz"
	// +kubebuilder:default=0
	// +optional
	NodeCPUUsage int64 `json:"nodeCPUUsage"`

	// nodeMemoryUsage is the memory usage of the node's server in MB.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Node Memory Usage in MB"
	// +kubebuilder:default=0
	// +optional
	NodeMemoryUsage int64 `json:"nodeMemoryUsage"`

	// availableAcceleratorTime is the number of hours for which the host is
	// available, as reported by the cloud.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Available Accelerator Time in Hours"
	// +kubebuilder:default=0
	// +optional
	AvailableAcceleratorTime int64 `json:"availableAcceleratorTime"`

	// reservation is the part of the host's hours that no other GPUInfo can use
	// until it ends. Absent if no node is reserved.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Reservation"
	// +optional
	Reservation *GPUReservation `json:"reservation,omitempty"`

	// candidates are the first 64 of the nodes that the operator considered: the
	// chosen one, then those that fit, then the rejected ones.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Candidates"
	// +listType=map
	// +listMapKey=nodeName
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Candidates []GPUCandidate `json:"candidates,omitempty"`

	// expiredGeneration is the generation of the spec whose reservation has ended.
	// Absent once another choice is requested.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Expired Generation"
	// +optional
	ExpiredGeneration int64 `json:"expiredGeneration,omitempty"`

	// lastHandledReconcileAt is the value of the annotation
	// samplecontroller.k8s.io/reconcile-requested-at that was handled last,
	// truncated to 256 characters. After the reservation has ended, a new value
	// requests another choice.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Last Handled Request"
	// +kubebuilder:validation:MaxLength=256
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	// observedGeneration is the generation of the spec that this status
	// reflects.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed Generation"
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, Reconciling and Stalled, which every kind has, and
	// Placed.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors="urn:alm:descriptor:io.kubernetes.conditions"
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GPUInfo requests the Kubernetes node that suits a long-running job best. The
// operator chooses it and reserves hours of its host.
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
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:selectablefield:JSONPath=`.spec.cloudRef.name`
// +kubebuilder:selectablefield:JSONPath=`.status.suitableNodeName`
type GPUInfo struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec defines the node that is wanted.
	// +required
	Spec GPUInfoSpec `json:"spec"`
	// status is the node that was chosen.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status GPUInfoStatus `json:"status,omitzero"`
}

// GetConditions returns the conditions of the GPUInfo.
func (g *GPUInfo) GetConditions() []metav1.Condition { return g.Status.Conditions }

// SetConditions replaces the conditions of the GPUInfo.
func (g *GPUInfo) SetConditions(conditions []metav1.Condition) { g.Status.Conditions = conditions }

// SetObservedGeneration records which generation of the spec the status
// reflects.
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
