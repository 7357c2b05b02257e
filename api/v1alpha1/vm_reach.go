package v1alpha1

// SecurityGroupName is the name of a security group in the cloud. It has 1-255 characters.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=255
// +kubebuilder:validation:XValidation:rule="!self.matches('[\\x00-\\x1f\\x7f]')",reason=FieldValueInvalid,message="the name of a security group has no control characters"
type SecurityGroupName string

// AllowedAddress is an IP address such as 192.168.0.10, or a range such as 192.168.0.0/28, in its canonical
// form. It has at most 43 characters.
// +kubebuilder:validation:MaxLength=43
// +kubebuilder:validation:XValidation:rule="isIP(self) ? ip.isCanonical(self) : isCIDR(self) && string(cidr(self).masked()) == self && cidr(self).prefixLength() < (cidr(self).ip().family() == 4 ? 32 : 128)",reason=FieldValueInvalid,message="must be an IP address such as 192.168.0.10, or a range of several such as 192.168.0.0/28 without address bits behind the prefix, in its canonical form"
type AllowedAddress string

// VMPublicAddress is an address of an external network that leads to a VM.
type VMPublicAddress struct {
	// network is the name of the external network in the cloud. Required, 1-255 characters.
	// Cannot be changed once the VM exists: remove publicAddress, and add it again.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	Network string `json:"network"`
}
