package v1alpha1

// ImportPolicy is which VMs, or which networks, of a cloud users may import.
// +kubebuilder:validation:Enum=None;Listed;Any
type ImportPolicy string

const (
	ImportPolicyNone   ImportPolicy = "None"
	ImportPolicyListed ImportPolicy = "Listed"
	ImportPolicyAny    ImportPolicy = "Any"
)

// ImportableVM is a VM of the cloud that one namespace may import.
type ImportableVM struct {
	// vmId is the cloud's id of the VM. Required, 1-128 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	VMID string `json:"vmId"`
	// namespace is the namespace whose objects may import the VM. Required, 1-63
	// characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`
}

// ImportableNetwork is a network of the cloud that one namespace may import.
type ImportableNetwork struct {
	// name is the network's name in the cloud. Required, 1-253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// namespace is a namespace whose Networks may import the network. Required, 1-63
	// characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`
}
