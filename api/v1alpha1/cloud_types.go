package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultCloudName is the Cloud of objects without cloudRef whose namespace has no
// DefaultCloudLabel.
const DefaultCloudName = "default"

// CloudType is the type of a cloud's API.
// +kubebuilder:validation:Enum=REST;VSphere;OpenStack
type CloudType string

const (
	CloudTypeREST      CloudType = "REST"
	CloudTypeVSphere   CloudType = "VSphere"
	CloudTypeOpenStack CloudType = "OpenStack"
)

// OrphanPolicy is what the operator does with servers whose object no longer exists.
// +kubebuilder:validation:Enum=Report;Delete
type OrphanPolicy string

const (
	OrphanPolicyReport OrphanPolicy = "Report"
	OrphanPolicyDelete OrphanPolicy = "Delete"
)

// CloudSpec defines where a cloud is and how the operator uses it.
// +kubebuilder:validation:XValidation:rule="!has(self.credentialsSecretRef) || self.endpoint.startsWith('https://') || (has(self.insecureAllowHTTP) && self.insecureAllowHTTP)",reason=FieldValueInvalid,fieldPath=".endpoint",message="credentials are sent over https only: use an https endpoint, or set insecureAllowHTTP to true"
// +kubebuilder:validation:XValidation:rule="!has(self.rest) || self.type == 'REST'",reason=FieldValueForbidden,fieldPath=".rest",message="rest holds settings of type REST: remove it, or set type to REST"
// +kubebuilder:validation:XValidation:rule="has(self.vsphere) == (self.type == 'VSphere')",reason=FieldValueInvalid,fieldPath=".vsphere",message="vsphere holds the settings of type VSphere: it is required there, and must be absent otherwise"
// +kubebuilder:validation:XValidation:rule="self.type != 'VSphere' || has(self.credentialsSecretRef)",reason=FieldValueRequired,fieldPath=".credentialsSecretRef",message="a cloud of type VSphere needs credentials: set credentialsSecretRef"
// +kubebuilder:validation:XValidation:rule="has(self.openstack) == (self.type == 'OpenStack')",reason=FieldValueInvalid,fieldPath=".openstack",message="openstack holds the settings of type OpenStack: it is required there, and must be absent otherwise"
// +kubebuilder:validation:XValidation:rule="self.type != 'OpenStack' || has(self.credentialsSecretRef)",reason=FieldValueRequired,fieldPath=".credentialsSecretRef",message="a cloud of type OpenStack needs credentials: set credentialsSecretRef"
// +union
type CloudSpec struct {
	// type of the cloud's API: REST, VSphere or OpenStack. It selects the block that
	// holds the settings of this type: rest, vsphere or openstack. Defaults to REST.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Type"
	// +unionDiscriminator
	// +kubebuilder:default=REST
	// +optional
	Type CloudType `json:"type,omitempty"`

	// endpoint is the base URL of the cloud's API, http or https, without
	// user, query or fragment. 1-2048 characters.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Endpoint",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/?#@\\\\s]+(/[^?#\\\\s]*)?$')",message="endpoint must be a URL such as https://cloud.example.com/api, without user, query or fragment"
	// +required
	Endpoint string `json:"endpoint"`

	// credentialsSecretRef names a Secret in the operator's namespace that has
	// either token, or username and password for a session; for VSphere either of
	// these, or tls.crt and tls.key; for OpenStack either clouds.yaml, or
	// applicationCredentialId and applicationCredentialSecret, or username and password.
	// If it has ca.crt, only this CA is trusted. The Secret must have the label
	// samplecontroller.k8s.io/credentials-for with the name of this Cloud. Absent for
	// a cloud that needs no credentials. A change of the Secret takes effect within
	// one pollInterval.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Credentials"
	// +optional
	CredentialsSecretRef *SecretReference `json:"credentialsSecretRef,omitempty"`

	// insecureAllowHTTP allows an endpoint that begins with http:// together with
	// credentialsSecretRef: the credentials are sent without encryption. Use it for
	// tests only. Defaults to false.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Send Credentials Over HTTP",xDescriptors="urn:alm:descriptor:com.tectonic.ui:booleanSwitch"
	// +optional
	InsecureAllowHTTP bool `json:"insecureAllowHTTP,omitempty"`

	// insecureSkipTLSVerify disables the verification of the cloud's certificate.
	// Use it for tests only. Defaults to false.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Accept Any Certificate",xDescriptors="urn:alm:descriptor:com.tectonic.ui:booleanSwitch"
	// +optional
	InsecureSkipTLSVerify bool `json:"insecureSkipTLSVerify,omitempty"`

	// pollInterval is the time between two listings of all servers, 1s-1h. Defaults
	// to 30s.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Poll Interval"
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?(0|([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?(m|s|ms))+)$')",message="pollInterval is a duration in h, m and s, such as 30s"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^-?(0|([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?(m|s|ms))+)$') || (duration(self) >= duration('1s') && duration(self) <= duration('1h'))",message="pollInterval must lie between 1s and 1h"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Type=string
	// +optional
	PollInterval metav1.Duration `json:"pollInterval,omitempty,omitzero"`

	// settleTime is how long after a create whose response was lost the server may
	// still appear, 0s-1h. The operator waits this long before it creates again or
	// completes a deletion, unless the cloud proves the outcome earlier. Defaults
	// to 2m.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Settle Time"
	// +kubebuilder:default="2m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?(0|([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?(m|s|ms))+)$')",message="settleTime is a duration in h, m and s, such as 2m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^-?(0|([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?(m|s|ms))+)$') || (duration(self) >= duration('0s') && duration(self) <= duration('1h'))",message="settleTime must lie between 0s and 1h"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Type=string
	// +optional
	SettleTime *metav1.Duration `json:"settleTime,omitempty"`

	// limits bound the calls of the operator to this cloud.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Limits"
	// +kubebuilder:default={}
	// +optional
	Limits CloudLimits `json:"limits,omitzero"`

	// utilizationStep is the smallest change of cpuUtilization that the operator
	// writes to a VM's status, in percentage points, 1-100. Defaults to 1.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Utilization Step",xDescriptors="urn:alm:descriptor:com.tectonic.ui:number"
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	UtilizationStep int32 `json:"utilizationStep,omitempty"`

	// orphanPolicy is what the operator does with servers that have this cluster's
	// labels and whose VM object no longer exists: Report counts them in
	// status.servers, Delete deletes them. Defaults to Report.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Orphan Policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Report","urn:alm:descriptor:com.tectonic.ui:select:Delete"}
	// +kubebuilder:default=Report
	// +optional
	OrphanPolicy OrphanPolicy `json:"orphanPolicy,omitempty"`

	// allowedNamespaces selects, by their labels, the namespaces whose objects may
	// use this Cloud. Absent means all.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Allowed Namespaces"
	// +optional
	AllowedNamespaces *metav1.LabelSelector `json:"allowedNamespaces,omitempty"`

	// imports is which VMs of the cloud users may import with spec.import: None, Listed
	// for those in importable, or Any for each that belongs to no other object. An
	// imported VM can be changed and deleted through its object. It holds for networks
	// as well unless networkImports is set. Defaults to None. Can be changed at any
	// time; what is imported already stays so.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Imports",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:None","urn:alm:descriptor:com.tectonic.ui:select:Listed","urn:alm:descriptor:com.tectonic.ui:select:Any"}
	// +kubebuilder:default=None
	// +optional
	Imports ImportPolicy `json:"imports,omitempty"`

	// importable lists the VMs that may be imported if imports is Listed, each by one
	// namespace. At most 1000.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Importable VMs"
	// +listType=map
	// +listMapKey=vmId
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	Importable []ImportableVM `json:"importable,omitempty"`

	// networkImports is which networks of the cloud users may import with spec.import:
	// None, Listed for those in importableNetworks, or Any for each that belongs to no
	// other object. Absent means the value of imports. Can be changed at any time; what
	// is imported already stays so.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Network Imports",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:None","urn:alm:descriptor:com.tectonic.ui:select:Listed","urn:alm:descriptor:com.tectonic.ui:select:Any"}
	// +optional
	NetworkImports ImportPolicy `json:"networkImports,omitempty"`

	// importableNetworks lists the networks that may be imported if networkImports is
	// Listed, and by which namespaces: one entry for each network and namespace. At
	// most 1000.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Importable Networks"
	// +listType=map
	// +listMapKey=name
	// +listMapKey=namespace
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	ImportableNetworks []ImportableNetwork `json:"importableNetworks,omitempty"`

	// rest holds the settings of type REST. Absent means the defaults. Can be
	// changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="REST"
	// +unionMember
	// +optional
	REST *RESTCloud `json:"rest,omitempty"`

	// vsphere holds the settings of type VSphere, and is required there.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="vSphere"
	// +unionMember
	// +optional
	VSphere *VSphereCloud `json:"vsphere,omitempty"`

	// openstack holds the settings of type OpenStack, and is required there. Can be
	// changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="OpenStack"
	// +unionMember
	// +optional
	OpenStack *OpenStackCloud `json:"openstack,omitempty"`
}

