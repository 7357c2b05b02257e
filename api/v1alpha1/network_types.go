package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of a Network's conditions that no other kind has.
const (
	// InSyncReason surfaces when the network in the cloud matches the spec.
	InSyncReason = "InSync"
	// NetworkNotReadyReason surfaces on a VM when its Network does not exist, is
	// not created yet, is lost or is being deleted. If the VM is Stalled, the
	// Network is on another Cloud.
	NetworkNotReadyReason = "NetworkNotReady"
)

// NetworkSpec is the desired state of a network.
// +kubebuilder:validation:XValidation:rule="has(self.cidr) || has(self.__import__)",reason=FieldValueRequired,fieldPath=".cidr",message="the network is created with a range, unless import names one that exists"
// +kubebuilder:validation:XValidation:rule="has(self.gateway) || has(self.__import__)",reason=FieldValueRequired,fieldPath=".gateway",message="the network is created with a gateway, unless import names one that exists"
// +kubebuilder:validation:XValidation:rule="!has(self.__import__) || (!has(self.cidr) && !has(self.gateway))",reason=FieldValueForbidden,fieldPath=".import",message="cidr and gateway of an imported network are those that it has in the cloud: remove them, or remove import"
// +kubebuilder:validation:XValidation:rule="!has(self.__import__) || !has(self.dnsNameservers)",reason=FieldValueForbidden,fieldPath=".dnsNameservers",message="an imported network is not changed: remove dnsNameservers, or remove import"
// +kubebuilder:validation:XValidation:rule="!has(self.__import__) || !has(self.router)",reason=FieldValueForbidden,fieldPath=".router",message="an imported network gets no router: remove router, or remove import"
// +kubebuilder:validation:XValidation:rule="!has(self.__import__) || !has(self.ipv6CIDR)",reason=FieldValueForbidden,fieldPath=".ipv6CIDR",message="an imported network is not changed: remove ipv6CIDR, or remove import"
// +kubebuilder:validation:XValidation:rule="!has(self.ipv6CIDR) || !has(self.cidr) || !isCIDR(self.cidr) || cidr(self.cidr).ip().family() == 4",reason=FieldValueInvalid,fieldPath=".ipv6CIDR",message="cidr has IPv6 addresses already: remove ipv6CIDR, or set cidr to an IPv4 range"
// +kubebuilder:validation:XValidation:rule="has(self.__import__) == has(oldSelf.__import__) && (!has(self.__import__) || self.__import__.name == oldSelf.__import__.name)",reason=FieldValueForbidden,fieldPath=".import",message="import cannot be added, changed or removed; delete this Network and make another"
// +kubebuilder:validation:XValidation:rule="!has(self.cidr) || !has(self.gateway) || !isCIDR(self.cidr) || !isIP(self.gateway) || cidr(self.cidr).containsIP(self.gateway)",reason=FieldValueInvalid,fieldPath=".gateway",message="gateway must be an address inside cidr"
type NetworkSpec struct {
	// cidr is the network's address range, such as 192.168.0.0/16. Required without
	// import. Cannot be changed once the network exists.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="CIDR",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self) == cidr(self).masked()",message="cidr must be a range such as 192.168.0.0/16, without address bits behind the prefix"
	// +optional
	CIDR string `json:"cidr,omitempty"`

	// ipv6CIDR is the IPv6 range of a dual-stack network, such as fd00:10::/64. Servers get
	// an IPv6 address from it in addition to the address from cidr. The prefix has 64 bits:
	// guests choose the rest of the address by themselves (SLAAC). Can be added at any time.
	// Cannot be changed or removed once the network has the range. Not with import.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="IPv6 CIDR",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self).ip().family() == 6 && cidr(self).prefixLength() == 64 && string(cidr(self).masked()) == self",message="ipv6CIDR must be an IPv6 range with a prefix of 64 bits in its shortest form, such as fd00:10::/64"
	// +optional
	IPv6CIDR string `json:"ipv6CIDR,omitempty"`

	// gateway is an address inside cidr, such as 192.168.0.1. Required without import.
	// Can be changed: the operator updates the network.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Gateway",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="gateway must be an IP address such as 192.168.0.1"
	// +optional
	Gateway string `json:"gateway,omitempty"`

	// dnsNameservers are the addresses of the DNS servers that the guests of the
	// network learn, in the order in which they are asked. 1-5 addresses, each once.
	// Absent means that the operator leaves those of the cloud as they are. Can be
	// changed: the operator updates the network. Not with import.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="DNS Nameservers"
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:XValidation:rule="self.all(a, !isIP(a) || self.exists_one(b, isIP(b) && ip(a) == ip(b)))",message="each address may be in the list once"
	// +optional
	DNSNameservers []NetworkAddress `json:"dnsNameservers,omitempty"`

	// router connects the network to an external network by a router, which the operator
	// makes and removes with the network. Can be added at any time, and changed: the
	// operator connects the router to the other network. Cannot be removed once the network
	// has a router. Not with import.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Router"
	// +optional
	Router *NetworkRouter `json:"router,omitempty"`

	// cloudRef names the Cloud that the network is in. Defaults to the Cloud in
	// the namespace's label samplecontroller.k8s.io/default-cloud, else to the
	// Cloud "default". Cannot be changed once the network exists.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Cloud"
	// +optional
	CloudRef *CloudReference `json:"cloudRef,omitempty"`

	// import refers to a network that exists in the cloud instead of creating one. The
	// operator never changes or deletes it. Cannot be added, changed or removed.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Import"
	// +optional
	Import *NetworkImport `json:"import,omitempty"`
}

