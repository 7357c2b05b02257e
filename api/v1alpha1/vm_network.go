package v1alpha1

// VMNetwork is the network interfaces of a VM.
// +kubebuilder:validation:XValidation:rule="self.interfaces.all(i, !has(i.addresses) || i.addresses.all(a, self.interfaces.exists_one(o, o.networkRef.name == i.networkRef.name && has(o.addresses) && a in o.addresses)))",reason=FieldValueInvalid,fieldPath=".interfaces",message="two interfaces on one Network cannot have the same address: change one of them"
type VMNetwork struct {
	// interfaces are the network interfaces of the VM in their order, 1-8. Required.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +required
	Interfaces []VMInterface `json:"interfaces"`
}

// VMInterface is a network interface of a VM.
type VMInterface struct {
	// name identifies the interface among those of the VM. The guest may name it otherwise.
	// Required, 1-63 characters: lower-case letters, digits and hyphens, which are not at the
	// ends.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	Name string `json:"name"`

	// networkRef names the Network of this namespace that the interface is attached to. The
	// VM is created once all its Networks are Ready. Required.
	// +required
	NetworkRef NetworkReference `json:"networkRef"`

	// addresses is the static IP address of the interface, at most one, inside the range of
	// the Network. If absent, the cloud decides.
	// +listType=set
	// +kubebuilder:validation:MaxItems=1
	// +optional
	Addresses []VMAddress `json:"addresses,omitempty"`
}

// VMAddress is an IPv4 or IPv6 address in its canonical form, without a prefix length. It is
// at most 39 characters long.
// +kubebuilder:validation:MaxLength=39
// +kubebuilder:validation:XValidation:rule="isIP(self) && ip.isCanonical(self)",reason=FieldValueInvalid,message="an address is an IP address in its canonical form and without a prefix length, such as 192.168.0.10 or fd00::10"
type VMAddress string

// VmGroupNetwork is the network interfaces of each member of a VmGroup.
type VmGroupNetwork struct {
	// interfaces are the network interfaces of each member in their order, 1-8. Required.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +required
	Interfaces []VmGroupInterface `json:"interfaces"`
}

// VmGroupInterface is a network interface of each member of a VmGroup. It has no static
// address, which members cannot share.
type VmGroupInterface struct {
	// name identifies the interface among those of a member. The guest may name it otherwise.
	// Required, 1-63 characters: lower-case letters, digits and hyphens, which are not at the
	// ends.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	Name string `json:"name"`

	// networkRef names the Network of this namespace that the interface is attached to.
	// Required.
	// +required
	NetworkRef NetworkReference `json:"networkRef"`
}
