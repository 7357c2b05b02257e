package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Reasons of a group's Ready condition.
const (
	// ReconciledReason: there are as many members as asked for, all Ready and
	// of the current revision.
	ReconciledReason = "Reconciled"
	// ScalingReason: members are being made or deleted.
	ScalingReason = "Scaling"
	// RollingReason: members of an older revision are being replaced or resized.
	RollingReason = "Rolling"
	// MembersNotReadyReason: all members exist, and some are not Ready yet.
	MembersNotReadyReason = "MembersNotReady"
	// MembersStalledReason: members cannot become what the group asks for until
	// somebody acts. The message gives one member's reason.
	MembersStalledReason = "MembersStalled"
	// OutdatedReason: the strategy is OnDelete, and members of an older revision
	// wait for somebody to delete them.
	OutdatedReason = "Outdated"
)

// StrategyType is how members of an older revision are replaced.
// +kubebuilder:validation:Enum=RollingUpdate;OnDelete
type StrategyType string

const (
	StrategyRollingUpdate StrategyType = "RollingUpdate"
	StrategyOnDelete      StrategyType = "OnDelete"
)

// ScaleDownPolicy is which members go first when a group shrinks.
// +kubebuilder:validation:Enum=Newest;Oldest;LeastUtilised;Random
type ScaleDownPolicy string

const (
	ScaleDownNewest        ScaleDownPolicy = "Newest"
	ScaleDownOldest        ScaleDownPolicy = "Oldest"
	ScaleDownLeastUtilised ScaleDownPolicy = "LeastUtilised"
	ScaleDownRandom        ScaleDownPolicy = "Random"
)

// VmGroupPhase sums the conditions up for people. Programs read the conditions.
// +kubebuilder:validation:Enum=PENDING;SCALING;ROLLING;RUNNING;ERROR;DELETING
type VmGroupPhase string

const (
	VmGroupPending  VmGroupPhase = "PENDING"
	VmGroupScaling  VmGroupPhase = "SCALING"
	VmGroupRolling  VmGroupPhase = "ROLLING"
	VmGroupRunning  VmGroupPhase = "RUNNING"
	VmGroupError    VmGroupPhase = "ERROR"
	VmGroupDeleting VmGroupPhase = "DELETING"
)

// VmGroupSpec is what is wanted of a group.
type VmGroupSpec struct {
	// cpu is the number of cores of each member, 1-1024. Left to the cloud when
	// absent. A change resizes the members where the cloud can, else replaces
	// them.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Cores",xDescriptors="urn:alm:descriptor:com.tectonic.ui:number"
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	// +optional
	CPU *int32 `json:"cpu,omitempty"`

	// memory of each member is in GiB, 1-65536. Left to the cloud when absent. A
	// change resizes the members where the cloud can, else replaces them.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Memory in GiB",xDescriptors="urn:alm:descriptor:com.tectonic.ui:number"
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	// +optional
	Memory *int32 `json:"memory,omitempty"`

	// replicas is the number of members, 0-10000. Defaults to 1.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Replicas",xDescriptors="urn:alm:descriptor:com.tectonic.ui:podCount"
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// template is the image that members are made from, 1-253 characters. Left
	// to the cloud when absent. A change replaces the members.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Template",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Template string `json:"template,omitempty"`

	// cloudRef names the Cloud that the members run on. Defaults to the Cloud
	// that the namespace's label samplecontroller.k8s.io/default-cloud names,
	// else to the Cloud "default". A change replaces the members.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Cloud"
	// +optional
	CloudRef *CloudReference `json:"cloudRef,omitempty"`

	// networkRef names a Network of this namespace that the members are attached
	// to. A change replaces the members.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Network"
	// +optional
	NetworkRef *NetworkReference `json:"networkRef,omitempty"`

	// strategy is how members of an older revision become new ones.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Update Strategy"
	// +kubebuilder:default={type: "RollingUpdate", maxUnavailable: "25%", maxSurge: "25%"}
	// +optional
	Strategy VmGroupStrategy `json:"strategy,omitzero"`

	// scaleDown is which members go when there are too many.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Scale Down"
	// +kubebuilder:default={}
	// +optional
	ScaleDown VmGroupScaleDown `json:"scaleDown,omitzero"`
}

