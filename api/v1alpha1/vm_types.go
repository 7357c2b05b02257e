package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conditions of a VM, besides the trio.
const (
	// NameCheckedCondition tells whether the cloud lets vmname be used.
	NameCheckedCondition = "NameChecked"
	// CreatedCondition tells whether the VM exists in the cloud.
	CreatedCondition = "Created"
	// DeletingCondition is True while the VM's deletion is under way, and
	// absent otherwise.
	DeletingCondition = "Deleting"
)

// Reasons of NameChecked.
const (
	// AvailableReason: the cloud allowed the name, or already holds this VM
	// under it.
	AvailableReason = "Available"
	// ProhibitedReason: the cloud does not allow the name. Edit spec.vmname.
	ProhibitedReason = "Prohibited"
	// TakenReason: another server or VM has the name.
	TakenReason = "Taken"
	// CheckFailedReason: the cloud could not be asked; asked again.
	CheckFailedReason = "CheckFailed"
)

// Reasons of Created.
const (
	// CreatedReason: the operator created the server.
	CreatedReason = "Created"
	// AdoptedReason: the server of an earlier create was found and taken as
	// ours.
	AdoptedReason = "Adopted"
	// ImportedReason: the server named in spec.import.vmId was taken over.
	ImportedReason = "Imported"
	// PendingReason: the create has not been sent yet.
	PendingReason = "Pending"
	// CreatingReason: the cloud accepted the create and builds the server.
	CreatingReason = "Creating"
	// OutcomeUnknownReason: a create was sent and its answer lost; looked for
	// before anything else is done.
	OutcomeUnknownReason = "OutcomeUnknown"
	// RejectedReason: the cloud refused the spec, or lacks what it asks for.
	RejectedReason = "Rejected"
	// QuotaExceededReason: the cloud has no room; tried again.
	QuotaExceededReason = "QuotaExceeded"
	// AmbiguousReason: more than one server could be this VM, and nothing
	// proves which.
	AmbiguousReason = "Ambiguous"
	// LostReason: the server is gone from the cloud without our doing. It is
	// not made again.
	LostReason = "Lost"
)

// Reasons of Deleting.
const (
	// RequestedReason: the cloud was asked to delete the server.
	RequestedReason = "Requested"
	// WaitingForCloudReason: the cloud cannot be asked now; the object waits.
	WaitingForCloudReason = "WaitingForCloud"
	// BlockedReason: the deletion needs somebody to act first.
	BlockedReason = "Blocked"
)

// Reasons of a VM's Ready condition that no other condition has.
const (
	// RunningReason: the server runs as the spec says.
	RunningReason = "Running"
	// StoppedReason: the server is off, as the spec says.
	StoppedReason = "Stopped"
	// DeletingReason: somebody else deletes the server.
	DeletingReason = "Deleting"
	// CloudUnavailableReason: the Cloud is missing, not ready or not open to
	// this namespace.
	CloudUnavailableReason = "CloudUnavailable"
	// BrakedReason: the Cloud's brake is on; nothing is created or deleted
	// until it is acknowledged.
	BrakedReason = "Braked"
	// UnsupportedReason: this cloud cannot do what the spec asks for.
	UnsupportedReason = "Unsupported"
	// DriftReason: the server differs from the spec in a way that cannot be
	// mended.
	DriftReason = "Drift"
	// ServerErrorReason: the cloud reports the server in error.
	ServerErrorReason = "ServerError"
	// UnknownStateReason: the cloud reports the server in a state that the
	// operator does not know.
	UnknownStateReason = "UnknownState"
)

// PowerState is whether a VM is meant to run.
// +kubebuilder:validation:Enum=On;Off
type PowerState string

const (
	PowerOn  PowerState = "On"
	PowerOff PowerState = "Off"
)

// DeletionPolicy is what happens to the server when its object goes.
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

const (
	DeletionPolicyDelete DeletionPolicy = "Delete"
	DeletionPolicyOrphan DeletionPolicy = "Orphan"
)

// ManagementPolicy is how much the operator may do to the server.
// +kubebuilder:validation:Enum=Managed;ObserveOnly
type ManagementPolicy string

const (
	ManagementPolicyManaged     ManagementPolicy = "Managed"
	ManagementPolicyObserveOnly ManagementPolicy = "ObserveOnly"
)

