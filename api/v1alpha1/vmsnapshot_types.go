package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VMNotReadyReason surfaces on a VMSnapshot while its VM does not exist, has no server
// or is being deleted. If the VMSnapshot is Stalled, its VM has another server now.
const VMNotReadyReason = "VMNotReady"

// VMSnapshotSpec is the desired state of a snapshot.
// +kubebuilder:validation:XValidation:rule="has(self.memory) == has(oldSelf.memory) && (!has(self.memory) || self.memory == oldSelf.memory)",reason=FieldValueForbidden,fieldPath=".memory",message="memory cannot be changed; delete this VMSnapshot and make another"
// +kubebuilder:validation:XValidation:rule="has(self.quiesce) == has(oldSelf.quiesce) && (!has(self.quiesce) || self.quiesce == oldSelf.quiesce)",reason=FieldValueForbidden,fieldPath=".quiesce",message="quiesce cannot be changed; delete this VMSnapshot and make another"
// +kubebuilder:validation:XValidation:rule="has(self.description) == has(oldSelf.description) && (!has(self.description) || self.description == oldSelf.description)",reason=FieldValueForbidden,fieldPath=".description",message="description cannot be changed; delete this VMSnapshot and make another"
type VMSnapshotSpec struct {
	// vmName is the name of the VM of this namespace that the snapshot is of. The
	// snapshot is created once the VM has a server. Required, 1-253 characters. Cannot
	// be changed.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="VM",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",reason=FieldValueForbidden,message="vmName cannot be changed; delete this VMSnapshot and make another"
	// +required
	VMName string `json:"vmName"`

	// memory is whether the snapshot holds the memory of a running VM, too. Defaults
	// to false. Cannot be changed.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Memory",xDescriptors="urn:alm:descriptor:com.tectonic.ui:booleanSwitch"
	// +optional
	Memory *bool `json:"memory,omitempty"`

	// quiesce has the guest bring its file systems to rest before the snapshot. Absent
	// for a snapshot as after a power failure. Cannot be changed.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Quiesce"
	// +optional
	Quiesce *VMSnapshotQuiesce `json:"quiesce,omitempty"`

	// description is stored with the snapshot in the cloud. At most 255 characters.
	// Cannot be changed.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Description",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Description string `json:"description,omitempty"`

	// maxAge is how long after takenTime the snapshot is kept, such as 168h; after
	// createdTime if the cloud names no time, or a later one. Then the operator deletes
	// this object, and with it the snapshot. At least one second. Absent for as long as
	// the object exists. Can be changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Max Age",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?(0|([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?(m|s|ms))+)$')",message="maxAge is a duration in h, m and s, such as 168h"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^-?(0|([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?(m|s|ms))+)$') || duration(self) >= duration('1s')",message="maxAge must be at least 1s"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Type=string
	// +optional
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`

	// deletionPolicy is what happens to the snapshot in the cloud when this object is
	// deleted: Delete deletes it before the object, Orphan leaves it in the cloud and
	// no longer manages it. Defaults to Delete. Can be changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Deletion Policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Delete","urn:alm:descriptor:com.tectonic.ui:select:Orphan"}
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// VMSnapshotQuiesce says how the guest is brought to rest.
type VMSnapshotQuiesce struct {
	// timeout is how long the guest may take, such as 5m. Required, from 1s to 1h.
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?(0|([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?(m|s|ms))+)$')",message="timeout is a duration in h, m and s, such as 5m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^-?(0|([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?(m|s|ms))+)$') || (duration(self) >= duration('1s') && duration(self) <= duration('1h'))",message="timeout must be from 1s to 1h"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Type=string
	// +required
	Timeout metav1.Duration `json:"timeout"`
}

// VMSnapshotStatus is the last observed state of a snapshot.
type VMSnapshotStatus struct {
	// snapshotId is the cloud's id of the snapshot. Set once and never changed.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Snapshot ID"
	// +kubebuilder:validation:MaxLength=128
	// +optional
	SnapshotID string `json:"snapshotId,omitempty"`

	// vmId is the cloud's id of the server that the snapshot is of. Set before the
	// snapshot is created, and never changed.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="VM ID"
	// +kubebuilder:validation:MaxLength=128
	// +optional
	VMID string `json:"vmId,omitempty"`

	// nameInCloud is the name of the snapshot in the cloud: the one that the cloud gave it at
	// the create.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Name in the Cloud"
	// +kubebuilder:validation:MaxLength=253
	// +optional
	NameInCloud string `json:"nameInCloud,omitempty"`

	// sizeBytes is what the snapshot takes in the cloud, as last observed. Absent if
	// the cloud does not report it.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Size"
	// +optional
	SizeBytes int64 `json:"sizeBytes,omitempty"`

	// takenTime is when the cloud took the snapshot, as last observed. Absent if the
	// cloud does not report it.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Taken Time"
	// +optional
	TakenTime *metav1.Time `json:"takenTime,omitempty"`

	// createdTime is when snapshotId was set: when the cloud answered the create, or
	// when the snapshot was found.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Created Time"
	// +optional
	CreatedTime *metav1.Time `json:"createdTime,omitempty"`

	// cloud is the name of the Cloud that the snapshot is in.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Cloud"
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Cloud string `json:"cloud,omitempty"`

	// observedGeneration is the generation of the spec that this status reflects.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed Generation"
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, Reconciling and Stalled, which every kind has, and
	// Created and Deleting.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors="urn:alm:descriptor:io.kubernetes.conditions"
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// VMSnapshot is a snapshot of a VM in a private cloud: created when the object is, and
// deleted before the object is removed.
//
// +operator-sdk:csv:customresourcedefinitions:displayName="VM Snapshot",resources={{Event,v1}}
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=vmsnapshots,scope=Namespaced,categories=privatecloud
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, private cloud operator"
// +kubebuilder:printcolumn:name="VM",type=string,JSONPath=`.spec.vmName`
// +kubebuilder:printcolumn:name="Snapshot ID",type=string,JSONPath=`.status.snapshotId`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Max Age",type=string,priority=1,JSONPath=`.spec.maxAge`
// +kubebuilder:printcolumn:name="Cloud",type=string,priority=1,JSONPath=`.status.cloud`
// +kubebuilder:printcolumn:name="Deleting",type=date,priority=1,JSONPath=`.metadata.deletionTimestamp`
// +kubebuilder:selectablefield:JSONPath=`.status.cloud`
// +kubebuilder:selectablefield:JSONPath=`.spec.vmName`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.snapshotId) || (has(self.status) && has(self.status.snapshotId) && self.status.snapshotId == oldSelf.status.snapshotId)",reason=FieldValueForbidden,fieldPath=".status.snapshotId",message="status.snapshotId cannot be changed once it is set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || (has(self.status) && has(self.status.vmId) && self.status.vmId == oldSelf.status.vmId)",reason=FieldValueForbidden,fieldPath=".status.vmId",message="status.vmId cannot be changed once it is set"
type VMSnapshot struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	// +required
	Spec VMSnapshotSpec `json:"spec"`
	// status is the last observed state.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status VMSnapshotStatus `json:"status,omitzero"`
}

// GetConditions returns the conditions of the VMSnapshot.
func (s *VMSnapshot) GetConditions() []metav1.Condition { return s.Status.Conditions }

// SetConditions replaces the conditions of the VMSnapshot.
func (s *VMSnapshot) SetConditions(conditions []metav1.Condition) { s.Status.Conditions = conditions }

// SetObservedGeneration records which generation of the spec the status reflects.
func (s *VMSnapshot) SetObservedGeneration(generation int64) {
	s.Status.ObservedGeneration = generation
}

// VMSnapshotList is a list of VMSnapshot.
//
// +kubebuilder:object:root=true
type VMSnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []VMSnapshot `json:"items"`
}

func init() {
	SchemeBuilder.Register(&VMSnapshot{}, &VMSnapshotList{})
}
