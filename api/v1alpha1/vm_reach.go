package v1alpha1

// SecurityGroupName is the name of a security group in the cloud. It has 1-255 characters.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=255
// +kubebuilder:validation:XValidation:rule="!self.matches('[\\x00-\\x1f\\x7f]')",reason=FieldValueInvalid,message="the name of a security group has no control characters"
type SecurityGroupName string

// VMPublicAddress is an address of an external network that leads to a VM.
type VMPublicAddress struct {
	// network is the name of the external network in the cloud. Required, 1-255 characters.
	// Cannot be changed once the VM exists: remove publicAddress, and add it again.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	Network string `json:"network"`
}
