package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Reasons of a group's Ready condition.
const (
	// ReconciledReason surfaces when the group has as many members as the spec
	// says, all Ready and of the current revision.
	ReconciledReason = "Reconciled"
	// ScalingReason surfaces when members are being created or deleted.
	ScalingReason = "Scaling"
	// RollingReason surfaces when members of an older revision are being replaced or resized.
	RollingReason = "Rolling"
	// MembersNotReadyReason surfaces when all members exist and some are not Ready yet.
	MembersNotReadyReason = "MembersNotReady"
	// MembersStalledReason surfaces when members are Stalled: they cannot become
	// Ready until somebody acts. The message has the reason of one member.
	MembersStalledReason = "MembersStalled"
	// OutdatedReason surfaces when the strategy is OnDelete and members of an
	// older revision wait for somebody to delete them.
	OutdatedReason = "Outdated"
)

// VmGroupPhase is a summary of the conditions for people. Programs read the conditions.
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

// VmGroupSpec is the desired state of a group.
// +kubebuilder:validation:XValidation:rule="!has(self.className) || !(has(self.cpu) || has(self.memory))",reason=FieldValueForbidden,fieldPath=".className",message="className cannot be set together with cpu or memory: remove them to use the class, or remove className"
// +kubebuilder:validation:XValidation:rule="!has(self.flavor) || !(has(self.className) || has(self.cpu) || has(self.memory))",reason=FieldValueForbidden,fieldPath=".flavor",message="flavor cannot be set together with className, cpu or memory: remove them to use the flavor, or remove flavor"
// +kubebuilder:validation:XValidation:rule="!has(self.publicAddress) || !has(oldSelf.publicAddress) || self.publicAddress.network == oldSelf.publicAddress.network",reason=FieldValueForbidden,fieldPath=".publicAddress.network",message="publicAddress.network cannot be changed; remove publicAddress, wait until the members have no public address, and add it again"
// +kubebuilder:validation:XValidation:rule="!has(self.networkRef) || !has(self.network)",reason=FieldValueForbidden,fieldPath=".networkRef",message="networkRef cannot be set together with network: name its Network in an interface of network.interfaces, or remove network"
type VmGroupSpec struct {
	// cpu is the number of cores of each member, 1-1024. If absent, the cloud
	// decides. A change resizes the members if the cloud supports it, else it
	// replaces them.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Cores",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +optional
	CPU *VMCores `json:"cpu,omitempty"`

	// memory is the memory of each member: an integer in GiB, 1-65536, or a quantity
	// such as 512Mi, 1Mi-64Ti. If absent, the cloud decides. A change resizes the
	// members if the cloud supports it, else it replaces them.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Memory",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +optional
	Memory *VMMemory `json:"memory,omitempty"`

	// className names the VMClass whose size each member has, 1-63 characters,
	// instead of cpu and memory. A change resizes the members if
	// the cloud supports it, else it replaces them.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Class",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	ClassName string `json:"className,omitempty"`

	// flavor is the name of the flavor of the cloud that each member has, 1-255 characters,
	// instead of className, cpu and memory. VMs may name those that
	// spec.openstack.flavors.selectable of the Cloud lists. A change resizes the members.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Flavor",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +optional
	Flavor VMFlavor `json:"flavor,omitempty"`

	// replicas is the desired number of members, 0-10000. Defaults to 1. Can be
	// changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Replicas",xDescriptors="urn:alm:descriptor:com.tectonic.ui:podCount"
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// template is the image that members are created from, 1-253 characters. If
	// absent, the cloud decides. A change replaces the members.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Template",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Template string `json:"template,omitempty"`

	// cloudRef names the Cloud that the members run on. Defaults to the Cloud in
	// the namespace's label samplecontroller.k8s.io/default-cloud, else to the
	// Cloud "default". A change replaces the members.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Cloud"
	// +optional
	CloudRef *CloudReference `json:"cloudRef,omitempty"`

	// zone is the zone of the cloud that members are created in, 1-63 characters. If absent,
	// the cloud decides. A change replaces the members.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Zone",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Zone string `json:"zone,omitempty"`

	// antiAffinity keeps the members on different hosts. It holds for the create of a member.
	// A change replaces the members.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Anti-affinity"
	// +optional
	AntiAffinity *VmGroupAntiAffinity `json:"antiAffinity,omitempty"`

	// networkRef names a Network of this namespace that the members are attached to
	// with one interface. A change replaces the members.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Network"
	// +optional
	NetworkRef *NetworkReference `json:"networkRef,omitempty"`

	// network is the network interfaces of each member, instead of networkRef. A change
	// replaces the members.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Network Interfaces"
	// +optional
	Network *VmGroupNetwork `json:"network,omitempty"`

	// securityGroups are the names of the security groups of all interfaces of each member, 1-16: the
	// members have these and no others. If absent, the cloud decides. Can be changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Security Groups"
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +optional
	SecurityGroups []SecurityGroupName `json:"securityGroups,omitempty"`

	// allowedAddresses are addresses and ranges, 1-10, that each member may use beside its own on all
	// its interfaces. Can be added, changed and removed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Allowed Addresses"
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +optional
	AllowedAddresses []AllowedAddress `json:"allowedAddresses,omitempty"`

	// publicAddress gives each member an address of an external network. Can be added and removed
	// at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Public Address"
	// +optional
	PublicAddress *VMPublicAddress `json:"publicAddress,omitempty"`

	// bootstrap is what members read at their first boot: user data and SSH keys. A
	// change replaces the members; a change of the data of the Secret does not.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Bootstrap"
	// +optional
	Bootstrap *VMBootstrap `json:"bootstrap,omitempty"`

	// powerOffMode is how a member that runs is stopped, as when it is restarted for a new
	// size. A change applies to all members and changes none of their servers. Defaults to
	// TrySoft.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Power-off Mode",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:TrySoft","urn:alm:descriptor:com.tectonic.ui:select:Soft","urn:alm:descriptor:com.tectonic.ui:select:Hard"}
	// +optional
	PowerOffMode PowerOffMode `json:"powerOffMode,omitempty"`

	// powerOffTimeout is how long after the guest was asked to shut down a member is powered
	// off with TrySoft, 1s-24h. A change is as that of powerOffMode. Defaults to 5m.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Power-off Timeout",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?(0|([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?(m|s|ms))+)$')",message="powerOffTimeout is a duration in h, m and s, such as 5m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^-?(0|([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?(m|s|ms))+)$') || (duration(self) >= duration('1s') && duration(self) <= duration('24h'))",message="powerOffTimeout must be 1s to 24h"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Type=string
	// +optional
	PowerOffTimeout *metav1.Duration `json:"powerOffTimeout,omitempty"`

	// readinessProbe is when the guest of a member counts as ready. A member whose guest is
	// not is not Ready, so that a rolling update waits for it. A change applies to all members
	// and changes none of their servers.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Readiness Probe"
	// +optional
	ReadinessProbe *VMReadinessProbe `json:"readinessProbe,omitempty"`

	// tags are labels of the members in the cloud, as those of a VM. A change applies to all
	// members at once, and restarts and replaces none.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Tags"
	// +optional
	Tags VMTags `json:"tags,omitempty"`

	// disks are the disks of each member beside those of the template, at most 16. To add or
	// grow one changes the members in place. To remove or shrink one, or change its type, replaces
	// the members: what their disks hold is lost.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Disks"
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Disks []VMDisk `json:"disks,omitempty"`

	// rootDisk is the size and the type of the disk that each member boots from. If absent, the
	// template and the cloud decide. To add the size or a larger one changes the members in place.
	// To remove it or set a smaller one, or to change the type, replaces the members: what their
	// disks hold is lost.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Root Disk"
	// +optional
	RootDisk *VMRootDisk `json:"rootDisk,omitempty"`

	// strategy is how the operator replaces members of an older revision.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Update Strategy"
	// +kubebuilder:default={type: "RollingUpdate", maxUnavailable: "25%", maxSurge: "25%"}
	// +optional
	Strategy VmGroupStrategy `json:"strategy,omitzero"`

	// approval is Required to have each plan of changes of the members in the cloud wait
	// until the annotation samplecontroller.k8s.io/approved-plan on the group names its hash.
	// Members get the same approval, and the group approves their plans. Defaults to
	// NotRequired. Can be changed at any time, and changes no server.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Approval",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:NotRequired","urn:alm:descriptor:com.tectonic.ui:select:Required"}
	// +optional
	Approval ApprovalPolicy `json:"approval,omitempty"`

	// scaleDown is which members the operator deletes when there are too many.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Scale Down"
	// +kubebuilder:default={}
	// +optional
	ScaleDown VmGroupScaleDown `json:"scaleDown,omitzero"`
}