// VmGroupStrategy is how members of an older revision become new ones.
// +kubebuilder:validation:XValidation:rule="self.type != 'RollingUpdate' || !(string(self.maxUnavailable) in ['0', '0%']) || !(string(self.maxSurge) in ['0', '0%'])",message="maxUnavailable and maxSurge must not both be 0: no member could ever be replaced"
type VmGroupStrategy struct {
	// type is RollingUpdate, which replaces or resizes members a few at a time,
	// or OnDelete, which leaves them until somebody deletes them. Defaults to
	// RollingUpdate.
	// +kubebuilder:default=RollingUpdate
	// +optional
	Type StrategyType `json:"type,omitempty"`

	// maxUnavailable is how many members may be missing or not Ready while
	// rolling: a number, or a percentage of replicas, rounded down. Defaults to
	// 25%.
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 10000 : self.matches('^(100|[1-9]?[0-9])%$')",message="maxUnavailable must be a number, 0-10000, or a percentage, 0%-100%"
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// maxSurge is how many members beyond replicas may exist while rolling: a
	// number, or a percentage of replicas, rounded up. Defaults to 25%.
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 10000 : self.matches('^(100|[1-9]?[0-9])%$')",message="maxSurge must be a number, 0-10000, or a percentage, 0%-100%"
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
}

// VmGroupScaleDown is which members go when there are too many.
type VmGroupScaleDown struct {
	// policy is Newest, Oldest, LeastUtilised (by cpuUtilization) or Random.
	// Members that bear the annotation samplecontroller.k8s.io/delete-first go
	// before all others, then those that are not Ready. Defaults to Newest.
	// +kubebuilder:default=Newest
	// +optional
	Policy ScaleDownPolicy `json:"policy,omitempty"`
}

// VmGroupStatus is what was last seen of a group.
type VmGroupStatus struct {
	// phase sums the conditions up for people; programs read conditions.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Phase",xDescriptors="urn:alm:descriptor:io.kubernetes.phase"
	// +optional
	Phase VmGroupPhase `json:"phase,omitempty"`

	// replicas is the number of members that exist in the cloud.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Replicas",xDescriptors="urn:alm:descriptor:com.tectonic.ui:podCount"
	// +optional
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of members that are Ready.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Ready Replicas"
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// updatedReplicas is the number of members of the current revision.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Updated Replicas"
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// cpuUtilization is the mean of the members' cpuUtilization in percent,
	// 0-100, over those where it is known; absent while it is known of none.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="CPU Utilization in Percent"
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	CPUUtilization *int32 `json:"cpuUtilization,omitempty"`

	// revision is a hash of what members are made from.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Revision"
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Revision string `json:"revision,omitempty"`

	// selector finds the members by their labels, for the scale subresource.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Selector"
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Selector string `json:"selector,omitempty"`

	// observedGeneration is the generation of the spec that this status
	// answers to.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed Generation"
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: Ready, Reconciling and Stalled as everywhere, and Deleting.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors="urn:alm:descriptor:io.kubernetes.conditions"
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// VmGroup is a number of VMs of one kind, kept at that number: members are
// made, replaced and deleted as VM objects of the group.
//
// +operator-sdk:csv:customresourcedefinitions:displayName="VM Group",resources={{VM,v1alpha1},{Event,v1}}
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=vmgroups,scope=Namespaced,shortName=vg,categories=privatecloud
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, private cloud operator"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="CPU",type=integer,JSONPath=`.spec.cpu`
// +kubebuilder:printcolumn:name="Memory",type=integer,JSONPath=`.spec.memory`
// +kubebuilder:printcolumn:name="Template",type=string,JSONPath=`.spec.template`
// +kubebuilder:printcolumn:name="Last_Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="CPU%",type=integer,priority=1,JSONPath=`.status.cpuUtilization`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VmGroup struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is wanted.
	// +required
	Spec VmGroupSpec `json:"spec"`
	// status is what was last seen.
	// +optional
	Status VmGroupStatus `json:"status,omitzero"`
}

// GetConditions returns the conditions of the VmGroup.
func (g *VmGroup) GetConditions() []metav1.Condition { return g.Status.Conditions }

// SetConditions replaces the conditions of the VmGroup.
func (g *VmGroup) SetConditions(conditions []metav1.Condition) { g.Status.Conditions = conditions }

// SetObservedGeneration records which generation of the spec the status
// answers to.
func (g *VmGroup) SetObservedGeneration(generation int64) { g.Status.ObservedGeneration = generation }

// VmGroupList is a list of VmGroup.
//
// +kubebuilder:object:root=true
type VmGroupList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []VmGroup `json:"items"`
}

func init() {
	SchemeBuilder.Register(&VmGroup{}, &VmGroupList{})
}