// NetworkRouter is the router of a network.
type NetworkRouter struct {
	// externalNetwork is the name or the id of the network in the cloud that the router
	// connects to. Required, 1-253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	ExternalNetwork string `json:"externalNetwork"`
}

// NetworkRouterStatus is the router of a network, as last observed.
type NetworkRouterStatus struct {
	// id is the cloud's id of the router. Absent on clouds whose routers have none, and while
	// the router is detached or gone.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ID string `json:"id,omitempty"`

	// externalNetwork is the name of the network that the router connects to, or its id
	// if the cloud does not show the name. Absent if it connects to none.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ExternalNetwork string `json:"externalNetwork,omitempty"`

	// externalNetworkId is the id of the network that the router connects to. Absent if it
	// connects to none, and on clouds that do not show ids of networks.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ExternalNetworkID string `json:"externalNetworkId,omitempty"`

	// requestedNetwork is the spec.router.externalNetwork that the router was connected for.
	// Absent on clouds that do not show ids of networks.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	RequestedNetwork string `json:"requestedNetwork,omitempty"`

	// requestedNetworkId is the id of the network that requestedNetwork was the name of. The
	// router stays connected to it if that network is renamed, or another one gets its name.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	RequestedNetworkID string `json:"requestedNetworkId,omitempty"`
}

// NetworkAddress is an IP address, such as 192.168.0.53 or fd00::53.
// +kubebuilder:validation:MaxLength=45
// +kubebuilder:validation:XValidation:rule="isIP(self)",message="must be an IP address such as 192.168.0.53"
type NetworkAddress string

