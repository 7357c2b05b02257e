package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeletionPolicy is what happens to the server when its object is deleted.
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

const (
	DeletionPolicyDelete DeletionPolicy = "Delete"
	DeletionPolicyOrphan DeletionPolicy = "Orphan"
)

// ManagementPolicy is what the operator may do with the server.
// +kubebuilder:validation:Enum=Managed;ObserveOnly
type ManagementPolicy string

const (
	ManagementPolicyManaged     ManagementPolicy = "Managed"
	ManagementPolicyObserveOnly ManagementPolicy = "ObserveOnly"
)

// UpdatePolicy is whether the server may be restarted for a change of its size.
// +kubebuilder:validation:Enum=NoRestart;RestartAllowed
type UpdatePolicy string

const (
	UpdatePolicyNoRestart      UpdatePolicy = "NoRestart"
	UpdatePolicyRestartAllowed UpdatePolicy = "RestartAllowed"
)

// VMOperationKind is what an operation of the cloud does.
// +kubebuilder:validation:Enum=Create;Update;Delete
type VMOperationKind string

const (
	VMOperationCreate VMOperationKind = "Create"
	VMOperationUpdate VMOperationKind = "Update"
	VMOperationDelete VMOperationKind = "Delete"
)

// VMSpec is the desired state of a VM.
// +kubebuilder:validation:XValidation:rule="!has(self.className) || !(has(self.cpu) || has(self.memory))",reason=FieldValueForbidden,fieldPath=".className",message="className cannot be set together with cpu or memory: remove them to use the class, or remove className"
// +kubebuilder:validation:XValidation:rule="!has(self.flavor) || !(has(self.className) || has(self.cpu) || has(self.memory))",reason=FieldValueForbidden,fieldPath=".flavor",message="flavor cannot be set together with className, cpu or memory: remove them to use the flavor, or remove flavor"
// +kubebuilder:validation:XValidation:rule="!has(self.networkRef) || !has(self.network)",reason=FieldValueForbidden,fieldPath=".networkRef",message="networkRef cannot be set together with network: name its Network in an interface of network.interfaces, or remove network"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.__import__) || (has(self.__import__) && self.__import__.vmId == oldSelf.__import__.vmId)",reason=FieldValueForbidden,fieldPath=".import",message="import cannot be changed once it is set; delete the VM with deletionPolicy Orphan and make another"
type VMSpec struct {
	// vmname is the VM's name in the cloud. Required, 1-63 characters: letters
	// and digits of any script; space, '.', '_' and '-' except at the ends.
	// Cannot be changed once the VM exists; a name that the cloud refused can
	// be corrected.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Name in the Cloud",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[\\\\p{L}\\\\p{N}]([\\\\p{L}\\\\p{M}\\\\p{N} ._-]*[\\\\p{L}\\\\p{M}\\\\p{N}])?$')",message="vmname must be 1-63 letters and digits of any script; space, '.', '_' and '-' may stand inside, not at the ends"
	// +required
	VMName string `json:"vmname"`

	// cloudRef names the Cloud that the VM runs on. Defaults to the Cloud in the
	// namespace's label samplecontroller.k8s.io/default-cloud, else to the Cloud
	// "default". Cannot be changed once the VM exists.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Cloud"
	// +optional
	CloudRef *CloudReference `json:"cloudRef,omitempty"`

	// cpu is the number of cores, 1-1024. If absent, the cloud decides. A change
	// resizes the VM if the cloud supports it.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Cores",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +optional
	CPU *VMCores `json:"cpu,omitempty"`

	// memory is the memory: an integer in GiB, 1-65536, or a quantity such as 512Mi,
	// 1Mi-64Ti. If absent, the cloud decides. A change resizes the VM if the cloud
	// supports it.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Memory",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +optional
	Memory *VMMemory `json:"memory,omitempty"`

	// className names the VMClass whose size the VM has, 1-63 characters,
	// instead of cpu and memory. A change resizes the VM if the
	// cloud supports it.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Class",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	ClassName string `json:"className,omitempty"`

	// flavor is the name of the flavor of the cloud that the VM has, 1-255 characters,
	// instead of className, cpu and memory. VMs may name those that
	// spec.openstack.flavors.selectable of the Cloud lists. A change resizes the VM.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Flavor",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +optional
	Flavor VMFlavor `json:"flavor,omitempty"`

	// template is the image that the VM is created from, 1-253 characters. If
	// absent, the cloud decides. Cannot be changed once the VM exists.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Template",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Template string `json:"template,omitempty"`

	// folder is the folder of the cloud that the VM is created in, 1-253
	// characters. If absent, the cloud decides. Cannot be changed once the VM
	// exists.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Folder",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Folder string `json:"folder,omitempty"`

	// zone is the zone of the cloud that the VM is created in, 1-63 characters. If absent,
	// the cloud decides. Cannot be changed once the VM exists.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Zone",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Zone string `json:"zone,omitempty"`

	// antiAffinity keeps the VM on another host than the VMs of the same group. It holds for
	// the create. Cannot be changed once the VM exists.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Anti-affinity"
	// +optional
	AntiAffinity *VMAntiAffinity `json:"antiAffinity,omitempty"`

	// networkRef names a Network of this namespace that the VM is attached to with one
	// interface. The VM is created once the Network is Ready. Cannot be changed once the VM
	// exists.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Network"
	// +optional
	NetworkRef *NetworkReference `json:"networkRef,omitempty"`

	// network is the network interfaces of the VM, instead of networkRef. Cannot be changed
	// once the VM exists.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Network Interfaces"
	// +optional
	Network *VMNetwork `json:"network,omitempty"`

	// securityGroups are the names of the security groups of all interfaces of the VM, 1-16: the VM
	// has these and no others. If absent, the cloud decides, and the VM keeps what it has. Can be
	// changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Security Groups"
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +optional
	SecurityGroups []SecurityGroupName `json:"securityGroups,omitempty"`

	// allowedAddresses are addresses and ranges, 1-10, that the VM may use beside its own on all its
	// interfaces, such as one that it shares with other VMs. Clouds such as OpenStack drop packets
	// from other addresses. Can be added, changed and removed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Allowed Addresses"
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +optional
	AllowedAddresses []AllowedAddress `json:"allowedAddresses,omitempty"`

	// publicAddress gives the VM an address of an external network, by which its first interface is
	// reached from outside its own network. The address is deleted with the VM, or when this is
	// removed. Can be added and removed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Public Address"
	// +optional
	PublicAddress *VMPublicAddress `json:"publicAddress,omitempty"`

	// bootstrap is what the VM reads at its first boot: user data and SSH keys. Cannot
	// be changed once the VM exists.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Bootstrap"
	// +optional
	Bootstrap *VMBootstrap `json:"bootstrap,omitempty"`

	// disks are the disks of the VM beside those of its template, at most 16. They are
	// created empty and deleted with the VM. Once the VM exists, disks can be added and
	// grown, but a disk that the VM has cannot be removed or shrunk.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Disks"
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Disks []VMDisk `json:"disks,omitempty"`

	// rootDisk is the size and the type of the disk that the VM boots from. If absent, the
	// template and the cloud decide, and the VM keeps what it has. The size can grow and never
	// shrinks. The type cannot be changed once the VM exists.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Root Disk"
	// +optional
	RootDisk *VMRootDisk `json:"rootDisk,omitempty"`

	// tags are labels of the VM in the cloud, at most 16, of which the operator keeps the
	// values. Keys are 1-63 letters, digits, '.', '_' and '-', and have at most 240 characters
	// together; values at most 255, and all keys and values at most 1024. Labels that others
	// set stay, unless a tag has their key. On a cloud without the capability labels, tags are
	// Unsupported. Can be changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Tags"
	// +optional
	Tags VMTags `json:"tags,omitempty"`

	// powerState is whether the VM runs: On, Off, Suspended or Unmanaged. The cloud keeps the memory
	// of a VM that is Suspended, with which it resumes when this is On. A VM that is off or
	// does not exist yet is started before it is suspended, and one that is suspended is
	// resumed before it is stopped. On a cloud without the capability suspend, Suspended
	// is Unsupported and nothing is sent. Unmanaged leaves the power state to the owner of the
	// guest: the VM is created running, is Ready whether it runs or not, and is stopped only
	// for a change that updatePolicy allows or for nextRestartTime, and started after that.
	// Defaults to On. Can be changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Power State",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:On","urn:alm:descriptor:com.tectonic.ui:select:Off","urn:alm:descriptor:com.tectonic.ui:select:Suspended","urn:alm:descriptor:com.tectonic.ui:select:Unmanaged"}
	// +kubebuilder:default=On
	// +optional
	PowerState PowerState `json:"powerState,omitempty"`

	// powerOffMode is how a VM that runs is stopped, for powerState, nextRestartTime or
	// updatePolicy: TrySoft asks the guest to shut down, and powers the VM off after
	// powerOffTimeout, or at once if the cloud cannot ask the guest; Soft asks the guest
	// and never powers the VM off; Hard powers it off. An OpenStack asks the guest and
	// powers the VM off after a timeout of its own with TrySoft and Hard, and lacks Soft.
	// A deletion does not ask the guest. Defaults to TrySoft. Can be changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Power-off Mode",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:TrySoft","urn:alm:descriptor:com.tectonic.ui:select:Soft","urn:alm:descriptor:com.tectonic.ui:select:Hard"}
	// +optional
	PowerOffMode PowerOffMode `json:"powerOffMode,omitempty"`

	// powerOffTimeout is how long after the guest was asked to shut down the VM is powered
	// off with TrySoft, 1s-24h. An OpenStack ignores it. Defaults to 5m. Can be changed at
	// any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Power-off Timeout",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?(0|([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?(m|s|ms))+)$')",message="powerOffTimeout is a duration in h, m and s, such as 5m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^-?(0|([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?(m|s|ms))+)$') || (duration(self) >= duration('1s') && duration(self) <= duration('24h'))",message="powerOffTimeout must be 1s to 24h"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Type=string
	// +optional
	PowerOffTimeout *metav1.Duration `json:"powerOffTimeout,omitempty"`

	// nextRestartTime is when the VM is stopped and started again, once; the present time
	// for now. A restart that has not begun an hour after that is missed, and not made, as
	// is one of a VM that is Off or Suspended. Can be changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Next Restart Time",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +optional
	NextRestartTime *metav1.Time `json:"nextRestartTime,omitempty"`

	// readinessProbe is when the guest counts as ready, which the condition GuestReady reports.
	// If absent, there is no such condition. Can be changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Readiness Probe"
	// +optional
	ReadinessProbe *VMReadinessProbe `json:"readinessProbe,omitempty"`

	// currentSnapshotName is the VMSnapshot of this VM, in the same namespace, to which
	// the VM is reverted: once whenever this is set or changed. What the disks hold since
	// the snapshot is lost. Can be changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Current Snapshot Name",xDescriptors="urn:alm:descriptor:io.kubernetes:VMSnapshot"
	// +kubebuilder:validation:MaxLength=253
	// +optional
	CurrentSnapshotName string `json:"currentSnapshotName,omitempty"`

	// deletionPolicy is what happens to the VM in the cloud when this object is
	// deleted: Delete deletes it before the object, Orphan leaves it in the cloud
	// and no longer manages it. Defaults to Delete. Can be changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Deletion Policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Delete","urn:alm:descriptor:com.tectonic.ui:select:Orphan"}
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// managementPolicy is Managed, or ObserveOnly to report the VM's status and
	// change nothing in the cloud. ObserveOnly needs import.vmId, or a VM that
	// exists. Defaults to Managed. Can be changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Management Policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Managed","urn:alm:descriptor:com.tectonic.ui:select:ObserveOnly"}
	// +kubebuilder:default=Managed
	// +optional
	ManagementPolicy ManagementPolicy `json:"managementPolicy,omitempty"`

	// updatePolicy is RestartAllowed to stop and start a running VM for a change of cpu,
	// memory or disks that the cloud makes only while it is stopped. With NoRestart such a
	// change waits until somebody stops the VM. A VM that is Suspended is resumed for any
	// change of these with RestartAllowed, and suspended again; with NoRestart the change
	// waits until it is On or Off. Defaults to NoRestart. Can be changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Update Policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:NoRestart","urn:alm:descriptor:com.tectonic.ui:select:RestartAllowed"}
	// +optional
	UpdatePolicy UpdatePolicy `json:"updatePolicy,omitempty"`

	// approval is Required to have each plan of changes in the cloud, also of drift and of
	// the deletion, wait until the annotation samplecontroller.k8s.io/approved-plan names
	// its hash. Defaults to NotRequired. Can be changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Approval",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:NotRequired","urn:alm:descriptor:com.tectonic.ui:select:Required"}
	// +optional
	Approval ApprovalPolicy `json:"approval,omitempty"`

	// import takes over a VM that exists in the cloud instead of creating one.
	// Cannot be changed once it is set, nor added once the VM exists.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Import"
	// +optional
	Import *VMImport `json:"import,omitempty"`
}

