package v1alpha1

// CloneMode is how a VM is made from a template.
// +kubebuilder:validation:Enum=Full;Linked
type CloneMode string

const (
	// CloneModeFull copies the disks of the template.
	CloneModeFull CloneMode = "Full"
	// CloneModeLinked makes disks that hold only what differs from the template's
	// current snapshot.
	CloneModeLinked CloneMode = "Linked"
)

// VSphereCloud holds the settings that only a Cloud of type VSphere has: the part of
// the inventory of a vCenter that the operator uses. What it names must exist.
type VSphereCloud struct {
	// datacenter is the name or the inventory path of the datacenter, 0-512
	// characters. May be absent if the vCenter has only one. Can be changed at any
	// time, but VMs in another datacenter count as lost.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Datacenter"
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Datacenter string `json:"datacenter,omitempty"`

	// folder is the VM folder that belongs to the operator: its name, or its path below
	// the datacenter's VM folder. VMs outside of it are not listed, changed or deleted.
	// Each VmGroup gets a folder in it. Required, 1-512 characters. Can be changed at
	// any time, but VMs in another folder count as lost.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Folder"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +required
	Folder string `json:"folder"`

	// resourcePool is the name or the inventory path of the resource pool of new VMs,
	// such as /DC0/host/C0/Resources, 0-512 characters. May be absent if the datacenter
	// has only one. Its cluster needs DRS, or must have one host. Can be changed at any
	// time; existing VMs stay where they are.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Resource Pool"
	// +kubebuilder:validation:MaxLength=512
	// +optional
	ResourcePool string `json:"resourcePool,omitempty"`

	// datastore is the name or the inventory path of the datastore of new VMs, 0-512
	// characters. May be absent if the datacenter has only one. Can be changed at any
	// time; existing VMs stay where they are.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Datastore"
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Datastore string `json:"datastore,omitempty"`

	// zones are the zones that VMs name in spec.zone, at most 32. A VM with a zone is
	// created in the resource pool of the zone, a VM without one in resourcePool. Absent
	// means that no VM can name a zone. Can be changed at any time; existing VMs stay
	// where they are.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Zones"
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	// +optional
	Zones []VSphereZone `json:"zones,omitempty"`

	// templates says which templates there are. Absent means those in folder.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Templates"
	// +optional
	Templates VSphereTemplates `json:"templates,omitzero"`

	// cloneMode is how VMs are made: Full copies the disks of the template, Linked
	// shares them with the template's current snapshot, which must exist. Defaults to
	// Full. Can be changed at any time; existing VMs stay as they are.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Clone Mode",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Full","urn:alm:descriptor:com.tectonic.ui:select:Linked"}
	// +kubebuilder:default=Full
	// +optional
	CloneMode CloneMode `json:"cloneMode,omitempty"`

	// networks says what new VMs are connected to. Absent means the networks of the
	// template.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Networks"
	// +optional
	Networks VSphereNetworks `json:"networks,omitzero"`
}

// VSphereZone is a resource pool, and so a cluster, under the name that VMs use.
type VSphereZone struct {
	// name is what VMs give as spec.zone. Required, 1-63 characters, unique in the list.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`

	// resourcePool is the name or the inventory path of the resource pool of new VMs of
	// the zone, such as /DC0/host/C1/Resources. No two zones have the same. VMs in a pool
	// below it are not in the zone. Its cluster needs DRS, or must have one host.
	// Required, 1-512 characters. Can be changed at any time; existing VMs stay where
	// they are.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +required
	ResourcePool string `json:"resourcePool"`

	// datastore is the name or the inventory path of the datastore of new VMs of the
	// zone, 0-512 characters. Defaults to the datastore of the VMs without a zone. Can be
	// changed at any time; existing VMs stay where they are.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Datastore string `json:"datastore,omitempty"`
}

// VSphereTemplates says which templates VMs are made from.
type VSphereTemplates struct {
	// folder is the VM folder with the templates that users may name: its name, or its
	// path below the datacenter's VM folder, 0-512 characters. Templates in folders
	// below it do not count. Defaults to the folder of the VMs. Can be changed at any
	// time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Template Folder"
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Folder string `json:"folder,omitempty"`

	// default is the name of the template of VMs that name none, 0-80 characters.
	// Absent means that each VM must name one. Can be changed at any time.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Default Template"
	// +kubebuilder:validation:MaxLength=80
	// +optional
	Default string `json:"default,omitempty"`
}

// VSphereNetworks says what VMs are connected to.
type VSphereNetworks struct {
	// default is the name or the inventory path of the network or port group that the
	// first network adapter of new VMs is connected to, 0-512 characters. Absent means
	// that of the template. Can be changed at any time; existing VMs stay connected as
	// they are.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Default Network"
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Default string `json:"default,omitempty"`
}