// VMState sums the conditions up for people. Programs read the conditions.
// +kubebuilder:validation:Enum=Pending;Creating;Running;Stopped;Deleting;Failed;Lost
type VMState string

const (
	VMStatePending  VMState = "Pending"
	VMStateCreating VMState = "Creating"
	VMStateRunning  VMState = "Running"
	VMStateStopped  VMState = "Stopped"
	VMStateDeleting VMState = "Deleting"
	VMStateFailed   VMState = "Failed"
	VMStateLost     VMState = "Lost"
)

// VMSpec is what is wanted of a VM.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.__import__) || (has(self.__import__) && self.__import__.vmId == oldSelf.__import__.vmId)",message="import cannot be changed once it is set; delete the VM with deletionPolicy Orphan and make another"
type VMSpec struct {
	// vmname is the VM's name in the cloud. Required, 1-63 characters: letters
	// and digits of any script, and inside the name space, '.', '_' and '-'.
	// Cannot be changed once the VM exists; a name that the cloud refused can
	// be corrected.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Name in the Cloud",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[\\\\p{L}\\\\p{N}]([\\\\p{L}\\\\p{M}\\\\p{N} ._-]*[\\\\p{L}\\\\p{M}\\\\p{N}])?$')",message="vmname must be 1-63 letters and digits of any script; space, '.', '_' and '-' may stand inside, not at the ends"
	// +required
	VMName string `json:"vmname"`

	// cloudRef names the Cloud that the VM runs on. Defaults to the Cloud that
	// the namespace's label samplecontroller.k8s.io/default-cloud names, else to
	// the Cloud "default". Cannot be changed once the VM exists.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Cloud"
	// +optional
	CloudRef *CloudReference `json:"cloudRef,omitempty"`

	// cpu is the number of cores, 1-1024. Left to the cloud when absent. A
	// change resizes the VM where the cloud can.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Cores",xDescriptors="urn:alm:descriptor:com.tectonic.ui:number"
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	// +optional
	CPU *int32 `json:"cpu,omitempty"`

	// memory is in GiB, 1-65536. Left to the cloud when absent. A change
	// resizes the VM where the cloud can.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Memory in GiB",xDescriptors="urn:alm:descriptor:com.tectonic.ui:number"
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	// +optional
	Memory *int32 `json:"memory,omitempty"`

	// template is the image that the VM is made from, 1-253 characters. Left
	// to the cloud when absent. Cannot be changed once the VM exists.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Template",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Template string `json:"template,omitempty"`

	// folder is the cloud's folder that the VM is put in, 1-253 characters.
	// Cannot be changed once the VM exists.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Folder",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Folder string `json:"folder,omitempty"`

	// networkRef names a Network of this namespace that the VM is attached to;
	// the VM is made once the Network is Ready. Cannot be changed once the VM
	// exists.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Network"
	// +optional
	NetworkRef *NetworkReference `json:"networkRef,omitempty"`

	// powerState is whether the VM runs: On or Off. Defaults to On.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Power State",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:On","urn:alm:descriptor:com.tectonic.ui:select:Off"}
	// +kubebuilder:default=On
	// +optional
	PowerState PowerState `json:"powerState,omitempty"`

	// deletionPolicy is what happens to the VM in the cloud when this object
	// is deleted: Delete removes it first, Orphan leaves it and gives it up.
	// Defaults to Delete.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Deletion Policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Delete","urn:alm:descriptor:com.tectonic.ui:select:Orphan"}
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// managementPolicy is Managed, or ObserveOnly to show the VM's status and
	// change nothing in the cloud. ObserveOnly needs import.vmId, or a VM that
	// exists. Defaults to Managed.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Management Policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Managed","urn:alm:descriptor:com.tectonic.ui:select:ObserveOnly"}
	// +kubebuilder:default=Managed
	// +optional
	ManagementPolicy ManagementPolicy `json:"managementPolicy,omitempty"`

	// import takes over a VM that is already in the cloud instead of creating
	// one. Cannot be changed once set.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Import"
	// +optional
	Import *VMImport `json:"import,omitempty"`
}

// VMImport names an existing VM in the cloud.
type VMImport struct {
	// vmId is the cloud's id of the VM to take over, 1-128 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	VMID string `json:"vmId"`
}