// CloudLimits bound the calls to one cloud. All kinds share them.
type CloudLimits struct {
	// requestsPerSecond is the sustained rate of requests, 1-10000. Defaults to 50.
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	RequestsPerSecond int32 `json:"requestsPerSecond,omitempty"`
	// burst is how many requests may exceed the rate at once, 1-10000. A quarter of
	// them is kept for namespaces with few requests. Defaults to 100.
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Burst int32 `json:"burst,omitempty"`
	// maxInFlight is how many requests may wait for a response at once, 1-1000.
	// Defaults to 16.
	// +kubebuilder:default=16
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	MaxInFlight int32 `json:"maxInFlight,omitempty"`
}

// CloudServers counts the servers of a cloud in the last complete listing.
type CloudServers struct {
	// known is the number of all servers in the cloud.
	// +optional
	Known int32 `json:"known"`
	// managed is the number of servers that belong to a VM of this cluster.
	// +optional
	Managed int32 `json:"managed"`
	// orphaned is the number of servers that have this cluster's labels and
	// belong to no VM.
	// +optional
	Orphaned int32 `json:"orphaned"`
}

// CloudStatus is the last observed state of a cloud.
type CloudStatus struct {
	// capabilities of the cloud beyond the core calls, sorted. What the operator
	// can guarantee about creates depends on idempotency, labels and uniqueNames;
	// see the message of the Ready condition.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Capabilities"
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Capabilities []string `json:"capabilities,omitempty"`

	// servers counts the cloud's servers in the last complete listing. Absent
	// before the first one.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Servers"
	// +optional
	Servers *CloudServers `json:"servers,omitempty"`

	// brakedSnapshot is the listing that set the brake. Absent while the brake is
	// off.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Braked Snapshot"
	// +kubebuilder:validation:MaxLength=63
	// +optional
	BrakedSnapshot string `json:"brakedSnapshot,omitempty"`

	// observedGeneration is the generation of the spec that this status
	// reflects.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed Generation"
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, Reconciling and Stalled, which every kind has, and
	// Authenticated, Braked, Conformant, InUse and Insecure.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors="urn:alm:descriptor:io.kubernetes.conditions"
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Cloud is a private cloud that VMs, VmGroups, VMSnapshots, Networks and GPUInfos use: its
// endpoint, its credentials and the limits of the operator's calls.
//
// +operator-sdk:csv:customresourcedefinitions:displayName="Cloud",resources={{Secret,v1},{Event,v1}}
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clouds,scope=Cluster,categories=privatecloud
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, private cloud operator"
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.spec.endpoint`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Servers",type=integer,JSONPath=`.status.servers.known`
// +kubebuilder:printcolumn:name="Managed",type=integer,JSONPath=`.status.servers.managed`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Type",type=string,priority=1,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Deleting",type=date,priority=1,JSONPath=`.metadata.deletionTimestamp`
// +kubebuilder:selectablefield:JSONPath=`.spec.type`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",reason=FieldValueInvalid,fieldPath=".metadata",message="a Cloud's name must not be longer than 63 characters"
type Cloud struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec defines where the cloud is and how the operator uses it.
	// +required
	Spec CloudSpec `json:"spec"`
	// status is the last observed state.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status CloudStatus `json:"status,omitzero"`
}

// GetConditions returns the conditions of the Cloud.
func (c *Cloud) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions of the Cloud.
func (c *Cloud) SetConditions(conditions []metav1.Condition) { c.Status.Conditions = conditions }

// SetObservedGeneration records which generation of the spec the status
// reflects.
func (c *Cloud) SetObservedGeneration(generation int64) { c.Status.ObservedGeneration = generation }

// CloudList is a list of Cloud.
//
// +kubebuilder:object:root=true
type CloudList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Cloud `json:"items"`
}

func init() {
	SchemeBuilder.Register(&Cloud{}, &CloudList{})
}
