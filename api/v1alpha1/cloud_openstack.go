package v1alpha1

// FlavorMatch is how a flavor is found for a size.
// +kubebuilder:validation:Enum=Exact;AtLeast
type FlavorMatch string

const (
	FlavorMatchExact   FlavorMatch = "Exact"
	FlavorMatchAtLeast FlavorMatch = "AtLeast"
)

// OpenStackInterface is a kind of endpoint in the catalog of services.
// +kubebuilder:validation:Enum=Public;Internal;Admin
type OpenStackInterface string

const (
	// OpenStackInterfacePublic is for clients of any network.
	OpenStackInterfacePublic OpenStackInterface = "Public"
	// OpenStackInterfaceInternal is for clients inside the cloud's own network.
	OpenStackInterfaceInternal OpenStackInterface = "Internal"
	// OpenStackInterfaceAdmin is for administrators.
	OpenStackInterfaceAdmin OpenStackInterface = "Admin"
)

// OpenStackCloud holds the settings that only a Cloud of type OpenStack has. Its
// endpoint is the URL of the identity service, version 3. One Cloud is one project in
// one region.
type OpenStackCloud struct {
	// cloudName is the name of the cloud in the clouds.yaml of the Secret, at most 255
	// characters. May be empty if the file has one cloud only.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Cloud Name"
	// +kubebuilder:validation:MaxLength=255
	// +optional
	CloudName string `json:"cloudName,omitempty"`

	// region is the region whose services are used, at most 255 characters. Defaults to
	// that of the clouds.yaml. May be empty if the catalog of services has one region only.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Region"
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Region string `json:"region,omitempty"`

	// interface selects the endpoints of the catalog of services: Public, Internal or
	// Admin. Defaults to that of the clouds.yaml, else to Public.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Interface"
	// +optional
	Interface OpenStackInterface `json:"interface,omitempty"`

	// endpoints are the URLs of services that are used in place of those of the catalog.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Endpoints"
	// +optional
	Endpoints OpenStackEndpoints `json:"endpoints,omitzero"`

	// project is the name or the id of the project, at most 64 characters; the name with
	// username and password, where it is required. An application credential, a token and a
	// clouds.yaml have a project already; if project is set, the operator refuses
	// credentials of another one.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Project"
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Project string `json:"project,omitempty"`

	// domain is the name of the domain of the user and of the project, at most 255
	// characters. Used with username and password, and where a clouds.yaml has no domain.
	// Defaults to Default.
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

	// securityGroups says which security groups servers have.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Security Groups"
	// +optional
	SecurityGroups OpenStackSecurityGroups `json:"securityGroups,omitzero"`

	// availabilityZone is where servers are created, at most 255 characters. Empty
	// leaves it to the cloud.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Availability Zone"
	// +kubebuilder:validation:MaxLength=255
	// +optional
	AvailabilityZone string `json:"availabilityZone,omitempty"`

	// keyPair is the name of a key pair of the operator's user: at most 255 letters, digits,
	// spaces and the characters @._-, not beginning with a period. New servers whose image has
	// os_type=windows get it, and the guest encrypts its password with the public key. Empty for
	// none.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Key Pair"
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9@_ -][A-Za-z0-9@._ -]*)?$`
	// +optional
	KeyPair string `json:"keyPair,omitempty"`
}

// OpenStackEndpoints are URLs of services, http or https, without user, query or fragment,
// at most 2048 characters each. The version is added where it is missing.
type OpenStackEndpoints struct {
	// compute is the URL of the compute service (nova).
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^/?#@\s]+(/[^?#\s]*)?$`
	// +optional
	Compute string `json:"compute,omitempty"`

	// network is the URL of the network service (neutron).
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^/?#@\s]+(/[^?#\s]*)?$`
	// +optional
	Network string `json:"network,omitempty"`

	// image is the URL of the image service (glance).
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^/?#@\s]+(/[^?#\s]*)?$`
	// +optional
	Image string `json:"image,omitempty"`

	// blockStorage is the URL of the block storage service (cinder).
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^/?#@\s]+(/[^?#\s]*)?$`
	// +optional
	BlockStorage string `json:"blockStorage,omitempty"`
}

// OpenStackImages says which image servers are created from.
type OpenStackImages struct {
	// default is the image of VMs without template: its name, its id, or "tags:" and tags that
	// it has, separated by commas. At most 255 characters. If it is empty, VMs need a template.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Default string `json:"default,omitempty"`
}

// OpenStackFlavors says which flavor servers have.
type OpenStackFlavors struct {
	// default is the name of the flavor of VMs without className, cpu, memory and flavor, at
	// most 255 characters. If it is empty, VMs need one of these.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Default string `json:"default,omitempty"`

	// match is how the flavor is found that has the cpu and memory of a VM: Exact
	// takes one of exactly this size, AtLeast the smallest that has this size or more.
	// Defaults to Exact.
	// +kubebuilder:default=Exact
	// +optional
	Match FlavorMatch `json:"match,omitempty"`

	// allowed are patterns of the names of the flavors that are chosen for a size, at most 64 of
	// 1-255 characters each: * stands for any characters, and the others for themselves.
	// Other flavors but the default one are chosen by name only. Empty means all.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	// +listType=set
	// +optional
	Allowed []string `json:"allowed,omitempty"`

	// selectable are patterns of the names of the flavors that VMs and VmGroups may name in
	// spec.flavor, as in allowed. Empty means none. VMClasses may name all.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	// +listType=set
	// +optional
	Selectable []string `json:"selectable,omitempty"`
}

// OpenStackSecurityGroups says which security groups servers have.
type OpenStackSecurityGroups struct {
	// default are the names of the security groups that VMs without securityGroups are created with,
	// at most 16. If there are none, the cloud gives them the group "default".
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Default []SecurityGroupName `json:"default,omitempty"`
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

	// allowedAddresses are the addresses and ranges that spec.allowedAddresses of VMs must lie in, at
	// most 64. VMs of all namespaces that may use the Cloud may use them, and can take them from each
	// other. Empty means none.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	AllowedAddresses []AllowedAddress `json:"allowedAddresses,omitempty"`
}