// VMStatus is what was last seen of a VM.
type VMStatus struct {
	// vmId is the cloud's id of this VM. Set once and never changed.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="VM ID"
	// +kubebuilder:validation:MaxLength=128
	// +optional
	VMID string `json:"vmId,omitempty"`

	// cpuUtilization is the mean use of the VM's cores in percent, 0-100.
	// Refreshed at every poll of the cloud; absent until known.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="CPU Utilization in Percent"
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	CPUUtilization *int32 `json:"cpuUtilization,omitempty"`

	// state sums the conditions up for people; programs read conditions.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="State",xDescriptors="urn:alm:descriptor:io.kubernetes.phase"
	// +optional
	State VMState `json:"state,omitempty"`

	// host is where the VM runs, as far as the cloud tells.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Host"
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Host string `json:"host,omitempty"`

	// cloud is the name of the Cloud that the VM runs on.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Cloud"
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Cloud string `json:"cloud,omitempty"`

	// observedGeneration is the generation of the spec that this status
	// answers to.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed Generation"
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: Ready, Reconciling and Stalled as everywhere, and
	// NameChecked, Created, Deleting.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors="urn:alm:descriptor:io.kubernetes.conditions"
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// VM is a virtual machine in a private cloud: created when the object is,
// kept as the spec says, and gone before the object goes.
//
// +operator-sdk:csv:customresourcedefinitions:displayName="VM",resources={{Event,v1}}
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=vms,scope=Namespaced,categories=privatecloud
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, private cloud operator"
// +kubebuilder:printcolumn:name="VMName",type=string,JSONPath=`.spec.vmname`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="CPU%",type=integer,JSONPath=`.status.cpuUtilization`
// +kubebuilder:printcolumn:name="VM ID",type=string,JSONPath=`.status.vmId`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || (has(self.status) && has(self.status.vmId) && self.status.vmId == oldSelf.status.vmId)",message="status.vmId cannot be changed once it is set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || self.spec.vmname == oldSelf.spec.vmname",message="vmname cannot be changed once the VM exists; delete this VM and make another"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || !has(self.spec.cloudRef) || (has(oldSelf.status.cloud) ? self.spec.cloudRef.name == oldSelf.status.cloud : has(oldSelf.spec.cloudRef) && self.spec.cloudRef.name == oldSelf.spec.cloudRef.name)",message="cloudRef cannot be changed once the VM exists; delete this VM and make another"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || (has(self.spec.template) == has(oldSelf.spec.template) && (!has(self.spec.template) || self.spec.template == oldSelf.spec.template))",message="template cannot be changed once the VM exists; delete this VM and make another"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || (has(self.spec.folder) == has(oldSelf.spec.folder) && (!has(self.spec.folder) || self.spec.folder == oldSelf.spec.folder))",message="folder cannot be changed once the VM exists; delete this VM and make another"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || (has(self.spec.networkRef) == has(oldSelf.spec.networkRef) && (!has(self.spec.networkRef) || self.spec.networkRef.name == oldSelf.spec.networkRef.name))",message="networkRef cannot be changed once the VM exists; delete this VM and make another"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || has(oldSelf.spec.__import__) || !has(self.spec.__import__)",message="import cannot be added once the VM exists"
// +kubebuilder:validation:XValidation:rule="self.spec.managementPolicy != 'ObserveOnly' || has(self.spec.__import__) || (has(self.status) && has(self.status.vmId))",message="managementPolicy ObserveOnly needs import.vmId: the id of the VM to observe"
type VM struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is wanted.
	// +required
	Spec VMSpec `json:"spec"`
	// status is what was last seen.
	// +optional
	Status VMStatus `json:"status,omitzero"`
}

// GetConditions returns the conditions of the VM.
func (v *VM) GetConditions() []metav1.Condition { return v.Status.Conditions }

// SetConditions replaces the conditions of the VM.
func (v *VM) SetConditions(conditions []metav1.Condition) { v.Status.Conditions = conditions }

// SetObservedGeneration records which generation of the spec the status
// answers to.
func (v *VM) SetObservedGeneration(generation int64) { v.Status.ObservedGeneration = generation }

// VMList is a list of VM.
//
// +kubebuilder:object:root=true
type VMList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []VM `json:"items"`
}

func init() {
	SchemeBuilder.Register(&VM{}, &VMList{})
}
