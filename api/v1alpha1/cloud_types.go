package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultCloudName is the Cloud that objects use which name none.
const DefaultCloudName = "default"

// Conditions of a Cloud, besides the trio.
const (
	// AuthenticatedCondition tells whether the cloud accepts the credentials.
	AuthenticatedCondition = "Authenticated"
	// BrakedCondition is True when so many servers vanished at once that
	// nothing is created or deleted until somebody has looked.
	BrakedCondition = "Braked"
)

// Reasons of a Cloud's conditions.
const (
	// ConnectedReason: the last poll succeeded.
	ConnectedReason = "Connected"
	// ConnectingReason: the cloud has not been polled yet.
	ConnectingReason = "Connecting"
	// InvalidConfigurationReason: the endpoint, CA or Secret cannot be used as
	// written.
	InvalidConfigurationReason = "InvalidConfiguration"
	// SecretMissingReason: the Secret with the credentials does not exist.
	SecretMissingReason = "SecretMissing"
	// AuthenticationFailedReason: the cloud refused the credentials.
	AuthenticationFailedReason = "AuthenticationFailed"
	// UntrustedReason: the cloud's certificate could not be verified.
	UntrustedReason = "Untrusted"
	// UnreachableReason: the cloud does not answer.
	UnreachableReason = "Unreachable"
	// PollFailedReason: the cloud answered the poll with something that cannot
	// be used.
	PollFailedReason = "PollFailed"
	// AcceptedReason: the cloud accepted the credentials, or needs none.
	AcceptedReason = "Accepted"
	// ServersVanishedReason: many servers that this operator manages were
	// missing from one listing.
	ServersVanishedReason = "ServersVanished"
	// ReleasedReason: the brake is not on.
	ReleasedReason = "Released"
	// InUseReason: the Cloud is being deleted while VMs still refer to it.
	InUseReason = "InUse"
)

// CloudType is how a cloud is talked to.
// +kubebuilder:validation:Enum=REST
type CloudType string

const CloudTypeREST CloudType = "REST"

// OrphanPolicy is what to do with servers whose object is gone.
// +kubebuilder:validation:Enum=Report;Delete
type OrphanPolicy string

const (
	OrphanPolicyReport OrphanPolicy = "Report"
	OrphanPolicyDelete OrphanPolicy = "Delete"
)

// CloudSpec defines where a cloud is and how the operator uses it.
// +union
type CloudSpec struct {
	// type is the type of the cloud's API: REST. It selects the block of settings
	// that only this type has: rest. Defaults to REST.
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

	// credentialsSecretRef names a Secret in the operator's namespace with
	// either token, or username and password for a session; ca.crt in it is
	// the only CA then trusted. Absent for a cloud that asks for none. A
	// change of the Secret takes effect within one pollInterval.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Credentials"
	// +optional
	CredentialsSecretRef *SecretReference `json:"credentialsSecretRef,omitempty"`

	// insecureSkipTLSVerify accepts any certificate. For trials only. Defaults
	// to false.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Accept Any Certificate",xDescriptors="urn:alm:descriptor:com.tectonic.ui:booleanSwitch"
	// +optional
	InsecureSkipTLSVerify bool `json:"insecureSkipTLSVerify,omitempty"`

	// pollInterval is the time between two listings of all servers, 1s-1h.
	// Defaults to 30s.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Poll Interval"
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="pollInterval must lie between 1s and 1h"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Type=string
	// +optional
	PollInterval metav1.Duration `json:"pollInterval,omitempty,omitzero"`

	// settleTime is how long after a create with a lost answer the cloud may
	// still bring forth the server, 0s-1h. A second create, or the end of a
	// deletion, waits this long where the cloud gives no surer sign. Defaults
	// to 2m.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Settle Time"
	// +kubebuilder:default="2m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('1h')",message="settleTime must lie between 0s and 1h"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Type=string
	// +optional
	SettleTime *metav1.Duration `json:"settleTime,omitempty"`

	// limits bound the calls to this cloud.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Limits"
	// +kubebuilder:default={}
	// +optional
	Limits CloudLimits `json:"limits,omitzero"`

	// utilizationStep is the smallest change of cpuUtilization that is written
	// to a VM's status, in percent points, 1-100. Defaults to 1.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Utilization Step",xDescriptors="urn:alm:descriptor:com.tectonic.ui:number"
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	UtilizationStep int32 `json:"utilizationStep,omitempty"`

	// orphanPolicy is what happens to servers that carry this cluster's labels
	// and whose VM is proved gone: Report counts them in status.servers,
	// Delete removes them. Defaults to Report.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Orphan Policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Report","urn:alm:descriptor:com.tectonic.ui:select:Delete"}
	// +kubebuilder:default=Report
	// +optional
	OrphanPolicy OrphanPolicy `json:"orphanPolicy,omitempty"`

	// allowedNamespaces selects the namespaces whose objects may use this
	// Cloud. Absent means all.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Allowed Namespaces"
	// +optional
	AllowedNamespaces *metav1.LabelSelector `json:"allowedNamespaces,omitempty"`

	// rest holds the settings that only type REST has. Absent means their
	// defaults. Can be changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="REST"
	// +unionMember
	// +optional
	REST *RESTCloud `json:"rest,omitempty"`
}