// VmGroupStatus is the last observed state of a group.
type VmGroupStatus struct {
	// phase is a summary of the conditions for people. Programs read conditions.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Phase",xDescriptors="urn:alm:descriptor:io.kubernetes.phase"
	// +optional
	Phase VmGroupPhase `json:"phase,omitempty"`

	// replicas is the number of members that exist in the cloud.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Replicas",xDescriptors="urn:alm:descriptor:com.tectonic.ui:podCount"
	// +kubebuilder:default=0
	// +optional
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of members that are Ready.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Ready Replicas"
	// +kubebuilder:default=0
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// updatedReplicas is the number of members of the current revision.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Updated Replicas"
	// +kubebuilder:default=0
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// cpuUtilization is the mean of the members' cpuUtilization in percent, 0-100.
	// Members whose utilization is unknown do not count. Absent if there are no
	// others.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="CPU Utilization in Percent"
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	CPUUtilization *int32 `json:"cpuUtilization,omitempty"`

	// revision is a hash of the fields that members are created from.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Revision"
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Revision string `json:"revision,omitempty"`

	// selector is the label selector of the members, for the scale subresource.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Selector"
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Selector string `json:"selector,omitempty"`

	// plan is the last plan of a group whose approval is Required.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Plan"
	// +optional
	Plan *PlanStatus `json:"plan,omitempty"`

	// observedGeneration is the generation of the spec that this status
	// reflects.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed Generation"
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, Reconciling and Stalled, which every kind has, and
	// Deleting.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors="urn:alm:descriptor:io.kubernetes.conditions"
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// VmGroup keeps a number of identical VMs. The operator creates, replaces and
// deletes the members as VM objects.
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
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.spec.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.spec.memory`
// +kubebuilder:printcolumn:name="Template",type=string,JSONPath=`.spec.template`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Last_Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="CPU%",type=integer,priority=1,JSONPath=`.status.cpuUtilization`
// +kubebuilder:printcolumn:name="Deleting",type=date,priority=1,JSONPath=`.metadata.deletionTimestamp`
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:selectablefield:JSONPath=`.spec.cloudRef.name`
type VmGroup struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	// +required
	Spec VmGroupSpec `json:"spec"`
	// status is the last observed state.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status VmGroupStatus `json:"status,omitzero"`
}

// GetConditions returns the conditions of the VmGroup.
func (g *VmGroup) GetConditions() []metav1.Condition { return g.Status.Conditions }

// SetConditions replaces the conditions of the VmGroup.
func (g *VmGroup) SetConditions(conditions []metav1.Condition) { g.Status.Conditions = conditions }

// SetObservedGeneration records which generation of the spec the status
// reflects.
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