// VMImport names an existing VM in the cloud.
type VMImport struct {
	// vmId is the cloud's id of the VM to take over. Required, 1-128 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	VMID string `json:"vmId"`
}

// VM is a virtual machine in a private cloud: created when the object is, kept
// in sync with the spec, and deleted before the object is removed.
//
// +operator-sdk:csv:customresourcedefinitions:displayName="VM",resources={{EndpointSlice,v1},{Event,v1}}
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
// +kubebuilder:printcolumn:name="Cloud",type=string,priority=1,JSONPath=`.status.cloud`
// +kubebuilder:printcolumn:name="Host",type=string,priority=1,JSONPath=`.status.host`
// +kubebuilder:printcolumn:name="Zone",type=string,priority=1,JSONPath=`.status.zone`
// +kubebuilder:printcolumn:name="IP",type=string,priority=1,JSONPath=`.status.network.primaryIP4`
// +kubebuilder:printcolumn:name="Guest",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="GuestReady")].status`
// +kubebuilder:printcolumn:name="Class",type=string,priority=1,JSONPath=`.spec.className`
// +kubebuilder:printcolumn:name="Image",type=string,priority=1,JSONPath=`.status.image.name`
// +kubebuilder:printcolumn:name="CPU",type=integer,priority=1,JSONPath=`.status.hardware.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,priority=1,JSONPath=`.status.hardware.memory`
// +kubebuilder:printcolumn:name="Deleting",type=date,priority=1,JSONPath=`.metadata.deletionTimestamp`
// +kubebuilder:selectablefield:JSONPath=`.status.state`
// +kubebuilder:selectablefield:JSONPath=`.status.cloud`
// +kubebuilder:selectablefield:JSONPath=`.spec.cloudRef.name`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || (has(self.status) && has(self.status.vmId) && self.status.vmId == oldSelf.status.vmId)",reason=FieldValueForbidden,fieldPath=".status.vmId",message="status.vmId cannot be changed once it is set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || self.spec.vmname == oldSelf.spec.vmname",reason=FieldValueForbidden,fieldPath=".spec.vmname",message="vmname cannot be changed once the VM exists; delete this VM and make another"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || !has(self.spec.cloudRef) || (has(oldSelf.status.cloud) ? self.spec.cloudRef.name == oldSelf.status.cloud : has(oldSelf.spec.cloudRef) && self.spec.cloudRef.name == oldSelf.spec.cloudRef.name)",reason=FieldValueForbidden,fieldPath=".spec.cloudRef",message="cloudRef cannot be changed once the VM exists; delete this VM and make another"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || (has(self.spec.template) == has(oldSelf.spec.template) && (!has(self.spec.template) || self.spec.template == oldSelf.spec.template))",reason=FieldValueForbidden,fieldPath=".spec.template",message="template cannot be changed once the VM exists; delete this VM and make another"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || (has(self.spec.folder) == has(oldSelf.spec.folder) && (!has(self.spec.folder) || self.spec.folder == oldSelf.spec.folder))",reason=FieldValueForbidden,fieldPath=".spec.folder",message="folder cannot be changed once the VM exists; delete this VM and make another"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || (has(self.spec.zone) == has(oldSelf.spec.zone) && (!has(self.spec.zone) || self.spec.zone == oldSelf.spec.zone))",reason=FieldValueForbidden,fieldPath=".spec.zone",message="zone cannot be changed once the VM exists; delete this VM and make another"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || (has(self.spec.antiAffinity) == has(oldSelf.spec.antiAffinity) && (!has(self.spec.antiAffinity) || self.spec.antiAffinity == oldSelf.spec.antiAffinity))",reason=FieldValueForbidden,fieldPath=".spec.antiAffinity",message="antiAffinity cannot be changed once the VM exists; delete this VM and make another"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || (has(self.spec.networkRef) == has(oldSelf.spec.networkRef) && (!has(self.spec.networkRef) || self.spec.networkRef.name == oldSelf.spec.networkRef.name))",reason=FieldValueForbidden,fieldPath=".spec.networkRef",message="networkRef cannot be changed once the VM exists; delete this VM and make another"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || (has(self.spec.network) == has(oldSelf.spec.network) && (!has(self.spec.network) || self.spec.network == oldSelf.spec.network))",reason=FieldValueForbidden,fieldPath=".spec.network",message="network cannot be changed once the VM exists; delete this VM and make another"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || !has(self.spec.publicAddress) || !has(oldSelf.spec.publicAddress) || self.spec.publicAddress.network == oldSelf.spec.publicAddress.network",reason=FieldValueForbidden,fieldPath=".spec.publicAddress.network",message="publicAddress.network cannot be changed once the VM exists; remove publicAddress, wait until the VM has no public address, and add it again"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.publicAddress) || has(oldSelf.spec.publicAddress) || !has(self.spec.publicAddress)",reason=FieldValueForbidden,fieldPath=".spec.publicAddress",message="publicAddress cannot be added while the VM still has its former public address; add it once status.publicAddress is empty"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || (has(self.spec.bootstrap) == has(oldSelf.spec.bootstrap) && (!has(self.spec.bootstrap) || self.spec.bootstrap == oldSelf.spec.bootstrap))",reason=FieldValueForbidden,fieldPath=".spec.bootstrap",message="bootstrap cannot be changed once the VM exists, since it is read at the first boot; delete this VM and make another"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || !has(oldSelf.status.disks) || !has(oldSelf.spec.disks) || oldSelf.spec.disks.all(o, !oldSelf.status.disks.exists(s, s.name == o.name && has(s.size)) || (has(self.spec.disks) && self.spec.disks.exists(d, d.name == o.name)))",reason=FieldValueForbidden,fieldPath=".spec.disks",message="a disk that the VM has cannot be removed, since its data would be lost; remove it in the cloud first, or delete this VM and make another"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || !has(oldSelf.status.disks) || !has(oldSelf.spec.disks) || oldSelf.spec.disks.all(o, !oldSelf.status.disks.exists(s, s.name == o.name && has(s.size)) || !has(self.spec.disks) || !self.spec.disks.exists(d, d.name == o.name && quantity(d.size).isLessThan(quantity(o.size)) && oldSelf.status.disks.exists(s, s.name == o.name && has(s.size) && quantity(d.size).isLessThan(quantity(s.size)))))",reason=FieldValueForbidden,fieldPath=".spec.disks",message="a disk cannot shrink: set its size back to what it was, or add another disk"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || !has(oldSelf.status.disks) || !has(oldSelf.spec.disks) || !has(self.spec.disks) || oldSelf.spec.disks.all(o, !oldSelf.status.disks.exists(s, s.name == o.name && has(s.size)) || !self.spec.disks.exists(d, d.name == o.name && (has(d.type) != has(o.type) || (has(d.type) && d.type != o.type))))",reason=FieldValueForbidden,fieldPath=".spec.disks",message="the type of a disk that the VM has cannot be changed: set it back to what it was, or add another disk"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || (has(self.spec.rootDisk) && has(self.spec.rootDisk.type) ? has(oldSelf.spec.rootDisk) && has(oldSelf.spec.rootDisk.type) && self.spec.rootDisk.type == oldSelf.spec.rootDisk.type : !has(oldSelf.spec.rootDisk) || !has(oldSelf.spec.rootDisk.type))",reason=FieldValueForbidden,fieldPath=".spec.rootDisk.type",message="rootDisk.type cannot be changed once the VM exists; delete this VM and make another"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || !has(oldSelf.status.rootDisk) || !has(oldSelf.status.rootDisk.size) || !has(oldSelf.spec.rootDisk) || !has(oldSelf.spec.rootDisk.size) || !has(self.spec.rootDisk) || !has(self.spec.rootDisk.size) || !quantity(self.spec.rootDisk.size).isLessThan(quantity(oldSelf.spec.rootDisk.size)) || !quantity(self.spec.rootDisk.size).isLessThan(quantity(oldSelf.status.rootDisk.size))",reason=FieldValueForbidden,fieldPath=".spec.rootDisk.size",message="the root disk cannot shrink: set rootDisk.size back to what it was, or make another VM with a smaller one"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.vmId) || has(oldSelf.spec.__import__) || !has(self.spec.__import__)",reason=FieldValueForbidden,fieldPath=".spec.import",message="import cannot be added once the VM exists"
// +kubebuilder:validation:XValidation:rule="self.spec.managementPolicy != 'ObserveOnly' || has(self.spec.__import__) || (has(self.status) && has(self.status.vmId))",reason=FieldValueRequired,fieldPath=".spec.import",message="managementPolicy ObserveOnly needs import.vmId: the id of the VM to observe"
type VM struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	// +required
	Spec VMSpec `json:"spec"`
	// status is the last observed state.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status VMStatus `json:"status,omitzero"`
}

// GetConditions returns the conditions of the VM.
func (v *VM) GetConditions() []metav1.Condition { return v.Status.Conditions }

// SetConditions replaces the conditions of the VM.
func (v *VM) SetConditions(conditions []metav1.Condition) { v.Status.Conditions = conditions }

// SetObservedGeneration records which generation of the spec the status
// reflects.
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