// RESTCloud holds the settings that only a Cloud of type REST has.
type RESTCloud struct {
	// uniqueNames is whether the cloud rejects a second server of the same name.
	// It applies only to a cloud without GET /capabilities; other clouds report
	// this themselves. If true, a server whose create was interrupted is found
	// again by its name. Defaults to true. Can be changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Unique Names",xDescriptors="urn:alm:descriptor:com.tectonic.ui:booleanSwitch"
	// +kubebuilder:default=true
	// +optional
	UniqueNames *bool `json:"uniqueNames,omitempty"`
}

// CloudLimits bound the calls to one cloud, shared by all kinds.
type CloudLimits struct {
	// requestsPerSecond is the steady rate, 1-10000. Defaults to 50.
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	RequestsPerSecond int32 `json:"requestsPerSecond,omitempty"`
	// burst is how many calls may exceed the rate at once, 1-10000. Defaults
	// to 100.
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Burst int32 `json:"burst,omitempty"`
	// maxInFlight is how many calls may wait for an answer at once, 1-1000.
	// Defaults to 16.
	// +kubebuilder:default=16
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	MaxInFlight int32 `json:"maxInFlight,omitempty"`
}

// CloudServers counts servers of a cloud, at the last complete listing.
type CloudServers struct {
	// known is the number of servers in the cloud, anyone's.
	// +optional
	Known int32 `json:"known"`
	// managed is the number of servers that belong to a VM of this cluster.
	// +optional
	Managed int32 `json:"managed"`
	// orphaned is the number of servers that carry this cluster's labels and
	// belong to no VM.
	// +optional
	Orphaned int32 `json:"orphaned"`
}

// CloudStatus is what was last seen of a cloud.
type CloudStatus struct {
	// capabilities that the cloud has beyond the core calls, sorted. What it
	// can guarantee about creates follows from idempotency, labels and
	// uniqueNames; see the Ready condition's message.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Capabilities"
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Capabilities []string `json:"capabilities,omitempty"`

	// servers counts the cloud's servers at the last complete listing; absent
	// before the first.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Servers"
	// +optional
	Servers *CloudServers `json:"servers,omitempty"`

	// brakedSnapshot names the listing that set the brake; absent when the
	// brake is off.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Braked Snapshot"
	// +kubebuilder:validation:MaxLength=63
	// +optional
	BrakedSnapshot string `json:"brakedSnapshot,omitempty"`

	// observedGeneration is the generation of the spec that this status
	// answers to.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed Generation"
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: Ready, Reconciling and Stalled as everywhere, and
	// Authenticated, Braked.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors="urn:alm:descriptor:io.kubernetes.conditions"
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Cloud is a private cloud that objects of this group can use: where it
// is, how to log in and how hard it may be driven.
//
// +operator-sdk:csv:customresourcedefinitions:displayName="Cloud",resources={{Secret,v1},{Event,v1}}
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clouds,scope=Cluster,categories=privatecloud
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, private cloud operator"
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.spec.endpoint`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Servers",type=integer,JSONPath=`.status.servers.known`
// +kubebuilder:printcolumn:name="Managed",type=integer,JSONPath=`.status.servers.managed`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="a Cloud's name must not be longer than 63 characters"
type Cloud struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says where the cloud is and how to treat it.
	// +required
	Spec CloudSpec `json:"spec"`
	// status is what was last seen.
	// +optional
	Status CloudStatus `json:"status,omitzero"`
}

// GetConditions returns the conditions of the Cloud.
func (c *Cloud) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions of the Cloud.
func (c *Cloud) SetConditions(conditions []metav1.Condition) { c.Status.Conditions = conditions }

// SetObservedGeneration records which generation of the spec the status
// answers to.
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
