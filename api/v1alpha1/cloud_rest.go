package v1alpha1

// RESTCloud holds the settings that only a Cloud of type REST has.
type RESTCloud struct {
	// uniqueNames is whether the cloud rejects a second server with the same name.
	// It applies only to a cloud without GET /capabilities; other clouds report it
	// as a capability. If true, the operator finds a server by its name after the
	// response to its create was lost. Defaults to true. Can be changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Unique Names",xDescriptors="urn:alm:descriptor:com.tectonic.ui:booleanSwitch"
	// +kubebuilder:default=true
	// +optional
	UniqueNames *bool `json:"uniqueNames,omitempty"`

	// exclusiveNames states that nobody else creates servers with the names that VMs
	// of this cluster use: no person, no other cluster. It matters on a cloud with
	// unique names and without labels. If true, the operator takes a server with the
	// name of a VM, found after the response to its create was lost, as that VM's.
	// If false, a person decides. Defaults to false. Can be changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Exclusive Names",xDescriptors="urn:alm:descriptor:com.tectonic.ui:booleanSwitch"
	// +optional
	ExclusiveNames bool `json:"exclusiveNames,omitempty"`

	// capabilities are those of the cloud. If present, the operator does not ask GET
	// /capabilities; an empty list declares a cloud with the core profile. Absent
	// means that the cloud is asked. Can be changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Capabilities"
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Capabilities []RESTCapability `json:"capabilities,omitzero"`
}

// RESTCapability is a capability that a cloud of type REST may have.
// +kubebuilder:validation:Enum=idempotency;labels;uniqueNames;bulkStatus;async;power;resize;folders;networks;hosts;events;sessions;operations;folderNames;userData;addresses;snapshots;revert;softPowerOff;disks;zones;antiAffinity;guestHeartbeat;suspend;interfaces;staticAddresses;securityGroups;publicAddresses;allowedAddresses;networkDNS;routers;dualStack;rootDisk;diskTypes;keepDisks;console
type RESTCapability string
