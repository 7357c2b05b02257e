package v1alpha1

// FlavorMatch is how a flavor is found for a size.
// +kubebuilder:validation:Enum=Exact;AtLeast
type FlavorMatch string

const (
	FlavorMatchExact   FlavorMatch = "Exact"
	FlavorMatchAtLeast FlavorMatch = "AtLeast"
)

// OpenStackCloud holds the settings that only a Cloud of type OpenStack has. Its
// endpoint is the URL of the identity service, version 3. One Cloud is one project in
// one region.
type OpenStackCloud struct {
	// region is the region whose services are used, at most 255 characters. May be
	// empty if the catalog of services has one region only.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Region"
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Region string `json:"region,omitempty"`

	// project is the name of the project, at most 64 characters. Required with
	// username and password. An application credential belongs to a project already;
	// if project is set, the operator refuses a credential of another one.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Project"
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Project string `json:"project,omitempty"`

	// domain is the name of the domain of the user and of the project, at most 255
	// characters. Used with username and password only. Defaults to Default.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Domain"
	// +kubebuilder:default=Default
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Domain string `json:"domain,omitempty"`

	// images says which image servers are created from.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Images"
	// +optional
	Images OpenStackImages `json:"images,omitzero"`

	// flavors says which flavor servers have.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Flavors"
	// +kubebuilder:default={}
	// +optional
	Flavors OpenStackFlavors `json:"flavors,omitzero"`

	// network says which network servers are attached to.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Network"
	// +kubebuilder:default={}
	// +optional
	Network OpenStackNetwork `json:"network,omitzero"`

	// availabilityZone is where servers are created, at most 255 characters. Empty
	// leaves it to the cloud.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Availability Zone"
	// +kubebuilder:validation:MaxLength=255
	// +optional
	AvailabilityZone string `json:"availabilityZone,omitempty"`
}

// OpenStackImages says which image servers are created from.
type OpenStackImages struct {
	// default is the name or id of the image of VMs without template, at most 255
	// characters. If it is empty, VMs need a template.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Default string `json:"default,omitempty"`
}

// OpenStackFlavors says which flavor servers have.
type OpenStackFlavors struct {
	// default is the name of the flavor of VMs without cpu and memory, at most 255
	// characters. If it is empty, VMs need cpu or memory.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Default string `json:"default,omitempty"`

	// match is how the flavor is found that has the cpu and memory of a VM: Exact
	// takes one of exactly this size, AtLeast the smallest that has this size or more.
	// Defaults to Exact.
	// +kubebuilder:default=Exact
	// +optional
	Match FlavorMatch `json:"match,omitempty"`
}

// OpenStackNetwork says which network servers are attached to.
type OpenStackNetwork struct {
	// default is the network of VMs without networkRef and network: none, auto for what the cloud
	// chooses, or the name or id of a network. 1-255 characters. Defaults to none.
	// +kubebuilder:default=none
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Default string `json:"default,omitempty"`
}
