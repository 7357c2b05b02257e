package v1alpha1

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