// NetworkImport names an existing network in the cloud.
type NetworkImport struct {
	// name is the network's name in the cloud, which must be the only network of that
	// name there. Required, 1-253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// NetworkStatus is the last observed state of a network.
type NetworkStatus struct {
	// networkId is the cloud's id of this network. Set once and never changed.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Network ID"
	// +kubebuilder:validation:MaxLength=128
	// +optional
	NetworkID string `json:"networkId,omitempty"`

	// nameInCloud is the name of the network in the cloud: the one that the cloud gave it at
	// the create or, of an imported network, as last observed.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Name in the Cloud"
	// +kubebuilder:validation:MaxLength=253
	// +optional
	NameInCloud string `json:"nameInCloud,omitempty"`

	// cidr is the network's address range in the cloud, as last observed. Absent if the
	// cloud does not report it.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="CIDR"
	// +kubebuilder:validation:MaxLength=253
	// +optional
	CIDR string `json:"cidr,omitempty"`

	// ipv6CIDR is the IPv6 range of the network in the cloud, as last observed. Absent if
	// it has none, or the cloud does not report it.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="IPv6 CIDR"
	// +kubebuilder:validation:MaxLength=253
	// +optional
	IPv6CIDR string `json:"ipv6CIDR,omitempty"`

	// gateway is the network's gateway in the cloud, as last observed. Absent if the
	// cloud does not report it.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Gateway"
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Gateway string `json:"gateway,omitempty"`

	// dnsNameservers are the DNS servers of the network in the cloud, as last
	// observed. Absent if it has none, or the cloud does not report them.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="DNS Nameservers"
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	DNSNameservers []string `json:"dnsNameservers,omitempty"`

	// router is the router that the operator made for the network, as last observed. Absent
	// before it is observed for the first time.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Router"
	// +optional
	Router *NetworkRouterStatus `json:"router,omitempty"`

	// createdTime is when networkId was set: when the cloud answered the create, or
	// when the network was found or imported.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Created Time"
	// +optional
	CreatedTime *metav1.Time `json:"createdTime,omitempty"`

	// attachedVMs is the number of VMs of this namespace that refer to this
	// network and exist, or may exist, in the cloud.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Attached VMs"
	// +kubebuilder:default=0
	// +optional
	AttachedVMs int32 `json:"attachedVMs"`

	// cloud is the name of the Cloud that the network is in.
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Cloud"
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Cloud string `json:"cloud,omitempty"`

	// observedGeneration is the generation of the spec that this status
	// reflects.
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

// Network is a network in a private cloud that VMs can be attached to: created
// when the object is, kept in sync with the spec, and deleted before the object
// is removed, once no VM is attached. With import, it is a network that exists,
// and stays as it is.
//
// +operator-sdk:csv:customresourcedefinitions:displayName="Network",resources={{Event,v1}}
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=networks,scope=Namespaced,categories=privatecloud
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, private cloud operator"
// +kubebuilder:printcolumn:name="CIDR",type=string,JSONPath=`.status.cidr`
// +kubebuilder:printcolumn:name="Gateway",type=string,JSONPath=`.status.gateway`
// +kubebuilder:printcolumn:name="Network ID",type=string,JSONPath=`.status.networkId`
// +kubebuilder:printcolumn:name="VMs",type=integer,JSONPath=`.status.attachedVMs`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="IPv6 CIDR",type=string,priority=1,JSONPath=`.status.ipv6CIDR`
// +kubebuilder:printcolumn:name="Cloud",type=string,priority=1,JSONPath=`.status.cloud`
// +kubebuilder:printcolumn:name="Deleting",type=date,priority=1,JSONPath=`.metadata.deletionTimestamp`
// +kubebuilder:selectablefield:JSONPath=`.status.cloud`
// +kubebuilder:selectablefield:JSONPath=`.spec.cloudRef.name`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.networkId) || (has(self.status) && has(self.status.networkId) && self.status.networkId == oldSelf.status.networkId)",reason=FieldValueForbidden,fieldPath=".status.networkId",message="status.networkId cannot be changed once it is set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.networkId) || !has(self.spec.cidr) || !has(oldSelf.spec.cidr) || self.spec.cidr == oldSelf.spec.cidr",reason=FieldValueForbidden,fieldPath=".spec.cidr",message="cidr cannot be changed once the network exists; delete this Network and make another"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.ipv6CIDR) || !has(oldSelf.spec.ipv6CIDR) || oldSelf.spec.ipv6CIDR != oldSelf.status.ipv6CIDR || (has(self.spec.ipv6CIDR) && self.spec.ipv6CIDR == oldSelf.spec.ipv6CIDR)",reason=FieldValueForbidden,fieldPath=".spec.ipv6CIDR",message="ipv6CIDR cannot be changed or removed once the network has it; delete this Network and make another"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.networkId) || !has(self.spec.cloudRef) || self.spec.cloudRef.name == oldSelf.status.cloud",reason=FieldValueForbidden,fieldPath=".spec.cloudRef",message="cloudRef cannot be changed once the network exists; delete this Network and make another"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.router) || !has(oldSelf.spec.router) || has(self.spec.router)",reason=FieldValueForbidden,fieldPath=".spec.router",message="router cannot be removed once the network has one; delete this Network and make another"
type Network struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	// +required
	Spec NetworkSpec `json:"spec"`
	// status is the last observed state.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status NetworkStatus `json:"status,omitzero"`
}

// GetConditions returns the conditions of the Network.
func (n *Network) GetConditions() []metav1.Condition { return n.Status.Conditions }

// SetConditions replaces the conditions of the Network.
func (n *Network) SetConditions(conditions []metav1.Condition) { n.Status.Conditions = conditions }

// SetObservedGeneration records which generation of the spec the status
// reflects.
func (n *Network) SetObservedGeneration(generation int64) { n.Status.ObservedGeneration = generation }

// NetworkList is a list of Network.
//
// +kubebuilder:object:root=true
type NetworkList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Network `json:"items"`
}

func init() {
	SchemeBuilder.Register(&Network{}, &NetworkList{})
}
