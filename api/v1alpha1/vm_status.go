package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VMState is a summary of the conditions for people. Programs read the conditions.
// +kubebuilder:validation:Enum=Pending;Creating;Running;Stopped;Suspended;Deleting;Failed;Lost
type VMState string

const (
	VMStatePending   VMState = "Pending"
	VMStateCreating  VMState = "Creating"
	VMStateRunning   VMState = "Running"
	VMStateStopped   VMState = "Stopped"
	VMStateSuspended VMState = "Suspended"
	VMStateDeleting  VMState = "Deleting"
	VMStateFailed    VMState = "Failed"
	VMStateLost      VMState = "Lost"
)

// VMStatus is the last observed state of a VM.
type VMStatus struct {
	// vmId is the cloud's id of this VM. Set once and never changed.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="VM ID"
	// +kubebuilder:validation:MaxLength=128
	// +optional
	VMID string `json:"vmId,omitempty"`

	// cpuUtilization is the mean utilization of the VM's cores in percent, 0-100.
	// Updated at every poll of the cloud. Absent if unknown.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="CPU Utilization in Percent"
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	CPUUtilization *int32 `json:"cpuUtilization,omitempty"`

	// class is the class of spec.className with the size that the VM has taken from it.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Class"
	// +optional
	Class *VMClassStatus `json:"class,omitempty"`

	// state is a summary of the conditions for people. Programs read conditions.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="State",xDescriptors="urn:alm:descriptor:io.kubernetes.phase"
	// +optional
	State VMState `json:"state,omitempty"`

	// host is the host that the VM runs on. Absent if the cloud does not report it.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Host"
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Host string `json:"host,omitempty"`

	// zone is the zone that the VM runs in. Absent if the cloud does not report it.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Zone"
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Zone string `json:"zone,omitempty"`

	// image is the image or template that the VM was made from, as the cloud reports it.
	// Absent if the cloud reports none.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Image"
	// +optional
	Image *VMImageStatus `json:"image,omitempty"`

	// hardware is the size of the VM, as the cloud reports it. Absent if the cloud
	// reports none.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Hardware"
	// +optional
	Hardware *VMHardwareStatus `json:"hardware,omitempty"`

	// network has the addresses of the VM, as the cloud or the guest reports them. Absent
	// if the cloud reports none.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Network"
	// +optional
	Network *VMNetworkStatus `json:"network,omitempty"`

	// securityGroups are the names of the security groups of the VM, as the cloud reports them, at
	// most 64. Absent if the cloud reports none.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Security Groups"
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	SecurityGroups []string `json:"securityGroups,omitempty"`

	// allowedAddresses are the additional addresses and ranges that the cloud reports, at most 64, if
	// spec.allowedAddresses is set or was set before. Absent if there are none, and while they change.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Allowed Addresses"
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	AllowedAddresses []string `json:"allowedAddresses,omitempty"`

	// publicAddress is the address that spec.publicAddress has given the VM. Absent if it has none.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Public Address"
	// +kubebuilder:validation:MaxLength=45
	// +optional
	PublicAddress string `json:"publicAddress,omitempty"`

	// shutdownRequestedTime is when the guest was asked to shut down. Absent if it was not,
	// or once the VM is off.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Shutdown Requested Time"
	// +optional
	ShutdownRequestedTime *metav1.Time `json:"shutdownRequestedTime,omitempty"`

	// stoppedTime is when the operator began to stop a VM whose powerState is Unmanaged, for a
	// change or a restart. It starts the VM after that. Absent once the VM runs again.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Stopped Time"
	// +optional
	StoppedTime *metav1.Time `json:"stoppedTime,omitempty"`

	// lastRestart is what became of the last restart whose time has come. Absent if there
	// was none.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Last Restart"
	// +optional
	LastRestart *VMRestartStatus `json:"lastRestart,omitempty"`

	// disks are the named disks that the cloud reports, by name, at most 64, and those of the
	// spec that were removed in the cloud. Disks of the template have no name, and are left out.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Disks"
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Disks []VMDiskStatus `json:"disks,omitempty"`

	// rootDisk is what the cloud reports of the disk that the VM boots from. Absent where it
	// reports nothing.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Root Disk"
	// +optional
	RootDisk *VMRootDiskStatus `json:"rootDisk,omitempty"`

	// revert is what became of the revert to spec.currentSnapshotName. Absent if none was
	// requested.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Revert"
	// +optional
	Revert *VMRevertStatus `json:"revert,omitempty"`

	// createdTime is when vmId was set: when the cloud answered the create, or when
	// the VM was found or imported.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Created Time"
	// +optional
	CreatedTime *metav1.Time `json:"createdTime,omitempty"`

	// nameInCloud is the name of the VM in the cloud: what the cloud answered to the
	// create, which may differ from spec.vmname if the cloud normalizes names. Before
	// that, on a cloud without labels, it is the name with which a create may have
	// been sent.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Name in the Cloud"
	// +kubebuilder:validation:MaxLength=253
	// +optional
	NameInCloud string `json:"nameInCloud,omitempty"`

	// cloud is the name of the Cloud that the VM runs on.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Cloud"
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Cloud string `json:"cloud,omitempty"`

	// operation is what the cloud works on, if it takes longer than two seconds. Absent
	// otherwise.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Operation"
	// +optional
	Operation *VMOperation `json:"operation,omitempty"`

	// plan is the last plan of a VM whose approval is Required.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Plan"
	// +optional
	Plan *PlanStatus `json:"plan,omitempty"`

	// observedGeneration is the generation of the spec that this status
	// reflects.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed Generation"
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, Reconciling and Stalled, which every kind has, and
	// NameChecked, Created, GuestReady and Deleting.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors="urn:alm:descriptor:io.kubernetes.conditions"
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// VMOperation is a change of the VM that the cloud works on.
type VMOperation struct {
	// id is the cloud's id of the operation.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	ID string `json:"id"`
	// kind is what it does: Create, Update or Delete.
	// +required
	Kind VMOperationKind `json:"kind"`
	// since is when the cloud accepted it.
	// +required
	Since metav1.Time `json:"since"`
}

// VMRestartResult is what became of a restart.
// +kubebuilder:validation:Enum=Restarted;Missed
type VMRestartResult string

const (
	VMRestarted     VMRestartResult = "Restarted"
	VMRestartMissed VMRestartResult = "Missed"
)

// VMRestartStatus is what became of a restart.
type VMRestartStatus struct {
	// requestedTime is the value of spec.nextRestartTime.
	// +required
	RequestedTime metav1.Time `json:"requestedTime"`
	// result is Restarted once the VM was seen off, after which it is started again, or
	// Missed.
	// +required
	Result VMRestartResult `json:"result"`
}

// VMImageStatus is the image or template that a VM was made from.
type VMImageStatus struct {
	// name is the name of the image. Absent if the cloud has not shown it.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Name string `json:"name,omitempty"`
	// id is the cloud's id of the image. Absent if the cloud has none.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	ID string `json:"id,omitempty"`
}

// VMHardwareStatus is what the cloud reports of the size of a VM.
type VMHardwareStatus struct {
	// cpu is the number of cores. Absent if the cloud does not report it.
	// +kubebuilder:validation:Minimum=1
	// +optional
	CPU int32 `json:"cpu,omitempty"`
	// memory is the memory, in whole MiB. Absent if the cloud does not report it.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,18}([MGTPE]i)?$`
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
	// flavor is the name of the flavor. Absent if the cloud does not show it.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Flavor string `json:"flavor,omitempty"`
}

// VMNetworkStatus is what the cloud reports of the network interfaces of a VM.
type VMNetworkStatus struct {
	// primaryIP4 is the first IPv4 address of the first interface that has one. Absent if
	// there is none.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="IPv4 Address"
	// +kubebuilder:validation:MaxLength=15
	// +optional
	PrimaryIP4 string `json:"primaryIP4,omitempty"`

	// primaryIP6 is the first IPv6 address of the first interface that has one. Absent if
	// there is none.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="IPv6 Address"
	// +kubebuilder:validation:MaxLength=39
	// +optional
	PrimaryIP6 string `json:"primaryIP6,omitempty"`

	// interfaces are the network interfaces in the order of the cloud, at most 16.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Interfaces"
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Interfaces []VMInterfaceStatus `json:"interfaces,omitempty"`
}

// VMInterfaceStatus is a network interface of a VM.
type VMInterfaceStatus struct {
	// macAddress is the MAC address, such as fa:16:3e:00:00:01. Absent if the cloud does
	// not report it.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	MACAddress string `json:"macAddress,omitempty"`

	// addresses are IPv4 and IPv6 addresses without prefix lengths, the preferred ones
	// first, at most 16. Loopback and link-local addresses are left out.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=39
	// +optional
	Addresses []string `json:"addresses,omitempty"`
}
